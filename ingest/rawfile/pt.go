package rawfile

import (
	"archive/zip"
	"bufio"
	"io"
	"math"
	"path/filepath"
	"strings"
)

// PT is a file as torch.save writes it: a zip of a pickle and of the storages that it names, none
// of them compressed, each beginning at a multiple of 64 bytes.
type PT struct {
	at   *counter
	z    *zip.Writer
	top  string // the folder in the zip: the file's name without .pt
	data int64  // where the contents of the last member begin
}

// counter knows where in the file it is.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// NewPT writes a file of that name to w, which its caller closes after it.
func NewPT(w io.Writer, name string) *PT {
	at := &counter{w: w}
	return &PT{at: at, z: zip.NewWriter(at), top: strings.TrimSuffix(filepath.Base(name), ".pt") + "/"}
}

// Object writes the pickle, by exactly one call of a method of the Pickler.
func (f *PT) Object(write func(*Pickler) error) error {
	w, err := f.member("data.pkl")
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	p := &Pickler{w: b}
	p.op(0x80, 2)
	if err := write(p); err != nil {
		return err
	}
	if err := p.op('.').err; err != nil {
		return err
	}
	return b.Flush()
}

// Storage begins a storage; its elements are then written to what it returns.
func (f *PT) Storage(key string) (io.Writer, error) { return f.member("data/" + key) }

// Close ends the file.
func (f *PT) Close() error {
	for _, m := range [][2]string{{"byteorder", "little"}, {"version", "3\n"}} {
		w, err := f.member(m[0])
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, m[1]); err != nil {
			return err
		}
	}
	return f.z.Close()
}

// storageAlignment is torch's.
const storageAlignment = 64

// member begins a file of the zip, padded by an extra field of the kind that torch uses.
func (f *PT) member(name string) (io.Writer, error) {
	if err := f.z.Flush(); err != nil {
		return nil, err
	}
	start := f.at.n
	switch size := start - f.data; { // the member before is ended first, by a data descriptor
	case f.data == 0:
	case size >= math.MaxUint32:
		start += 24
	default:
		start += 16
	}
	name = f.top + name
	const header, extra = 30, 4 // bytes before the name, and before the padding
	data := start + header + int64(len(name)) + extra
	pad := -data & (storageAlignment - 1)
	f.data = data + pad
	field := append([]byte{'F', 'B', byte(pad), 0}, make([]byte, pad)...)
	return f.z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store, Extra: field})
}
