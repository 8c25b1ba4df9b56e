//go:build !linux

package extsort

import "github.com/cockroachdb/pebble/v2/vfs"

func setDirect(vfs.File, bool) {}
