package graphbolt

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/store"
)

const (
	maxClasses = 1 << 20 // of a label of one class a node
	maxMulti   = 1 << 16 // columns of a label of several
	unset      = -2      // no seed has named the node yet
)

// targets are a task's labels and parts of the nodes of one type.
type targets struct {
	nodes int64
	parts [3][]seeds
	width int // columns of labels; 0 without labels
}

// seeds are nodes, and their labels or nil.
type seeds struct{ ids, labels *array }

func isUnsupported(err error) bool { return errors.Is(err, npy.ErrUnsupported) }

// findTasks lays down labels and splits.
func (s *Source) findTasks(m *metadata) error {
	for i := range m.Tasks {
		if err := s.findTask(i, &m.Tasks[i]); err != nil {
			return fmt.Errorf("tasks[%d]: %w", i, err)
		}
	}
	s.settlePairs()
	return nil
}

func (s *Source) findTask(i int, t *task) error {
	byType := map[string]*targets{}
	var types []string
	for part, sets := range [][]set{t.Train, t.Valid, t.Test} {
		for _, set := range sets {
			if edges, err := s.isOfEdges(&set); err != nil {
				return fmt.Errorf("%v: %w", ingest.Part(part), err)
			} else if edges {
				if err := s.findPairs(t, ingest.Part(part), &set); err != nil {
					return fmt.Errorf("%v: %w", ingest.Part(part), err)
				}
				continue
			}
			found, why, err := s.findSeeds(&set)
			if err != nil {
				return fmt.Errorf("%v: %w", ingest.Part(part), err)
			}
			if why != "" {
				s.skip("task %q, %v: %s", t.Name, ingest.Part(part), why)
				continue
			}
			n, err := s.nodeType(set.Type)
			if err != nil {
				return fmt.Errorf("%v: %w", ingest.Part(part), err)
			}
			to := byType[n.Name]
			if to == nil {
				to = &targets{nodes: n.Count}
				byType[n.Name] = to
				types = append(types, n.Name)
			}
			to.parts[part] = append(to.parts[part], found)
		}
	}
	for _, name := range types {
		if err := s.addTargets(i, t, name, byType[name], len(types) > 1); err != nil {
			return err
		}
	}
	return nil
}

// findSeeds opens the arrays of a set of nodes, or returns why the set is passed over.
func (s *Source) findSeeds(set *set) (found seeds, why string, err error) {
	for i, d := range set.Data {
		name := d.Name
		if name == "" { // the first versions knew them by their order
			name = [...]string{"seeds", "labels", "more"}[min(i, 2)]
		}
		var to **array
		switch name {
		case "seeds", "seed_nodes", "nodes":
			to = &found.ids
		case "labels":
			to = &found.labels
		default:
			s.skip("%s: %s of a set of nodes are not kept", d.Path, name)
			continue
		}
		if *to != nil {
			return found, "", fmt.Errorf("%s are there twice", name)
		}
		var skip string
		if *to, skip, err = s.array(d.file); err != nil || skip != "" {
			return found, skip, err
		}
	}
	ids := found.ids
	switch {
	case ids == nil:
		return found, "", errors.New("there are no seeds; a set of nodes has seeds and perhaps labels")
	case !ids.vector():
		return found, "", fmt.Errorf("%s: it is %s, and seeds are a list of nodes", ids.path, ids.header.String())
	}
	if l := found.labels; l != nil {
		if len(l.header.Shape) == 0 || len(l.header.Shape) > 2 || l.columns() < 1 || l.columns() > maxMulti {
			return found, "", fmt.Errorf("%s: it is %s, and labels are a class, or 1 to %d zeros and ones, for each seed",
				l.path, l.header.String(), maxMulti)
		}
		if l.rows() != ids.rows() {
			return found, "", fmt.Errorf("%s: %d labels, and %s has %d seeds; are they of one task?", l.path, l.rows(),
				ids.path, ids.rows())
		}
	}
	return found, "", nil
}

// addTargets makes a label and a split of a task's labels and sets of one type.
func (s *Source) addTargets(i int, t *task, nodeType string, to *targets, several bool) error {
	for _, part := range to.parts {
		for _, p := range part {
			if p.labels == nil {
				continue
			}
			if w := int(p.labels.columns()); to.width == 0 {
				to.width = w
			} else if w != to.width {
				return fmt.Errorf("%s: %d columns of labels, and another set of the task has %d", p.labels.path, w,
					to.width)
			}
		}
	}
	if to.width > 0 {
		l := ingest.Label{Name: "label", NodeType: nodeType}
		if to.width > 1 {
			l.Multi, l.Classes = true, to.width
		} else if 0 < t.Classes && t.Classes <= maxClasses {
			l.Classes = int(t.Classes)
		}
		if slices.ContainsFunc(s.schema.Labels, func(o ingest.Label) bool { return o.NodeType == nodeType }) {
			l.Name = store.CleanWord(taskName(i, t))
		}
		if slices.ContainsFunc(s.schema.Labels,
			func(o ingest.Label) bool { return o.NodeType == nodeType && o.Name == l.Name }) {
			l.Name = fmt.Sprintf("label-%d", i)
		}
		s.schema.Labels, s.labels = append(s.schema.Labels, l), append(s.labels, to)
	}
	name := store.CleanWord(taskName(i, t))
	if several {
		name += "-" + nodeType // names are unique over all types
	}
	if slices.ContainsFunc(s.schema.Splits, func(o ingest.Split) bool { return o.Name == name }) {
		name = fmt.Sprintf("%s-%d", name, i)
	}
	s.schema.Splits, s.splits = append(s.schema.Splits, ingest.Split{Name: name, NodeType: nodeType}), append(s.splits, to)
	return nil
}

func taskName(i int, t *task) string {
	switch {
	case t.Name != "":
		return t.Name
	case i == 0:
		return "given"
	}
	return fmt.Sprintf("task%d", i)
}

// seeds streams the nodes of a part.
func (t *targets) seeds(ctx context.Context, part ingest.Part, emit func(ingest.IDChunk) error) error {
	first := int64(0)
	for _, p := range t.parts[part] {
		if err := p.eachSeed(ctx, first, emit); err != nil {
			return err
		}
		first += p.ids.rows()
	}
	return nil
}

func (p seeds) eachSeed(ctx context.Context, first int64, emit func(ingest.IDChunk) error) error {
	in, err := p.ids.open()
	if err != nil {
		return err
	}
	defer in.close()
	c := ingest.IDChunk{Place: ingest.Place{File: p.ids.path, First: first}}
	buf := make([]int64, min(p.ids.rows(), ingest.ChunkRows))
	for left := p.ids.rows(); left > 0; left -= int64(len(c.IDs)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.IDs = buf[:min(left, int64(len(buf)))]
		if err := in.int64s(c.IDs); err != nil {
			return err
		}
		if err := emit(c); err != nil {
			return err
		}
		c.First += int64(len(c.IDs))
	}
	return nil
}

// each streams the labels of all nodes. It gathers them for a block of nodes at a time.
func (t *targets) each(ctx context.Context, file string, emit func(ingest.LabelChunk) error) error {
	w := int64(t.width)
	block := make([]int32, min(t.nodes, ingest.BlockBytes/4/w)*w)
	chunk := max(ingest.ChunkBytes/4/w, 1)
	for lo := int64(0); lo < t.nodes; lo += int64(len(block)) / w {
		n := min(int64(len(block))/w, t.nodes-lo)
		for i := range block[:n*w] {
			block[i] = unset
		}
		for part, all := range t.parts {
			for _, p := range all {
				if p.labels == nil {
					continue
				}
				if err := t.gather(ctx, ingest.Part(part), p, lo, block[:n*w]); err != nil {
					return err
				}
			}
		}
		for i, v := range block[:n*w] {
			if v == unset {
				block[i] = -1
			}
		}
		for at := int64(0); at < n; at += chunk {
			if err := ctx.Err(); err != nil {
				return err
			}
			place := ingest.Place{File: file, First: lo + at}
			if err := emit(ingest.LabelChunk{Place: place, Values: block[at*w : min(at+chunk, n)*w]}); err != nil {
				return err
			}
		}
	}
	return nil
}

// gather puts the labels of seeds in block, which is of the nodes from lo on.
func (t *targets) gather(ctx context.Context, part ingest.Part, p seeds, lo int64, block []int32) error {
	in, err := p.ids.open()
	if err != nil {
		return err
	}
	defer in.close()
	w := int64(t.width)
	buf := make([]int64, min(p.ids.rows(), max(ingest.ChunkRows, ingest.ChunkBytes/4/w)))
	row := int64(0)
	put := func(labels []int32) error {
		ids := buf[:int64(len(labels))/w]
		if err := in.int64s(ids); err != nil {
			return err
		}
		for i, id := range ids {
			if id < 0 || id >= t.nodes {
				return fmt.Errorf("%s: row %d (counting from 0): node %d is not one of the %d that metadata.yaml declares, which count from 0",
					p.ids.path, row+int64(i), id, t.nodes)
			}
			if id < lo || id >= lo+int64(len(block))/w {
				continue
			}
			to, from := block[(id-lo)*w:][:w], labels[int64(i)*w:][:w]
			if to[0] != unset && !slices.Equal(to, from) {
				return fmt.Errorf("%s: row %d (counting from 0): node %d has another label in %v or another set of the task",
					p.ids.path, row+int64(i), id, part)
			}
			copy(to, from)
		}
		row += int64(len(ids))
		return ctx.Err()
	}
	if w > 1 {
		return p.eachRow(ctx, put)
	}
	return p.eachClass(put)
}

// eachClass reads labels of one class a seed: -1, other negative numbers and NaN are missing.
func (p seeds) eachClass(put func(labels []int32) error) error {
	in, err := p.labels.open()
	if err != nil {
		return err
	}
	defer in.close()
	isFloat := p.labels.isFloat()
	buf := make([]int32, min(p.labels.rows(), ingest.ChunkRows))
	whole, wide := make([]int64, len(buf)), make([]float64, len(buf))
	for row := int64(0); row < p.labels.rows(); {
		n := min(int64(len(buf)), p.labels.rows()-row)
		if isFloat {
			err = in.float64s(wide[:n])
		} else {
			err = in.int64s(whole[:n])
		}
		if err != nil {
			return err
		}
		for i := range n {
			v := float64(whole[i])
			if isFloat {
				v = wide[i]
			}
			switch {
			case math.IsNaN(v) || v < 0:
				buf[i] = -1
			case v >= maxClasses || v != math.Trunc(v):
				return fmt.Errorf("%s: row %d (counting from 0): %v is not the number of a class", p.labels.path, row+i, v)
			default:
				buf[i] = int32(v)
			}
		}
		if err := put(buf[:n]); err != nil {
			return err
		}
		row += n
	}
	return nil
}

// eachRow reads labels of any number of classes a seed: ones, zeros, and missing as in eachClass.
func (p seeds) eachRow(ctx context.Context, put func(labels []int32) error) error {
	w := p.labels.columns()
	var buf []int32
	return p.labels.matrix(ctx, func(first int64, values []float32) error {
		buf = buf[:0]
		for i, v := range values {
			switch {
			case v == 0 || v == 1:
				buf = append(buf, int32(v))
			case v != v || v < 0:
				buf = append(buf, -1)
			default:
				return fmt.Errorf("%s: row %d, column %d (counting from 0) is %v; several columns of labels are zeros and ones",
					p.labels.path, first+int64(i)/w, int64(i)%w, v)
			}
		}
		return put(buf)
	})
}
