//go:build mpi && linux

package dist

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
)

// hasMPI reports whether this program can be one of several processes.
const hasMPI = true

// openMPI initialises the MPI library of the launcher that has started this process.
func openMPI(o Options) (link, error) {
	launched, family := Launched(o.Getenv)
	m := &mpi{calls: make(chan *call), ended: make(chan struct{})}
	ready := make(chan error)
	go m.run(launched, family, o.Library, ready)
	if err := <-ready; err != nil {
		return nil, err
	}
	return m, nil
}

// mpi is a link by MPI. A goroutine of its own, on a thread of its own, makes all calls of the
// library: MPI_THREAD_FUNNELED is the level that all libraries have.
type mpi struct {
	*library
	name  string
	rank  int
	size  int
	comms [lanes]uintptr
	roll  uintptr // the communicator of roll calls
	calls chan *call
	ended chan struct{}
}

// call is work for the thread of the library.
type call struct {
	ctx        context.Context
	lane       laneNumber
	send, recv [][]byte
	abort      bool
	done       chan error
}

func (m *mpi) Rank() int       { return m.rank }
func (m *mpi) Size() int       { return m.size }
func (m *mpi) Library() string { return m.name }

// AllToAll implements link.
func (m *mpi) AllToAll(ctx context.Context, lane laneNumber, send, recv [][]byte) error {
	c := &call{ctx: ctx, lane: lane, send: send, recv: recv, done: make(chan error, 1)}
	m.calls <- c
	return <-c.done
}

// Abort implements link.
func (m *mpi) Abort() {
	m.calls <- &call{abort: true}
	<-m.ended
}

// Close implements link. It waits for the other processes.
func (m *mpi) Close() error {
	close(m.calls)
	<-m.ended
	return nil
}

// run initialises the library, makes calls until there are no more, and finalises it.
func (m *mpi) run(launched int, family, file string, ready chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(m.ended)
	err := m.init(launched, family, file)
	ready <- err
	if err != nil {
		return
	}
	// This makes naps end 1 µs late at most, and not 50 µs. If the system refuses, naps are longer.
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_TIMERSLACK, 1000, 0)
	e := engine{mpi: m}
	if e.serve() {
		m.finalize()
	}
}

func (m *mpi) init(launched int, family, file string) (err error) {
	// MPI libraries replace signal handlers, SIGSEGV's too, when they are opened or initialised. Go
	// needs its own to report damaged pages of maps. So they are put back.
	before := signals()
	defer before.restore()
	if m.library, err = openLibrary(family, file); err != nil {
		return err
	}
	if err = m.library.init(); err != nil {
		return err
	}
	m.rank, m.size, m.name = m.number(m.commRank), m.number(m.commSize), m.version()
	if m.size != launched {
		m.finalize()
		return fmt.Errorf("%s has started %d processes, and %s sees %d: it is of another family; "+
			"leave {mpi_library} out, or name the library of the launcher", family, launched, m.file, m.size)
	}
	for n := range m.comms {
		if m.comms[n], err = m.dup(); err != nil {
			return err
		}
	}
	m.roll, err = m.dup()
	return err
}

// abi has the handles and constants of a family of libraries.
type abi struct {
	world, byteType, errorsReturn uintptr
	funneled, statusIgnore        uintptr
}

// library is an open MPI library.
type library struct {
	abi
	file   string
	handle uintptr
	cell   []byte // for results of calls, outside the Go heap

	initThread, commRank, commSize, commDup, setErrhandler, allToAll, test uintptr
	send, receive, probe                                                   uintptr
	getVersion, errorString, abortAll, finalizeAll                         uintptr
}

// files lists the libraries of each launcher's family, the likeliest first.
var files = map[string][]string{
	"Open MPI": {"libmpi.so.40", "libmpi_abi.so.1"},
	"MPICH":    {"libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1"},
}

func openLibrary(family, file string) (*library, error) {
	names := files[family]
	if file != "" {
		names = []string{file}
	}
	var errs []error
	for _, name := range names {
		handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		l := &library{file: name, handle: handle, cell: outside(4096)}
		return l, l.find(family)
	}
	return nil, fmt.Errorf("%s has started this process, and its library is not found (%w); "+
		"install it, or name its file by {mpi_library}", family, errors.Join(errs...))
}

// find finds the functions of the library, and the constants of its family.
func (l *library) find(family string) error {
	open := false // the library is Open MPI's
	if world, err := purego.Dlsym(l.handle, "ompi_mpi_comm_world"); err == nil && world != 0 {
		open = true
	}
	if open != (family == "Open MPI") && !strings.Contains(l.file, "libmpi_abi") {
		return fmt.Errorf("%s has started this process, and %s is of another family; leave {mpi_library} out", family, l.file)
	}
	var missing error
	symbol := func(name string) uintptr {
		at, err := purego.Dlsym(l.handle, name)
		if err != nil || at == 0 {
			missing = fmt.Errorf("%s: it has no %s: it is no MPI library, or too old a one", l.file, name)
		}
		return at
	}
	switch {
	case strings.Contains(l.file, "libmpi_abi"): // mpi_abi.h of the MPI Forum
		l.abi = abi{world: 0x101, byteType: 0x247, errorsReturn: 0x143, funneled: 1024}
	case open:
		l.abi = abi{symbol("ompi_mpi_comm_world"), symbol("ompi_mpi_byte"), symbol("ompi_mpi_errors_return"), 1, 0}
	default: // mpi.h of MPICH, which Intel's and Cray's libraries share
		l.abi = abi{0x44000000, 0x4c00010d, 0x54000001, 1, 1}
	}
	for at, name := range map[*uintptr]string{
		&l.initThread: "MPI_Init_thread", &l.commRank: "MPI_Comm_rank", &l.commSize: "MPI_Comm_size",
		&l.commDup: "MPI_Comm_dup", &l.setErrhandler: "MPI_Comm_set_errhandler", &l.allToAll: "MPI_Ialltoallv", &l.test: "MPI_Test",
		&l.send: "MPI_Isend", &l.receive: "MPI_Irecv", &l.probe: "MPI_Iprobe",
		&l.getVersion: "MPI_Get_library_version", &l.errorString: "MPI_Error_string", &l.abortAll: "MPI_Abort",
		&l.finalizeAll: "MPI_Finalize",
	} {
		*at = symbol(name)
	}
	return missing
}

// call calls a function of the library. Arguments are numbers, handles, and addresses outside the
// Go heap.
func (l *library) call(name string, f uintptr, args ...uintptr) error {
	r, _, _ := purego.SyscallN(f, args...)
	if code := int32(r); code != 0 {
		return fmt.Errorf("%s: %s: %s", l.file, name, l.text(code))
	}
	return nil
}

// Places in cell: of the results of calls, of the flag of Test, and of texts.
const (
	resultAt = 0
	flagAt   = 8
	textAt   = 64
)

func (l *library) at(offset int) uintptr { return uintptr(unsafe.Pointer(&l.cell[offset])) }

func (l *library) int(offset int) int { return int(*(*int32)(unsafe.Pointer(&l.cell[offset]))) }

func (l *library) text(code int32) string {
	if r, _, _ := purego.SyscallN(l.errorString, uintptr(code), l.at(textAt), l.at(resultAt)); int32(r) != 0 {
		return fmt.Sprintf("error %d", code)
	}
	return strings.TrimSpace(string(l.cell[textAt : textAt+min(l.int(resultAt), len(l.cell)-textAt)]))
}

func (l *library) init() error {
	if err := l.call("MPI_Init_thread", l.initThread, 0, 0, l.funneled, l.at(resultAt)); err != nil {
		return err
	}
	return l.call("MPI_Comm_set_errhandler", l.setErrhandler, l.world, l.errorsReturn)
}

// number calls MPI_Comm_rank or MPI_Comm_size on the world.
func (l *library) number(f uintptr) int {
	_, _, _ = purego.SyscallN(f, l.world, l.at(resultAt)) // it cannot fail for the world
	return l.int(resultAt)
}

func (l *library) dup() (comm uintptr, err error) {
	*(*uintptr)(unsafe.Pointer(&l.cell[resultAt])) = 0
	if err = l.call("MPI_Comm_dup", l.commDup, l.world, l.at(resultAt)); err != nil {
		return 0, err
	}
	comm = *(*uintptr)(unsafe.Pointer(&l.cell[resultAt]))
	return comm, l.call("MPI_Comm_set_errhandler", l.setErrhandler, comm, l.errorsReturn)
}

// version returns a short form of the library's version text.
func (l *library) version() string {
	b := outside(1 << 14) // MPI_MAX_LIBRARY_VERSION_STRING is 8192 at most
	defer release(b)
	if err := l.call("MPI_Get_library_version", l.getVersion, uintptr(unsafe.Pointer(&b[0])), l.at(resultAt)); err != nil {
		return l.file
	}
	line, _, _ := strings.Cut(string(b[:min(l.int(resultAt), len(b))]), "\n")
	line, _, _ = strings.Cut(line, ",")
	line = strings.Replace(line, " Version:", "", 1) // of MPICH
	return strings.Join(strings.Fields(strings.Trim(line, "\x00")), " ")
}

func (l *library) finalize() { _ = l.call("MPI_Finalize", l.finalizeAll) }

// engine makes exchanges. Several lanes may have one under way.
type engine struct {
	*mpi
	lanes [lanes]exchange
	begun [lanes]uint64 // exchanges
	asks  rollCall
}

// exchange is one MPI_Ialltoallv of a lane, and its memory, which the next one uses again.
type exchange struct {
	*call                // nil: none is under way
	send, recv    []byte // outside the Go heap
	counts        []byte // int32s: lengths and offsets to send, then lengths and offsets to receive
	request       []byte
	small, broken bool
}

// serve makes calls until there are no more; then it returns true. After an abort it returns false.
func (e *engine) serve() bool {
	for {
		busy, payload := e.underWay()
		if !busy {
			select {
			case c, more := <-e.calls:
				if !more {
					return true
				}
				if !e.begin(c) {
					return false
				}
			case <-time.After(idle):
				e.answer()
			}
			continue
		}
		if !e.wait(payload) {
			return false
		}
	}
}

// underWay reports whether there are exchanges, and whether one of them is of more than headers.
func (e *engine) underWay() (busy, payload bool) {
	for n := range e.lanes {
		if x := &e.lanes[n]; x.call != nil {
			busy, payload = true, payload || !x.small
		}
	}
	return busy, payload
}

// Polling. While only headers are awaited, which may take a step, the thread naps after some tests.
// It does not nap during a payload, since libraries move data only within calls: with MPICH 5.0.2
// it moved 25 MB/s with naps, and 3,600 without.
const (
	tests    = 50
	firstNap = 20 * time.Microsecond
	lastNap  = 2 * time.Millisecond
	small    = 4 << 10 // bytes to a process
	// idle is the time between two looks for roll calls, of a thread without exchanges.
	idle = 500 * time.Millisecond
)

// wait tests exchanges until one of them is done, or a call comes. It returns false after an abort.
func (e *engine) wait(payload bool) bool {
	nap := firstNap
	for i := 0; ; i++ {
		done := false
		for n := range e.lanes {
			if x := &e.lanes[n]; x.call != nil {
				done = e.finish(x) || done
			}
		}
		if done {
			return true
		}
		select {
		case c, more := <-e.calls:
			return more && e.begin(c) // nobody closes it while a call waits
		default:
		}
		switch {
		case payload:
			_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
			if i%(1<<14) == 1<<14-1 {
				e.answer()
			}
		case i >= tests:
			at := syscall.NsecToTimespec(nap.Nanoseconds())
			_ = syscall.Nanosleep(&at, nil) // a signal may end it early; time.Sleep rounds up to a millisecond
			if nap = min(2*nap, lastNap); nap == lastNap {
				e.answer()
			}
		}
	}
}

// begin begins a call. It returns false after an abort.
func (e *engine) begin(c *call) bool {
	if c.abort {
		_ = e.call("MPI_Abort", e.abortAll, e.world, 1) // it does not return
		return false
	}
	x := &e.lanes[c.lane]
	if x.broken {
		c.done <- errors.New("dist: the lane is broken")
		return true
	}
	if err := e.start(x, c); err != nil {
		x.broken = true
		c.done <- err
		return true
	}
	x.call = c
	e.begun[c.lane]++
	return true
}

// start copies the messages of c out of the Go heap, and starts the exchange.
func (e *engine) start(x *exchange, c *call) error {
	if x.counts == nil {
		x.counts, x.request = outside(16*e.size), outside(8)
	}
	n := unsafe.Slice((*int32)(unsafe.Pointer(&x.counts[0])), 4*e.size)
	sent, came, largest := 0, 0, 0
	for p := range e.size {
		n[p], n[e.size+p] = int32(len(c.send[p])), int32(sent)
		n[2*e.size+p], n[3*e.size+p] = int32(len(c.recv[p])), int32(came)
		sent, came = sent+len(c.send[p]), came+len(c.recv[p])
		largest = max(largest, len(c.send[p]), len(c.recv[p]))
	}
	if max(sent, came) > math.MaxInt32 {
		panic(fmt.Sprintf("dist: %d and %d bytes in a round", sent, came))
	}
	x.small = largest <= small
	x.send, x.recv = grow(x.send, sent), grow(x.recv, came)
	at := 0
	for _, message := range c.send {
		at += copy(x.send[at:], message)
	}
	place := func(k int) uintptr { return uintptr(unsafe.Pointer(&n[k*e.size])) }
	*(*uintptr)(unsafe.Pointer(&x.request[0])) = 0
	return e.library.call("MPI_Ialltoallv", e.allToAll,
		uintptr(unsafe.Pointer(&x.send[0])), place(0), place(1), e.byteType,
		uintptr(unsafe.Pointer(&x.recv[0])), place(2), place(3), e.byteType,
		e.comms[c.lane], uintptr(unsafe.Pointer(&x.request[0])))
}

// finish reports whether an exchange has ended. Then its call is answered.
func (e *engine) finish(x *exchange) bool {
	err := e.library.call("MPI_Test", e.test, uintptr(unsafe.Pointer(&x.request[0])), e.at(flagAt), e.statusIgnore)
	switch {
	case err != nil:
	case e.int(flagAt) != 0:
		at := 0
		for _, message := range x.call.recv {
			at += copy(message, x.recv[at:])
		}
	case x.call.ctx.Err() != nil:
		err = &LateError{For: context.Cause(x.call.ctx), processes: e.missing(x.call.lane)}
	default:
		return false
	}
	x.broken = err != nil
	x.call.done <- err
	x.call = nil
	return true
}

// outside returns zeroed memory outside the Go heap. The library may keep its address.
func outside(n int) []byte {
	b, err := syscall.Mmap(-1, 0, max(n, 1), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		panic(fmt.Sprintf("dist: no memory for %d bytes: %v", n, err))
	}
	return b
}

func release(b []byte) { _ = syscall.Munmap(b) } // it is ours

// grow returns memory of n bytes or more, and gives up b if that is too small.
func grow(b []byte, n int) []byte {
	if len(b) >= max(n, 1) {
		return b
	}
	if b != nil {
		release(b)
	}
	return outside(n + n/4)
}

// sigaction is the kernel's, of amd64 and arm64.
type sigaction struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

const rtSigaction = syscall.SYS_RT_SIGACTION

// handlers has the handlers of all signals.
type handlers [65]sigaction

// signals returns the handlers as they are now.
func signals() (h handlers) {
	for s := 1; s < len(h); s++ {
		_, _, _ = syscall.RawSyscall6(rtSigaction, uintptr(s), 0, uintptr(unsafe.Pointer(&h[s])), 8, 0, 0)
	}
	return h
}

// restore puts h back where others have changed it. SIGKILL and SIGSTOP have no handlers.
func (h *handlers) restore() {
	now := signals()
	for s := 1; s < len(h); s++ {
		if now[s] != h[s] {
			_, _, _ = syscall.RawSyscall6(rtSigaction, uintptr(s), uintptr(unsafe.Pointer(&h[s])), 0, 8, 0, 0)
		}
	}
}
