package spill

import "github.com/gnnstore/gnnstore/kernels"

// Scribble changes a byte of the file.
func Scribble(f *File, at int64) {
	page := at &^ (pageBytes - 1)
	b := alignedPage()
	if _, err := f.file.ReadAt(b, page); err != nil {
		panic(err)
	}
	b[at-page] ^= 1
	if _, err := f.file.WriteAt(b, page); err != nil {
		panic(err)
	}
}

func alignedPage() []byte {
	m, err := kernels.NewHostBuf(2 * pageBytes)
	if err != nil {
		panic(err)
	}
	return m.Bytes()[:pageBytes]
}
