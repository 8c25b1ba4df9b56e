package store

import (
	"errors"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// syncAll syncs up to syncers files at once, since the file system then shares the work among them.
// With 900 small files on ext4, a sync took 1.6 ms one by one, 0.5 ms with 4 at once, 0.18 ms with
// 16, and no less with 64.
const syncers = 16

// syncAll makes files or directories durable, several at a time. Other handles may have written the
// files. It returns the first error.
func syncAll(open func(name string) (vfs.File, error), names []string) error {
	var g sync.WaitGroup
	var first error
	var once sync.Once
	next := make(chan string)
	for range min(syncers, len(names)) {
		g.Go(func() {
			for name := range next {
				if err := syncFile(open, name); err != nil {
					once.Do(func() { first = err })
				}
			}
		})
	}
	for _, name := range names {
		next <- name
	}
	close(next)
	g.Wait()
	return first
}

// syncFile opens a file or directory and syncs it.
func syncFile(open func(name string) (vfs.File, error), name string) error {
	f, err := open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
