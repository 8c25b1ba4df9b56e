package storetest

import (
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// NoSync writes to the disk without syncing. Tests that write hundreds of datasets use it.
var NoSync vfs.FS = noSync{vfs.Default}

type noSync struct{ vfs.FS }

type noSyncFile struct{ vfs.File }

func (noSyncFile) Sync() error { return nil }

// Create implements [vfs.FS].
func (n noSync) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := n.FS.Create(name, c)
	return noSyncFile{f}, err
}

// OpenReadWrite implements [vfs.FS].
func (n noSync) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := n.FS.OpenReadWrite(name, c, o...)
	return noSyncFile{f}, err
}

// MkdirAll implements [vfs.FS]. The default file system of vfs would sync the parents.
func (noSync) MkdirAll(dir string, perm os.FileMode) error { return os.MkdirAll(dir, perm) }

// OpenDir implements [vfs.FS].
func (n noSync) OpenDir(name string) (vfs.File, error) {
	f, err := n.FS.OpenDir(name)
	return noSyncFile{f}, err
}

// Open implements [vfs.FS].
func (n noSync) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := n.FS.Open(name, o...)
	return noSyncFile{f}, err
}
