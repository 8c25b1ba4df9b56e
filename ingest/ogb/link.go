package ogb

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/pickle"
	"github.com/gnnstore/gnnstore/ingest/torch"
	"github.com/gnnstore/gnnstore/store"
)

// heldFile has the held-out edges of a part: valid.pt, or an entry of split_dict.pt.
type heldFile struct {
	file string   // inside the folder
	keys []string // that lead to its dict
}

// heldKeys are the ways in which upstream's datasets lay down held-out edges: ppa, collab, ddi and
// vessel; citation2; wikikg2.
var heldKeys = []struct {
	edge, src, dst             string // one array of (edges, 2), or two
	srcNegatives, dstNegatives string // arrays of (edges, nodes)
	pool                       string // an array of (pairs, 2)
}{
	{edge: "edge", pool: "edge_neg"},
	{src: "source_node", dst: "target_node", dstNegatives: "target_node_neg"},
	{src: "head", dst: "tail", srcNegatives: "head_neg", dstNegatives: "tail_neg"},
}

// valueKeys are the entries that columns of edges have in a split, where they are not called as the
// column is.
var valueKeys = map[string]string{"reltype": "relation"}

// linkSplit takes the held-out edges of a dataset of link prediction.
func (s *Source) linkSplit(dir string) error {
	files := [2]heldFile{{file: dir + "/valid.pt"}, {file: dir + "/test.pt"}}
	if dict := dir + "/split_dict.pt"; s.has(dict) {
		files = [2]heldFile{{dict, []string{"valid"}}, {dict, []string{"test"}}}
	}
	for _, f := range files {
		if !s.has(f.file) {
			s.note(dir, "there is no "+f.file[len(dir)+1:]+", so that no edges are held out; the graph has the edges of training")
			return nil
		}
	}
	if s.packed != "" {
		s.note(dir, "held-out edges are not read out of a zip archive; unzip it for them; the graph has the edges of training")
		return nil
	}
	if len(s.schema.Relations) != 1 {
		return s.typedLinkSplit(dir, files)
	}
	r := &s.schema.Relations[0]
	held := &ingest.Held{}
	var columns [2][]string
	for p, f := range files {
		if p == 0 || files[0].file != f.file {
			s.uses(f.file)
		}
		err := s.withHeld(f, func(h *heldArrays) error {
			if h.src == nil {
				if p > 0 && s.held[0].file != "" {
					return fmt.Errorf("%s: no edges in it, and there are some in %s", h.name, s.at(files[0].file))
				}
				return nil
			}
			s.held[p] = f
			held.SrcNegatives[p], held.DstNegatives[p], held.Pool[p] = h.width(h.srcNegatives), h.width(h.dstNegatives), h.pool[0] != nil
			for _, c := range r.Columns {
				if _, err := h.value(c.Name); err != nil {
					return err
				} else if h.values[c.Name] != nil {
					columns[p] = append(columns[p], c.Name)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if s.held[p].file == "" {
			s.note(dir, "its entries are not those of edges between two nodes, and are not kept; the graph has the edges of training")
			return nil
		}
	}
	for _, c := range r.Columns {
		if slices.Contains(columns[0], c.Name) && slices.Contains(columns[1], c.Name) {
			held.Columns = append(held.Columns, c)
		}
	}
	r.Held = held
	return nil
}

// heldArrays are the arrays of one part, in a dict that is open.
type heldArrays struct {
	dict                       *Dict
	picked                     []uint32 // rows, ascending; nil: all
	keys                       []string
	name                       string // of the part, for messages
	edges                      int64
	src, dst                   *npy.View // nil where the part has none
	srcNegatives, dstNegatives *npy.View
	pool                       [2]*npy.View
	values                     map[string]*npy.View // by column
}

// withHeld opens a part and finds its arrays, for the time of a call.
func (s *Source) withHeld(f heldFile, call func(h *heldArrays) error) error {
	dict := s.kept[f.file]
	if dict == nil {
		var err error
		if dict, err = OpenDict(s.at(f.file), s.memory); err != nil {
			return err
		}
		if s.kept != nil {
			s.kept[f.file] = dict
		} else {
			defer dict.Close()
		}
	}
	h := &heldArrays{dict: dict, keys: f.keys, name: strings.Join(append([]string{s.at(f.file)}, f.keys...), ": "), values: map[string]*npy.View{}}
	if h.has("head_type") != (len(s.schema.Relations) > 1) { // of several relations
		return call(h)
	}
	var err error
	for _, k := range heldKeys {
		if k.edge != "" && h.has(k.edge) {
			both, err := h.pairs(k.edge)
			if err != nil {
				return err
			}
			h.src, h.dst = both[0], both[1]
		} else if k.src != "" && h.has(k.src) && h.has(k.dst) {
			if h.src, err = h.array(k.src, 1); err == nil {
				h.dst, err = h.array(k.dst, 1)
			}
			if err != nil {
				return err
			}
		} else {
			continue
		}
		if h.edges = h.src.Shape[0]; h.dst.Shape[0] != h.edges {
			return fmt.Errorf("%s: %d in %s and %d in %s; each edge has both", h.name, h.edges, k.src, h.dst.Shape[0], k.dst)
		}
		if h.srcNegatives, err = h.negatives(k.srcNegatives); err == nil {
			h.dstNegatives, err = h.negatives(k.dstNegatives)
		}
		if err == nil && k.pool != "" && h.has(k.pool) {
			h.pool, err = h.pairs(k.pool)
		}
		if err != nil {
			return err
		}
		break
	}
	return call(h)
}

func (h *heldArrays) at(key string) any { return h.dict.at(append(slices.Clone(h.keys), key)...) }

func (h *heldArrays) has(key string) bool { return h.at(key) != nil }

// array is an entry of so many dimensions.
func (h *heldArrays) array(key string, dims int) (*npy.View, error) {
	var view *npy.View
	switch v := h.at(key).(type) {
	case *pickle.Array:
		view = v.View()
	case *torch.Tensor:
		view = v.View
	default:
		return nil, fmt.Errorf("%s: %s: it is %s, where an array or a tensor is expected", h.name, key, pickle.Kind(v))
	}
	if dims == 1 && len(view.Shape) == 2 && view.Shape[1] == 1 {
		view = view.Select(1, 0)
	}
	if len(view.Shape) != dims {
		return nil, fmt.Errorf("%s: %s: array is %s, where %d dimensions are expected", h.name, key, view.String(), dims)
	}
	return view, nil
}

// pairs are the two columns of an array of two.
func (h *heldArrays) pairs(key string) (both [2]*npy.View, err error) {
	view, err := h.array(key, 2)
	if err != nil {
		return both, err
	}
	if view.Shape[1] != 2 {
		return both, fmt.Errorf("%s: %s: array is %s, where two columns are expected", h.name, key, view.String())
	}
	return [2]*npy.View{view.Select(1, 0), view.Select(1, 1)}, nil
}

// negatives are an array with a row for each edge; nil where there is none.
func (h *heldArrays) negatives(key string) (*npy.View, error) {
	if key == "" || !h.has(key) {
		return nil, nil
	}
	view, err := h.array(key, 2)
	if err != nil {
		return nil, err
	}
	if view.Shape[0] != h.edges || view.Shape[1] == 0 {
		return nil, fmt.Errorf("%s: %s: array is %s, where a row of nodes for each of %d edges is expected", h.name, key, view.String(), h.edges)
	}
	return view, nil
}

func (h *heldArrays) width(v *npy.View) int {
	if v == nil {
		return 0
	}
	return int(v.Shape[1])
}

// value finds the values of a column, nil where the part has none.
func (h *heldArrays) value(column string) (*npy.View, error) {
	key := column
	if other, ok := valueKeys[column]; ok {
		key = other
	}
	if h.values[column] != nil || !h.has(key) {
		return h.values[column], nil
	}
	view, err := h.array(key, 1)
	if err != nil {
		return nil, err
	}
	if view.Shape[0] != h.edges {
		return nil, fmt.Errorf("%s: %s: array is %s, where a value for each of %d edges is expected", h.name, key, view.String(), h.edges)
	}
	h.values[column] = view
	return view, nil
}

// HeldEdges streams the held-out edges of a part.
func (s *Source) HeldEdges(ctx context.Context, relation int, part ingest.Part, emit func(ingest.HeldChunk) error) error {
	held := s.schema.Relations[relation].Held
	p := part - ingest.Valid
	if s.picks != nil {
		s.keepHeld()
		defer s.doneHeld(relation, part)
	}
	return s.withHeld(s.held[p], func(h *heldArrays) error {
		c := ingest.HeldChunk{Place: ingest.Place{File: h.name}}
		if s.picks != nil {
			h.pick(s.picks[relation][p])
			c.File += ": those of " + s.schema.Relations[relation].Key()
		}
		readers := make([]*rowReader, len(held.Columns))
		for i, c := range held.Columns {
			view, err := h.value(c.Name)
			if err != nil {
				return err
			}
			readers[i] = h.rows(view)
		}
		ends := []*idReader{h.reader(h.src, 1), h.reader(h.dst, 1), h.reader(h.srcNegatives, held.SrcNegatives[p]), h.reader(h.dstNegatives, held.DstNegatives[p])}
		numbers := 2 + held.SrcNegatives[p] + held.DstNegatives[p] + len(readers) // of an edge
		most := min(h.edges, max(1, int64(ingest.ChunkBytes/8/numbers)))
		floats := make([]float32, most)
		for c.First < h.edges {
			if err := ctx.Err(); err != nil {
				return err
			}
			n := min(most, h.edges-c.First)
			for i, to := range []*[]int64{&c.Src, &c.Dst, &c.SrcNegatives, &c.DstNegatives} {
				if err := ends[i].read(n, to); err != nil {
					return fmt.Errorf("%s: %w", h.name, err)
				}
			}
			c.Values = c.Values[:0]
			for i, column := range held.Columns {
				bits := make([]uint64, n)
				if column.Elem == store.F32 {
					if _, err := readers[i].ReadFloat32s(floats[:n]); err != nil {
						return fmt.Errorf("%s: %s: %w", h.name, column.Name, err)
					}
					for k, x := range floats[:n] {
						if x-x != 0 {
							return fmt.Errorf("%s: row %d (counting from 0): %s is not finite", h.name, c.First+int64(k), column.Name)
						}
						bits[k] = uint64(math.Float32bits(x))
					}
				} else {
					whole := make([]int64, n)
					if _, err := readers[i].ReadInt64s(whole); err != nil {
						return fmt.Errorf("%s: %s: %w", h.name, column.Name, err)
					}
					for k, x := range whole {
						bits[k] = uint64(x)
					}
				}
				c.Values = append(c.Values, bits)
			}
			if err := emit(c); err != nil {
				return err
			}
			c.First += n
		}
		return nil
	})
}

// HeldPool streams the pairs of a part that are no edges.
func (s *Source) HeldPool(ctx context.Context, _ int, part ingest.Part, emit func(ingest.HeldChunk) error) error {
	return s.withHeld(s.held[part-ingest.Valid], func(h *heldArrays) error {
		src, dst := h.reader(h.pool[0], 1), h.reader(h.pool[1], 1)
		c := ingest.HeldChunk{Place: ingest.Place{File: h.name + ": edge_neg"}}
		for pairs := h.pool[0].Shape[0]; c.First < pairs; {
			if err := ctx.Err(); err != nil {
				return err
			}
			n := min(pairs-c.First, ingest.ChunkRows)
			for i, r := range []*idReader{src, dst} {
				if err := r.read(n, []*[]int64{&c.Src, &c.Dst}[i]); err != nil {
					return fmt.Errorf("%s: %w", c.File, err)
				}
			}
			if err := emit(c); err != nil {
				return err
			}
			c.First += n
		}
		return nil
	})
}

// idReader gives rows of ids of an array, or nothing of none.
type idReader struct {
	in    *rowReader
	width int
}

func (h *heldArrays) reader(v *npy.View, width int) *idReader {
	if v == nil {
		return &idReader{}
	}
	return &idReader{h.rows(v), width}
}

// read fills *to with n rows.
func (r *idReader) read(n int64, to *[]int64) error {
	*to = slices.Grow((*to)[:0], int(n)*r.width)[:int(n)*r.width]
	if r.in == nil {
		return nil
	}
	_, err := r.in.ReadInt64s(*to)
	return err
}
