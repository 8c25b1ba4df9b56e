package arrays

import (
	"context"
	"fmt"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/pickle"
	"github.com/gnnstore/gnnstore/ingest/torch"
)

// matrix is a sparse matrix of PyTorch, PyTorch Geometric or SciPy in a pickle.
type matrix struct {
	name, key  string
	format     string    // coo, csr or csc
	rows, cols *npy.View // of each entry, in COO
	bounds     *npy.View // of rows in CSR, of columns in CSC
	inner      *npy.View // columns in CSR, rows in CSC
	data       *npy.View // nil: every value is 1
	dims       [2]int64
	ordered    *bool // whether rows ascend; nil before that is known
}

// sparseClass is the class that package torch gives a sparse tensor.
const sparseClass = "sparse tensor"

// isMatrix reports whether an object is a sparse matrix of one of three libraries.
func isMatrix(o *pickle.Object) bool {
	return o.Class == sparseClass || o.Class == "torch_sparse.tensor.SparseTensor" || strings.HasPrefix(o.Class, "scipy.sparse.")
}

// matrixOf reads the form of a sparse matrix.
func matrixOf(name, key string, o *pickle.Object) (*matrix, error) {
	m := &matrix{name: name, key: key}
	var parts [4]any // rows and columns (COO) or bounds and inner indices; then values and shape
	x := last(key)
	form, line := "a "+o.Class, fmt.Sprintf("%s = %s.tocsr()", x, x)
	switch {
	case o.Class == sparseClass:
		line = fmt.Sprintf("%s = %s.to_dense().to_sparse_csr()", x, x)
		state, _ := o.State.(pickle.Tuple)
		if len(state) == 2 {
			layout, _ := pickle.Text(state[0])
			of, _ := state[1].(pickle.Tuple)
			if form = "a sparse tensor of layout " + layout; !lines.Printable(layout) || len(layout) > maxShown {
				form = fmt.Sprintf("a sparse tensor of layout %.*q", maxShown, layout)
			}
			m.format = strings.TrimPrefix(layout, "torch.sparse_")
			switch {
			case m.format == "coo" && len(of) >= 3:
				if i := viewOf(of[0]); i != nil && len(i.Shape) == 2 && i.Shape[0] == 2 {
					m.rows, m.cols = i.Select(0, 0), i.Select(0, 1)
				}
				parts[2], parts[3] = of[1], of[2]
			case (m.format == "csr" || m.format == "csc") && len(of) >= 4:
				copy(parts[:], of)
			default:
				m.format = ""
			}
		}
	case o.Class == "torch_sparse.tensor.SparseTensor":
		line = fmt.Sprintf("%s = %s.to_torch_sparse_csr_tensor()", x, x)
		d, _ := o.State.(*pickle.Dict)
		if d == nil {
			break
		}
		inner, _ := d.Get("storage").(*pickle.Object)
		if inner == nil {
			break
		}
		s, _ := inner.State.(*pickle.Dict)
		if s == nil {
			break
		}
		parts[2], parts[3] = s.Get("_value"), s.Get("_sparse_sizes")
		switch i := viewOf(s.Get("_index")); { // before version 0.5
		case i != nil && len(i.Shape) == 2 && i.Shape[0] == 2:
			m.format, m.rows, m.cols, parts[3] = "coo", i.Select(0, 0), i.Select(0, 1), s.Get("_sparse_size")
		case s.Get("_rowptr") != nil:
			m.format, parts[0], parts[1] = "csr", s.Get("_rowptr"), s.Get("_col")
		default:
			m.format, parts[0], parts[1] = "coo", s.Get("_row"), s.Get("_col")
		}
	default: // of SciPy
		class := o.Class[strings.LastIndexByte(o.Class, '.')+1:]
		s, _ := o.State.(*pickle.Dict)
		if s == nil {
			break
		}
		parts[2], parts[3] = s.Get("data"), s.Get("_shape")
		if parts[3] == nil {
			parts[3] = s.Get("shape")
		}
		switch format, _, _ := strings.Cut(class, "_"); format {
		case "csr", "csc":
			m.format, parts[0], parts[1] = format, s.Get("indptr"), s.Get("indices")
		case "coo":
			m.format, parts[0], parts[1] = format, s.Get("row"), s.Get("col")
			if both, ok := s.Get("coords").(pickle.Tuple); ok && len(both) == 2 {
				parts[0], parts[1] = both[0], both[1]
			}
		}
	}
	refuse := func(kind string) (*matrix, error) { return nil, &unread{name, form, kind, line} }
	if m.format == "" {
		return refuse("and CSR, CSC and COO are read")
	}
	if m.rows == nil && m.format == "coo" {
		m.rows, m.cols = viewOf(parts[0]), viewOf(parts[1])
	} else if m.format != "coo" {
		m.bounds, m.inner = viewOf(parts[0]), viewOf(parts[1])
	}
	a, b := m.rows, m.cols
	if m.format != "coo" {
		a, b = m.bounds, m.inner
	}
	if !isVector(a) || !isVector(b) {
		return refuse("without the indices of its entries")
	}
	dims, _ := parts[3].(pickle.Tuple)
	if len(dims) != 2 {
		return refuse(fmt.Sprintf("of %d dimensions, and 2 are expected", len(dims)))
	}
	for i, v := range dims {
		n, ok := v.(int64)
		if !ok || n < 0 || n > 1<<48 {
			return refuse("whose shape no matrix has")
		}
		m.dims[i] = n
	}
	if parts[2] != nil {
		if m.data = viewOf(parts[2]); !isVector(m.data) {
			return refuse("and a number for each entry is expected")
		}
	}
	if m.format == "coo" && a.Len() != b.Len() || m.data != nil && m.data.Len() != b.Len() {
		return refuse(fmt.Sprintf("whose %d indices and %d others are not of the same entries", a.Len(), b.Len()))
	}
	if want := m.bounded() + 1; m.format != "coo" && a.Len() != want {
		return refuse(fmt.Sprintf("with %d bounds, and %d are expected for its shape (%d, %d)", a.Len(), want, m.dims[0], m.dims[1]))
	}
	return m, nil
}

// array returns an array that stands for the matrix. It has the matrix's shape, but no numbers.
func (m *matrix) array() *array {
	h := npy.Header{Descr: "sparse " + m.format, Type: npy.Type{Kind: npy.Opaque, Size: 1}, Shape: m.dims[:]}
	return &array{View: &npy.View{Header: h}, key: m.key, name: m.name, matrix: m}
}

// bounded returns the number of lists that bounds delimits: rows of CSR, columns of CSC.
func (m *matrix) bounded() int64 {
	if m.format == "csc" {
		return m.dims[1]
	}
	return m.dims[0]
}

func viewOf(v any) *npy.View {
	switch v := v.(type) {
	case *torch.Tensor:
		return v.View
	case *pickle.Array:
		return v.View()
	}
	return nil
}

func isVector(v *npy.View) bool { return v != nil && len(v.Shape) == 1 && v.Type.Number() }

// edges returns the entries of a matrix as edges: entry (i, j) is i→j, or j→i if turned is set.
func (m *matrix) edges(turned bool) *edges {
	part := func(v *npy.View, what string) *array {
		if v == nil {
			return nil
		}
		return &array{View: v, key: what, name: m.name + ": " + what}
	}
	e := &edges{name: m.name, dims: m.dims, sized: m.name, data: part(m.data, "values"), whole: true}
	if e.data != nil {
		e.data.key = m.key // names the weights in the dataset
	}
	if m.format == "coo" {
		e.src, e.dst = part(m.rows, "rows"), part(m.cols, "columns")
		if turned {
			e.src, e.dst = e.dst, e.src
		}
		e.count = e.src.Len()
	} else {
		e.bounds, e.dst = part(m.bounds, "bounds"), part(m.inner, "indices")
		e.count, e.inward = e.dst.Len(), (m.format == "csc") != turned
	}
	if turned {
		e.dims[0], e.dims[1] = e.dims[1], e.dims[0]
	}
	return e
}

// each visits the entries of the matrix.
func (m *matrix) each(ctx context.Context, visit func(rows, cols []int64, values []float32) error) error {
	e := m.edges(false)
	c := e.open(ctx)
	var r *npy.Reader
	values := make([]float32, min(ingest.ChunkRows, e.count))
	for i := range values {
		values[i] = 1
	}
	if m.data != nil {
		r = m.data.Reader()
	}
	for done := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows, cols, err := c.next()
		if err != nil {
			return e.fail(ctx, err)
		}
		if len(rows) == 0 {
			return nil
		}
		if r != nil {
			if _, err := r.ReadFloat32s(values[:len(rows)]); err != nil {
				return e.data.fail(ctx, err)
			}
		}
		for i := range rows {
			if uint64(rows[i]) >= uint64(m.dims[0]) || uint64(cols[i]) >= uint64(m.dims[1]) {
				return fmt.Errorf("%s: entry %d is at (%d, %d), outside its shape (%d, %d)", m.name, done+int64(i), rows[i], cols[i], m.dims[0], m.dims[1])
			}
		}
		if err := visit(rows, cols, values[:len(rows)]); err != nil {
			return err
		}
		done += int64(len(rows))
	}
}

// ascend reports whether the rows of the entries ascend. It reads a COO or CSC matrix through once.
func (m *matrix) ascend(ctx context.Context) (bool, error) {
	if m.ordered != nil {
		return *m.ordered, nil
	}
	ordered, before := true, int64(0)
	if m.format != "csr" {
		err := m.each(ctx, func(rows, _ []int64, _ []float32) error {
			for _, row := range rows {
				ordered, before = ordered && row >= before, row
			}
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	m.ordered = &ordered
	return ordered, nil
}

// sparseRows streams a sparse matrix as dense rows. Entries of one place are added up, as PyTorch
// and SciPy do. Entries in no order are read once for every 64 MiB of dense rows.
func (m *matrix) sparseRows(ctx context.Context, emit func(ingest.RowChunk) error) error {
	ordered, err := m.ascend(ctx)
	if err != nil {
		return err
	}
	dim := m.dims[1]
	per := max(ingest.ChunkBytes/4/dim, 1)
	window := per
	if !ordered {
		window = max(ingest.BlockBytes/4/dim, 1)
	}
	window = min(window, m.dims[0])
	dense, first := make([]float32, window*dim), int64(0)
	flush := func() error { // emits the rows of the window, and moves it past them
		n := min(window, m.dims[0]-first)
		for at := int64(0); at < n; at += per {
			if err := ctx.Err(); err != nil {
				return err
			}
			k := min(per, n-at)
			place := ingest.Place{File: m.name, First: first + at}
			if err := emit(ingest.RowChunk{Place: place, Values: dense[at*dim : (at+k)*dim]}); err != nil {
				return err
			}
		}
		clear(dense)
		first += n
		return nil
	}
	add := func(row, col int64, v float32) { dense[(row-first)*dim+col] += v }
	if ordered {
		if err := m.each(ctx, func(rows, cols []int64, values []float32) error {
			for i, row := range rows {
				for row >= first+window {
					if err := flush(); err != nil {
						return err
					}
				}
				add(row, cols[i], values[i])
			}
			return nil
		}); err != nil {
			return err
		}
	}
	for first < m.dims[0] {
		if !ordered {
			if err := m.each(ctx, func(rows, cols []int64, values []float32) error {
				for i, row := range rows {
					if row >= first && row < first+window {
						add(row, cols[i], values[i])
					}
				}
				return nil
			}); err != nil {
				return err
			}
		}
		if err := flush(); err != nil {
			return err
		}
	}
	return nil
}
