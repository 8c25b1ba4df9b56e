package store

import (
	"errors"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// syncers is how many files are synced at once: the file system joins what it does for them. Of 900
// small ones on ext4, a sync took 1.6 ms one by one, 0.5 ms by 4, 0.18 ms by 16, and no less by 64.
const syncers = 16

// syncAll makes files or directories durable, several at a time: what was written to them through
// any handle, or what names they hold. It returns the first error.
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

// syncFile syncs what another handle wrote.
func syncFile(open func(name string) (vfs.File, error), name string) error {
	f, err := open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
