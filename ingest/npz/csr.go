package npz

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
)

// csr is the form of a scipy CSR matrix in the archive: which keys, how large. Row i has the
// entries indptr[i]…indptr[i+1]-1 of indices (its columns) and data (its values).
type csr struct {
	indptr, indices string
	data            string // "" when every value is one
	shape           string // "" when absent
	rows, cols      int64
	entries         int64
}

// keys are the members of the matrix that a section reads.
func (c *csr) keys() []string {
	keys := []string{c.indptr, c.indices}
	if c.data != "" {
		keys = append(keys, c.data)
	}
	return keys
}

// findCSR finds the matrix name ("adj", "attr") under any spelling of its keys, nil if there is
// none.
func (a *archive) findCSR(name string) (*csr, error) {
	for _, prefix := range []string{name + "_", name + "_matrix.", name + ".", name + "_matrix_"} {
		if a.files[prefix+"indptr"] != nil {
			return a.csrUnder(prefix)
		}
	}
	return nil, nil
}

// csrUnder is the matrix whose keys begin with prefix, the sizes of its arrays checked against each
// other.
func (a *archive) csrUnder(prefix string) (*csr, error) {
	c := &csr{indptr: prefix + "indptr", indices: prefix + "indices", data: prefix + "data", shape: prefix + "shape"}
	if a.files[c.indices] == nil {
		return nil, fmt.Errorf("no key %s beside %s; a scipy CSR matrix has both", c.indices, c.indptr)
	}
	bounds, err := a.vector(c.indptr)
	if err != nil {
		return nil, err
	}
	if bounds < 1 {
		return nil, fmt.Errorf("%s: it is empty; a matrix of n rows has n+1 bounds", c.indptr)
	}
	if c.entries, err = a.vector(c.indices); err != nil {
		return nil, err
	}
	if a.files[c.data] == nil {
		c.data = ""
	} else if n, err := a.vector(c.data); err != nil {
		return nil, err
	} else if n != c.entries {
		return nil, fmt.Errorf("%s: it has %d values, %s has %d columns for them", c.data, n, c.indices, c.entries)
	}
	if a.files[c.shape] == nil {
		c.shape = ""
		c.rows, c.cols = bounds-1, -1
		return c, nil
	}
	if c.rows, c.cols, err = a.shape(c.shape); err != nil {
		return nil, err
	}
	if bounds != c.rows+1 {
		return nil, fmt.Errorf("%s: it has %d bounds, %d are expected for the %d rows of %s", c.indptr, bounds, c.rows+1, c.rows, c.shape)
	}
	return c, nil
}

// vector returns the length of a one-dimensional array of numbers.
func (a *archive) vector(key string) (int64, error) {
	h, err := a.header(key)
	if err != nil {
		return 0, err
	}
	if len(h.Shape) != 1 || h.Type.Kind == npy.Unicode || h.Type.Kind == npy.Bytes {
		return 0, fmt.Errorf("%s: it is %s, numbers in one dimension are expected", key, h.String())
	}
	return h.Shape[0], nil
}

func (a *archive) shape(key string) (rows, cols int64, err error) {
	if n, err := a.vector(key); err != nil {
		return 0, 0, err
	} else if n != 2 {
		return 0, 0, fmt.Errorf("%s: it has %d numbers, rows and columns are expected", key, n)
	}
	m, err := a.open(key)
	if err != nil {
		return 0, 0, err
	}
	defer m.body.Close()
	var dim [2]int64
	if _, err := m.ReadInt64s(dim[:]); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", key, err)
	}
	if err := m.finish(); err != nil {
		return 0, 0, err
	}
	const most = 1 << 48 // far past any graph, and far from overflow
	if dim[0] < 0 || dim[1] < 0 || dim[0] > most || dim[1] > most {
		return 0, 0, fmt.Errorf("%s: (%d, %d) is not the shape of a matrix", key, dim[0], dim[1])
	}
	return dim[0], dim[1], nil
}

// missingKey is the message for an archive of another kind.
func (a *archive) missingKey(key, remedy string) error {
	const most = 12
	found := a.keys
	more := ""
	if len(found) > most {
		found, more = found[:most], ", …"
	}
	if len(found) == 0 {
		return fmt.Errorf("no key %s (the archive has no arrays); %s", key, remedy)
	}
	return fmt.Errorf("no key %s (found %s%s); %s", key, strings.Join(found, ", "), more, remedy)
}

// cursor walks the entries of a matrix in order, its arrays inflated side by side.
type cursor struct {
	c               *csr
	indptr, indices *member
	data            *member // nil when every value is one
	started         bool    // the first bound is read
	bounds          []int64 // read ahead from indptr
	boundBuf        []int64
	row, end        int64 // the current row, and the number of the entry after its last
	pos             int64 // number of the entry to be read next
	rowBuf, colBuf  []int64
	valueBuf        []float32
}

func (a *archive) walk(c *csr) (*cursor, error) {
	n := min(ingest.ChunkRows, c.entries)
	k := &cursor{c: c, boundBuf: make([]int64, min(8<<10, c.rows+1)), rowBuf: make([]int64, n), colBuf: make([]int64, n)}
	var err error
	if k.indptr, err = a.open(c.indptr); err != nil {
		return nil, err
	}
	if k.indices, err = a.open(c.indices); err != nil {
		k.close()
		return nil, err
	}
	if c.data != "" {
		k.valueBuf = make([]float32, n)
		if k.data, err = a.open(c.data); err != nil {
			k.close()
			return nil, err
		}
	}
	return k, nil
}

func (k *cursor) close() {
	for _, m := range []*member{k.indptr, k.indices, k.data} {
		if m != nil {
			m.body.Close()
		}
	}
}

// next returns the following entries; none at the end, after all checks. Values is nil when every
// value is one. The slices are lent until the next call, and may be written to until then.
func (k *cursor) next() (rows, cols []int64, values []float32, err error) {
	if !k.started {
		k.started = true
		start, err := k.bound()
		if err != nil {
			return nil, nil, nil, err
		}
		if start != 0 {
			return nil, nil, nil, fmt.Errorf("%s: it starts at %d instead of 0", k.c.indptr, start)
		}
		k.row = -1
	}
	n := min(ingest.ChunkRows, k.c.entries-k.pos)
	if n == 0 {
		return nil, nil, nil, k.finish()
	}
	rows, cols = k.rowBuf[:n], k.colBuf[:n]
	if _, err := k.indices.ReadInt64s(cols); err != nil {
		return nil, nil, nil, fmt.Errorf("%s: %w", k.c.indices, err)
	}
	if k.data != nil {
		values = k.valueBuf[:n]
		if _, err := k.data.ReadFloat32s(values); err != nil {
			return nil, nil, nil, fmt.Errorf("%s: %w", k.c.data, err)
		}
	}
	for i, col := range cols {
		for k.pos+int64(i) >= k.end {
			if err := k.nextRow(); err != nil {
				return nil, nil, nil, err
			}
		}
		if uint64(col) >= uint64(k.c.cols) {
			return nil, nil, nil, fmt.Errorf("%s: row %d: column %d is outside 0…%d", k.c.indices, k.row, col, k.c.cols-1)
		}
		rows[i] = k.row
	}
	k.pos += n
	return rows, cols, values, nil
}

func (k *cursor) nextRow() error {
	if k.row+1 == k.c.rows {
		return fmt.Errorf("%s: it ends at %d, and %s has %d entries", k.c.indptr, k.end, k.c.indices, k.c.entries)
	}
	end, err := k.bound()
	if err != nil {
		return err
	}
	k.row++
	if end < k.end {
		return fmt.Errorf("%s: row %d: it starts at %d and ends before that, at %d", k.c.indptr, k.row, k.end, end)
	}
	if end > k.c.entries {
		return fmt.Errorf("%s: row %d: it ends at %d, and %s has %d entries", k.c.indptr, k.row, end, k.c.indices, k.c.entries)
	}
	k.end = end
	return nil
}

// bound reads the next number of indptr.
func (k *cursor) bound() (int64, error) {
	if len(k.bounds) == 0 {
		n, err := k.indptr.ReadInt64s(k.boundBuf)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", k.c.indptr, err)
		}
		k.bounds = k.boundBuf[:n]
	}
	v := k.bounds[0]
	k.bounds = k.bounds[1:]
	return v, nil
}

// finish checks what follows the last entry: empty rows and nothing else.
func (k *cursor) finish() error {
	for k.row+1 < k.c.rows {
		if err := k.nextRow(); err != nil {
			return err
		}
	}
	if k.end != k.c.entries {
		return fmt.Errorf("%s: it ends at %d, and %s has %d entries", k.c.indptr, k.end, k.c.indices, k.c.entries)
	}
	for _, m := range []*member{k.indptr, k.indices, k.data} {
		if m == nil {
			continue
		}
		if err := m.finish(); err != nil {
			return err
		}
	}
	return nil
}
