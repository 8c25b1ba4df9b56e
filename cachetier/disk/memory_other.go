//go:build !linux

package disk

import "errors"

// AvailableMemory is not known here: each system tells it in its own way, and mmap, which Auto then takes, needs no
// answer.
func AvailableMemory() (int64, error) { return 0, errors.New("no figure on this system") }
