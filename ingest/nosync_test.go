package ingest

import "github.com/cockroachdb/pebble/v2/vfs"

// noSync is the disk without waiting for it: tests that build hundreds of datasets do not test the disk.
type noSync struct{ vfs.FS }

type noSyncFile struct{ vfs.File }

func (noSyncFile) Sync() error { return nil }

func (n noSync) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := n.FS.Create(name, c)
	return noSyncFile{f}, err
}

func (n noSync) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := n.FS.OpenReadWrite(name, c, o...)
	return noSyncFile{f}, err
}

func (n noSync) OpenDir(name string) (vfs.File, error) {
	f, err := n.FS.OpenDir(name)
	return noSyncFile{f}, err
}

func (n noSync) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := n.FS.Open(name, o...)
	return noSyncFile{f}, err
}
