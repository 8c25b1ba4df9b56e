package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrBusy is in the chain when another process is writing the same dataset.
var ErrBusy = errors.New("another ingest is writing it")

// WriterOptions tune a Writer; the zero value is right for everything but tests.
type WriterOptions struct {
	FS         vfs.FS // where files go; default the disk
	ShardBytes int64  // largest feature shard; default 1 GiB
}

// Writer builds one dataset under the temporary name PATH.partial, which it holds locked, and seals it: sections are
// synced, the manifest is written last, and the directory takes its final name in one rename. Until then the final name
// does not exist; what an interrupted writer leaves is cleared by the next.
//
// Call the methods from one goroutine, in any order, and end with Seal or Abort.
type Writer struct {
	fs         vfs.FS
	final      string
	partial    string
	lock       io.Closer
	shardBytes int64
	dirs       map[string]bool // inside partial, made and to be synced
	manifest   Manifest
	open       []*sectionWriter
}

const (
	partialSuffix = ".partial"
	lockName      = "lock"
)

// Create begins a dataset at path, which must not exist. It fails at once, changing nothing, when path exists
// (fs.ErrExist) or another process is writing it (ErrBusy).
func Create(pathname string, o WriterOptions) (*Writer, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.ShardBytes <= 0 {
		o.ShardBytes = 1 << 30
	}
	w := &Writer{fs: o.FS, final: pathname, partial: pathname + partialSuffix, shardBytes: o.ShardBytes, dirs: map[string]bool{}}
	for range 3 { // the holder of the lock may rename the directory away between two steps
		if err := w.refuseExisting(); err != nil {
			return nil, err
		}
		if err := w.fs.MkdirAll(w.partial, 0o777); err != nil {
			return nil, fmt.Errorf("create dataset: %w", err)
		}
		lock, err := w.fs.Lock(w.fs.PathJoin(w.partial, lockName))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if isHeld(err) {
			return nil, fmt.Errorf("%s: %w", w.partial, ErrBusy)
		}
		if err != nil {
			return nil, fmt.Errorf("create dataset: %w", err)
		}
		w.lock = lock
		if err := errors.Join(w.refuseExisting(), w.clear()); err != nil {
			return nil, errors.Join(err, w.Abort())
		}
		return w, nil
	}
	return nil, fmt.Errorf("%s: %w", w.partial, ErrBusy)
}

// isHeld tells a lock that somebody has from a lock file that cannot be made: the latter fails in open, and says so.
func isHeld(err error) bool {
	var pathErr *fs.PathError
	return err != nil && !errors.As(err, &pathErr) &&
		(errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) || strings.Contains(err.Error(), "lock held"))
}

func (w *Writer) refuseExisting() error {
	if _, err := w.fs.Stat(w.final); err == nil {
		return fmt.Errorf("%s: %w; remove it or choose another name", w.final, fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("create dataset: %w", err)
	}
	return nil
}

// clear removes what an interrupted writer left.
func (w *Writer) clear() error {
	names, err := w.fs.List(w.partial)
	if err != nil {
		return fmt.Errorf("create dataset: %w", err)
	}
	for _, n := range names {
		if n != lockName {
			if err := w.fs.RemoveAll(w.fs.PathJoin(w.partial, n)); err != nil {
				return fmt.Errorf("create dataset: clear an interrupted one: %w", err)
			}
		}
	}
	return nil
}

// Abort removes everything written. It does nothing after Seal.
func (w *Writer) Abort() error {
	if w.lock == nil {
		return nil
	}
	for _, s := range w.open {
		s.file.Close()
	}
	err := errors.Join(w.fs.RemoveAll(w.partial), w.lock.Close())
	w.lock = nil
	return err
}

// NodeTypes, Relations and the rest are declared by the calls that write them; Seal adds the description and makes the
// dataset whole. Of m only Name, Provenance and Order are read. The first error leaves the Writer to be Aborted.
func (w *Writer) Seal(m Manifest) (*Manifest, error) {
	if len(w.open) > 0 {
		panic("store: Seal before every section writer is closed: " + w.open[0].spec.Path)
	}
	w.manifest.Format, w.manifest.Version = formatName, Version
	w.manifest.Name, w.manifest.Provenance, w.manifest.Order = m.Name, m.Provenance, m.Order
	w.manifest.Created = time.Now().UTC().Truncate(time.Second)
	if err := w.manifest.validate(); err != nil {
		return nil, fmt.Errorf("seal %s: %w", w.final, err)
	}
	text, err := w.manifest.seal()
	if err != nil {
		return nil, fmt.Errorf("seal %s: %w", w.final, err)
	}
	if err := w.publish(text); err != nil {
		return nil, fmt.Errorf("seal %s: %w", w.final, err)
	}
	return &w.manifest, nil
}

// publish makes the order of DESIGN's promise: data and its directories are on disk before the manifest, the manifest
// before the final name, the final name before success is reported.
func (w *Writer) publish(manifest []byte) error {
	f, err := w.fs.Create(w.fs.PathJoin(w.partial, manifestName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(manifest)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	dirs := []string{w.partial}
	for d := range w.dirs {
		dirs = append(dirs, d)
	}
	slices.Sort(dirs)
	for _, d := range dirs {
		if err := w.syncDir(d); err != nil {
			return err
		}
	}
	if err := w.refuseExisting(); err != nil {
		return err
	}
	if err := w.fs.Rename(w.partial, w.final); err != nil {
		return err
	}
	// The lock travelled with the directory, so that nobody could clear it before the rename; now it goes.
	err = errors.Join(w.fs.Remove(w.fs.PathJoin(w.final, lockName)), w.lock.Close())
	w.lock = nil
	return errors.Join(err, w.syncDir(w.final), w.syncDir(w.fs.PathDir(w.final)))
}

func (w *Writer) syncDir(name string) error {
	d, err := w.fs.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// section creates the file of a section; rows may be written in order or at their places.
func (w *Writer) section(name string, e Elem, cols, stride, first int64) (*sectionWriter, error) {
	if w.lock == nil {
		panic("store: use of a Writer after Seal or Abort")
	}
	full := w.fs.PathJoin(w.partial, name)
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		w.dirs[w.fs.PathJoin(w.partial, dir)] = true
	}
	if err := w.fs.MkdirAll(w.fs.PathDir(full), 0o777); err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	f, err := w.fs.OpenReadWrite(full, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	s := &sectionWriter{w: w, file: f, spec: File{Path: name, Elem: e, Cols: cols, Stride: stride, First: first}}
	w.open = append(w.open, s)
	return s, nil
}
