//go:build !linux

package diskbench

import "os"

// dropPages does nothing but on Linux. Elsewhere all reads go through a page cache that is warm.
func dropPages(*os.File) error { return nil }
