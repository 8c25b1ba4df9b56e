package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
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
	// Continue is asked, once the lock is held, what to go on from of what an interrupted Writer
	// left. work is the directory that WorkDir gave it, and need not exist. Continue returns what
	// Parts returned to that Writer, and gives it away: the sections in it and the work directory
	// stay, all else goes, and the new Writer has that much behind it. On nil, on a manifest of
	// another version, or when a file of it is missing or of another size, everything is cleared,
	// the work directory too; so it is when Continue is nil.
	Continue func(work string) *Manifest
}

// Writer builds one dataset under the temporary name PATH.partial, which it holds locked, and seals
// it: sections are synced, the manifest is written last, and the directory takes its final name in
// one rename. Until then the final name does not exist; what an interrupted writer leaves is
// cleared by the next, or gone on from ([WriterOptions.Continue]).
//
// Call the methods from one goroutine, in any order, and end with Seal, Abort or Leave.
type Writer struct {
	fs         vfs.FS
	final      string
	partial    string
	lock       io.Closer
	shardBytes int64
	unsynced   []string        // closed sections that are not yet synced
	dirs       map[string]bool // directories inside partial whose names are not yet synced
	manifest   Manifest
	open       []part
	filling    []*sectionWriter // those that fill a buffer, oldest first
	writing    []*sectionWriter // those that have one written aside, oldest first
	free       [][]byte         // buffers to fill
}

// part is a file that is being written.
type part interface {
	path() string
	discard() error // closes it unfinished
}

const (
	partialSuffix = ".partial"
	lockName      = "lock"
)

// Create begins a dataset at path, which must not exist, in a directory that must. It fails at
// once, changing nothing, when anything is at path (fs.ErrExist), when another process is writing
// it (ErrBusy), and when what is at PATH.partial is not what an interrupted Writer leaves.
func Create(pathname string, o WriterOptions) (*Writer, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.ShardBytes <= 0 {
		o.ShardBytes = 1 << 30
	}
	if pathname != "" {
		pathname = filepath.Clean(pathname) // "x.gnn/" would put the partial directory inside
	}
	w := &Writer{
		fs: o.FS, final: pathname, partial: pathname + partialSuffix, shardBytes: o.ShardBytes, dirs: map[string]bool{},
	}
	for range 3 { // the holder of the lock may rename the directory away between two steps, or remove it
		taken, err := w.take()
		if err != nil {
			return nil, err
		}
		if !taken {
			continue
		}
		if err := w.refuseExisting(); err != nil {
			return nil, errors.Join(err, w.Abort())
		}
		found, err := w.takeOver(o.Continue)
		if err == nil {
			return w, nil
		}
		if found && o.Continue != nil {
			return nil, errors.Join(err, w.Leave())
		}
		return nil, errors.Join(err, w.Abort())
	}
	return nil, fmt.Errorf("%s: %w", w.partial, ErrBusy)
}

// take makes the partial directory or accepts one, and locks it. It says false when the directory
// went away meanwhile.
func (w *Writer) take() (taken bool, err error) {
	parent := w.fs.PathDir(w.final)
	switch fi, err := w.fs.Stat(parent); {
	case errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("%s: no such directory; make it first", parent)
	case err != nil:
		return false, fmt.Errorf("create dataset: %w", err)
	case !fi.IsDir():
		return false, fmt.Errorf("%s: not a directory; choose another name", parent)
	}
	if err := w.refuseExisting(); err != nil {
		return false, err
	}
	made := false
	switch fi, err := w.lstat(w.partial); {
	case err == nil:
		if ours, err := w.leftover(fi); err != nil || !ours {
			return false, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("create dataset: %w", err)
	default:
		if err := w.fs.MkdirAll(w.partial, 0o777); err != nil {
			return false, fmt.Errorf("create dataset: %w", err)
		}
		made = true
	}
	lockPath := w.fs.PathJoin(w.partial, lockName)
	lock, err := w.fs.Lock(lockPath)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if isHeld(err) {
		return false, fmt.Errorf("%s: %w", w.partial, ErrBusy)
	}
	if err != nil {
		if made {
			_ = w.fs.Remove(w.partial) // it goes only if it is empty
		}
		return false, fmt.Errorf("create dataset: %w", err)
	}
	if _, err := w.lstat(lockPath); err != nil { // what was locked is the file of a writer that has just finished
		return false, lock.Close()
	}
	w.lock = lock
	return true, nil
}

// leftover says whether the partial directory, fi, may be taken over: it is empty or holds an empty
// file lock, which is the first thing that a Writer makes and the last that it removes. Anything
// else there is somebody's, and refused. False without an error is a directory that went away
// meanwhile.
func (w *Writer) leftover(fi fs.FileInfo) (bool, error) {
	const remedy = "move it away or choose another name"
	if !fi.IsDir() {
		what := "is a file"
		if fi.Mode()&fs.ModeSymlink != 0 {
			what = "is a symbolic link"
		}
		return false, fmt.Errorf("%s: %s, and the dataset is written there first; %s", w.partial, what, remedy)
	}
	names, err := w.fs.List(w.partial)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("create dataset: %w", err)
	}
	if len(names) == 0 {
		return true, nil
	}
	if slices.Contains(names, lockName) {
		lock, err := w.lstat(w.fs.PathJoin(w.partial, lockName))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("create dataset: %w", err)
		}
		if lock.Mode().IsRegular() && lock.Size() == 0 {
			return true, nil
		}
	} else if now, err := w.lstat(w.partial); err != nil || !sameFile(fi, now) {
		return false, nil // the names are those of a dataset that was sealed while they were read
	}
	return false, fmt.Errorf("%s: is not empty, and no ingest left it: it has no empty file %q; %s",
		w.partial, lockName, remedy)
}

// sameFile reports whether two descriptions are of one file. Only file systems on disk can tell
// files apart.
func sameFile(a, b fs.FileInfo) bool {
	x, xok := a.Sys().(*syscall.Stat_t)
	y, yok := b.Sys().(*syscall.Stat_t)
	return !xok || !yok || x.Dev == y.Dev && x.Ino == y.Ino
}

// lstat looks at a name without following a symbolic link. A vfs.FS cannot; of those, only the disk
// has links.
func (w *Writer) lstat(name string) (fs.FileInfo, error) {
	if vfs.Root(w.fs) == vfs.Default {
		return os.Lstat(name)
	}
	return w.fs.Stat(name)
}

// isHeld tells a lock that somebody has from a lock file that cannot be made: the latter fails in
// open, and says so.
func isHeld(err error) bool {
	var pathErr *fs.PathError
	return err != nil && !errors.As(err, &pathErr) &&
		(errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) || strings.Contains(err.Error(), "lock held"))
}

func (w *Writer) refuseExisting() error {
	if _, err := w.lstat(w.final); err == nil {
		return fmt.Errorf("%s: %w; remove it or choose another name", w.final, fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("create dataset: %w", err)
	}
	return nil
}

// Abort removes everything written. It does nothing after Seal or Leave.
func (w *Writer) Abort() error {
	if w.lock == nil {
		return nil
	}
	_ = w.dropOpen() // what they lack goes with them
	// The lock goes last: when this is cut short, the next writer knows what is left for ours. Then
	// the directory, which is not empty where that writer is already at work.
	err := w.clear()
	if err == nil {
		err = w.fs.Remove(w.fs.PathJoin(w.partial, lockName))
	}
	if err == nil {
		err = w.fs.Remove(w.partial)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTEMPTY) {
		err = nil
	}
	err = errors.Join(err, w.lock.Close())
	w.lock = nil
	return err
}

// dropOpen closes the files of sections that nobody closed.
func (w *Writer) dropOpen() error {
	var errs []error
	for _, s := range slices.Clone(w.open) {
		errs = append(errs, s.discard())
	}
	return errors.Join(errs...)
}

// closed takes p off the list.
func (w *Writer) closed(p part) {
	w.open = slices.DeleteFunc(w.open, func(o part) bool { return o == p })
}

func (w *Writer) mustBeOpen() {
	if w.lock == nil {
		panic("store: use of a Writer after Seal, Abort or Leave")
	}
}

// Seal adds the description and makes the dataset whole. Of m only Name, Provenance and Order are
// read: node types, relations and the rest are declared by the calls that write them. Name is one
// that [CleanName] leaves as it is. Bytes of Provenance that are not UTF-8 become U+FFFD. The first
// error leaves the Writer to be Aborted.
func (w *Writer) Seal(m Manifest) (*Manifest, error) {
	w.mustBeOpen()
	if len(w.open) > 0 {
		panic("store: Seal before every section writer is closed: " + w.open[0].path())
	}
	w.manifest.Format, w.manifest.Version = formatName, Version
	w.manifest.Name, w.manifest.Provenance, w.manifest.Order = m.Name, m.Provenance.valid(), m.Order
	w.manifest.Created = time.Now().UTC().Truncate(time.Second)
	if err := w.manifest.validate(); err != nil {
		return nil, fmt.Errorf("seal %s: %w", w.final, err)
	}
	text, err := w.manifest.seal()
	if err != nil {
		return nil, fmt.Errorf("seal %s: %w", w.final, err)
	}
	// What a reader would refuse is not published.
	if _, err := decodeManifest(text); err != nil {
		return nil, fmt.Errorf("seal %s: the manifest does not read back: %w; please report it", w.final, err)
	}
	if err := w.publish(text); err != nil {
		return nil, fmt.Errorf("seal %s: %w", w.final, err)
	}
	return &w.manifest, nil
}

// publish keeps the order that FORMAT.md promises: data and its directories are on disk before the
// manifest, the manifest before the final name, the final name before success is reported.
func (w *Writer) publish(manifest []byte) error {
	if err := w.syncSections(); err != nil {
		return err
	}
	f, err := w.fs.Create(w.fs.PathJoin(w.partial, manifestName), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(manifest)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := w.syncDirs(); err != nil {
		return err
	}
	if err := w.refuseExisting(); err != nil {
		return err
	}
	if err := w.clearWork(); err != nil {
		return err
	}
	if err := w.fs.Rename(w.partial, w.final); err != nil {
		return err
	}
	// The lock travelled with the directory, so that nobody could clear it before the rename; now
	// it goes. Were it gone before the new name is on disk, a crash could leave the old one without
	// it.
	err = w.syncDir(w.fs.PathDir(w.final))
	if err == nil {
		err = w.fs.Remove(w.fs.PathJoin(w.final, lockName))
	}
	err = errors.Join(err, w.lock.Close())
	w.lock = nil
	return errors.Join(err, w.syncDir(w.final))
}

// syncSections makes the bytes of all closed sections durable.
func (w *Writer) syncSections() error {
	open := func(name string) (vfs.File, error) { return w.fs.Open(name) }
	err := syncAll(open, w.unsynced)
	if err == nil {
		w.unsynced = nil
	}
	return err
}

// syncDirs makes the names of all sections durable, and those in the other directories.
func (w *Writer) syncDirs(others ...string) error {
	err := syncAll(w.fs.OpenDir, slices.Concat(others, []string{w.partial}, slices.Sorted(maps.Keys(w.dirs))))
	if err == nil {
		clear(w.dirs)
	}
	return err
}

func (w *Writer) syncDir(name string) error { return syncFile(w.fs.OpenDir, name) }

// section creates the file of a section; rows may be written in order or at their places.
func (w *Writer) section(name string, e Elem, cols, stride, first int64) (*sectionWriter, error) {
	f, err := w.create(name)
	if err != nil {
		return nil, err
	}
	s := &sectionWriter{
		w: w, out: output{file: f}, spec: File{Path: name, Elem: e, Cols: cols, Stride: stride, First: first},
		written: make(chan error, 1),
	}
	w.open = append(w.open, s)
	return s, nil
}

// create makes a file of the dataset, and the directories on the way to it.
func (w *Writer) create(name string) (vfs.File, error) {
	w.mustBeOpen()
	full := w.fs.PathJoin(w.partial, name)
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		w.dirs[w.fs.PathJoin(w.partial, dir)] = true
	}
	err := w.fs.MkdirAll(w.fs.PathDir(full), 0o777)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	f, err := w.fs.OpenReadWrite(full, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	return f, nil
}
