package arrays

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strconv"

	"github.com/gnnstore/gnnstore/ingest/archive"
	"github.com/gnnstore/gnnstore/ingest/npy"
)

// array is one array of the source.
type array struct {
	*npy.View
	key    string
	name   string          // for messages: the file, and the key in it
	member *archive.Member // nil when it is not in an archive
	turned bool            // column-major in the file
	matrix *matrix         // a sparse matrix, or nil; its View has a shape and no numbers
}

// part is a over the view v, for messages of the same name.
func (a *array) part(v *npy.View) *array {
	b := *a
	b.View = v
	return &b
}

// form is the array as messages have it.
func (a *array) form() string { return a.name + " is " + a.View.String() }

// fail names an array before an error in reading it. A damaged member is the likeliest cause of any
// nonsense in it, so its checksum is compared first.
func (a *array) fail(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if path := (*fs.PathError)(nil); a.member != nil && !errors.Is(err, archive.ErrDamaged) && !errors.As(err, &path) {
		r := a.member.Stream(0, a.member.Size)
		buf := make([]byte, 256<<10)
		for ctx.Err() == nil {
			_, bad := r.Read(buf)
			if bad == io.EOF {
				break
			}
			if bad != nil {
				err = bad
				break
			}
		}
	}
	return fmt.Errorf("%s: %w", a.name, err)
}

// ids reads an array of integers of any type, per to a row.
type ids struct {
	a    *array
	r    *npy.Reader
	per  int64
	next int64
	wide []float64
}

func (a *array) ids(per int64) *ids { return &ids{a: a, r: a.Reader(), per: per} }

// exact is the first integer from which on floats of a type skip some.
func exact(t npy.Type) float64 {
	switch {
	case t.Kind == npy.BFloat:
		return 1 << 8
	case t.Size == 1: // float8 of two bits of fraction or more; E8M0 has powers of two alone
		return 1 << 3
	case t.Size == 2:
		return 1 << 11
	case t.Size == 4:
		return 1 << 24
	}
	return 1 << 53
}

// read fills dst and returns how many there were: 0 at the end.
func (s *ids) read(dst []int64) (int, error) {
	if !s.a.Type.Floating() {
		n, err := s.r.ReadInt64s(dst)
		if err == io.EOF {
			err = nil
		}
		s.next += int64(n)
		return n, err
	}
	if len(s.wide) < len(dst) {
		s.wide = make([]float64, len(dst))
	}
	n, err := s.r.ReadFloat64s(s.wide[:len(dst)])
	if err != nil && err != io.EOF {
		return 0, err
	}
	limit := exact(s.a.Type)
	for i, v := range s.wide[:n] {
		row := (s.next + int64(i)) / s.per
		if v != math.Trunc(v) || math.IsInf(v, 0) {
			return 0, fmt.Errorf("row %d: %s is not an id; ids are whole numbers", row, strconv.FormatFloat(v, 'g', -1, 64))
		}
		if math.Abs(v) >= limit {
			return 0, fmt.Errorf("row %d: %.0f is beyond what %s tells apart, so ids were lost; save ids as integers", row, v, s.a.Descr)
		}
		dst[i] = int64(v)
	}
	s.next += int64(n)
	return n, nil
}
