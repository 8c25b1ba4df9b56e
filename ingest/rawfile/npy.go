package rawfile

import (
	"archive/zip"
	"io"

	"github.com/gnnstore/gnnstore/ingest/npy"
)

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
	_, err = w.Write(npy.AppendHeader(nil, descr, shape...))
	return w, err
}

// Close ends the archive.
func (n *NPZ) Close() error { return n.z.Close() }
