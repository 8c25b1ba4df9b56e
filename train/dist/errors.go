package dist

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	Workers []int // missing workers of this process

	processes []int    // others that have not begun the exchange
	names     []string // of the workers of these processes
}

func (e *LateError) Error() string {
	names := slices.Clone(e.names)
	for _, w := range e.Workers {
		names = append(names, "worker "+strconv.Itoa(w))
	}
	does := "which does not come"
	switch n := len(names); {
	case n == 0:
		names, does = []string{"workers of other processes"}, "which have come by now"
	case n > 1:
		does = "which do not come"
	}
	return fmt.Sprintf("%v for %s, %s; {dist_timeout} sets how long to wait", e.For, someOf(names), does)
}

// someOf joins the first few names.
func someOf(names []string) string {
	const most = 8
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func (e *LateError) Unwrap() error { return e.For }

// Peer names a worker and its process.
type Peer struct {
	Rank    int    `json:"worker"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Library string `json:"library,omitempty"` // of MPI
}

// name names the worker for users. Before the workers have met, its host is not known.
func (p Peer) name(of int) string {
	if p.PID == 0 {
		return fmt.Sprintf("worker %d of %d", p.Rank, of)
	}
	return fmt.Sprintf("worker %d of %d (%s, process %d)", p.Rank, of, p.Host, p.PID)
}
