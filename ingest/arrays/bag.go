package arrays

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/archive"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/store"
)

// bag has arrays by key, from one file or from several. It reads the header of an array when the
// array is asked for.
type bag struct {
	path    string
	dir     string // where files that the user names are
	keys    []string
	known   map[string]bool  // the keys
	numbers map[string]int64 // by key: num_nodes, in a .pt
	others  map[string]any   // by key: values of a .pt that are no arrays
	class   string           // of the object in a .pt: torch_geometric.data.temporal.TemporalData
	memory  int64            // of the ingest
	held    int64            // bytes of arrays made from Python objects
	open    func(key string) (*array, error)
	opened  map[string]*array
	used    map[string]bool
	closers []io.Closer
	files   []string
}

func newBag(path string, memory int64) *bag {
	return &bag{
		path: path, dir: filepath.Dir(path), memory: memory, numbers: map[string]int64{}, others: map[string]any{},
		opened: map[string]*array{}, used: map[string]bool{},
	}
}

// close closes the files. A second call does nothing.
func (b *bag) close() error {
	var errs []error
	for _, c := range b.closers {
		errs = append(errs, c.Close())
	}
	b.closers = nil
	return errors.Join(errs...)
}

func (b *bag) has(key string) bool {
	if len(b.known) != len(b.keys) {
		b.known = make(map[string]bool, len(b.keys))
		for _, k := range b.keys {
			b.known[k] = true
		}
	}
	return b.known[key]
}

// get opens an array.
func (b *bag) get(key string) (*array, error) {
	b.used[key] = true
	if a := b.opened[key]; a != nil {
		return a, nil
	}
	a, err := b.open(key)
	if err != nil {
		return nil, err
	}
	b.opened[key] = a
	return a, nil
}

// file opens an ordinary file, which the bag closes.
func (b *bag) file(path string) (*os.File, int64, error) {
	f, size, err := store.OpenSized(path)
	if err != nil {
		return nil, 0, err
	}
	b.closers = append(b.closers, f)
	b.files = append(b.files, path)
	return f, size, nil
}

// raw is the declared form of a file, nil when it has a header.
func (o *Options) raw(path string) *Raw {
	for i := range o.Raw {
		if o.Raw[i].File == filepath.Base(path) || o.Raw[i].File == path {
			return &o.Raw[i]
		}
	}
	return nil
}

// openNPY opens one array in a file of its own.
func (b *bag) openNPY(path string, o *Options) (*array, error) {
	f, size, err := b.file(path)
	if err != nil {
		return nil, err
	}
	a := &array{key: stem(path), name: path}
	var h npy.Header
	at, raw := int64(0), o.raw(path)
	if raw != nil {
		if bytes.HasPrefix(archive.Head(f), []byte("\x93NUMPY")) {
			return nil, fmt.Errorf("%s: it has a header, which says what it is; leave {raw_array} %s away", path, raw.File)
		}
		h = raw.Header
		if row := (&npy.Header{Type: h.Type, Shape: append([]int64{1}, h.Shape[1:]...)}).Bytes(); h.Shape[0] == -1 && row > 0 {
			h.Shape = append([]int64{size / row}, h.Shape[1:]...)
		}
	} else if h, at, err = npy.ReadHeaderSize(io.NewSectionReader(f, 0, size)); errors.Is(err, npy.ErrUnsupported) {
		return b.unsupported(a, h, io.NewSectionReader(f, at, size-at), size-at)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", path, noHeader(f, size, path, err))
	}
	if have := size - at; have < h.Bytes() {
		return nil, fmt.Errorf("%s: %s takes %d bytes of data, and the file has %d; fetch it again%s", path, h.String(), h.Bytes(), have, shapeHint(raw))
	} else if have > h.Bytes() {
		return nil, fmt.Errorf("%s: %d bytes follow the data of %s; is it damaged?%s", path, have-h.Bytes(), h.String(), shapeHint(raw))
	}
	a.turned = h.Fortran && len(h.Shape) > 1
	a.View, err = npy.NewView(h, nil, 0, npy.FileStorage(io.NewSectionReader(f, at, size-at)), size-at)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

func shapeHint(raw *Raw) string {
	if raw == nil {
		return ""
	}
	return ", or is {raw_array} right?"
}

// noHeader returns an error with the remedy for a file that is no npy array.
func noHeader(f io.ReaderAt, size int64, path string, err error) error {
	const kind = "an npy array"
	if bytes.HasPrefix(archive.Head(f), []byte("\x93NUMPY")) || errors.Is(err, npy.ErrUnsupported) {
		return err
	}
	if other := archive.Mistaken(f, size, kind); other != nil {
		return other
	}
	return fmt.Errorf("no NPY header, so it may be a headerless dump of %d bytes; say what it holds, as in {raw_array} %s:f4:-1,128", size, filepath.Base(path))
}

func stem(path string) string {
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// folderBag has the .npy files of a folder, and its files that are declared raw.
func folderBag(dir string, o *Options) (*bag, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	b, paths := newBag(dir, o.Memory), map[string]string{}
	b.dir = dir
	for _, e := range files {
		if e.IsDir() || filepath.Ext(e.Name()) != ".npy" && o.raw(e.Name()) == nil {
			continue
		}
		key := stem(e.Name())
		if paths[key] != "" {
			return nil, fmt.Errorf("%s: %s and %s go by one name; move one away", dir, filepath.Base(paths[key]), e.Name())
		}
		paths[key] = filepath.Join(dir, e.Name())
		b.keys = append(b.keys, key)
	}
	if len(b.keys) == 0 {
		return nil, fmt.Errorf("%s: no .npy file in it; name the folder that has them, or one file", dir)
	}
	b.open = func(key string) (*array, error) { return b.openNPY(paths[key], o) }
	return b, nil
}

// npyBag has one file, which holds the edges.
func npyBag(path string, o *Options) (*bag, error) {
	b := newBag(path, o.Memory)
	b.keys = []string{"edges"}
	b.open = func(string) (*array, error) { return b.openNPY(path, o) }
	return b, nil
}

// beside opens a file that the user named and that is not a key. It returns nil when there is no
// such file.
func (b *bag) beside(name string, o *Options) (*array, error) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(b.dir, name)
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, nil // the caller reports what is there instead
	}
	if a := b.opened[path]; a != nil {
		return a, nil
	}
	a, err := b.openNPY(path, o)
	if err == nil {
		b.opened[path] = a
	}
	return a, err
}

// npzBag has the arrays of an archive.
func npzBag(path string, o *Options) (*bag, error) {
	b := newBag(path, o.Memory)
	f, size, err := b.file(path)
	if err != nil {
		return nil, err
	}
	if err := b.addArchive(f, size); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// addArchive gives a bag the arrays of an archive.
func (b *bag) addArchive(r io.ReaderAt, size int64) error {
	z, err := archive.Open(b.path, r, size, "an npz archive")
	if err != nil {
		return err
	}
	for _, m := range z.Members {
		if key, ok := strings.CutSuffix(m.Name, ".npy"); ok {
			b.keys = append(b.keys, key)
		}
	}
	b.open = func(key string) (*array, error) {
		a := &array{key: key, name: b.path + ": " + key, member: z.Member(key + ".npy")}
		h, at, err := npy.ReadHeaderSize(a.member.Stream(0, a.member.Size))
		if errors.Is(err, npy.ErrUnsupported) {
			found, err := b.unsupported(a, h, a.member.Stream(at, a.member.Size-at), a.member.Size-at)
			if err != nil && !errors.Is(err, npy.ErrUnsupported) {
				if damaged := a.fail(context.Background(), err); errors.Is(damaged, archive.ErrDamaged) {
					err = damaged
				}
			}
			return found, err
		}
		if err != nil {
			return nil, a.fail(context.Background(), err)
		}
		have := a.member.Size - at
		if have != h.Bytes() {
			return nil, a.fail(context.Background(), fmt.Errorf("%s takes %d bytes of data, the member has %d", h.String(), h.Bytes(), have))
		}
		a.turned = h.Fortran && len(h.Shape) > 1
		if a.View, err = npy.NewView(h, nil, 0, behind{a.member, at}, have); err != nil {
			return nil, a.fail(context.Background(), err)
		}
		return a, nil
	}
	return nil
}

// unsupported reads an array of Python objects, and refuses others that have no numbers.
func (b *bag) unsupported(a *array, h npy.Header, data io.Reader, size int64) (*array, error) {
	if h.Descr == "|O" || h.Descr == "O" {
		return b.unpickle(a.key, a.name, h, data, size)
	}
	return nil, unreadType(a.key, a.name, h)
}

// behind is a storage without its first bytes.
type behind struct {
	npy.Storage
	at int64
}

func (b behind) ReadAt(p []byte, off int64) (int, error) { return b.Storage.ReadAt(p, b.at+off) }
func (b behind) Stream(off, n int64) io.Reader           { return b.Storage.Stream(b.at+off, n) }
