package ogb

import (
	"context"
	"fmt"
	"os"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/pickle"
	"github.com/gnnstore/gnnstore/store"
)

// Held-out edges of several relations (ogbl-biokg) are rows of the same arrays, and lists of
// head_type and tail_type say what they join, by whose own numbers; relation is the number that
// edge_reltype has for all edges of a relation. Each relation has some of the rows.

// reltype returns the number by which the split knows a relation that has edges, read from its
// first edge; false where the dataset has no such numbers.
func (s *Source) reltype(relation int) (int64, bool, error) {
	open := s.reltypes[relation]
	if open == nil {
		return 0, false, nil
	}
	data, err := open()
	if err != nil {
		return 0, false, err
	}
	in, err := data.column(context.Background(), store.I64)
	if err != nil {
		return 0, false, err
	}
	defer in.Close()
	var number [1]uint64
	err = in.read(number[:])
	return int64(number[0]), err == nil, err
}

// kindOfEdge has the columns of a split that tell an edge's relation.
type kindOfEdge struct {
	head, tail string
	number     int64
}

// typedLinkSplit takes the held-out edges of several relations.
func (s *Source) typedLinkSplit(dir string, files [2]heldFile) error {
	of := map[kindOfEdge]int{}
	for i, r := range s.schema.Relations {
		if s.edges[i].count == 0 {
			continue
		}
		number, known, err := s.reltype(i)
		if err != nil {
			return err
		}
		k := kindOfEdge{r.Src, r.Dst, number}
		if other, twice := of[k]; !known || twice {
			why := "edge_reltype has no number for relation " + r.Key()
			if known {
				why = fmt.Sprintf("edge_reltype has the number %d for the relations %s and %s", number, s.schema.Relations[other].Key(), r.Key())
			}
			s.note(dir, why+", so that held-out edges cannot be told apart; the graph has the edges of training")
			return nil
		}
		of[k] = i
	}
	s.picks = make([][2][]uint32, len(s.schema.Relations))
	for p, f := range files {
		if p == 0 || files[0].file != f.file {
			s.uses(f.file)
		}
		err := s.withHeld(f, func(h *heldArrays) error {
			if h.src == nil {
				return fmt.Errorf("%s: no head, tail, head_type and tail_type in it, which held-out edges of several relations have", h.name)
			}
			if h.edges > 1<<32-1 {
				return fmt.Errorf("%s: %d edges, and %d are the most", h.name, h.edges, uint32(1<<32-1))
			}
			return s.pickRows(h, p, of)
		})
		if err != nil {
			return err
		}
		s.held[p] = f
	}
	for i := range s.schema.Relations {
		r := &s.schema.Relations[i]
		if len(s.picks[i][0])+len(s.picks[i][1]) == 0 {
			continue
		}
		r.Held = &ingest.Held{}
		both := map[string]int{}
		for p, f := range s.held {
			err := s.withHeld(f, func(h *heldArrays) error {
				r.Held.SrcNegatives[p], r.Held.DstNegatives[p] = h.width(h.srcNegatives), h.width(h.dstNegatives)
				for _, c := range r.Columns {
					view, err := h.value(c.Name)
					if err != nil {
						return err
					} else if view != nil {
						both[c.Name]++
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		for _, c := range r.Columns {
			if both[c.Name] == 2 {
				r.Held.Columns = append(r.Held.Columns, c)
			}
		}
	}
	return nil
}

// pickRows finds the relation of each row of a part.
func (s *Source) pickRows(h *heldArrays, p int, of map[kindOfEdge]int) error {
	heads, err := h.texts("head_type")
	if err != nil {
		return err
	}
	tails, err := h.texts("tail_type")
	if err != nil {
		return err
	}
	view, err := h.array("relation", 1)
	if err != nil {
		return err
	}
	if view.Shape[0] != h.edges {
		return fmt.Errorf("%s: relation: array is %s, where a number for each of %d edges is expected", h.name, view.String(), h.edges)
	}
	numbers, in := make([]int64, min(ingest.ChunkRows, h.edges)), view.Reader()
	for first := int64(0); first < h.edges; first += int64(len(numbers)) {
		numbers = numbers[:min(int64(len(numbers)), h.edges-first)]
		if _, err := in.ReadInt64s(numbers); err != nil {
			return fmt.Errorf("%s: relation: %w", h.name, err)
		}
		for i, number := range numbers {
			row := first + int64(i)
			k := kindOfEdge{heads(row), tails(row), number}
			r, ok := of[k]
			if !ok {
				return fmt.Errorf("%s: row %d (counting from 0): no relation from %q to %q has the number %d in its edge_reltype; fetch the split again",
					h.name, row, k.head, k.tail, k.number)
			}
			s.picks[r][p] = append(s.picks[r][p], uint32(row))
		}
	}
	return nil
}

// texts gives the elements of a list of text, one for each edge.
func (h *heldArrays) texts(key string) (func(row int64) string, error) {
	list, ok := h.at(key).(*pickle.List)
	if !ok {
		return nil, fmt.Errorf("%s: %s: it is %s, where a list of types is expected", h.name, key, pickle.Kind(h.at(key)))
	}
	if int64(len(list.Items)) != h.edges {
		return nil, fmt.Errorf("%s: %s: %d types for %d edges", h.name, key, len(list.Items), h.edges)
	}
	return func(row int64) string {
		text, _ := pickle.Text(list.Items[row]) // what is none is no type
		return text
	}, nil
}

// pick has h be some rows alone.
func (h *heldArrays) pick(rows []uint32) {
	h.picked, h.edges = rows, int64(len(rows))
	if rows == nil {
		h.picked = []uint32{}
	}
}

// rowReader reads elements of an array front to back: of all its rows, or of those that are picked.
type rowReader struct {
	*npy.Reader // of the rows at hand
	view        *npy.View
	picked      []uint32 // still to come
	left        int64    // elements of the rows at hand
}

// rows reads v.
func (h *heldArrays) rows(v *npy.View) *rowReader {
	if h.picked == nil {
		return &rowReader{Reader: v.Reader(), left: v.Len()}
	}
	return &rowReader{view: v, picked: h.picked}
}

// ahead goes on to the next rows that lie together, where the rows at hand are read, and returns
// how many of n elements can be read.
func (r *rowReader) ahead(n int) int {
	if r.left == 0 && len(r.picked) > 0 {
		lo, k := int64(r.picked[0]), 1
		for k < len(r.picked) && int64(r.picked[k]) == lo+int64(k) {
			k++
		}
		rows := r.view.Rows(lo, lo+int64(k))
		r.Reader, r.left, r.picked = rows.Reader(), rows.Len(), r.picked[k:]
	}
	n = int(min(int64(n), r.left))
	r.left -= int64(n)
	return n
}

// readRows fills dst by calls of read.
func readRows[T any](r *rowReader, dst []T, read func(*npy.Reader, []T) (int, error)) (int, error) {
	done := 0
	for done < len(dst) {
		n := r.ahead(len(dst) - done)
		if n == 0 {
			break
		}
		if _, err := read(r.Reader, dst[done:done+n]); err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// ReadInt64s works like the method of npy.Reader.
func (r *rowReader) ReadInt64s(dst []int64) (int, error) {
	return readRows(r, dst, (*npy.Reader).ReadInt64s)
}

// ReadFloat32s works like the method of npy.Reader.
func (r *rowReader) ReadFloat32s(dst []float32) (int, error) {
	return readRows(r, dst, (*npy.Reader).ReadFloat32s)
}

// keepHeld has the dicts of both parts stay open from one relation to the next, where a pickle may
// take as much as they do together: they are read whole, and relations alternate between them.
func (s *Source) keepHeld() {
	if s.kept != nil {
		return
	}
	bytes := int64(0)
	for p, f := range s.held {
		if p > 0 && f.file == s.held[0].file {
			continue
		}
		info, err := os.Stat(s.at(f.file))
		if err != nil {
			return // as opening it says
		}
		bytes += info.Size()
	}
	if bytes <= pickle.Share(s.memory) {
		s.kept = map[string]*Dict{}
	}
}

// doneHeld closes them behind the last relation.
func (s *Source) doneHeld(relation int, part ingest.Part) {
	for i := len(s.schema.Relations) - 1; i >= 0; i-- {
		if s.schema.Relations[i].Held == nil {
			continue
		}
		if i == relation && part == ingest.Test {
			_ = s.forgetHeld()
		}
		return
	}
}

// forgetHeld closes what keepHeld has kept.
func (s *Source) forgetHeld() (err error) {
	for _, d := range s.kept {
		if cerr := d.Close(); err == nil {
			err = cerr
		}
	}
	s.kept = nil
	return err
}
