package interp

import (
	"errors"
	"fmt"
	"strings"
)

// What an [Error] is about; errors.Is finds them.
var (
	ErrSyntax    = errors.New("syntax")                  // text that is no PTX, or a name that is not declared
	ErrUnknown   = errors.New("unknown instruction")     // an opcode or a form that this package does not know
	ErrLaunch    = errors.New("launch refused")          // grid, block, shared memory or parameters do not fit
	ErrBounds    = errors.New("out of bounds")           // an access outside every allocation
	ErrAlignment = errors.New("misaligned")              // an address that is no multiple of the access's size
	ErrRace      = errors.New("race")                    // two accesses that nothing orders
	ErrDivergent = errors.New("divergent lanes")         // lanes that must meet and cannot
	ErrUndefined = errors.New("undefined value")         // a register that was read and never written
	ErrTrap      = errors.New("trap")                    // the instruction trap
	ErrLimit     = errors.New("too many instructions")   // a kernel that does not end
	ErrArgument  = errors.New("result is not specified") // division by zero, and the like
)

// An Error names the instruction that failed, and the thread where one did.
type Error struct {
	Err    error // one of the Err values of this package
	Kernel string
	Line   int    // in the PTX, from 1; 0 where no line is at fault
	Text   string // the instruction
	Detail string

	InThread      bool // Block and Thread are known
	Block, Thread [3]uint32
}

func (e *Error) Unwrap() error { return e.Err }

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("interp: ")
	if e.Kernel != "" {
		b.WriteString(e.Kernel + ": ")
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Text != "" {
		fmt.Fprintf(&b, "%s: ", e.Text)
	}
	b.WriteString(e.Err.Error())
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	if e.InThread {
		fmt.Fprintf(&b, "; block %v, thread %v", e.Block, e.Thread)
	}
	return b.String()
}

func syntaxError(line int, detail string) error {
	return &Error{Err: ErrSyntax, Line: line, Detail: detail}
}
