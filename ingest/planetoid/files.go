package planetoid

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/pickle"
)

var suffixes = []string{"x", "y", "tx", "ty", "allx", "ally", "graph", "test.index"}

// findPrefix returns the path that all files start with. The user named a folder, the prefix
// itself, or a file.
func findPrefix(path string) (prefix, name string, err error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		if prefix, err = onlyGraph(path); err != nil {
			return "", "", err
		}
	case err == nil || errors.Is(err, os.ErrNotExist):
		prefix = filepath.Clean(path)
		for _, suffix := range suffixes {
			if cut, ok := strings.CutSuffix(prefix, "."+suffix); ok && strings.HasPrefix(filepath.Base(cut), "ind.") {
				prefix = cut
				break
			}
		}
		if name := filepath.Base(prefix); !strings.HasPrefix(name, "ind.") && errors.Is(err, os.ErrNotExist) {
			prefix = filepath.Join(filepath.Dir(prefix), "ind."+name) // DIR/cora
		}
	default:
		return "", "", err
	}
	for _, suffix := range suffixes {
		if _, err := os.Stat(prefix + "." + suffix); errors.Is(err, os.ErrNotExist) {
			return "", "", fmt.Errorf("%s: no such file; a Planetoid graph is ind.NAME.{%s}, so name their folder, or one of them",
				prefix+"."+suffix, strings.Join(suffixes, ","))
		} else if err != nil {
			return "", "", err
		}
	}
	return prefix, strings.TrimPrefix(filepath.Base(prefix), "ind."), nil
}

// onlyGraph finds the one graph of a folder, or of raw/ in it.
func onlyGraph(dir string) (string, error) {
	for _, in := range []string{dir, filepath.Join(dir, "raw")} {
		entries, err := os.ReadDir(in)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		var names []string
		for _, e := range entries {
			if name, ok := strings.CutSuffix(e.Name(), ".allx"); ok && strings.HasPrefix(name, "ind.") {
				names = append(names, name)
			}
		}
		if len(names) > 1 {
			return "", fmt.Errorf("%s: several graphs (%s); name one, as in %s", in, strings.Join(names, ", "), filepath.Join(in, names[0]))
		}
		if len(names) == 1 {
			return filepath.Join(in, names[0]), nil
		}
	}
	return "", fmt.Errorf("%s: no ind.NAME.allx in it; name the folder that holds ind.NAME.{%s}", dir, strings.Join(suffixes, ","))
}

// readTestIndex reads a node id a line. 4,096 times what the format's graphs have is the most.
func readTestIndex(path string) ([]int64, error) {
	const most = 1 << 24
	in, err := lines.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var ids []int64
	for {
		text, err := in.Next()
		if err == io.EOF {
			return ids, nil
		}
		if err != nil {
			return nil, err
		}
		cell := strings.TrimSpace(string(text))
		if cell == "" {
			continue
		}
		id, err := strconv.ParseInt(cell, 10, 64)
		if err != nil || id < 0 {
			return nil, in.Errorf("%q is not the id of a node, which count from 0", lines.Clip([]byte(cell)))
		}
		if ids = append(ids, id); len(ids) > most {
			return nil, in.Errorf("more than %d test nodes", most)
		}
	}
}

// csr is a matrix of scipy.sparse in memory: row i has the entries indptr[i]…indptr[i+1]-1.
type csr struct {
	rows, cols int64
	indptr     []int64
	indices    []int32
	values     []float32
}

// readCSR reads a pickled matrix and checks all of it.
func (s *Source) readCSR(path string) (*csr, error) {
	v, err := s.pickles.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := asCSR(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

func asCSR(v any) (*csr, error) {
	o, ok := v.(*pickle.Object)
	if !ok || !strings.Contains(o.Class, ".csr_") {
		return nil, fmt.Errorf("it holds %s, and a csr_matrix of scipy.sparse is expected", pickle.Kind(v))
	}
	state, ok := o.State.(*pickle.Dict)
	if !ok {
		return nil, fmt.Errorf("the matrix has %s for its state, and a dict is expected", pickle.Kind(o.State))
	}
	shape := state.Get("_shape")
	if shape == nil {
		shape = state.Get("shape")
	}
	dims, _ := shape.(pickle.Tuple)
	if len(dims) != 2 {
		return nil, fmt.Errorf("the matrix has %s for its shape, and rows and columns are expected", pickle.Kind(shape))
	}
	m := &csr{}
	var okRows, okCols bool
	m.rows, okRows = dims[0].(int64)
	m.cols, okCols = dims[1].(int64)
	if !okRows || !okCols || m.rows < 0 || m.cols < 1 || m.cols > ingest.MaxColumns {
		return nil, fmt.Errorf("(%v, %v) is not the shape of a matrix of 1 to %d columns", dims[0], dims[1], ingest.MaxColumns)
	}
	var columns []int64
	var err error
	if m.indptr, err = integers(state.Get("indptr"), "indptr"); err != nil {
		return nil, err
	}
	if columns, err = integers(state.Get("indices"), "indices"); err != nil {
		return nil, err
	}
	data, err := vector(state.Get("data"), "data")
	if err != nil {
		return nil, err
	}
	m.values = make([]float32, data.Len())
	if _, err := data.Reader().ReadFloat32s(m.values); err != nil && err != io.EOF {
		return nil, fmt.Errorf("data: %w", err)
	}
	return m, m.check(columns)
}

// check holds the arrays against each other, and takes the columns.
func (m *csr) check(columns []int64) error {
	if int64(len(m.indptr)) != m.rows+1 {
		return fmt.Errorf("indptr: it has %d bounds, %d are expected for %d rows", len(m.indptr), m.rows+1, m.rows)
	}
	if len(columns) != len(m.values) {
		return fmt.Errorf("data: it has %d values, indices has %d columns for them", len(m.values), len(columns))
	}
	if m.indptr[0] != 0 || !slices.IsSorted(m.indptr) || m.indptr[m.rows] > int64(len(columns)) {
		return fmt.Errorf("indptr: the bounds of the rows do not ascend from 0 to the %d entries", len(columns))
	}
	m.indices = make([]int32, len(columns))
	for i, c := range columns {
		if uint64(c) >= uint64(m.cols) {
			return fmt.Errorf("indices: entry %d: column %d is outside 0…%d", i, c, m.cols-1)
		}
		m.indices[i] = int32(c)
	}
	return nil
}

// addRow adds row i to dst, one value a column.
func (m *csr) addRow(dst []float32, i int64) {
	for k := m.indptr[i]; k < m.indptr[i+1]; k++ {
		dst[m.indices[k]] += m.values[k]
	}
}

func vector(v any, key string) (*pickle.Array, error) {
	a, ok := v.(*pickle.Array)
	if !ok || len(a.Shape) != 1 {
		return nil, fmt.Errorf("%s: it is %s, and numbers in one dimension are expected", key, pickle.Kind(v))
	}
	return a, nil
}

func integers(v any, key string) ([]int64, error) {
	a, err := vector(v, key)
	if err != nil {
		return nil, err
	}
	out := make([]int64, a.Len())
	if _, err := a.Reader().ReadInt64s(out); err != nil && err != io.EOF {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return out, nil
}

// readClasses reads one-hot labels: the class of each row, -1 in a row of zeros.
func (s *Source) readClasses(path string) (class []int32, classes int64, err error) {
	v, err := s.pickles.ReadFile(path)
	if err != nil {
		return nil, 0, err
	}
	a, ok := v.(*pickle.Array)
	if !ok || len(a.Shape) != 2 || a.Shape[1] < 1 || a.Type.Kind == npy.Unicode || a.Type.Kind == npy.Bytes {
		return nil, 0, fmt.Errorf("%s: it holds %s, and an array with a row of zeros and ones for each node is expected", path, pickle.Kind(v))
	}
	rows, classes := a.Shape[0], a.Shape[1]
	if rows > a.Bytes() || classes > ingest.MaxColumns { // rows of nothing
		return nil, 0, fmt.Errorf("%s: an array of %s is not labels", path, a.String())
	}
	class = slices.Repeat([]int32{-1}, int(rows))
	in, scratch := a.Reader(), make([]int64, 8<<10)
	for k := int64(0); ; {
		n, err := in.ReadInt64s(scratch)
		if err == io.EOF {
			return class, classes, nil
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", path, err)
		}
		for _, one := range scratch[:n] {
			row, col := k/classes, k%classes
			if a.Fortran {
				row, col = k%rows, k/rows
			}
			k++
			switch {
			case one == 0:
			case one != 1:
				return nil, 0, fmt.Errorf("%s: row %d, column %d (counting from 0) is %d; one-hot labels are zeros and ones", path, row, col, one)
			case class[row] >= 0:
				return nil, 0, fmt.Errorf("%s: row %d (counting from 0) has the classes %d and %d; Planetoid's labels have one a node", path, row, class[row], col)
			default:
				class[row] = int32(col)
			}
		}
	}
}
