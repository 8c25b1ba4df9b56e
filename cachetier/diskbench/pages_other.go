//go:build !linux

package diskbench

import "os"

// dropPages does nothing: on systems other than Linux all reads go through a warm page cache.
func dropPages(*os.File) error { return nil }
