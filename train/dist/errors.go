package dist

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrStopped is the error of an exchange in which a worker says that it was asked to stop. All
// workers get it in the same exchange, and may go on exchanging. The context that their work has
// from [Host.Run] ends with it.
var ErrStopped = fmt.Errorf("dist: a worker was asked to stop: %w", context.Canceled)

// errAgain is the error of Leave's exchange if some workers did not come to leave.
var errAgain = errors.New("dist: others have not left")

// WorkerError is the failure of a worker, as the other workers get it.
type WorkerError struct {
	Peer
	Of   int // workers of the run
	Text string
}

func (e *WorkerError) Error() string {
	return fmt.Sprintf("%s: %s", e.name(e.Of), e.Text)
}

// LateError is the error of an exchange that some workers have not begun.
type LateError struct {
	For     error // the length of the wait, as a sentence
	Workers []int // missing workers of this process; nil: others are missing, and it is not known which
}

func (e *LateError) Error() string {
	if len(e.Workers) == 0 {
		return fmt.Sprintf("%v for workers of other processes; the process that prints no such message hangs, "+
			"and {dist_timeout} sets how long to wait", e.For)
	}
	names := make([]string, len(e.Workers))
	for i, w := range e.Workers {
		names[i] = strconv.Itoa(w)
	}
	return fmt.Sprintf("%v for worker %s, which does not come; {dist_timeout} sets how long to wait",
		e.For, strings.Join(names, ", "))
}

func (e *LateError) Unwrap() error { return e.For }

// Peer names a worker and its process.
type Peer struct {
	Rank    int    `json:"worker"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Library string `json:"library,omitempty"` // of MPI
}

// name names the worker for users.
func (p Peer) name(of int) string {
	return fmt.Sprintf("worker %d of %d (%s, process %d)", p.Rank, of, p.Host, p.PID)
}
