package npy

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Pairs reads an array of shape (2, n), the edge_index of most graph libraries, as n pairs.
//
// In row-major order the first row is over before the second begins, so the file is read at two
// places in step, by two readers of one file: the second seeks to its place when its body can, and
// else reads over the first row, which costs that much reading once more and no memory. In
// column-major order (Fortran's) the pairs lie side by side.
//
// One goroutine uses it at a time.
type Pairs struct {
	ctx          context.Context
	n, next      int64
	heads, tails *Reader // tails is nil in column-major order
	bodies       []io.ReadCloser
	placed       bool    // tails is at the second row
	both         []int64 // pairs of column-major order
}

// skipStep is the number of elements passed over between looks at the context.
const skipStep = 8 << 20

// OpenPairs reads the header. open gives the file from its first byte, twice at most; a body that
// is an io.Seeker may be told to go on elsewhere.
func OpenPairs(ctx context.Context, open func() (io.ReadCloser, error)) (_ *Pairs, err error) {
	p := &Pairs{ctx: ctx}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if p.heads, err = p.open(open); err != nil {
		return nil, err
	}
	h := p.heads.Header()
	if len(h.Shape) != 2 || h.Shape[0] != 2 {
		return nil, fmt.Errorf("array is %s, where a row of sources and a row of destinations are expected", h.String())
	}
	if p.n = h.Shape[1]; h.Fortran || p.n == 0 {
		return p, nil
	}
	if p.tails, err = p.open(open); err != nil {
		return nil, err
	}
	if t := p.tails.Header(); t.String() != h.String() || t.Fortran {
		return nil, fmt.Errorf("array was %s, and now it is %s; the file is being changed", h.String(), t.String())
	}
	return p, nil
}

func (p *Pairs) open(open func() (io.ReadCloser, error)) (*Reader, error) {
	body, err := open()
	if err != nil {
		return nil, err
	}
	p.bodies = append(p.bodies, body)
	return NewReader(body)
}

// Len is the number of pairs.
func (p *Pairs) Len() int64 { return p.n }

// Read fills heads and tails, which are of one length, and returns how many pairs it read: fewer
// than there is room for only at the end, where a further call gives io.EOF. The last pairs come
// after the file's checks, if its body has any. Numbers are converted as by [Reader.ReadInt64s].
func (p *Pairs) Read(heads, tails []int64) (int, error) {
	if len(heads) != len(tails) {
		panic("npy: heads and tails differ in length")
	}
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	n := int(min(int64(len(heads)), p.n-p.next))
	if n == 0 && len(heads) > 0 {
		return 0, io.EOF
	}
	heads, tails = heads[:n], tails[:n]
	if p.tails == nil {
		both := grow(&p.both, 2*n)
		if _, err := p.heads.ReadInt64s(both); err != nil {
			return 0, err
		}
		for i := range n {
			heads[i], tails[i] = both[2*i], both[2*i+1]
		}
	} else {
		if err := p.place(); err != nil {
			return 0, err
		}
		if _, err := p.heads.ReadInt64s(heads); err != nil {
			return 0, err
		}
		if _, err := p.tails.ReadInt64s(tails); err != nil {
			return 0, err
		}
	}
	if p.next += int64(n); p.next < p.n {
		return n, nil
	}
	// The byte after the last makes a body compare its checksum.
	var b [1]byte
	if _, err := io.ReadFull(p.bodies[len(p.bodies)-1], b[:]); err != nil && err != io.EOF {
		return 0, err
	}
	return n, nil
}

// place takes tails to the second row, once.
func (p *Pairs) place() error {
	if p.placed {
		return nil
	}
	p.placed = true
	if body, ok := p.bodies[1].(io.Seeker); ok {
		if _, err := body.Seek(p.n*int64(p.tails.header.Type.Size), io.SeekCurrent); err != nil {
			return err
		}
		p.tails.next = p.n
		return nil
	}
	for left := p.n; left > 0; left -= skipStep {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		if err := p.tails.Skip(min(left, skipStep)); err != nil {
			return err
		}
	}
	return nil
}

// Close closes what open gave.
func (p *Pairs) Close() error {
	var errs []error
	for _, b := range p.bodies {
		errs = append(errs, b.Close())
	}
	p.bodies = nil
	return errors.Join(errs...)
}
