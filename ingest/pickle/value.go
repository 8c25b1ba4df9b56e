package pickle

import (
	"bytes"

	"github.com/gnnstore/gnnstore/ingest/npy"
)

// Bytes is a Python bytes, or a str of Python 2, which is bytes as well.
type Bytes []byte

// Tuple is a Python tuple.
type Tuple []any

// List is a Python list.
type List struct{ Items []any }

// Dict is a Python dict, OrderedDict or defaultdict: the pairs in the order of the file. A key that
// is there twice stands twice; for Python the last one counts.
type Dict struct {
	Keys, Values []any

	attributes bool // made by a call: its class is one whose instances may have attributes, which are passed over
}

// Get returns the last value under a key of text, nil without one.
func (d *Dict) Get(key string) any {
	for i := len(d.Keys) - 1; i >= 0; i-- {
		if k, ok := Text(d.Keys[i]); ok && k == key {
			return d.Values[i]
		}
	}
	return nil
}

// Object is an instance of a class on the allow-list that is no more than its state.
type Object struct {
	Class string // as it was imported: "scipy.sparse.csr.csr_matrix"
	State any
}

// Array is a NumPy array. Its Reader reads in file order. An array of Python objects has the descr
// "|O" and Objects instead of a Reader.
type Array struct {
	npy.Header
	data    []byte
	objects *List
}

// Objects returns the elements of an array of Python objects, in file order. It returns nil for any
// other array.
func (a *Array) Objects() *List { return a.objects }

// Reader reads the elements, front to back. It may be called again.
func (a *Array) Reader() *npy.Reader { return npy.NewDataReader(a.Header, bytes.NewReader(a.data)) }

// View is the array in row-major order.
func (a *Array) View() *npy.View {
	size := int64(len(a.data))
	if a.objects != nil {
		size = a.Bytes() // as the header says, since no Reader reads them
	}
	v, err := npy.NewView(a.Header, nil, 0, npy.FileStorage(bytes.NewReader(a.data)), size)
	if err != nil {
		panic(err) // array has held the shape against the data
	}
	return v
}

// Text is a string of either kind.
func Text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case Bytes:
		return string(v), true
	}
	return "", false
}
