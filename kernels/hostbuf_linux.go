//go:build !race

package kernels

import "golang.org/x/sys/unix"

// adviseHugePages asks for pages of 2 MiB. A kernel built without them says EINVAL, and ordinary
// pages do.
func adviseHugePages(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
