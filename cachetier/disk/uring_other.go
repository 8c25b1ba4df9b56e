//go:build !linux

package disk

import "errors"

// openRing fails: io_uring exists only on Linux.
func openRing(source, int) (engine, string, error) {
	return nil, "", errors.New("this system has none")
}
