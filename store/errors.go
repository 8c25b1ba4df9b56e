package store

import (
	"errors"
	"fmt"

	"github.com/gnnstore/gnnstore/store/internal/mapping"
)

// ErrCorrupt is in the chain of every error that says a dataset is not what its manifest promised.
var ErrCorrupt = errors.New("corrupt dataset")

// ErrVersion is in the chain when a dataset was written in a format version that this build does
// not read.
var ErrVersion = errors.New("unknown dataset version")

// SectionError says where in a dataset something is wrong. errors.Is(err, ErrCorrupt) holds for it.
type SectionError struct {
	Dataset string // path of the dataset
	Section string // file inside it
	Offset  int64  // byte in the file, -1 when no single byte is to blame
	Err     error
}

func (e *SectionError) Error() string {
	s := e.Dataset + ": " + e.Section
	if e.Offset >= 0 {
		s += fmt.Sprintf(" at 0x%x", e.Offset)
	}
	return s + ": " + e.Err.Error()
}

// Unwrap gives the cause, and ErrCorrupt.
func (e *SectionError) Unwrap() []error { return []error{e.Err, ErrCorrupt} }

// guarded is the panic of an error that Guard returns: of data that is not as it was sealed, or
// cannot be checked.
type guarded struct{ err error }

// Error is what is printed where there is no Guard.
func (g guarded) Error() string { return g.err.Error() }

// Guard runs fn, which may read mapped memory, and returns its error. A page that can no longer be
// read, and an offset or id that cannot be true, come back as a *SectionError instead of a crash.
// Call it at the top of every goroutine that reads a Graph or Features.
func Guard(fn func() error) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *SectionError:
			err = r
		case guarded:
			err = r.err
		default:
			panic(r)
		}
	}()
	err = mapping.Guard(fn)
	var fault *mapping.Fault
	if errors.As(err, &fault) {
		return &SectionError{fault.Dataset, fault.Section, fault.Offset, errors.New("page cannot be read: " +
			"the file was truncated or replaced while in use, or the disk failed; restore it and run gnnstore verify")}
	}
	return err
}
