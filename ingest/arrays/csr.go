package arrays

import (
	"context"
	"fmt"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/npy"
)

// compressed is edges as the rows of a CSR matrix, whose keys begin with prefix.
func (s *Source) compressed(prefix string) (*edges, error) {
	e := &edges{}
	if err := s.vectors(prefix, "indptr", &e.bounds, "indices", &e.dst); err != nil {
		return nil, err
	}
	if e.bounds.Len() < 1 {
		return nil, fmt.Errorf("%s: it is empty; a matrix of n rows has n+1 bounds", e.bounds.name)
	}
	e.name, e.count = e.dst.name, e.dst.Len()
	if err := s.rest(prefix, e); err != nil {
		return nil, err
	}
	e.inward = strings.Contains(strings.ToLower(prefix), "csc")
	why := "a row is a node's destinations, so row i with column j is the edge i→j; {csr_rows} dst turns it round"
	if s.bag.has(prefix + "format") {
		format, err := s.format(prefix + "format")
		if err != nil {
			return nil, err
		}
		e.inward = format == "csc"
	}
	if s.o.RowsAre != "" {
		e.inward = s.o.RowsAre == "dst"
	}
	if e.inward {
		why = "a row is a node's sources, so row i with column j is the edge j→i; {csr_rows} src turns it round"
	}
	s.skip(e.bounds.key, "direction is not in the file: "+why)
	return e, nil
}

// sparseParts finds a sparse matrix of features that is stored as several arrays: x_indptr,
// x_indices, x_shape, and perhaps x_data. It returns nil if there is none.
func (s *Source) sparseParts(prefix, given string) (*array, error) {
	names := xNames
	if given != "" {
		names = []string{strings.TrimRight(given, "_.")}
	}
	for _, name := range names {
		for _, sep := range []string{"_", "."} {
			p := prefix + name + sep
			if !s.bag.has(p+"indptr") || !s.bag.has(p+"indices") || !s.bag.has(p+"shape") || s.bag.has(prefix+name) {
				continue
			}
			return s.sparseUnder(p, prefix+name)
		}
	}
	return nil, nil
}

// sparseUnder returns the matrix of features whose keys begin with prefix.
func (s *Source) sparseUnder(prefix, key string) (*array, error) {
	e := &edges{}
	if err := s.vectors(prefix, "indptr", &e.bounds, "indices", &e.dst); err != nil {
		return nil, err
	}
	e.count = e.dst.Len()
	if err := s.rest(prefix, e); err != nil {
		return nil, err
	}
	m := &matrix{name: s.bag.path + ": " + key, key: key, format: "csr", bounds: e.bounds.View, inner: e.dst.View, dims: e.dims}
	if s.bag.has(prefix + "format") {
		var err error
		if m.format, err = s.format(prefix + "format"); err != nil {
			return nil, err
		}
	}
	if e.data != nil {
		m.data = e.data.View
	}
	if m.dims[0] < 0 || m.dims[1] < 0 || e.bounds.Len() != m.bounded()+1 {
		return nil, fmt.Errorf("%s: %d bounds, and %d are expected for the shape (%d, %d)", e.bounds.name, e.bounds.Len(), m.bounded()+1, m.dims[0], m.dims[1])
	}
	return m.array(), nil
}

// vectors opens two of a matrix's arrays, where they are there.
func (s *Source) vectors(prefix, name string, to **array, other string, toOther **array) error {
	for i, key := range [2]string{prefix + name, prefix + other} {
		if !s.bag.has(key) {
			continue
		}
		a, err := s.bag.get(key)
		if err == nil {
			a, err = vector(a)
		}
		if err != nil {
			return err
		}
		*[2]**array{to, toOther}[i] = a
	}
	return nil
}

// rest finds the values and the shape of a matrix, where it has them.
func (s *Source) rest(prefix string, e *edges) error {
	var shape *array
	if err := s.vectors(prefix, "data", &e.data, "shape", &shape); err != nil {
		return err
	}
	if shape != nil {
		if shape.Len() != 2 {
			return fmt.Errorf("%s, and rows and columns are expected", shape.form())
		}
		if _, err := shape.ids(1).read(e.dims[:]); err != nil {
			return shape.fail(context.Background(), err)
		}
		e.sized = shape.name
	}
	if e.data != nil && e.data.Len() != e.count {
		return fmt.Errorf("%s: %s, and %s has %d entries", e.data.name, plural(e.data.Len(), "value"), e.dst.name, e.count)
	}
	return nil
}

// knownFormat refuses SciPy's other matrices: some of them have arrays with the names that CSR, CSC
// and COO have.
func (s *Source) knownFormat(prefix string) error {
	key := prefix + "format"
	if !s.bag.has(key) || !s.bag.has(prefix+"data") || s.bag.has(prefix+"row") {
		return nil
	}
	_, err := s.format(key)
	return err
}

// format is the name of a SciPy matrix: csr or csc, whose arrays have the same names.
func (s *Source) format(key string) (string, error) {
	a, err := s.bag.get(key)
	if err != nil {
		return "", err
	}
	var name [1]string
	if a.Len() != 1 || a.Type.Kind != npy.Bytes && a.Type.Kind != npy.Unicode {
		return "", fmt.Errorf("%s, and a name such as csr is expected", a.form())
	}
	if _, err := a.Reader().ReadStrings(name[:]); err != nil {
		return "", a.fail(context.Background(), err)
	}
	if name[0] != "csr" && name[0] != "csc" {
		return "", fmt.Errorf("%s: the matrix is %q, and csr or csc is expected; save m.tocsr()", a.name, name[0])
	}
	return name[0], nil
}

// fits checks the shape of a matrix against the numbers of source and destination nodes. A type
// whose number of nodes is not known yet takes it from the matrix.
func (e *edges) fits(src, dst *nodeType) error {
	n, from := e.dims, e.sized
	if e.sized != "" && (n[0] < 0 || n[1] < 0 || src == dst && n[0] != n[1]) {
		return fmt.Errorf("%s: (%d, %d) is not square; an adjacency has a row and a column for each node", e.sized, n[0], n[1])
	}
	if e.csr() {
		rows, k := e.bounds.Len()-1, 0
		if e.inward {
			k = 1
		}
		switch {
		case e.sized == "":
			n, from = [2]int64{-1, -1}, e.bounds.name
			n[k] = rows
		case n[k] != rows:
			return fmt.Errorf("%s: %d rows, and %s has the bounds of %d", e.sized, n[k], e.bounds.name, rows)
		}
	}
	for i, t := range [2]*nodeType{src, dst} {
		if n[i] < 0 {
			continue
		}
		if t.count < 0 {
			t.count, t.from = n[i], from
		}
		if n[i] > t.count || n[i] > maxNodes {
			return fmt.Errorf("%s: %d rows, and there are %d nodes by %s (%d at most)", from, n[i], t.count, t.from, int64(maxNodes))
		}
	}
	return nil
}

// rowsOf gives the row of each entry of a CSR matrix.
type rowsOf struct {
	e      *edges
	bounds *ids
	buf    []int64
	ahead  []int64
	row    int64
	end    int64 // the entry after the row's last
}

// read fills dst with the rows of the entries from first on.
func (r *rowsOf) read(dst []int64, first int64) error {
	for i := range dst {
		for first+int64(i) >= r.end {
			if err := r.step(); err != nil {
				return err
			}
		}
		dst[i] = r.row
	}
	return nil
}

// step moves to the next row; the first step reads the first bound, which must be 0.
func (r *rowsOf) step() error {
	if r.buf == nil {
		r.buf = make([]int64, min(8<<10, r.e.bounds.Len()))
		start, err := r.bound()
		if err != nil {
			return err
		}
		if start != 0 {
			return fmt.Errorf("it starts at %d instead of 0", start)
		}
	}
	if r.row+1 == r.e.bounds.Len()-1 {
		return fmt.Errorf("it ends at %d, and %s has %d entries", r.end, r.e.dst.key, r.e.count)
	}
	end, err := r.bound()
	if err != nil {
		return err
	}
	if r.row++; end < r.end {
		return fmt.Errorf("row %d: it starts at %d and ends before that, at %d", r.row, r.end, end)
	}
	if end > r.e.count {
		return fmt.Errorf("row %d: it ends at %d, and %s has %d entries", r.row, end, r.e.dst.key, r.e.count)
	}
	r.end = end
	return nil
}

func (r *rowsOf) bound() (int64, error) {
	if len(r.ahead) == 0 {
		n, err := r.bounds.read(r.buf)
		if err != nil {
			return 0, err
		}
		r.ahead = r.buf[:n]
	}
	v := r.ahead[0]
	r.ahead = r.ahead[1:]
	return v, nil
}

// finish checks what follows the last entry: empty rows and nothing else.
func (r *rowsOf) finish() error {
	for r.row+1 < r.e.bounds.Len()-1 || r.buf == nil && r.e.bounds.Len() > 1 {
		if err := r.step(); err != nil {
			return &located{r.e.bounds, err}
		}
	}
	if r.end != r.e.count {
		return &located{r.e.bounds, fmt.Errorf("it ends at %d, and %s has %d entries", r.end, r.e.dst.key, r.e.count)}
	}
	return nil
}
