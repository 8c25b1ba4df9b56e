package storetest

import (
	"os"

	"golang.org/x/sys/unix"
)

// InMemory puts the temporary directories of a package's tests in memory, if the system has 2 GiB
// there and TMPDIR names no place. Then it costs little to sync files. TestMain calls it.
func InMemory() {
	const memory = "/dev/shm"
	var st unix.Statfs_t
	if os.Getenv("TMPDIR") == "" && unix.Statfs(memory, &st) == nil && st.Bavail*uint64(st.Bsize) >= 2<<30 {
		_ = os.Setenv("TMPDIR", memory) // if this fails, files are where they would be
	}
}
