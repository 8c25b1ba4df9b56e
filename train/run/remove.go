package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Checkpointed reports whether the run in path has a checkpoint to go on from.
func Checkpointed(path string) bool {
	root, err := lookRoot(path)
	if err != nil {
		return false
	}
	defer root.Close()
	names, err := (&Dir{fs: root, path: path}).Checkpoints()
	return err == nil && len(names) > 0
}

// Remove removes the directory of a run, with all files of the run. It refuses a run that is at
// work, a directory that also holds other files, and a link in place of the directory. It calls
// still while it holds the lock of the run, and removes nothing if still returns an error. It
// removes the record last, so that Remove can be called again if it was cut short.
func Remove(path string, still func() error) error {
	switch info, err := os.Lstat(path); {
	case err != nil:
		return fmt.Errorf("run %s: %w", path, err)
	case !info.IsDir():
		return fmt.Errorf("run %s: it is no directory, and no link is followed; remove it by hand", path)
	}
	root, err := lookRoot(path)
	if err != nil {
		return err
	}
	if !holdsRun(root, path) {
		return errors.Join(fmt.Errorf("run %s: it holds no run: %s is missing", path, RecordFile), root.Close())
	}
	d, err := lockRun(root, path)
	if err != nil {
		return errors.Join(err, root.Close())
	}
	if err = still(); err == nil {
		err = d.removeFiles()
	}
	if err := errors.Join(err, d.Close()); err != nil {
		return err
	}
	if err := unix.Rmdir(path); err != nil { // removes only an empty directory
		return fmt.Errorf("run %s: %w", path, err)
	}
	return nil
}

// removeFiles removes all files of the run. If the directory has other files, it removes none.
func (d *Dir) removeFiles() error {
	names, err := d.fs.List(d.path)
	if err != nil {
		return fmt.Errorf("run directory: %w", err)
	}
	last := []string{RecordFile, runLock}
	for _, name := range names {
		if _, ours := wanted(name); !ours && name != WorkersDir && name != RehearsalDir {
			return fmt.Errorf("run %s: %s in it is no file of a run; move it elsewhere first", d.path, clip(name))
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(last, name) })
	slices.Sort(names)
	for _, name := range append(names, last...) {
		if err := d.fs.RemoveAll(filepath.Join(d.path, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("run %s: %w; what is left may be removed by hand", d.path, err)
		}
	}
	return nil
}
