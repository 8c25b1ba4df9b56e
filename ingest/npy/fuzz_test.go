package npy

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

func FuzzHeader(f *testing.F) {
	f.Add(array(form("<f4", "(2, 3)"), make([]float32, 6)))
	f.Add(array(form(">i8", "(2L,)"), make([]int64, 2)))
	f.Add(versioned(2, form("<U3", "()"), make([]int32, 3)))
	f.Add(versioned(3, "{'descr': [('a', '<i4')], 'fortran_order': True, 'shape': (1,)}   \n", nil))
	f.Add(array(form("|O", "(1,)"), nil))
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := NewReader(bytes.NewReader(file))
		if err != nil {
			return
		}
		h := r.Header()
		if h.Len() < 0 || h.Bytes() < 0 || h.Type.Size <= 0 {
			t.Fatalf("sizes of %s", h.String())
		}
		var read func() (int, error)
		switch h.Type.Kind {
		case Unicode, Bytes:
			read = func() (int, error) { return r.ReadStrings(make([]string, 100)) }
		case Float:
			read = func() (int, error) { return r.ReadFloat32s(make([]float32, 100)) }
		default:
			read = func() (int, error) { return r.ReadInt64s(make([]int64, 100)) }
		}
		total := int64(0)
		for {
			n, err := read()
			total += int64(n)
			if err == io.EOF && total == h.Len() {
				return
			}
			if err == nil && n > 0 {
				continue
			}
			if err == nil || errors.Is(err, ErrTruncated) && total == h.Len() {
				t.Fatalf("%d of %s: %v", total, h.String(), err)
			}
			return
		}
	})
}
