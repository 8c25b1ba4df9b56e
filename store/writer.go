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

// ErrBusy is in the chain when another writer is at work on the same dataset.
var ErrBusy = errors.New("another ingest is writing it")

// WriterOptions tune a Writer. The zero value works.
type WriterOptions struct {
	FS         vfs.FS // file system to write to; default the disk
	ShardBytes int64  // largest feature shard; default 1 GiB
	// Continue is called once the lock is held, and decides what to keep of an interrupted Writer's
	// work. work is the directory that WorkDir gave that Writer; it need not exist. Continue
	// returns, and gives away, the manifest that Parts or PartsWith returned to that Writer: its
	// sections and the work directory stay, everything else is removed, and the new Writer starts
	// with these sections written. Everything, the work directory too, is cleared if Continue is
	// nil or returns nil, if the manifest has another version, or if one of its files is missing or
	// has another size.
	Continue func(work string) *Manifest
}

// Writer builds one dataset under the temporary name PATH.partial, which it keeps locked, and seals
// it: sections are synced, the manifest is written last, and one rename gives the directory its
// final name. Until then the final name does not exist. The next Writer of this path clears what an
// interrupted one left, or continues from it ([WriterOptions.Continue]).
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
	open       []part           // files that are not closed yet
	filling    []*sectionWriter // sections that fill a buffer, the one that began first in front
	writing    []*sectionWriter // sections with a write in the background, oldest first
	free       [][]byte         // empty buffers
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

// Create begins a dataset at path. Nothing may exist there, but the directory above it must. Create
// fails at once, and changes nothing, if something is at path (fs.ErrExist), if another writer is
// at work on it (ErrBusy), or if PATH.partial does not look like the work of an interrupted Writer.
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
	for range 3 { // between two steps the lock's holder may rename or remove the directory
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

// take makes the partial directory, or accepts one that may be taken over, and locks it. It returns
// false if the directory went away meanwhile.
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
			_ = w.fs.Remove(w.partial) // succeeds only if the directory is empty
		}
		return false, fmt.Errorf("create dataset: %w", err)
	}
	if _, err := w.lstat(lockPath); err != nil { // we locked the file of a writer that has just finished
		return false, lock.Close()
	}
	w.lock = lock
	return true, nil
}

// leftover reports whether the partial directory, fi, may be taken over: it is empty, or holds an
// empty file named lock, which a Writer makes first and removes last. Any other directory belongs
// to somebody else, and is an error. leftover returns false without an error if the directory went
// away meanwhile.
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
		return false, nil // we read the names of a dataset while it was sealed
	}
	return false, fmt.Errorf("%s: is not empty, and no ingest left it: it has no empty file %q; %s",
		w.partial, lockName, remedy)
}

// sameFile reports whether a and b describe the same file. Outside the disk file system, files
// cannot be told apart, and it returns true.
func sameFile(a, b fs.FileInfo) bool {
	x, xok := a.Sys().(*syscall.Stat_t)
	y, yok := b.Sys().(*syscall.Stat_t)
	return !xok || !yok || x.Dev == y.Dev && x.Ino == y.Ino
}

// lstat describes a file without following a symbolic link. vfs.FS has no such call, but only the
// disk has links.
func (w *Writer) lstat(name string) (fs.FileInfo, error) {
	if vfs.Root(w.fs) == vfs.Default {
		return os.Lstat(name)
	}
	return w.fs.Stat(name)
}

// isHeld reports whether locking failed because somebody holds the lock. A lock file that cannot be
// made fails in open instead, with an *fs.PathError.
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
	_ = w.dropOpen() // unfinished files are removed below
	// Remove the lock last: if Abort is cut short, it shows the next writer that a Writer left
	// this. Then remove the directory, unless that next writer is already at work in it.
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

// dropOpen closes the files of unfinished sections.
func (w *Writer) dropOpen() error {
	var errs []error
	for _, s := range slices.Clone(w.open) {
		errs = append(errs, s.discard())
	}
	return errors.Join(errs...)
}

// closed removes p from the open files.
func (w *Writer) closed(p part) {
	w.open = slices.DeleteFunc(w.open, func(o part) bool { return o == p })
}

func (w *Writer) mustBeOpen() {
	if w.lock == nil {
		panic("store: use of a Writer after Seal, Abort or Leave")
	}
}

// Seal completes the manifest and makes the dataset visible under its final name. It uses only
// Name, Provenance, Order and Part of m, since the calls that write the rest declare it. Name must
// be one that [CleanName] keeps. Bytes of Provenance that are not UTF-8 become U+FFFD. After an
// error, call Abort.
func (w *Writer) Seal(m Manifest) (*Manifest, error) {
	w.mustBeOpen()
	if len(w.open) > 0 {
		panic("store: Seal before every section writer is closed: " + w.open[0].path())
	}
	w.manifest.Format, w.manifest.Version = formatName, Version
	w.manifest.Name, w.manifest.Provenance, w.manifest.Order = m.Name, m.Provenance.valid(), m.Order
	w.manifest.Part = m.Part
	w.manifest.Created = time.Now().UTC().Truncate(time.Second)
	if err := w.manifest.validate(); err != nil {
		return nil, fmt.Errorf("seal %s: %w", w.final, err)
	}
	text, err := w.manifest.seal()
	if err != nil {
		return nil, fmt.Errorf("seal %s: %w", w.final, err)
	}
	// Never publish what a reader would refuse.
	if _, err := decodeManifest(text); err != nil {
		return nil, fmt.Errorf("seal %s: the manifest does not read back: %w; please report it", w.final, err)
	}
	if err := w.publish(text); err != nil {
		return nil, fmt.Errorf("seal %s: %w", w.final, err)
	}
	return &w.manifest, nil
}

// publish keeps the order that FORMAT.md promises: data and directories are on disk before the
// manifest, the manifest before the final name, and the final name before success is reported.
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
	// The lock travelled with the directory, so that nobody could clear it before the rename.
	// Remove it only now: if it went before the new name is on disk, a crash could bring back the
	// old name without a lock.
	err = w.syncDir(w.fs.PathDir(w.final))
	if err == nil {
		err = w.fs.Remove(w.fs.PathJoin(w.final, lockName))
	}
	err = errors.Join(err, w.lock.Close())
	w.lock = nil
	return errors.Join(err, w.syncDir(w.final))
}

// syncSections makes the contents of all closed sections durable.
func (w *Writer) syncSections() error {
	open := func(name string) (vfs.File, error) { return w.fs.Open(name) }
	err := syncAll(open, w.unsynced)
	if err == nil {
		w.unsynced = nil
	}
	return err
}

// syncDirs makes the names of all sections durable, and the names in the other directories.
func (w *Writer) syncDirs(others ...string) error {
	err := syncAll(w.fs.OpenDir, slices.Concat(others, []string{w.partial}, slices.Sorted(maps.Keys(w.dirs))))
	if err == nil {
		clear(w.dirs)
	}
	return err
}

func (w *Writer) syncDir(name string) error { return syncFile(w.fs.OpenDir, name) }

// section creates the file of a section. Its rows may be written in order or anywhere.
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
