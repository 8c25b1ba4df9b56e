package archive

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
)

// NewReader is [zip.NewReader], and refuses an archive with a member that its directory calls
// otherwise than the header where it lies: of such a file every program sees another one. The error
// is ErrDamaged then.
func NewReader(r io.ReaderAt, size int64) (*zip.Reader, error) {
	at := &headers{r: r}
	z, err := zip.NewReader(at, size)
	if err == nil {
		err = at.check(z)
	}
	if err != nil {
		return nil, err
	}
	return z, nil
}

// headers sees where the header of a member is, which package zip keeps to itself: File.DataOffset
// reads it and no more.
type headers struct {
	r       io.ReaderAt
	checked bool // from here on it is read concurrently
	last    int64
}

func (h *headers) ReadAt(p []byte, off int64) (int, error) {
	if !h.checked {
		h.last = off
	}
	return h.r.ReadAt(p, off)
}

func (h *headers) check(z *zip.Reader) error {
	const length, nameLength = 30, 26 // of a header, and the place in it of the name's length
	head := make([]byte, length, 4<<10)
	for _, f := range z.File {
		h.last = -1
		if _, err := f.DataOffset(); err != nil || h.last < 0 {
			continue // whoever reads the member is told
		}
		if _, err := h.r.ReadAt(head[:length], h.last); err != nil {
			continue
		}
		n := int(binary.LittleEndian.Uint16(head[nameLength:]))
		name := append(head[length:length], make([]byte, n)...)
		if k, err := h.r.ReadAt(name, h.last+length); k < n {
			return damaged(fmt.Errorf("the name of member %q: %w", clip(f.Name), err))
		}
		if string(name) != f.Name {
			return damaged(fmt.Errorf("member %q of the directory is called %q where it lies", clip(f.Name), clip(string(name))))
		}
	}
	h.checked = true
	return nil
}

func clip(s string) string { return s[:min(len(s), 100)] }
