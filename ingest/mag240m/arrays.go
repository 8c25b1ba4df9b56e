package mag240m

import (
	"bytes"
	"fmt"
	"io"

	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/store"
)

// array is a file of one array.
type array struct {
	path   string
	header npy.Header
	offset int64 // of the first element
	size   int64 // of the file
}

var magic = []byte("\x93NUMPY")

// headless is the error for a file that does not begin as an array does.
type headless struct{ size int64 }

func (headless) Error() string { return "it has no header" }

// findArray reads the header and holds it against the size of the file.
func findArray(path string) (*array, error) {
	f, size, err := store.OpenSized(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	a := &array{path: path, size: size}
	head := make([]byte, len(magic))
	if n, err := f.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, err
	} else if n == 0 {
		return nil, fmt.Errorf("%s: the file is empty; fetch it again", path)
	} else if !bytes.Equal(head, magic) {
		return a, headless{a.size}
	}
	if a.header, a.offset, err = npy.ReadHeaderSize(f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if have := a.size - a.offset; have < a.header.Bytes() {
		return nil, fmt.Errorf("%s: truncated download: %s takes %d bytes of data, the file has %d; fetch it again",
			path, a.header.String(), a.header.Bytes(), have)
	}
	return a, nil
}

// mustArray is findArray for a file that has to have a header.
func mustArray(path string) (*array, error) {
	a, err := findArray(path)
	if dump, ok := err.(headless); ok {
		return nil, fmt.Errorf("%s: not an .npy file: %w, in %d bytes; fetch it again", path, dump, dump.size)
	}
	return a, err
}

// rows checks that the array has n rows of width columns. A width of 1 allows for an array of one
// dimension, and 0 for any.
func (a *array) rows(n, width int64, counted string) error {
	h := a.header
	isNumber := h.Type.Kind != npy.Unicode && h.Type.Kind != npy.Bytes
	fits := len(h.Shape) == 2 && (width == 0 || h.Shape[1] == width) || len(h.Shape) == 1 && width == 1
	if !isNumber || !fits {
		return fmt.Errorf("%s: array is %s, where a row of numbers for each of %d nodes is expected", a.path, h.String(), n)
	}
	if h.Shape[0] != n {
		return fmt.Errorf("%s: array is %s, and %s counts %d; are they of one dataset?", a.path, h.String(), counted, n)
	}
	return nil
}

func (a *array) open() (io.ReadCloser, error) { return store.OpenFile(a.path) }
