//go:build !linux

package resume

import "errors"

// watcher is inotify's, which this system lacks: to poll for a write that lasts a millisecond would
// prove little.
type watcher struct{}

func watch(string) (*watcher, error) {
	return nil, errors.New("watching a run takes inotify: prove this on linux")
}

func (*watcher) next() (change, error) { return change{}, errors.ErrUnsupported }

func (*watcher) close() error { return nil }
