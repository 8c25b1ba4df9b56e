//go:build !linux

package mutable

import "github.com/cockroachdb/pebble/v2/vfs"

// setDirect is for Linux: each system has its own way past the page cache.
func setDirect(vfs.File, bool) bool { return false }
