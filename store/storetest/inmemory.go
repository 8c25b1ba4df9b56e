package storetest

import (
	"os"

	"golang.org/x/sys/unix"
)

// InMemory puts the temporary directories of a package's tests in memory, where syncing files costs
// little. It does so if /dev/shm has 2 GiB free and TMPDIR is not set. TestMain calls it.
func InMemory() {
	const memory = "/dev/shm"
	var st unix.Statfs_t
	if os.Getenv("TMPDIR") == "" && unix.Statfs(memory, &st) == nil && st.Bavail*uint64(st.Bsize) >= 2<<30 {
		_ = os.Setenv("TMPDIR", memory) // if this fails, files stay in the default directory
	}
}
