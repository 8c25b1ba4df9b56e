//go:build !linux

package diskbench

import "os"

// dropPages is for Linux. Elsewhere all reads go through the page cache, and it is warm.
func dropPages(*os.File) error { return nil }
