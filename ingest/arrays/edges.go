package arrays

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/store"
)

// edges is one relation in the arrays: pairs, or two columns, or the rows of a CSR matrix.
type edges struct {
	name     string // for messages
	count    int64
	pairs    *array // (E, 2), row-major
	src, dst *array // (E,) each; dst alone, with bounds, in CSR
	bounds   *array // where the rows of a CSR matrix begin, one more than there are
	dense    *array // all of an adjacency matrix; count is -1 until its entries are counted
	dims     [2]int64
	sized    string // array that gives dims (sources, destinations), for messages; "" without one
	data     *array // values of a matrix; may be nil
	whole    bool   // the matrix is one object, whose values are no weights if all are 1
	ones     bool   // values of the dense matrix are all 1
	inward   bool   // rows are destinations
	weight   *array // a value of each edge; may be nil
}

func (e *edges) csr() bool { return e.bounds != nil }

// fail asks each array about an error in reading them.
func (e *edges) fail(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if bad := (*located)(nil); errors.As(err, &bad) {
		return bad.a.fail(ctx, bad.err)
	}
	return err
}

// located is an error and the array in which it is.
type located struct {
	a   *array
	err error
}

func (l *located) Error() string { return l.a.name + ": " + l.err.Error() }
func (l *located) Unwrap() error { return l.err }

// findEdges finds the edges under a prefix: those named, or under the usual names; nil without.
func (s *Source) findEdges(prefix string) (*edges, error) {
	given := ""
	if prefix == "" {
		given = s.o.Edges
	}
	if a, b, ok := strings.Cut(given, ","); ok {
		return s.ends(a, b, edgesFlag)
	}
	if given != "" && !s.bag.has(strings.TrimSuffix(given, ".npy")) && s.bag.has(given+"indptr") {
		return s.compressed(given)
	}
	if err := s.knownFormat(prefix); err != nil {
		return nil, err
	}
	a, err := s.pick(prefix, edgesFlag, given, edgeNames)
	if err != nil {
		return nil, err
	}
	if a != nil {
		isIndex := prefix != "" || a.key == "edge_index" && isTorch(s.bag.path)
		if a.matrix != nil || given != "" || s.bag.has("edges") && len(s.bag.keys) == 1 {
			return s.adjacency(a, isIndex)
		}
		return s.matrix(a, isIndex)
	}
	for _, n := range endNames {
		if s.bag.has(prefix+n[0]) && s.bag.has(prefix+n[1]) {
			return s.ends(prefix+n[0], prefix+n[1], "")
		}
	}
	for _, key := range s.bag.keys {
		if p, ok := strings.CutSuffix(key, "indptr"); ok && strings.HasPrefix(p, prefix) && s.bag.has(p+"indices") && !strings.HasPrefix(p, "attr") && !s.bag.used[key] {
			return s.compressed(p)
		}
	}
	if a, err = s.pick(prefix, edgesFlag, "", matrixNames); err != nil {
		return nil, err
	} else if a != nil {
		return s.adjacency(a, false)
	}
	if prefix != "" {
		return nil, nil // a relation without edges
	}
	return nil, fmt.Errorf("%s: no edges in it%s; looked for %s, for %s and %s and the like, for indptr and indices, for adj; {array_edges} NAME or {array_edges} SOURCES,DESTINATIONS says others",
		s.bag.path, s.found(), strings.Join(edgeNames[:3], ", "), endNames[0][0], endNames[0][1])
}

// adjacency reads edges from a matrix with a row and a column for each node, sparse or dense. It
// leaves an array of two rows or two columns to the method matrix.
func (s *Source) adjacency(a *array, isIndex bool) (*edges, error) {
	named := slices.Contains(matrixNames, last(a.key))
	square := len(a.Shape) == 2 && a.Shape[0] == a.Shape[1] && (named || a.Shape[0] != 2)
	if a.matrix == nil && !square {
		return s.matrix(a, isIndex)
	}
	// PyTorch Geometric transposes both.
	turned := strings.HasSuffix(a.key, "_t") || last(a.key) == "edge_index"
	if s.o.RowsAre != "" {
		turned = s.o.RowsAre == "dst"
	}
	why := "row i with column j is the edge i→j; {csr_rows} dst turns it round"
	if turned {
		why = "row i with column j is the edge j→i; {csr_rows} src turns it round"
	}
	if a.matrix != nil {
		s.skip(a.key, "of this sparse matrix "+why)
		return a.matrix.edges(turned), nil
	}
	s.skip(a.key, "of this adjacency matrix, whose numbers other than 0 are edges, "+why)
	if !a.Type.Number() {
		return nil, fmt.Errorf("%s, and an adjacency matrix is of numbers", a.form())
	}
	if turned {
		a = a.part(a.Transposed())
	}
	dims := [2]int64{a.Shape[0], a.Shape[1]}
	return &edges{name: a.name, count: -1, dense: a, dims: dims, sized: a.name, whole: true}, nil
}

// matrix is edges in one array of two rows or two columns.
func (s *Source) matrix(a *array, isIndex bool) (*edges, error) {
	if !a.Type.Number() || a.Type.Kind == npy.Bool {
		return nil, fmt.Errorf("%s, and ids are numbers", a.form())
	}
	rows := len(a.Shape) == 2 && a.Shape[0] == 2
	pairs := len(a.Shape) == 2 && a.Shape[1] == 2
	layout := s.o.Layout
	switch {
	case !rows && !pairs:
		return nil, fmt.Errorf("%s, and edges are (2, E), sources above destinations, or (E, 2)", a.form())
	case layout == Rows && !rows || layout == Pairs && !pairs:
		return nil, fmt.Errorf("%s, and {edge_layout} says %s", a.form(), layout)
	case rows && pairs && layout == "" && isIndex: // PyTorch Geometric's own: (2, E)
		layout = Rows
	case rows && pairs && layout == "":
		return nil, fmt.Errorf("%s, which may be two edges of a row each or two rows of ends; say {edge_layout} rows for (2, E), pairs for (E, 2)", a.form())
	case rows && layout == "":
		layout = Rows
	case layout == "":
		layout = Pairs
	}
	v := a.View
	if layout == Rows {
		v = v.Transposed() // (E, 2) in any case
	}
	e := &edges{name: a.name, count: v.Shape[0]}
	if v.Strides[1] <= v.Strides[0] || e.count < 2 {
		e.pairs = a.part(v)
	} else { // one end after the other
		e.src, e.dst = a.part(v.Select(1, 0)), a.part(v.Select(1, 1))
	}
	return e, nil
}

// ends is edges in an array of sources and one of destinations.
func (s *Source) ends(src, dst, flag string) (*edges, error) {
	var end [2]*array
	for i, key := range [2]string{src, dst} {
		a, err := s.pick("", flag, key, nil)
		if err != nil {
			return nil, err
		}
		if end[i], err = vector(a); err != nil {
			return nil, err
		}
	}
	if n, m := end[0].Len(), end[1].Len(); n != m {
		return nil, fmt.Errorf("%s: %s, and %s has %d; each edge has one of both", end[0].name, plural(n, "source"), end[1].name, m)
	}
	e := &edges{name: end[0].name + ", " + end[1].key, count: end[0].Len(), src: end[0], dst: end[1]}
	if src != "row" {
		return e, nil
	}
	return e, s.rest("", e) // scipy.sparse.save_npz of a COO matrix has both
}

// vector is an array of numbers in one dimension, or in a column.
func vector(a *array) (*array, error) {
	if len(a.Shape) == 2 && a.Shape[1] == 1 {
		a = a.part(a.Select(1, 0))
	}
	if len(a.Shape) != 1 || !a.Type.Number() {
		return nil, fmt.Errorf("%s, and numbers in one dimension are expected", a.form())
	}
	return a, nil
}

// cursor gives edges a chunk at a time.
type cursor struct {
	e        *edges
	src, dst *ids // src alone reads pairs
	mixed    []int64
	rows     *rowsOf  // CSR
	entries  *entries // of a dense matrix
	from, to []int64
	done     int64
}

func (e *edges) open(ctx context.Context) *cursor {
	n := min(ingest.ChunkRows, e.count)
	c := &cursor{e: e, from: make([]int64, n), to: make([]int64, n)}
	switch {
	case e.dense != nil:
		c.entries = e.dense.entries(ctx)
	case e.pairs != nil:
		c.src, c.mixed = e.pairs.ids(2), make([]int64, 2*n)
	case e.csr():
		c.rows, c.dst = &rowsOf{e: e, bounds: e.bounds.ids(1), row: -1}, e.dst.ids(1)
	default:
		c.src, c.dst = e.src.ids(1), e.dst.ids(1)
	}
	return c
}

// next returns the following edges; none at the end. The slices are lent until the next call, and
// may be written to.
func (c *cursor) next() (src, dst []int64, err error) {
	n := min(ingest.ChunkRows, c.e.count-c.done)
	src, dst = c.from[:n], c.to[:n]
	if c.entries != nil {
		k, err := c.entries.read(src, dst)
		if err == nil && int64(k) != n {
			err = fmt.Errorf("it has other entries than when they were counted; it changed while it was read")
		}
		if err != nil {
			return nil, nil, &located{c.e.dense, err}
		}
		c.done += n
		return src, dst, nil
	}
	if n == 0 {
		if c.rows != nil {
			err = c.rows.finish()
		}
		return nil, nil, err
	}
	switch {
	case c.mixed != nil:
		if _, err := c.src.read(c.mixed[:2*n]); err != nil {
			return nil, nil, &located{c.e.pairs, err}
		}
		for i := range src {
			src[i], dst[i] = c.mixed[2*i], c.mixed[2*i+1]
		}
	case c.rows != nil:
		if _, err := c.dst.read(dst); err != nil {
			return nil, nil, &located{c.e.dst, err}
		}
		if err := c.rows.read(src, c.done); err != nil {
			return nil, nil, &located{c.e.bounds, err}
		}
		if c.e.inward {
			src, dst = dst, src
		}
	default:
		if _, err := c.src.read(src); err != nil {
			return nil, nil, &located{c.e.src, err}
		}
		if _, err := c.dst.read(dst); err != nil {
			return nil, nil, &located{c.e.dst, err}
		}
	}
	c.done += n
	return src, dst, nil
}

// Edges streams the edges of a relation in the order of its arrays.
func (s *Source) Edges(ctx context.Context, relation int, emit func(ingest.EdgeChunk) error) error {
	if s.events != nil {
		return s.eachEvent(ctx, emit)
	}
	e := s.edges[relation]
	c := e.open(ctx)
	var w *weights
	if e.weight != nil {
		w = e.weights(c)
	}
	place := ingest.Place{File: e.name}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		src, dst, err := c.next()
		if err != nil {
			return e.fail(ctx, err)
		}
		if len(src) == 0 {
			return nil
		}
		chunk := ingest.EdgeChunk{Place: place, Src: src, Dst: dst}
		if w != nil {
			bits, err := w.read(len(src))
			if err != nil {
				return e.weight.fail(ctx, err)
			}
			chunk.Values = [][]uint64{bits}
		}
		if err := emit(chunk); err != nil {
			return err
		}
		place.First += int64(len(src))
	}
}

// weights reads a value of each edge, as the bits that a chunk has.
type weights struct {
	ints   *ids // nil when they are floats
	r      *npy.Reader
	whole  []int64
	floats []float32
	bits   []uint64
	dense  *entries // has read the weights with the edges
}

func (e *edges) weights(c *cursor) *weights {
	n := min(ingest.ChunkRows, e.count)
	w := &weights{bits: make([]uint64, n)}
	if e.weight == e.dense {
		w.dense = c.entries
		return w
	}
	if e.weightElem() == store.F32 {
		w.r, w.floats = e.weight.Reader(), make([]float32, n)
	} else {
		w.ints, w.whole = e.weight.ids(1), make([]int64, n)
	}
	return w
}

func (w *weights) read(n int) ([]uint64, error) {
	bits := w.bits[:n]
	if w.dense != nil {
		for i, v := range w.dense.values {
			if bits[i] = uint64(math.Float32bits(float32(v))); !w.dense.a.Type.Floating() {
				bits[i] = uint64(int64(v))
			}
		}
		return bits, nil
	}
	if w.ints != nil {
		if _, err := w.ints.read(w.whole[:n]); err != nil {
			return nil, err
		}
		for i, v := range w.whole[:n] {
			bits[i] = uint64(v)
		}
		return bits, nil
	}
	if _, err := w.r.ReadFloat32s(w.floats[:n]); err != nil {
		return nil, err
	}
	for i, v := range w.floats[:n] {
		bits[i] = uint64(math.Float32bits(v))
	}
	return bits, nil
}
