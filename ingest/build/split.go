package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// defaultSplit is made when nothing is asked for and nothing given.
var defaultSplit = splitPlan{kind: "random", fractions: [3]float64{0.6, 0.2, 0.2}}

// chooseSplit settles the default, and refuses a split that the source cannot have.
func (b *builder) chooseSplit() error {
	s := b.schema
	if b.streams() {
		return b.chooseStreamSplit()
	}
	switch b.split.kind {
	case "":
		if b.split.kind = "given"; len(s.Splits) == 0 {
			b.split = defaultSplit
			b.note("the source has no split: made %v with seed %d", b.split, b.Seed)
		}
	case "given":
		if len(s.Splits) == 0 {
			return errors.New("{split} given: the source has no split; choose random:a/b/c or per-class:t/v")
		}
	case "per-class":
		if len(s.Labels) == 0 {
			return fmt.Errorf("{split} per-class: %s; choose random:a/b/c", cmp.Or(s.NoLabels, "the source has no labels"))
		}
		for _, l := range labelOfEach(s) {
			if l.Numbers {
				return fmt.Errorf("{split} per-class: label %s is a number of each node, and no class; choose random:a/b/c", l.Name)
			}
			if l.Multi {
				return fmt.Errorf("{split} per-class: a node may have several classes of label %s; choose random:a/b/c", l.Name)
			}
		}
	}
	if b.split.kind != "given" {
		for _, p := range s.Splits {
			b.drop("split %s: {split} %v takes its place", p.Name, b.split)
		}
	}
	return nil
}

// labelOfEach are the labels that made splits go by: the first of each node type.
func labelOfEach(s *ingest.Schema) []ingest.Label {
	var first []ingest.Label
	seen := map[string]bool{}
	for _, l := range s.Labels {
		if !seen[l.NodeType] {
			first = append(first, l)
		}
		seen[l.NodeType] = true
	}
	return first
}

// partition is one split, by row: 0, or 1 + the part. It is read before nodes are numbered, since
// OrderAccess goes by it.
type partition struct {
	name       string
	nodes      *nodes
	of         *kernels.HostBuf
	unlabelled int64
}

// readSplits finds the given splits, or makes one for each labelled node type: for each node type
// when nothing is. They are not in the journal: a Build that goes on reads them again.
func (b *builder) readSplits(ctx context.Context) error {
	if b.split.kind == "given" {
		for i, s := range b.schema.Splits {
			if b.did("write split " + s.Name) {
				continue // and so is all that goes by it; the ids that it is found by may be gone
			}
			if err := b.readSplit(ctx, i); err != nil {
				return err
			}
		}
		return nil
	}
	types := b.splitTypes()
	for i, t := range types {
		name := b.split.kind
		if len(types) > 1 {
			name += "-" + b.nodes[t].name // names are unique over all types
		}
		if b.did("write split " + name) {
			continue
		}
		rng := rand.New(rand.NewPCG(b.Seed, mix(uint64(i)+1)))
		p, err := b.newParts(name, b.nodes[t])
		if err != nil {
			return err
		}
		if err := b.draw(ctx, p, rng); err != nil {
			return err
		}
	}
	return nil
}

// splitTypes are the node types of the splits to be written, a number each.
func (b *builder) splitTypes() (types []int) {
	if b.streams() {
		return nil
	}
	if b.split.kind == "given" {
		for _, s := range b.schema.Splits {
			types = append(types, b.schema.NodeType(s.NodeType))
		}
		return types
	}
	for _, l := range labelOfEach(b.schema) {
		types = append(types, b.schema.NodeType(l.NodeType))
	}
	if len(types) == 0 {
		for i := range b.nodes {
			types = append(types, i)
		}
	}
	return types
}

func (b *builder) newParts(name string, n *nodes) (*partition, error) {
	of, err := b.hold(int64(max(n.count, 1)))
	if err != nil {
		return nil, err
	}
	p := &partition{name: name, nodes: n, of: of}
	b.splits = append(b.splits, p)
	return p, nil
}

// eachTrainingRow visits the training nodes of a type, by its first split: all of its nodes when
// there is no split of any type.
func (b *builder) eachTrainingRow(n *nodes, visit func(row uint32)) {
	for _, p := range b.splits {
		if p.nodes != n {
			continue
		}
		for row, part := range p.of.Bytes()[:n.count] {
			if part == uint8(ingest.Train)+1 {
				visit(uint32(row))
			}
		}
		return
	}
	if len(b.splits) == 0 {
		for row := range uint32(n.count) {
			visit(row)
		}
	}
}

// draw makes the three parts of a split.
func (b *builder) draw(ctx context.Context, p *partition, rng *rand.Rand) error {
	n := p.nodes
	label := -1
	for i, l := range b.schema.Labels {
		if label < 0 && l.NodeType == n.name {
			label = i
		}
	}
	buf, err := b.hold(4 * int64(max(n.count, 1)))
	if err != nil {
		return err
	}
	defer b.release(&buf)
	rows := buf.Uint32s()[:0]
	var class []uint32
	var found classSet
	if label < 0 {
		for row := range uint32(n.count) {
			rows = append(rows, row)
		}
	} else {
		if b.split.kind == "per-class" {
			held, err := b.hold(4 * int64(max(n.count, 1)))
			if err != nil {
				return err
			}
			defer b.release(&held)
			class = held.Uint32s()
		}
		numbers := b.schema.Labels[label].Numbers
		b.meter.begin("draw split "+p.name, int64(n.count), "rows")
		err := b.eachLabel(ctx, label, func(row int, values []int32) {
			has := false
			for _, x := range values {
				has = has || x >= 0
			}
			if numbers {
				y := math.Float32frombits(uint32(values[0]))
				has = y == y
			}
			if has {
				if !numbers {
					found.add(values[0])
				}
				rows = append(rows, uint32(row))
				if class != nil {
					class[row] = uint32(values[0])
				}
			}
		})
		b.meter.end()
		if err != nil {
			return err
		}
	}
	c := &classes{}
	if label >= 0 && !b.schema.Labels[label].Multi {
		if c, err = found.settle(&b.schema.Labels[label], n.count); err != nil {
			return err
		}
	}
	rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	of := p.of.Bytes()
	if b.split.kind == "per-class" {
		return drawPerClass(rows, class, c, b.schema.Labels[label].Name, of, b.split)
	}
	sum, from := 0.0, 0
	for part, f := range b.split.fractions {
		sum += f // cumulated, so that rounding loses no node when the fractions sum to 1
		to := min(len(rows), int(math.Round(sum*float64(len(rows)))))
		for _, row := range rows[from:to] {
			of[row] = uint8(part) + 1
		}
		from = to
	}
	return nil
}

// drawPerClass takes the first t rows of a class for training, the next v for validation, and tests
// on the rest.
func drawPerClass(rows, class []uint32, classes *classes, label string, of []byte, s splitPlan) error {
	taken := make([]int, classes.n)
	for _, row := range rows {
		c := classes.of(int32(class[row]))
		part := ingest.Test
		if taken[c] < s.train {
			part = ingest.Train
		} else if taken[c] < s.train+s.val {
			part = ingest.Valid
		}
		taken[c]++
		of[row] = uint8(part) + 1
	}
	for c, n := range taken {
		if n < s.train+s.val {
			name := fmt.Sprint(c)
			if c < len(classes.names) {
				name += fmt.Sprintf(" (%s)", classes.names[c])
			}
			return fmt.Errorf("{split} %v: class %s of label %s has %d nodes, and %d are needed; ask for fewer, or for random:a/b/c",
				s, name, label, n, s.train+s.val)
		}
	}
	return nil
}

// readSplit reads split i of the source.
func (b *builder) readSplit(ctx context.Context, i int) error {
	s := b.schema.Splits[i]
	n := b.typeOf(s.NodeType)
	p, err := b.newParts(s.Name, n)
	if err != nil {
		return err
	}
	if n.kind != ingest.RowIDs {
		return b.joinSplit(ctx, i, p)
	}
	b.meter.begin("read split "+s.Name, -1, "nodes")
	defer b.meter.end()
	for part := ingest.Train; part <= ingest.Test; part++ {
		err := b.eachSplitID(ctx, i, part, func(c *ingest.IDChunk, k int) error {
			id := c.IDs[k]
			if id < 0 || id >= int64(n.count) {
				return fmt.Errorf("%s: node %s", c.Row(k), n.unknown(fmt.Sprint(id)))
			}
			return p.put(uint32(id), part, c.Place, k, fmt.Sprint(id))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachSplitID streams a part of split i, one id after another.
func (b *builder) eachSplitID(ctx context.Context, i int, part ingest.Part, visit func(c *ingest.IDChunk, k int) error) error {
	var from origin
	return b.src.Split(ctx, i, part, func(c ingest.IDChunk) error {
		n := c.Len()
		if err := from.follow(ctx, c.Place, n); err != nil {
			return err
		}
		for k := range n {
			if err := visit(&c, k); err != nil {
				return err
			}
		}
		b.meter.add(n)
		return nil
	})
}

// put notes that a row is in a part, once.
func (p *partition) put(row uint32, part ingest.Part, at ingest.Place, k int, id string) error {
	of := p.of.Bytes()
	if of[row] != 0 {
		return fmt.Errorf("%s: node %s is already in %v; the parts of split %s must not overlap",
			at.Row(k), id, ingest.Part(of[row]-1), p.name)
	}
	of[row] = uint8(part) + 1
	return nil
}

// writeSplits writes the splits by stored ids. A plan has them in one line; a Build makes a pass of
// each.
func (b *builder) writeSplits(s *sizes, do func(pass)) {
	if b.streams() { // they have splits of events
		return
	}
	splits, total := int64(len(b.schema.Splits)), s.allNodes()
	if b.split.kind != "given" {
		splits = int64(len(b.schema.NodeTypes))
	}
	do(pass{name: "write splits", unit: "nodes",
		cost: cost{items: total, seconds: float64(splits*total) / rateNodes,
			written: 4*total + 3*splits*sectionOverhead},
		parts: func(do func(pass)) {
			for _, p := range b.splits {
				do(pass{name: "write split " + p.name, total: int64(p.nodes.count), unit: "nodes",
					run: func(context.Context) error { return b.writeSplit(p) }})
				b.release(&p.of)
			}
			b.splits = nil
		}})
}

func (b *builder) writeSplit(p *partition) error {
	n := p.nodes
	of := p.of.Bytes()[:n.count]
	if stored := n.storedIDs(); stored != nil {
		buf, err := b.hold(int64(max(n.count, 1)))
		if err != nil {
			return err
		}
		defer b.release(&buf)
		for row, part := range of {
			buf.Bytes()[stored[row]] = part
		}
		of = buf.Bytes()[:n.count]
	}
	var ids [3][]store.NodeID
	var counts [3]int
	for _, part := range of {
		if part > 0 {
			counts[part-1]++
		}
	}
	for part, c := range counts {
		ids[part] = make([]store.NodeID, 0, c)
	}
	for v, part := range of {
		if part > 0 {
			ids[part-1] = append(ids[part-1], store.NodeID(v))
		}
	}
	b.addMeter(n.count)
	b.report.Splits = append(b.report.Splits, SplitReport{
		Name: p.name, NodeType: n.name, Train: counts[ingest.Train], Valid: counts[ingest.Valid], Test: counts[ingest.Test],
	})
	return b.w.AddSplit(p.name, n.name, ids[ingest.Train], ids[ingest.Valid], ids[ingest.Test])
}
