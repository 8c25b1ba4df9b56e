package graphbolt

import (
	"context"
	"fmt"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
)

// pairSet is a set of edges: pairs (N, 2), edges first. The pairs behind them are no edges: with
// indexes, pairs with the source of each edge in turn and as many for each; without, pairs for all
// edges.
type pairSet struct {
	pairs, indexes *array
	edges          int64 // rows that are edges
	negatives      int   // an edge, with indexes
}

// held are the held-out edges of a relation, by store.HeldPart.
type held [2]*pairSet

// isOfEdges reports whether a set is of edges.
func (s *Source) isOfEdges(t *set) (bool, error) {
	if strings.Contains(t.Type, ":") {
		return true, nil
	}
	for i, d := range t.Data {
		if d.Name == "node_pairs" {
			return true, nil
		}
		if d.Name == "seeds" || d.Name == "" && i == 0 {
			a, skip, err := s.array(d.file)
			if err != nil || skip != "" {
				return false, nil // findSeeds reports it
			}
			return len(a.header.Shape) == 2 && a.header.Shape[1] == 2, nil
		}
	}
	return false, nil
}

// findPairs opens a set of edges and adds it to the held-out edges of its relation.
func (s *Source) findPairs(t *task, part ingest.Part, of *set) error {
	if part == ingest.Train {
		return nil // the graph has them
	}
	r, at := ingest.Relation{Src: "node", Name: "to", Dst: "node"}, 0
	if of.Type != "" {
		var err error
		if r, err = s.parseRelation(of.Type); err != nil {
			return err
		}
	}
	if at = s.schema.Relation(r.Key()); at < 0 {
		return fmt.Errorf("there are no edges of type %q in graph.edges", of.Type)
	}
	var p pairSet
	var labels *array
	for i, d := range of.Data {
		name := d.Name
		if name == "" {
			name = [...]string{"seeds", "labels", "indexes"}[min(i, 2)]
		}
		to := map[string]**array{"seeds": &p.pairs, "node_pairs": &p.pairs, "labels": &labels, "indexes": &p.indexes}[name]
		if to == nil {
			s.skip("%s: %s of a set of edges are not kept", d.Path, name)
			continue
		}
		if *to != nil {
			return fmt.Errorf("%s are there twice", name)
		}
		a, skip, err := s.array(d.file)
		if err != nil {
			return err
		}
		if skip != "" {
			s.skip("task %q, %v: %s", t.Name, part, skip)
			return nil
		}
		*to = a
	}
	switch {
	case p.pairs == nil:
		return fmt.Errorf("there are no seeds; a set of edges has seeds, and perhaps labels and indexes")
	case len(p.pairs.header.Shape) != 2 || p.pairs.header.Shape[1] != 2:
		return fmt.Errorf("%s: it is %s, and seeds of edges are pairs of nodes", p.pairs.path, p.pairs.header.String())
	}
	for _, a := range []*array{labels, p.indexes} {
		if a != nil && (!a.vector() || a.rows() != p.pairs.rows()) {
			return fmt.Errorf("%s: it is %s, and %s has %d pairs; are they of one task?", a.path, a.header.String(), p.pairs.path, p.pairs.rows())
		}
	}
	if p.indexes != nil && labels == nil {
		return fmt.Errorf("%s: there are no labels, which say what of the pairs are edges", p.indexes.path)
	}
	p.edges = p.pairs.rows()
	if labels != nil {
		var why string
		var err error
		if p.edges, why, err = labels.leadingOnes(); err != nil {
			return err
		} else if why != "" {
			s.skip("task %q, %v: %s; a set of edges with such labels is not kept", t.Name, part, why)
			return nil
		}
	}
	if others := p.pairs.rows() - p.edges; p.indexes != nil && others > 0 {
		if p.edges == 0 || others%p.edges != 0 {
			return fmt.Errorf("%s: %d negatives of %d edges; each has as many", p.pairs.path, others, p.edges)
		}
		p.negatives = int(others / p.edges)
	}
	if s.held[at] == nil {
		s.held[at] = new(held)
	}
	if s.held[at][part-ingest.Valid] != nil {
		s.skip("task %q, %v: another task holds edges of %s out, and it goes first", t.Name, part, r.Key())
		return nil
	}
	s.held[at][part-ingest.Valid] = &p
	return nil
}

// leadingOnes counts the ones at the start of labels, or returns why these are not ones followed by
// zeros.
func (a *array) leadingOnes() (ones int64, why string, err error) {
	in, err := a.open()
	if err != nil {
		return 0, "", err
	}
	defer in.close()
	buf := make([]float64, min(a.rows(), ingest.ChunkRows))
	for row := int64(0); row < a.rows(); {
		n := min(int64(len(buf)), a.rows()-row)
		if err := in.float64s(buf[:n]); err != nil {
			return 0, "", err
		}
		for i, x := range buf[:n] {
			switch {
			case x == 1 && ones == row+int64(i):
				ones++
			case x != 0:
				return 0, fmt.Sprintf("%s: row %d (counting from 0) is %v, and edges have the label 1 and come first, other pairs have 0", a.path, row+int64(i), x), nil
			}
		}
		row += n
	}
	return ones, "", nil
}

// settlePairs describes the held-out edges in the schema.
func (s *Source) settlePairs() {
	for at, h := range s.held {
		of := &ingest.Held{}
		for p, set := range h {
			if set == nil {
				h[p] = &pairSet{}
				continue
			}
			of.DstNegatives[p] = set.negatives
			of.Pool[p] = set.negatives == 0 && set.pairs.rows() > set.edges
		}
		s.schema.Relations[at].Held = of
	}
}

// HeldEdges streams the edges of a set, with the destinations of the pairs that are ranked beside
// each.
func (s *Source) HeldEdges(ctx context.Context, relation int, part ingest.Part, emit func(ingest.HeldChunk) error) error {
	p := s.held[relation][part-ingest.Valid]
	if p.edges == 0 {
		return nil
	}
	in, err := p.pairs.open()
	if err != nil {
		return err
	}
	defer in.close()
	others := in
	var indexes *stream
	if p.negatives > 0 {
		if others, err = p.pairs.open(); err != nil {
			return err
		}
		defer others.close()
		if indexes, err = p.indexes.open(); err != nil {
			return err
		}
		defer indexes.close()
		if err := others.Skip(2 * p.edges); err != nil {
			return fmt.Errorf("%s: %w", p.pairs.path, err)
		}
		if err := indexes.Skip(p.edges); err != nil {
			return fmt.Errorf("%s: %w", p.indexes.path, err)
		}
	}
	c := ingest.HeldChunk{Place: ingest.Place{File: p.pairs.path}}
	most := min(p.edges, max(1, ingest.ChunkBytes/8/int64(2+p.negatives)))
	pairs, rest, numbers := make([]int64, 2*most), make([]int64, 2*most*int64(p.negatives)), make([]int64, most*int64(p.negatives))
	for c.First < p.edges {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(most, p.edges-c.First)
		if err := in.int64s(pairs[:2*n]); err != nil {
			return err
		}
		c.Src, c.Dst, c.DstNegatives = c.Src[:0], c.Dst[:0], c.DstNegatives[:0]
		for i := range n {
			c.Src, c.Dst = append(c.Src, pairs[2*i]), append(c.Dst, pairs[2*i+1])
		}
		if k := int64(p.negatives); k > 0 {
			if err := others.int64s(rest[:2*n*k]); err != nil {
				return err
			}
			if err := indexes.int64s(numbers[:n*k]); err != nil {
				return err
			}
			for i := range n * k {
				edge, row := i/k, p.edges+c.First*k+i
				if numbers[i] != c.First+edge {
					return fmt.Errorf("%s: row %d (counting from 0) is %d, and edge %d is next; negatives are in groups, in the order of their edges",
						p.indexes.path, row, numbers[i], c.First+edge)
				}
				if rest[2*i] != c.Src[edge] {
					return fmt.Errorf("%s: row %d (counting from 0): the pair is from node %d, and its edge from %d; negatives have another destination only",
						p.pairs.path, row, rest[2*i], c.Src[edge])
				}
				c.DstNegatives = append(c.DstNegatives, rest[2*i+1])
			}
		}
		if err := emit(c); err != nil {
			return err
		}
		c.First += n
	}
	return nil
}

// HeldPool streams the pairs of a set that are no edges.
func (s *Source) HeldPool(ctx context.Context, relation int, part ingest.Part, emit func(ingest.HeldChunk) error) error {
	p := s.held[relation][part-ingest.Valid]
	in, err := p.pairs.open()
	if err != nil {
		return err
	}
	defer in.close()
	if err := in.Skip(2 * p.edges); err != nil {
		return fmt.Errorf("%s: %w", p.pairs.path, err)
	}
	c := ingest.HeldChunk{Place: ingest.Place{File: p.pairs.path + ": pairs behind the edges"}}
	left := p.pairs.rows() - p.edges
	pairs := make([]int64, 2*min(left, ingest.ChunkRows))
	for ; left > 0; left -= int64(len(c.Src)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(left, ingest.ChunkRows)
		if err := in.int64s(pairs[:2*n]); err != nil {
			return err
		}
		c.Src, c.Dst = c.Src[:0], c.Dst[:0]
		for i := range n {
			c.Src, c.Dst = append(c.Src, pairs[2*i]), append(c.Dst, pairs[2*i+1])
		}
		if err := emit(c); err != nil {
			return err
		}
		c.First += n
	}
	return nil
}
