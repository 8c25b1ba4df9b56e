package disk

import (
	"errors"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The part of io_uring(7) that is used, with the numbers of include/uapi/linux/io_uring.h.
const (
	opReadFixed = 4  // IORING_OP_READ_FIXED: into registered memory
	opRead      = 22 // IORING_OP_READ

	offSQRing = 0          // IORING_OFF_SQ_RING
	offSQEs   = 0x10000000 // IORING_OFF_SQES

	featSingleMmap  = 1 << 0 // IORING_FEAT_SINGLE_MMAP: one map holds both rings
	enterGetEvents  = 1 << 0 // IORING_ENTER_GETEVENTS
	registerBuffers = 0      // IORING_REGISTER_BUFFERS
)

// ringParams is struct io_uring_params.
type ringParams struct {
	sqEntries, cqEntries, flags, sqThreadCPU, sqThreadIdle, features, wqFd uint32

	_  [3]uint32
	sq struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		_                                                   uint64
	}
	cq struct {
		head, tail, mask, entries, overflow, cqes, flags, _ uint32
		_                                                   uint64
	}
}

// submission is struct io_uring_sqe, as a read uses it.
type submission struct {
	op, flags uint8
	priority  uint16
	fd        int32
	offset    uint64
	address   uint64
	size      uint32
	rwFlags   uint32
	user      uint64
	buffer    uint16
	_         [22]byte
}

// completion is struct io_uring_cqe.
type completion struct {
	user  uint64
	res   int32 // bytes read, or a negated errno
	flags uint32
}

// queues is an io_uring: two queues in memory shared with the kernel. The kernel allocated that
// memory, and it maps no file of a dataset. One goroutine at a time uses a ring.
type queues struct {
	fd          int
	rings, sqes []byte // the maps

	sqHead, sqTail, cqHead, cqTail *uint32
	sqMask, cqMask                 uint32
	submissions                    []submission
	completions                    []completion
}

// newRing makes a ring with room for so many queued reads.
func newRing(entries int) (_ *queues, err error) {
	var p ringParams
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(entries), uintptr(unsafe.Pointer(&p)), 0)
	if errno != 0 {
		return nil, os.NewSyscallError("io_uring_setup", errno)
	}
	r := &queues{fd: int(fd)}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	unix.CloseOnExec(r.fd)
	if p.features&featSingleMmap == 0 {
		return nil, errors.New("io_uring of a kernel before Linux 5.4")
	}
	size := max(p.sq.array+p.sqEntries*4, p.cq.cqes+p.cqEntries*uint32(unsafe.Sizeof(completion{})))
	const access, shared = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	if r.rings, err = unix.Mmap(r.fd, offSQRing, int(size), access, shared); err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	if r.sqes, err = unix.Mmap(r.fd, offSQEs, int(p.sqEntries)*int(unsafe.Sizeof(submission{})), access, shared); err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	at := func(offset uint32) unsafe.Pointer { return unsafe.Pointer(&r.rings[offset]) }
	r.sqHead, r.sqTail, r.sqMask = (*uint32)(at(p.sq.head)), (*uint32)(at(p.sq.tail)), *(*uint32)(at(p.sq.mask))
	r.cqHead, r.cqTail, r.cqMask = (*uint32)(at(p.cq.head)), (*uint32)(at(p.cq.tail)), *(*uint32)(at(p.cq.mask))
	r.submissions = unsafe.Slice((*submission)(unsafe.Pointer(&r.sqes[0])), p.sqEntries)
	r.completions = unsafe.Slice((*completion)(at(p.cq.cqes)), p.cqEntries)
	for i, array := uint32(0), unsafe.Slice((*uint32)(at(p.sq.array)), p.sqEntries); i < p.sqEntries; i++ {
		array[i] = i // entries are used in order
	}
	return r, nil
}

// register registers b with the kernel as buffer 0, which keeps its pages at hand.
func (r *queues) register(b []byte) error {
	v := unix.Iovec{Base: unsafe.SliceData(b), Len: uint64(len(b))}
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.fd), registerBuffers, uintptr(unsafe.Pointer(&v)), 1, 0, 0)
	if errno != 0 {
		return os.NewSyscallError("io_uring_register", errno)
	}
	return nil
}

// prepare queues a read into b, which is registered memory if fixed. Until the completion of user,
// b must not move, and nobody else may use it. There is room for as many reads as the ring was made
// for.
func (r *queues) prepare(user uint64, fd int, b []byte, offset int64, fixed bool) {
	op := uint8(opRead)
	if fixed {
		op = opReadFixed
	}
	tail := *r.sqTail // only we write it
	r.submissions[tail&r.sqMask] = submission{
		op: op, fd: int32(fd), offset: uint64(offset), address: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))),
		size: uint32(min(len(b), 1<<30)), user: user, // a longer read comes short
	}
	atomic.StoreUint32(r.sqTail, tail+1)
}

// queued returns the number of prepared reads that the kernel does not have yet, and ready the
// number of completions to take.
func (r *queues) queued() int { return int(*r.sqTail - atomic.LoadUint32(r.sqHead)) }
func (r *queues) ready() int  { return int(atomic.LoadUint32(r.cqTail) - *r.cqHead) }

// enter submits the queued reads, and returns when at least wait completions are ready. If the
// kernel is short of memory it may return earlier, with at least one.
func (r *queues) enter(wait int) error {
	for tries := 0; ; {
		queued := r.queued()
		if queued == 0 && r.ready() >= wait {
			return nil
		}
		_, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(queued), uintptr(wait), enterGetEvents, 0, 0)
		switch {
		case errno == 0 || errno == unix.EINTR:
		case errno != unix.EAGAIN && errno != unix.EBUSY || tries == 1000:
			return os.NewSyscallError("io_uring_enter", errno)
		case r.ready() > 0:
			return nil
		default:
			tries++
			time.Sleep(time.Millisecond)
		}
	}
}

// take removes the oldest completion. It returns the user of the read, and the bytes read or the
// error.
func (r *queues) take() (user uint64, n int, err error) {
	head := *r.cqHead // only we write it
	c := r.completions[head&r.cqMask]
	atomic.StoreUint32(r.cqHead, head+1)
	if c.res < 0 {
		return c.user, 0, unix.Errno(-c.res)
	}
	return c.user, int(c.res), nil
}

// close frees the ring. Reads under way still write to their buffers.
func (r *queues) close() {
	for _, m := range [][]byte{r.rings, r.sqes} {
		if m != nil {
			_ = unix.Munmap(m) // a map that stays costs only addresses
		}
	}
	_ = unix.Close(r.fd)
}
