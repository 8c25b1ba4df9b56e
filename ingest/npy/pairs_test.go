package npy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// seekable is a body that can go elsewhere, as a file can.
type seekable struct{ *bytes.Reader }

func (seekable) Close() error { return nil }

// readPairs reads all pairs, some at a time.
func readPairs(open func() (io.ReadCloser, error), chunk int) (heads, tails []int64, err error) {
	p, err := OpenPairs(context.Background(), open)
	if err != nil {
		return nil, nil, err
	}
	defer p.Close()
	u, v := make([]int64, chunk), make([]int64, chunk)
	for {
		n, err := p.Read(u, v)
		if err == io.EOF {
			return heads, tails, nil
		}
		if err != nil {
			return nil, nil, err
		}
		heads, tails = append(heads, u[:n]...), append(tails, v[:n]...)
	}
}

func TestPairsEitherOrder(t *testing.T) {
	for _, n := range []int{0, 1, 2, 9, 20_000} {
		var heads, tails, both []int32
		var wantHeads, wantTails []int64
		for i := range n {
			u, v := int32(i*3), int32(n-i)
			heads, tails, both = append(heads, u), append(tails, v), append(both, u, v)
			wantHeads, wantTails = append(wantHeads, int64(u)), append(wantTails, int64(v))
		}
		for fortran, elements := range map[string][]int32{"False": append(heads, tails...), "True": both} {
			file := array(fmt.Sprintf("{'descr': '<i4', 'fortran_order': %s, 'shape': (2, %d)}", fortran, n), elements)
			for _, chunk := range []int{1, 7, 1 << 16} {
				if chunk == 1 && n > 100 {
					continue
				}
				opened := 0
				for how, open := range map[string]func() (io.ReadCloser, error){
					"read over": opener(file, &opened),
					"seek":      func() (io.ReadCloser, error) { return seekable{bytes.NewReader(file)}, nil },
				} {
					u, v, err := readPairs(open, chunk)
					require.NoError(t, err)
					require.Equal(t, wantHeads, u, "%s, Fortran %s, %d in chunks of %d", how, fortran, n, chunk)
					require.Equal(t, wantTails, v)
				}
				require.LessOrEqual(t, opened, 2)
			}
		}
	}
}

func TestPairsRefuses(t *testing.T) {
	opened := 0
	for _, c := range []struct {
		file []byte
		want string
	}{
		{array(form("<i8", "(4, 2)"), make([]int64, 8)), "array is (4, 2) of <i8, where a row of sources and a row of destinations are expected"},
		{array(form("<i8", "(4,)"), make([]int64, 4)), "array is (4,) of <i8, where a row"},
		{array(form("<f8", "(2, 2)"), []float64{0, 1, math.NaN(), 1}), "element 2 is NaN, not an integer of 64 bits"},
		{array(form("<i8", "(2, 4)"), make([]int64, 5)), "truncated: 64 bytes of data expected for (2, 4) of <i8, found 40"},
	} {
		_, _, err := readPairs(opener(c.file, &opened), 100)
		require.ErrorContains(t, err, c.want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p, err := OpenPairs(ctx, opener(array(form("<i8", "(2, 4)"), make([]int64, 8)), &opened))
	require.NoError(t, err)
	defer p.Close()
	require.Equal(t, int64(4), p.Len())
	cancel()
	_, err = p.Read(make([]int64, 1), make([]int64, 1))
	require.Equal(t, context.Canceled, err)
}

// vast is a file of 32-bit zeros but for where each row begins.
type vast struct {
	header []byte
	at     int64
	marks  map[int64]byte // by place
}

func (v *vast) Close() error { return nil }

func (v *vast) Seek(offset int64, whence int) (int64, error) {
	if whence != io.SeekCurrent {
		return 0, errors.New("only from here")
	}
	v.at += offset
	return v.at, nil
}

func (v *vast) Read(b []byte) (int, error) {
	clear(b)
	if v.at < int64(len(v.header)) {
		copy(b, v.header[v.at:])
	}
	for place, mark := range v.marks {
		if i := place - v.at; i >= 0 && i < int64(len(b)) {
			b[i] = mark
		}
	}
	v.at += int64(len(b))
	return len(b), nil
}

// Trap 12 of the formats: more than 2³¹ edges, in ids of 32 bits.
func TestPairsBeyondInt32(t *testing.T) {
	const n = 5 << 30
	head := array(form("<u4", fmt.Sprintf("(2, %d)", int64(n))), nil)
	p, err := OpenPairs(context.Background(), func() (io.ReadCloser, error) {
		at := int64(len(head))
		return &vast{header: head, marks: map[int64]byte{at: 1, at + 4: 2, at + n*4: 3, at + n*4 + 7: 0x80}}, nil
	})
	require.NoError(t, err)
	defer p.Close()
	require.Equal(t, int64(n), p.Len())
	var u, v [2]int64
	k, err := p.Read(u[:], v[:])
	require.NoError(t, err)
	require.Equal(t, 2, k)
	require.Equal(t, [2]int64{1, 2}, u)
	require.Equal(t, [2]int64{3, 1 << 31}, v)
}

func TestReadClasses(t *testing.T) {
	read := func(file []byte) ([]int32, error) {
		r, err := NewReader(bytes.NewReader(file))
		require.NoError(t, err)
		dst := make([]int32, 10)
		n, err := r.ReadClasses(dst)
		return dst[:n], err
	}
	nan := math.NaN()
	for _, file := range [][]byte{
		array(form("<f8", "(4,)"), []float64{3, nan, -1, 0}),
		array(form("<f4", "(4, 1)"), []float32{3, float32(nan), -7, 0}),
		array(form("<i8", "(4,)"), []int64{3, -1, math.MinInt64, 0}),
		array(form("|i1", "(4,)"), []int8{3, -1, -1, 0}),
	} {
		got, err := read(file)
		require.NoError(t, err)
		require.Equal(t, []int32{3, -1, -1, 0}, got)
	}
	for want, file := range map[string][]byte{
		"element 1 is 0.5, not the number of a class":    array(form("<f4", "(2,)"), []float32{1, 0.5}),
		"element 1 is -0.5, not the number of a class":   array(form("<f4", "(2,)"), []float32{1, -0.5}),
		"element 0 is +Inf, not the number of a class":   array(form("<f4", "(1,)"), []float32{float32(math.Inf(1))}),
		"element 0 is not the number of a class":         array(form("<i8", "(1,)"), []int64{1 << 31}),
		"element 1 is not the number of a class":         array(form("<u8", "(2,)"), []uint64{1, 1 << 63}),
		"unsupported element type |S3 where numbers are": array(form("|S3", "(1,)"), []byte("abc")),
	} {
		_, err := read(file)
		require.ErrorContains(t, err, want)
	}
}
