//go:build !linux

package mutable

import "github.com/cockroachdb/pebble/v2/vfs"

// setDirect does nothing here: other systems have their own ways past the page cache.
func setDirect(vfs.File, bool) bool { return false }
