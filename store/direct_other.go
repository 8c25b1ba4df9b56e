//go:build !linux

package store

import "github.com/cockroachdb/pebble/v2/vfs"

// directMode does nothing: only on Linux can writes bypass the page cache.
type directMode struct{}

func (directMode) set(_ vfs.File, on bool) bool { return !on }

func (directMode) refuse(vfs.File) {}
