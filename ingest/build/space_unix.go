//go:build unix

package build

import "golang.org/x/sys/unix"

// freeFiles returns how many more files a file system can hold. ok is false where it tells no
// limit.
func freeFiles(dir string) (n int64, ok bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil || s.Files == 0 {
		return 0, false
	}
	return int64(s.Ffree), true
}
