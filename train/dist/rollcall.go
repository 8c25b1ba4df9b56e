//go:build mpi && linux

package dist

import (
	"encoding/binary"
	"syscall"
	"time"
	"unsafe"
)

// A roll call finds the processes that others wait for. A process that has waited too long asks
// each other one how many exchanges it has begun on each lane. The thread of the library answers,
// so a process answers though its workers hang. A process that is stopped, or that the network has
// lost, does not answer.

// Tags of messages of a roll call.
const (
	question = iota
	answer
)

// answerBytes is the length of an answer: for each lane the number of exchanges begun.
const answerBytes = 8 * int(lanes)

// patience bounds the wait for answers. A process without exchanges looks for questions once in
// idle.
const patience = 4 * idle

// rollCall is the roll call of this process, which makes one at most, and its answers to others.
type rollCall struct {
	begun    [][]byte  // by process: its answer, or nil
	messages []message // to others, which the library may still read
}

// message is memory outside the Go heap for one message and its request.
type message struct{ text, request []byte }

func newMessage() message { return message{outside(answerBytes), outside(8)} }

func (m message) at() uintptr        { return uintptr(unsafe.Pointer(&m.text[0])) }
func (m message) requestAt() uintptr { return uintptr(unsafe.Pointer(&m.request[0])) }

// post sends m to process p.
func (e *engine) post(p, tag int, m message) {
	err := e.library.call("MPI_Isend", e.library.send,
		m.at(), uintptr(answerBytes), e.byteType, uintptr(p), uintptr(tag), e.roll, m.requestAt())
	if err == nil {
		e.asks.messages = append(e.asks.messages, m)
	}
}

// take returns a message of process p that has arrived. ok is false if there is none.
func (e *engine) take(p, tag int) (m message, ok bool) {
	err := e.library.call("MPI_Iprobe", e.library.probe,
		uintptr(p), uintptr(tag), e.roll, e.at(flagAt), e.statusIgnore)
	if err != nil || e.int(flagAt) == 0 {
		return m, false
	}
	m = newMessage()
	err = e.library.call("MPI_Irecv", e.library.receive,
		m.at(), uintptr(answerBytes), e.byteType, uintptr(p), uintptr(tag), e.roll, m.requestAt())
	for err == nil && !e.done(m.request) { // it has arrived
		_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
	}
	return m, err == nil
}

// done reports whether the library is done with a request.
func (e *engine) done(request []byte) bool {
	err := e.library.call("MPI_Test", e.test,
		uintptr(unsafe.Pointer(&request[0])), e.at(flagAt), e.statusIgnore)
	return err != nil || e.int(flagAt) != 0
}

// answer answers the questions that have come.
func (e *engine) answer() {
	for p := range e.size {
		if p == e.rank {
			continue
		}
		m, ok := e.take(p, question)
		if !ok {
			continue
		}
		for n, begun := range e.begun {
			binary.LittleEndian.PutUint64(m.text[8*n:], begun)
		}
		e.post(p, answer, m)
	}
}

// missing returns the processes that have begun fewer exchanges on a lane than this one, or that do
// not answer.
func (e *engine) missing(lane laneNumber) (processes []int) {
	if e.asks.begun == nil {
		e.callRoll()
	}
	for p, begun := range e.asks.begun {
		if p != e.rank && (begun == nil || binary.LittleEndian.Uint64(begun[8*lane:]) < e.begun[lane]) {
			processes = append(processes, p)
		}
	}
	return processes
}

// callRoll asks all other processes, and waits for their answers.
func (e *engine) callRoll() {
	e.asks.begun = make([][]byte, e.size)
	for p := range e.size {
		if p != e.rank {
			e.post(p, question, newMessage())
		}
	}
	for began, left := time.Now(), e.size-1; left > 0 && time.Since(began) < patience; time.Sleep(time.Millisecond) {
		e.answer()
		for p := range e.size {
			if p == e.rank || e.asks.begun[p] != nil {
				continue
			}
			if m, ok := e.take(p, answer); ok {
				e.asks.begun[p] = m.text
				left--
			}
		}
	}
}
