package disk

import (
	"os"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/kernels"
)

// onThreadOfItsOwn runs f on a new thread that ends with f, so what f changes of the thread ends
// too.
func onThreadOfItsOwn(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocks
		f()
	}()
	<-done
}

// TestDeniedRing checks that a sandbox without io_uring gets Pread, and that Why says so once.
func TestDeniedRing(t *testing.T) {
	files, _ := oddFiles(t, 100_000)
	openOne(t, files, Options{Kind: Uring}).Close()
	var r *Reader
	var refused, err error
	onThreadOfItsOwn(func() {
		filter := []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the system call
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_IO_URING_SETUP, Jf: 1},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		}
		program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
		if refused = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); refused != nil {
			return
		}
		if refused = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); refused != nil {
			return
		}
		r, err = Open(bg, files, Options{Kind: Uring})
	})
	if refused != nil {
		t.Skipf("no seccomp here: %v", refused)
	}
	require.NoError(t, err)
	defer r.Close()
	require.Equal(t, Pread, r.Kind())
	require.Equal(t, "it was asked for; io_uring is not to be had (io_uring_setup: operation not permitted), so pread", r.Why())
	_, err = r.Read(bg, everything(files, 1), func(Extent, []byte) error { return nil })
	require.NoError(t, err)
}

// TestMemoryThatMayNotBeLocked checks that the ring works without registered buffers.
func TestMemoryThatMayNotBeLocked(t *testing.T) {
	files, contents := oddFiles(t, 300_000)
	openOne(t, files, Options{Kind: Uring}).Close()
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit))
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 64 << 10, Max: limit.Max}))
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit)) }()
	var r *Reader
	var err error
	onThreadOfItsOwn(func() {
		// A thread with this capability, such as root's, is not held to the limit.
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var caps [2]unix.CapUserData
		if err = unix.Capget(&head, &caps[0]); err != nil {
			return
		}
		caps[0].Effective &^= 1 << unix.CAP_IPC_LOCK
		if err = unix.Capset(&head, &caps[0]); err != nil {
			return
		}
		r, err = Open(bg, files, Options{Kind: Uring})
	})
	require.NoError(t, err)
	defer r.Close()
	require.Equal(t, Uring, r.Kind())
	require.Equal(t, "it was asked for; its buffers of 24.2 MiB are not registered (io_uring_register: cannot allocate memory; ulimit -l bounds them)", r.Why())
	_, err = r.Read(bg, everything(files, 1), func(s Extent, b []byte) error {
		require.Equal(t, contents[0][s.Offset:s.Offset+int64(s.Size)], b)
		return nil
	})
	require.NoError(t, err)
}

// TestNothingIsLeft checks that engines leave neither descriptors nor memory, whether they worked,
// failed, or were measured and dropped.
func TestNothingIsLeft(t *testing.T) {
	files, _ := oddFiles(t, 100_000, 5000)
	large := sparse(t, 8<<40)
	descriptors := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(names)
	}
	before, memory := descriptors(), kernels.HostBytes()
	fine := func(Extent, []byte) error { return nil }
	for range 2 {
		for _, kind := range Kinds {
			if kind == Mmap { // these files have no map
				continue
			}
			r, err := Open(bg, files, Options{Kind: kind, Faults: func(file int, _ int64, _ int) Fault {
				return Fault{Errno: unix.Errno(file * int(unix.EIO))}
			}})
			require.NoError(t, err)
			if r.Kind() != Mmap {
				_, err = r.Read(bg, everything(files, 1), fine)
				require.ErrorIs(t, err, unix.EIO)
			}
			r.Close()
		}
		r, err := Open(bg, large, Options{Probe: true})
		require.NoError(t, err)
		r.Close()
		r, err = Open(bg, large, Options{Kind: Buffered, Probe: true})
		require.NoError(t, err)
		r.Close()
		_, err = Open(bg, large, Options{Kind: Uring, Probe: true, Faults: func(int, int64, int) Fault { return Fault{Errno: unix.EIO} }})
		require.ErrorIs(t, err, unix.EIO)
	}
	require.Equal(t, before, descriptors())
	require.Equal(t, memory, kernels.HostBytes())
}
