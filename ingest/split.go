package ingest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gnnstore/gnnstore/store"
)

// defaultSplit is made when nothing is asked for and nothing given.
var defaultSplit = splitPlan{kind: "random", fractions: [3]float64{0.6, 0.2, 0.2}}

// chooseSplit settles the default, and refuses a split that the source cannot have.
func (b *builder) chooseSplit() error {
	s := b.schema
	switch b.split.kind {
	case "":
		if b.split.kind = "given"; len(s.Splits) == 0 {
			b.split = defaultSplit
			b.note("the source has no split: made %v with seed %d", b.split, b.Seed)
		}
	case "given":
		if len(s.Splits) == 0 {
			return errors.New("--split given: the source has no split; choose random:a/b/c or per-class:t/v")
		}
	case "per-class":
		if len(s.Labels) == 0 {
			return errors.New("--split per-class: the source has no labels; choose random:a/b/c")
		}
		for _, l := range s.firstLabels() {
			if l.Multi {
				return fmt.Errorf("--split per-class: a node may have several classes of label %s; choose random:a/b/c", l.Name)
			}
		}
	}
	if b.split.kind != "given" {
		for _, p := range s.Splits {
			b.drop("split %s: --split %v takes its place", p.Name, b.split)
		}
	}
	return nil
}

// firstLabels are the labels that made splits go by: the first of each node type.
func (s *Schema) firstLabels() []Label {
	var first []Label
	seen := map[string]bool{}
	for _, l := range s.Labels {
		if !seen[l.NodeType] {
			first = append(first, l)
		}
		seen[l.NodeType] = true
	}
	return first
}

// writeSplits writes the given splits, or one made for each labelled node type: for each node type when nothing is.
func (b *builder) writeSplits(ctx context.Context) error {
	if b.split.kind == "given" {
		for i := range b.schema.Splits {
			if err := b.resolveSplit(ctx, i); err != nil {
				return err
			}
		}
		return nil
	}
	var types []string
	for _, l := range b.schema.firstLabels() {
		types = append(types, l.NodeType)
	}
	if len(types) == 0 {
		for _, t := range b.schema.NodeTypes {
			types = append(types, t.Name)
		}
	}
	for i, t := range types {
		name := b.split.kind
		if len(types) > 1 {
			name += "-" + t // names are unique over all types
		}
		rng := rand.New(rand.NewPCG(b.Seed, mix(uint64(i)+1)))
		parts, err := b.draw(b.typeOf(t), b.labelled[t], rng)
		if err != nil {
			return err
		}
		if err := b.addSplit(name, b.typeOf(t), parts); err != nil {
			return err
		}
	}
	return nil
}

// draw makes the three parts of a split, as rows.
func (b *builder) draw(n *nodes, known *labelled, rng *rand.Rand) (parts [3][]uint32, err error) {
	var rows []uint32
	for row := range n.count {
		if known == nil || known.has[row] {
			rows = append(rows, uint32(row))
		}
	}
	rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	if b.split.kind == "per-class" {
		return drawPerClass(rows, known, b.split)
	}
	sum, from := 0.0, 0
	for p, f := range b.split.fractions {
		sum += f // cumulated, so that rounding loses no node when the fractions sum to 1
		to := min(len(rows), int(math.Round(sum*float64(len(rows)))))
		parts[p] = rows[from:to]
		from = to
	}
	return parts, nil
}

// drawPerClass takes the first t rows of a class for training, the next v for validation, and tests on the rest.
func drawPerClass(rows []uint32, known *labelled, s splitPlan) (parts [3][]uint32, err error) {
	taken := make([]int, known.classes)
	for _, row := range rows {
		c := known.class[row]
		part := Test
		if taken[c] < s.train {
			part = Train
		} else if taken[c] < s.train+s.val {
			part = Valid
		}
		taken[c]++
		parts[part] = append(parts[part], row)
	}
	for c, n := range taken {
		if n < s.train+s.val {
			name := fmt.Sprint(c)
			if c < len(known.label.ClassNames) {
				name += fmt.Sprintf(" (%s)", known.label.ClassNames[c])
			}
			return parts, fmt.Errorf("--split %v: class %s of label %s has %d nodes, and %d are needed; ask for fewer, or for random:a/b/c",
				s, name, known.label.Name, n, s.train+s.val)
		}
	}
	return parts, nil
}

// resolveSplit reads split i of the source.
func (b *builder) resolveSplit(ctx context.Context, i int) error {
	s := b.schema.Splits[i]
	n := b.typeOf(s.NodeType)
	b.meter.begin("write splits", -1, "nodes")
	var parts [3][]uint32
	in := make([]uint8, n.count) // 1 + the part of each row
	for part := range parts {
		var from origin
		err := b.src.Split(ctx, i, Part(part), func(c IDChunk) error {
			if err := from.follow(ctx, c.Place, len(c.IDs)); err != nil {
				return err
			}
			for k, id := range c.IDs {
				row, ok := n.row(id)
				if !ok {
					return fmt.Errorf("%s: row %d (counting from 0): node %s", c.File, c.First+int64(k), n.unknown(id))
				}
				if in[row] != 0 {
					return fmt.Errorf("%s: row %d (counting from 0): node %d is already in %v; the parts of split %s must not overlap",
						c.File, c.First+int64(k), id, Part(in[row]-1), s.Name)
				}
				in[row] = uint8(part) + 1
				parts[part] = append(parts[part], row)
			}
			b.meter.add(len(c.IDs))
			return nil
		})
		if err != nil {
			return err
		}
	}
	b.meter.end()
	if known := b.labelled[s.NodeType]; known != nil {
		unlabelled := 0
		for row, part := range in {
			if part != 0 && !known.has[row] {
				unlabelled++
			}
		}
		if unlabelled > 0 {
			b.note("split %s holds %d nodes without label %s", s.Name, unlabelled, known.label.Name)
		}
	}
	return b.addSplit(s.Name, n, parts)
}

// addSplit writes parts given by rows.
func (b *builder) addSplit(name string, n *nodes, parts [3][]uint32) error {
	for p := range parts {
		stored := make([]store.NodeID, len(parts[p]))
		for k, row := range parts[p] {
			stored[k] = n.storedID(row)
		}
		parts[p] = stored
	}
	b.report.Splits = append(b.report.Splits, SplitReport{
		Name: name, NodeType: n.name, Train: len(parts[Train]), Valid: len(parts[Valid]), Test: len(parts[Test]),
	})
	return b.w.AddSplit(name, n.name, parts[Train], parts[Valid], parts[Test])
}
