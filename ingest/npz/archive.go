package npz

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/klauspost/compress/flate"

	zips "github.com/gnnstore/gnnstore/ingest/archive"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/npy"
)

const inflateBuffer = 256 << 10 // of packed bytes: 4 KiB, which flate takes by itself, is a system call every 10 µs

// archive is the zip and its arrays by key.
type archive struct {
	name   string // for messages
	files  map[string]*zip.File
	keys   []string // in file order
	others []string // members that are no arrays
}

func openArchive(name string, r io.ReaderAt, size int64) (*archive, error) {
	z, err := zips.NewReader(r, size)
	if errors.Is(err, zips.ErrDamaged) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, notAnArchive(r, size, err))
	}
	z.RegisterDecompressor(zip.Deflate, func(r io.Reader) io.ReadCloser {
		return flate.NewReader(bufio.NewReaderSize(r, inflateBuffer))
	})
	a := &archive{name: name, files: make(map[string]*zip.File)}
	for _, f := range z.File {
		key, ok := strings.CutSuffix(f.Name, ".npy")
		if !lines.Printable(f.Name) {
			return nil, fmt.Errorf("%s: member %q: such a name is no key; the file may be damaged, fetch it again", name, f.Name)
		}
		if !ok {
			a.others = append(a.others, f.Name)
			continue
		}
		if a.files[key] != nil {
			return nil, fmt.Errorf("%s: key %s is there twice", name, key)
		}
		a.files[key] = f
		a.keys = append(a.keys, key)
	}
	return a, nil
}

// notAnArchive explains, in an error, a file that has no readable zip directory.
func notAnArchive(r io.ReaderAt, size int64, err error) error {
	var head [16]byte
	n, _ := r.ReadAt(head[:], 0)
	switch b := head[:n]; {
	case size == 0:
		return errors.New("the file is empty; fetch it again")
	case bytes.HasPrefix(b, []byte("PK\x03\x04")):
		return fmt.Errorf("damaged or truncated download: the zip directory at its end does not read (%w); fetch it again", err)
	case bytes.HasPrefix(b, []byte("\x93NUMPY")):
		return errors.New("this is a single npy array; an npz archive of several is expected")
	case bytes.HasPrefix(b, []byte("<")):
		return errors.New("this looks like a web page, not an npz archive; fetch the file itself")
	}
	return fmt.Errorf("not an npz archive (%w); save one with numpy.savez_compressed", err)
}

// member is an array being read.
type member struct {
	*npy.Reader
	key  string
	body io.ReadCloser
}

// open reads the header of an array and holds it against the size of its member, before anybody
// believes it.
func (a *archive) open(key string) (*member, error) {
	f := a.files[key]
	body, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	h, size, err := npy.ReadHeaderSize(body)
	if err != nil {
		body.Close()
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if have := f.UncompressedSize64 - min(uint64(size), f.UncompressedSize64); have != uint64(h.Bytes()) {
		body.Close()
		return nil, fmt.Errorf("%s: %s takes %d bytes of data, the member has %d", key, h.String(), h.Bytes(), have)
	}
	return &member{Reader: npy.NewDataReader(h, body), key: key, body: body}, nil
}

// header is open for the form alone.
func (a *archive) header(key string) (npy.Header, error) {
	m, err := a.open(key)
	if err != nil {
		return npy.Header{}, err
	}
	m.body.Close()
	return m.Header(), nil
}

// finish reads past the last element, where the zip reader compares the checksum.
func (m *member) finish() error {
	var b [1]byte
	if _, err := io.ReadFull(m.body, b[:]); err != io.EOF {
		if err == nil {
			err = zip.ErrFormat
		}
		return fmt.Errorf("%s: %w", m.key, err)
	}
	return nil
}

// fail puts the file's name before an error about the members keys, which were being read together.
// A damaged member is the likeliest cause of any nonsense in it, so their checksums are compared
// first.
func (a *archive) fail(ctx context.Context, err error, keys ...string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, key := range keys {
		cause := a.verify(ctx, key)
		switch {
		case cause == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case isIO(cause):
			return fmt.Errorf("%s: %s: %w", a.name, key, cause)
		case errors.Is(cause, zip.ErrAlgorithm):
			return fmt.Errorf("%s: %s: compression method %d is not read; save it with numpy.savez_compressed", a.name, key, a.files[key].Method)
		default:
			return fmt.Errorf("%s: %s: damaged or truncated download (%w); fetch it again", a.name, key, cause)
		}
	}
	return fmt.Errorf("%s: %w", a.name, err)
}

// verify reads a member to its end and gives what the zip reader finds wrong.
func (a *archive) verify(ctx context.Context, key string) error {
	body, err := a.files[key].Open()
	if err != nil {
		return err
	}
	defer body.Close()
	buf := make([]byte, 256<<10)
	for ctx.Err() == nil {
		if _, err := body.Read(buf); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// isIO reports whether an error is the disk's, not the content's.
func isIO(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path)
}
