package rawfile

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// Header is the beginning of an npy file of that type ("<f4", "<i8") and shape, in C order; the
// elements follow it. It is format version 1.0 of NumPy's, padded to 64 bytes.
func Header(descr string, shape ...int64) []byte {
	var dims strings.Builder
	for i, n := range shape {
		if i > 0 {
			dims.WriteString(", ")
		}
		fmt.Fprint(&dims, n)
	}
	if len(shape) == 1 {
		dims.WriteByte(',')
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, dims.String())
	text += strings.Repeat(" ", (64-(10+len(text)+1)%64)%64) + "\n"
	b := append([]byte("\x93NUMPY\x01\x00"), 0, 0)
	binary.LittleEndian.PutUint16(b[8:], uint16(len(text)))
	return append(b, text...)
}

// NPZ is an archive of arrays, each deflated, as numpy.savez_compressed writes it.
type NPZ struct{ z *zip.Writer }

// NewNPZ writes an archive to w, which its caller closes after it.
func NewNPZ(w io.Writer) *NPZ {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return newDeflater(w), nil })
	return &NPZ{z}
}

// Array begins an array, whose elements are then written to what it returns. The one before it is
// at its end.
func (n *NPZ) Array(key, descr string, shape ...int64) (io.Writer, error) {
	w, err := n.z.CreateHeader(&zip.FileHeader{Name: key + ".npy", Method: zip.Deflate})
	if err != nil {
		return nil, err
	}
	_, err = w.Write(Header(descr, shape...))
	return w, err
}

// Close ends the archive.
func (n *NPZ) Close() error { return n.z.Close() }
