package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/cachetier/spill"
)

// scratchDir makes a directory in tmp, for what does not fit in memory while a command reads a run.
// done removes it. It also removes the directories of processes that were killed.
func scratchDir(tmp string) (path string, done func(), err error) {
	const name = "gnnstore-scratch-"
	if info, err := os.Stat(tmp); err != nil || !info.IsDir() {
		return "", nil, fmt.Errorf("%s: no such directory, for what does not fit in memory; make it first, or name another by --tmp", tmp)
	}
	left, _ := filepath.Glob(filepath.Join(tmp, name+"*"))
	for _, path := range left {
		if lock := lockScratch(path); lock != nil {
			_ = os.RemoveAll(path) // if this fails, it stays
			lock.Close()
		}
	}
	if path, err = os.MkdirTemp(tmp, name); err != nil {
		return "", nil, fmt.Errorf("a place for what does not fit in memory: %w; name a directory that may be written to by --tmp", err)
	}
	lock := lockScratch(path)
	return path, func() {
		_ = os.RemoveAll(path) // if this fails, the next command removes it
		if lock != nil {
			lock.Close()
		}
	}, nil
}

// lockScratch locks a directory of this user until the file is closed. It returns nil if there is
// none, or if its owner is at work.
func lockScratch(path string) *os.File {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil || int(st.Uid) != os.Geteuid() || unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		f.Close()
		return nil
	}
	return f
}

// systemTmp returns the system's directory for temporary files, one on a disk if possible.
func systemTmp() string {
	const onDisk = "/var/tmp" // it outlasts a reboot, by the Filesystem Hierarchy Standard
	tmp := os.TempDir()
	if info, err := os.Stat(onDisk); spill.InMemory(tmp) && err == nil && info.IsDir() && unix.Access(onDisk, unix.W_OK) == nil {
		return onDisk
	}
	return tmp
}
