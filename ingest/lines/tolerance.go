package lines

import (
	"fmt"
	"sync"
)

// Tolerance lets a reader pass over a few broken rows. Those passed over once are passed over in
// every reading, and count once. A nil Tolerance forgives nothing. It is safe for concurrent use.
type Tolerance struct {
	max   int64
	mu    sync.Mutex
	seen  map[badRow]struct{}
	first error
}

type badRow struct {
	file string
	line int64
}

// MaxTolerance bounds the rows of a Tolerance, which remembers each.
const MaxTolerance = 1 << 20

// NewTolerance forgives up to max rows, at most [MaxTolerance].
func NewTolerance(max int64) *Tolerance {
	return &Tolerance{max: min(max, MaxTolerance), seen: map[badRow]struct{}{}}
}

// Forgive returns nil when the row may be passed over, and else err, with the number of those
// before it.
func (t *Tolerance) Forgive(file string, line int64, err error) error {
	if t.None() {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	row := badRow{file, line}
	if _, ok := t.seen[row]; ok {
		return nil
	}
	if int64(len(t.seen)) == t.max {
		return fmt.Errorf("%w; %d bad rows were passed over before it, which is all that {skip_bad} allows", err, t.max)
	}
	t.seen[row] = struct{}{}
	if t.first == nil {
		t.first = err
	}
	return nil
}

// None reports whether no row may be passed over.
func (t *Tolerance) None() bool { return t == nil || t.max == 0 }

// BadRows is the number of rows passed over so far, and what was wrong with the first.
func (t *Tolerance) BadRows() (n int64, first error) {
	if t == nil {
		return 0, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(len(t.seen)), t.first
}
