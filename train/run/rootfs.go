package run

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/gnnstore/gnnstore/store"
	"golang.org/x/sys/unix"
)

// rootFS is the file system of one run directory, under the paths that [Dir.File] gives. The
// directory may be a stranger's. So os.Root keeps every name inside it, no symbolic link in it is
// followed, and only regular files and directories are opened. The path of the directory itself may
// be a link.
type rootFS struct {
	root *os.Root
	path string
	perm fs.FileMode // mask of bits that new files and directories may have
}

// errNotPlain is in the chain of every refusal of a link or a special file.
var errNotPlain = errors.New("a run directory has plain files and directories, and no link in it is followed")

// openRoot opens the run directory at path, which must exist.
func openRoot(path string) (*rootFS, error) {
	root, err := store.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	f := &rootFS{root: root, path: filepath.Clean(path), perm: 0o777}
	if info.Mode().Perm()&0o077 == 0 {
		f.perm = 0o700 // files stay closed to others if somebody moves them
	}
	return f, nil
}

// makeRoot opens the run directory at path, and makes it if needed.
func makeRoot(path string) (*rootFS, error) {
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, err
	}
	return openRoot(path)
}

// ClosedFS is a file system that its user closes.
type ClosedFS interface {
	vfs.FS
	io.Closer
}

// MakeFS makes the directory at path, if needed, and returns its file system under paths that begin
// with path. No symbolic link in it is followed, and only regular files and directories are opened.
func MakeFS(path string) (ClosedFS, error) {
	f, err := makeRoot(path)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (f *rootFS) Close() error { return f.root.Close() }

// rel returns the name of a path inside the directory.
func (f *rootFS) rel(path string) (string, error) {
	name, err := filepath.Rel(f.path, path)
	if err != nil || !filepath.IsLocal(name) {
		return "", fmt.Errorf("%s: it is outside the run directory %s", path, f.path)
	}
	return name, nil
}

// notPlain refuses a file of this mode, unless it is a regular file or a directory.
func notPlain(path string, mode fs.FileMode) error {
	kind := "a device"
	switch mode.Type() {
	case 0, fs.ModeDir:
		return nil
	case fs.ModeSymlink:
		kind = "a symbolic link"
	case fs.ModeNamedPipe:
		kind = "a named pipe"
	case fs.ModeSocket:
		kind = "a socket"
	}
	return fmt.Errorf("%s: it is %s; %w; remove it, or put in its place what it stands for", path, kind, errNotPlain)
}

// look returns the name of path inside the directory, and its description. It refuses links and
// special files, in every directory on the way too. If the file does not exist, it returns the name
// and fs.ErrNotExist.
func (f *rootFS) look(path string) (name string, info fs.FileInfo, err error) {
	if name, err = f.rel(path); err != nil {
		return "", nil, err
	}
	parts := strings.Split(name, string(filepath.Separator))
	for i := range parts {
		at := filepath.Join(parts[:i+1]...)
		if info, err = f.root.Lstat(at); err != nil {
			return name, nil, f.named(at, err)
		}
		if err := notPlain(filepath.Join(f.path, at), info.Mode()); err != nil {
			return "", nil, err
		}
		if i < len(parts)-1 && !info.IsDir() {
			return "", nil, unlike(filepath.Join(f.path, at), 0, fs.ModeDir)
		}
	}
	return name, info, nil
}

// named puts the whole path into an error of os.Root.
func (f *rootFS) named(name string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return &fs.PathError{Op: at.Op, Path: filepath.Join(f.path, name), Err: at.Err}
	}
	return err
}

// parent checks the directory of path as look does, and returns the name of path itself.
func (f *rootFS) parent(path string) (name string, err error) {
	if name, err = f.rel(path); err == nil && name != "." {
		_, _, err = f.look(filepath.Join(f.path, filepath.Dir(name)))
	}
	return name, err
}

// open opens a file that look found, and refuses it if the name now leads to another file.
func (f *rootFS) open(name string, found fs.FileInfo, flag int) (vfs.File, error) {
	o, err := f.root.OpenFile(name, flag|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, f.named(name, err)
	}
	now, err := o.Stat()
	if err == nil && !os.SameFile(found, now) {
		err = fmt.Errorf("%s: somebody replaced it just now; %w", filepath.Join(f.path, name), errNotPlain)
	}
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return rootFile{o}, nil
}

// make creates a file, which must not exist.
func (f *rootFS) make(name string) (vfs.File, error) {
	o, err := f.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666&f.perm)
	if err != nil {
		return nil, f.named(name, err)
	}
	return rootFile{o}, nil
}

// file is look for a path that must not be a directory.
func (f *rootFS) file(path string) (name string, info fs.FileInfo, err error) {
	name, info, err = f.look(path)
	if err == nil && info.IsDir() {
		err = unlike(path, fs.ModeDir, 0)
	}
	return name, info, err
}

// Create implements vfs.FS: a file of that name is removed first.
func (f *rootFS) Create(path string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	name, _, err := f.file(path)
	if err == nil {
		err = f.root.Remove(name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, f.named(name, err)
	}
	return f.make(name)
}

// Open implements vfs.FS.
func (f *rootFS) Open(path string, _ ...vfs.OpenOption) (vfs.File, error) {
	name, info, err := f.file(path)
	if err != nil {
		return nil, err
	}
	return f.open(name, info, os.O_RDONLY)
}

// OpenReadWrite implements vfs.FS.
func (f *rootFS) OpenReadWrite(path string, _ vfs.DiskWriteCategory, _ ...vfs.OpenOption) (vfs.File, error) {
	name, info, err := f.file(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f.make(name)
	case err != nil:
		return nil, err
	}
	return f.open(name, info, os.O_RDWR)
}

// OpenDir implements vfs.FS.
func (f *rootFS) OpenDir(path string) (vfs.File, error) {
	name, info, err := f.look(path)
	if err == nil && !info.IsDir() {
		err = unlike(path, 0, fs.ModeDir)
	}
	if err != nil {
		return nil, err
	}
	return f.open(name, info, os.O_RDONLY|syscall.O_DIRECTORY)
}

// Remove implements vfs.FS. A link is removed, and what it points to stays.
func (f *rootFS) Remove(path string) error {
	name, err := f.parent(path)
	if err == nil {
		err = f.named(name, f.root.Remove(name))
	}
	return err
}

// RemoveAll implements vfs.FS, likewise.
func (f *rootFS) RemoveAll(path string) error {
	name, err := f.parent(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = f.named(name, f.root.RemoveAll(name))
	}
	return err
}

// Rename implements vfs.FS.
func (f *rootFS) Rename(from, to string) error {
	name, _, err := f.look(from)
	if err != nil {
		return err
	}
	target, _, err := f.look(to)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return f.root.Rename(name, target)
}

// MkdirAll implements vfs.FS.
func (f *rootFS) MkdirAll(path string, perm fs.FileMode) error {
	name, info, err := f.look(path)
	switch {
	case err == nil && !info.IsDir():
		return unlike(path, 0, fs.ModeDir)
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if dir := filepath.Dir(name); dir != "." {
		if err := f.MkdirAll(filepath.Join(f.path, dir), perm); err != nil {
			return err
		}
	}
	// somebody else may have made it just now
	if err = f.root.Mkdir(name, perm&f.perm); errors.Is(err, fs.ErrExist) {
		_, _, err = f.look(path)
	}
	return f.named(name, err)
}

// Lock implements vfs.FS by a lock of fcntl, as vfs.Default does. The file is not written to.
func (f *rootFS) Lock(path string) (_ io.Closer, err error) {
	key := Absolute(path)
	if _, held := ours.LoadOrStore(key, true); held {
		return nil, errors.New("lock held by current process")
	}
	defer func() {
		if err != nil {
			ours.Delete(key)
		}
	}()
	o, err := f.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	l := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart} // the whole file
	if err := unix.FcntlFlock(o.Fd(), unix.F_SETLK, &l); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return rootLock{o, key}, nil
}

// rootLock is a lock that this process holds.
type rootLock struct {
	vfs.File
	key string
}

func (l rootLock) Close() error {
	defer ours.Delete(l.key)
	return l.File.Close()
}

// List implements vfs.FS.
func (f *rootFS) List(path string) ([]string, error) {
	d, err := f.OpenDir(path)
	if err != nil {
		return nil, err
	}
	names, err := d.(rootFile).Readdirnames(-1)
	return names, cmp.Or(err, d.Close())
}

// Stat implements vfs.FS.
func (f *rootFS) Stat(path string) (vfs.FileInfo, error) {
	_, info, err := f.look(path)
	if err != nil {
		return nil, err
	}
	return rootInfo{info}, nil
}

// GetDiskUsage implements vfs.FS.
func (f *rootFS) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	if _, _, err := f.look(path); err != nil {
		return vfs.DiskUsage{}, err
	}
	return vfs.Default.GetDiskUsage(path)
}

// Link implements vfs.FS. Runs make no links.
func (*rootFS) Link(_, path string) error {
	return &fs.PathError{Op: "link", Path: path, Err: errors.ErrUnsupported}
}

// ReuseForWrite implements vfs.FS. Runs do not use it.
func (*rootFS) ReuseForWrite(path, _ string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, &fs.PathError{Op: "reuse", Path: path, Err: errors.ErrUnsupported}
}

// PathBase, PathJoin and PathDir implement vfs.FS.
func (*rootFS) PathBase(path string) string     { return filepath.Base(path) }
func (*rootFS) PathJoin(parts ...string) string { return filepath.Join(parts...) }
func (*rootFS) PathDir(path string) string      { return filepath.Dir(path) }
func (*rootFS) Unwrap() vfs.FS                  { return nil }

// rootFile is a file of a run directory.
type rootFile struct{ *os.File }

// Stat implements vfs.File.
func (f rootFile) Stat() (vfs.FileInfo, error) {
	info, err := f.File.Stat()
	if err != nil {
		return nil, err
	}
	return rootInfo{info}, nil
}

// SyncData implements vfs.File.
func (f rootFile) SyncData() error { return f.Sync() }

// SyncTo implements vfs.File.
func (f rootFile) SyncTo(int64) (bool, error) { return true, f.Sync() }

// Prefetch implements vfs.File. Runs do not use it.
func (rootFile) Prefetch(int64, int64) error { return nil }

// Preallocate implements vfs.File.
func (f rootFile) Preallocate(offset, size int64) error { return preallocate(f.File, offset, size) }

// rootInfo describes a file of a run directory.
type rootInfo struct{ fs.FileInfo }

// DeviceID implements vfs.FileInfo. Runs do not use it.
func (rootInfo) DeviceID() vfs.DeviceID { return vfs.DeviceID{} }
