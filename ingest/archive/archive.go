package archive

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/gnnstore/gnnstore/ingest/lines"
)

const (
	// MaxInflated is the size of the largest deflated member that can be read out of order.
	MaxInflated = 64 << 20

	maxDirectory = 16 << 20 // bytes: 150,000 members and more
)

// Archive is the directory of a zip archive. It is safe for concurrent use where the file is.
type Archive struct {
	Name    string // for messages
	Members []*Member

	r      io.ReaderAt
	byName map[string]*Member
	mu     sync.Mutex // guards what follows
	held   *Member    // the deflated member that was read out of order last,
	bytes  []byte     // and all of it
}

// Open reads the directory. The name is for messages; r stays the caller's, and must last as long
// as the Archive. kind names the expected kind of file in messages: "an npz archive".
func Open(name string, r io.ReaderAt, size int64, kind string) (*Archive, error) {
	directory := &bounded{r: r, left: maxDirectory}
	at := &headers{r: directory}
	z, err := zip.NewReader(at, size)
	if directory.left < 0 {
		return nil, fmt.Errorf("%s: its directory is larger than the %d MiB that are read; it is not %s", name, maxDirectory>>20, kind)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, notAnArchive(r, size, kind, err))
	}
	a := &Archive{Name: name, r: r, byName: make(map[string]*Member, len(z.File))}
	directory.done = true
	if err := at.check(z); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, f := range z.File {
		if !lines.Printable(f.Name) {
			return nil, fmt.Errorf("%s: member %q: such a name is no key; the file may be damaged, fetch it again", name, f.Name)
		}
		if a.byName[f.Name] != nil {
			return nil, fmt.Errorf("%s: member %s is there twice", name, f.Name)
		}
		if f.UncompressedSize64 > 1<<62 {
			return nil, fmt.Errorf("%s: member %s is declared to have %d bytes; the file is damaged, fetch it again", name, f.Name, f.UncompressedSize64)
		}
		m := &Member{Name: f.Name, Size: int64(f.UncompressedSize64), archive: a, file: f}
		m.find = sync.OnceValues(m.packed)
		a.byName[f.Name] = m
		a.Members = append(a.Members, m)
	}
	return a, nil
}

// Member returns a member by its name, nil without one.
func (a *Archive) Member(name string) *Member { return a.byName[name] }

// bounded limits the bytes read of the directory.
type bounded struct {
	r    io.ReaderAt
	left int64
	done bool // from here on, whoever reads knows how much
}

func (b *bounded) ReadAt(p []byte, off int64) (int, error) {
	if b.done {
		return b.r.ReadAt(p, off)
	}
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errors.New("too much of it")
	}
	return b.r.ReadAt(p, off)
}

// notAnArchive explains, in an error, a file that has no readable zip directory.
func notAnArchive(r io.ReaderAt, size int64, kind string, err error) error {
	if bytes.HasPrefix(Head(r), []byte("PK\x03\x04")) {
		return fmt.Errorf("damaged or truncated download: the zip directory at its end does not read (%w); fetch it again", err)
	}
	if other := Mistaken(r, size, kind); other != nil {
		return other
	}
	return fmt.Errorf("not %s (%w)", kind, err)
}

// Head returns the first bytes of a file, at most 48.
func Head(r io.ReaderAt) []byte {
	var head [48]byte
	n, _ := r.ReadAt(head[:], 0)
	return head[:n]
}

// Mistaken returns an error that names what a file is instead of kind, where its first bytes make
// that plain; else nil.
func Mistaken(r io.ReaderAt, size int64, kind string) error {
	switch b := Head(r); {
	case size == 0:
		return errors.New("the file is empty; fetch it again")
	case bytes.HasPrefix(b, []byte("\x93NUMPY")):
		return fmt.Errorf("this is a single npy array; %s is expected", kind)
	case bytes.HasPrefix(b, []byte("<")):
		return fmt.Errorf("this looks like a web page, not %s; fetch the file itself", kind)
	case bytes.HasPrefix(b, []byte("version https://git-lfs")):
		return fmt.Errorf("this is a pointer of Git LFS, not %s; run git lfs pull", kind)
	case bytes.HasPrefix(b, []byte("\x1f\x8b")):
		return fmt.Errorf("this is gzipped; unpack it to get %s", kind)
	case bytes.HasPrefix(b, []byte("\x89HDF")):
		return fmt.Errorf("this is an HDF5 file, not %s", kind)
	}
	return nil
}

// Verify reads members through and compares their checksums.
func (a *Archive) Verify(ctx context.Context, members ...*Member) error {
	buf := make([]byte, 256<<10)
	for _, m := range members {
		r := m.Stream(0, m.Size)
		for {
			if err := ctx.Err(); err != nil {
				return err
			}
			if _, err := r.Read(buf); err == io.EOF {
				break
			} else if err != nil {
				return fmt.Errorf("%s: %w", m.Name, err)
			}
		}
	}
	return nil
}
