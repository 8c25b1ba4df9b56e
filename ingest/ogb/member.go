package ogb

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/npz"
	"github.com/gnnstore/gnnstore/store"
)

// member is an array of an npz file as a section.
type member struct {
	*npz.Archive
	key    string
	header npy.Header
}

// find reads an array's form.
func find(a *npz.Archive, key string) (*member, error) {
	h, err := a.Header(key)
	if err != nil {
		return nil, err
	}
	return &member{Archive: a, key: key, header: h}, nil
}

// rows checks that an array has the declared number of rows of numbers.
func (m *member) rows(n int64, declared string) error {
	h := m.header
	switch {
	case h.Type.Kind == npy.Unicode || h.Type.Kind == npy.Bytes || len(h.Shape) == 0 || len(h.Shape) > 2:
		return fmt.Errorf("%s: array is %s, where rows and columns of numbers are expected", m.place(), h.String())
	case h.Shape[0] != n:
		return fmt.Errorf("%s: array is %s, and %s declares %d rows; fetch both again", m.place(), h.String(), declared, n)
	}
	return nil
}

func (m *member) place() string { return m.Name() + ": " + m.key }

func (m *member) columns() (int, error) {
	h := m.header
	switch {
	case len(h.Shape) == 1:
		return 1, nil
	case h.Shape[1] > ingest.MaxColumns:
		return 0, fmt.Errorf("%s: array is %s; rows have at most %d columns", m.place(), h.String(), ingest.MaxColumns)
	}
	return int(h.Shape[1]), nil
}

// fail places an error about the array.
func (m *member) fail(ctx context.Context, err error) error {
	return m.Fail(ctx, fmt.Errorf("%s: %w", m.key, err), m.key)
}

// floats streams rows as npy gives them.
func (m *member) floats(ctx context.Context, _ int, emit func(int64, []float32) error) error {
	return ingest.Matrix(ctx, m.Open(m.key), emit, func(err error) error { return m.fail(ctx, err) })
}

func (m *member) classes(ctx context.Context, tasks int, emit func(int64, []int32) error) error {
	if tasks == 1 {
		return m.oneClass(ctx, emit)
	}
	var bits []int32
	return m.floats(ctx, tasks, func(first int64, values []float32) error {
		bits = bits[:0]
		for i, v := range values {
			switch {
			case v != v || v < 0:
				bits = append(bits, -1)
			case v == 0 || v == 1:
				bits = append(bits, int32(v))
			default:
				return fmt.Errorf("%s: row %d, column %d (counting from 0) is %v; several columns of labels are zeros and ones",
					m.place(), first+int64(i/tasks), i%tasks, v)
			}
		}
		return emit(first, bits)
	})
}

func (m *member) oneClass(ctx context.Context, emit func(int64, []int32) error) error {
	in, err := m.open(ctx)
	if err != nil {
		return err
	}
	defer in.Close()
	values := make([]int32, min(ingest.ChunkBytes/4, m.header.Len()))
	for first := int64(0); first < m.header.Len(); first += int64(len(values)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := in.ReadClasses(values)
		if err != nil {
			return m.fail(ctx, err)
		}
		if first+int64(n) == m.header.Len() {
			if err := in.end(); err != nil {
				return err
			}
		}
		if err := emit(first, values[:n]); err != nil {
			return err
		}
	}
	return nil
}

// reading is an array being read front to back.
type reading struct {
	*npy.Reader
	io.Closer
	ctx    context.Context
	member *member
	body   io.Reader
	elem   store.Elem
	whole  []int64
	float  []float32
}

func (m *member) open(ctx context.Context) (*reading, error) {
	body, err := m.Open(m.key)()
	if err != nil {
		return nil, m.fail(ctx, err)
	}
	r, err := npy.NewReader(body)
	if err != nil {
		body.Close()
		return nil, m.fail(ctx, err)
	}
	return &reading{Reader: r, Closer: body, ctx: ctx, member: m, body: body}, nil
}

// end reads past the last element, where the checksum is compared.
func (r *reading) end() error {
	var b [1]byte
	if _, err := io.ReadFull(r.body, b[:]); err != nil && err != io.EOF {
		return r.member.fail(r.ctx, err)
	}
	return nil
}

func (m *member) column(ctx context.Context, elem store.Elem) (column, error) {
	r, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	r.elem = elem
	return r, nil
}

func (r *reading) read(dst []uint64) error {
	if len(dst) == 0 {
		return nil
	}
	if r.elem == store.F32 {
		if len(r.float) < len(dst) {
			r.float = make([]float32, len(dst))
		}
		if _, err := r.ReadFloat32s(r.float[:len(dst)]); err != nil {
			return r.member.fail(r.ctx, err)
		}
		for i := range dst {
			dst[i] = uint64(math.Float32bits(r.float[i]))
		}
		return nil
	}
	if len(r.whole) < len(dst) {
		r.whole = make([]int64, len(dst))
	}
	if _, err := r.ReadInt64s(r.whole[:len(dst)]); err != nil {
		return r.member.fail(r.ctx, err)
	}
	for i := range dst {
		dst[i] = uint64(r.whole[i])
	}
	return nil
}

func (m *member) pairs(ctx context.Context) (pairs, error) {
	p, err := npy.OpenPairs(ctx, m.Open(m.key))
	if err != nil {
		return nil, m.fail(ctx, err)
	}
	return npzPairs{p, ctx, m}, nil
}

type npzPairs struct {
	*npy.Pairs
	ctx    context.Context
	member *member
}

func (p npzPairs) read(src, dst []int64) error {
	if len(src) == 0 {
		return nil
	}
	if _, err := p.Read(src, dst); err != nil {
		return p.member.fail(p.ctx, err)
	}
	return nil
}

// end has nothing to do: the last pairs came after the checksum.
func (p npzPairs) end() error { return nil }
