package store

import (
	"errors"
	"fmt"

	"github.com/gnnstore/gnnstore/store/internal/mapping"
)

// ErrCorrupt is in the chain of every error for a dataset that differs from its manifest's
// promises.
var ErrCorrupt = errors.New("corrupt dataset")

// ErrVersion is in the chain if this build cannot read the dataset's format version.
var ErrVersion = errors.New("unknown dataset version")

// SectionError locates an error in a dataset. errors.Is(err, ErrCorrupt) holds for it.
type SectionError struct {
	Dataset string // path of the dataset
	Section string // file inside it
	Offset  int64  // byte in the file, or -1 if no single byte is to blame
	Err     error
}

func (e *SectionError) Error() string {
	s := e.Dataset + ": " + e.Section
	if e.Offset >= 0 {
		s += fmt.Sprintf(" at 0x%x", e.Offset)
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the cause and ErrCorrupt.
func (e *SectionError) Unwrap() []error { return []error{e.Err, ErrCorrupt} }

// guarded is a panic value that Guard turns into its error: data failed its checksum, or could not
// be checked.
type guarded struct{ err error }

// Error returns the message that the runtime prints if no Guard recovers the panic.
func (g guarded) Error() string { return g.err.Error() }

// Guard runs fn, which may read mapped memory, and returns its error. If a page cannot be read or
// fails its checksum, or an offset or id is impossible, Guard returns a *SectionError instead of
// crashing. Call it at the top of every goroutine that reads a Graph or Features.
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
