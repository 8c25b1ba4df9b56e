package spill_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/cachetier/spill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var bg = context.Background()

const segment = 8 << 10

func create(t testing.TB, o spill.Options) *spill.File {
	if o.Dir = t.TempDir(); o.Segment == 0 {
		o.Segment = segment
	}
	f, err := spill.Create(o)
	require.NoError(t, err)
	t.Cleanup(f.Close)
	return f
}

// put appends the numbers from lo up to hi to the run, in pieces of random size.
func put(f *spill.File, r *spill.Run, rng *rand.Rand, lo, hi uint32) error {
	for lo < hi {
		b, err := f.Buffer(bg)
		if err != nil {
			return err
		}
		for n := 1 + rng.IntN(len(b.Bytes)/4); lo < hi && b.Count < n; lo++ {
			binary.LittleEndian.PutUint32(b.Bytes[b.Used:], lo)
			b.Used, b.Count = b.Used+4, b.Count+1
		}
		if err := r.Append(b); err != nil {
			return err
		}
	}
	return nil
}

// numbers returns the numbers of a run, with the count of each.
func numbers(r *spill.Run) (map[uint32]int, error) {
	var mu sync.Mutex
	got := map[uint32]int{}
	err := r.Each(bg, func(b []byte, count int) error {
		mu.Lock()
		defer mu.Unlock()
		if len(b) != 4*count {
			return errors.New("another number of bytes than were appended")
		}
		for ; len(b) > 0; b = b[4:] {
			got[binary.LittleEndian.Uint32(b)]++
		}
		return nil
	})
	return got, err
}

// Runs return what was appended, once, with several goroutines appending, and their segments are
// used again and again.
func TestRunsGiveBackWhatWasAppended(t *testing.T) {
	const writers, each, rounds = 4, 6000, 12
	f := create(t, spill.Options{Bytes: 200 * segment, Buffers: writers + 3, Depth: 3})
	rng := rand.New(rand.NewPCG(1, 2))
	for range rounds {
		var g errgroup.Group
		runs := [2]*spill.Run{f.NewRun(), f.NewRun()}
		for w := range uint32(writers) {
			rng := rand.New(rand.NewPCG(rng.Uint64(), 0))
			g.Go(func() error { return put(f, runs[w%2], rng, w*each, (w+1)*each) })
		}
		require.NoError(t, g.Wait())
		require.EqualValues(t, 4*each*writers, runs[0].Bytes()+runs[1].Bytes())
		for i, r := range runs {
			got, err := numbers(r)
			require.NoError(t, err)
			require.Len(t, got, each*writers/2)
			for v, n := range got {
				require.Equal(t, 1, n)
				require.EqualValues(t, i, v/each%2)
			}
			again, err := numbers(r)
			require.NoError(t, err)
			require.Empty(t, again)
		}
	}
	st := f.Stats()
	require.Zero(t, st.UsedBytes)
	require.Positive(t, st.PeakBytes)
	require.LessOrEqual(t, st.PeakBytes, st.CapacityBytes)
	require.GreaterOrEqual(t, st.BytesWritten+st.BytesKept, int64(4*each*writers*rounds))
}

func TestAFullSpillSaysSo(t *testing.T) {
	f := create(t, spill.Options{Bytes: 3 * segment})
	r := f.NewRun()
	var err error
	for n := 0; err == nil && n < 10; n++ {
		b, e := f.Buffer(bg)
		require.NoError(t, e)
		b.Used = 1
		err = r.Append(b)
	}
	var full *spill.FullError
	require.ErrorAs(t, err, &full)
	r.Drop()
	require.Zero(t, f.Stats().UsedBytes)
	require.NoError(t, put(f, r, rand.New(rand.NewPCG(1, 1)), 0, 1), "dropped segments are free")
}

// failing returns Faults that let n writes pass, or n reads, and fail all later ones.
func failing(write bool, n int) func(bool, int64, int) error {
	var mu sync.Mutex
	return func(w bool, _ int64, _ int) error {
		mu.Lock()
		defer mu.Unlock()
		if w != write {
			return nil
		}
		if n--; n < 0 {
			return errors.New("the disk is gone")
		}
		return nil
	}
}

// A failed write or read is damage, which the reader finds. Afterwards every segment and buffer is
// free.
func TestTransfersThatFail(t *testing.T) {
	for _, write := range []bool{true, false} {
		f := create(t, spill.Options{Bytes: 100 * segment, Buffers: 3, Faults: failing(write, 5)})
		r := f.NewRun()
		require.NoError(t, put(f, r, rand.New(rand.NewPCG(3, 4)), 0, 40_000))
		_, err := numbers(r)
		require.ErrorIs(t, err, spill.ErrDamaged)
		require.ErrorContains(t, err, "the disk is gone")
		require.Zero(t, f.Stats().UsedBytes)
		for range 3 {
			_, err := f.Buffer(bg)
			require.NoError(t, err)
		}
	}
}

func TestEndOfContext(t *testing.T) {
	f := create(t, spill.Options{Bytes: 100 * segment})
	r := f.NewRun()
	require.NoError(t, put(f, r, rand.New(rand.NewPCG(3, 4)), 0, 40_000))
	ctx, end := context.WithCancel(bg)
	err := r.Each(ctx, func([]byte, int) error {
		end()
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, f.Stats().UsedBytes)
	var held []*spill.Buffer
	for range 2 {
		b, err := f.Buffer(bg)
		require.NoError(t, err)
		held = append(held, b)
	}
	_, err = f.Buffer(ctx)
	require.ErrorIs(t, err, context.Canceled)
	f.Return(held[0])
}

// Damaged pieces are left out, and no others.
func TestDamageLosesItsPieceAlone(t *testing.T) {
	const pieces = 60
	var f *spill.File
	f = create(t, spill.Options{Bytes: 100 * segment, Depth: 3, Faults: func(write bool, offset int64, _ int) error {
		switch at := offset / segment; {
		case write && at == 7:
			return errors.New("the disk is gone")
		case !write && at%10 == 3:
			spill.Scribble(f, offset+17)
		case !write && at == 20:
			return errors.New("the disk is gone")
		}
		return nil
	}})
	r := f.NewRun()
	for n := range pieces {
		b, err := f.Buffer(bg)
		require.NoError(t, err)
		b.Used, b.Count = segment, n
		require.NoError(t, r.Append(b))
	}
	for f.Stats().BytesWritten < pieces*segment {
		runtime.Gosched() // so that no piece is read from its buffer
	}
	var got atomic.Int64
	err := r.Each(bg, func([]byte, int) error {
		got.Add(1)
		return nil
	})
	require.ErrorIs(t, err, spill.ErrDamaged)
	require.EqualValues(t, pieces-8, got.Load())
	require.Zero(t, f.Stats().UsedBytes)
}

// The file has no name: nothing is left of it, whatever becomes of the process.
func TestNothingIsLeftInTheDirectory(t *testing.T) {
	dir := t.TempDir()
	f, err := spill.Create(spill.Options{Dir: dir, Bytes: 1 << 20, Segment: segment})
	require.NoError(t, err)
	defer f.Close()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestCreateRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, o := range []spill.Options{
		{Dir: dir, Bytes: 100, Segment: segment},
		{Dir: dir, Bytes: 1 << 20, Segment: 5000},
		{Dir: dir, Bytes: 1 << 20, Segment: segment, Depth: 1000},
		{Dir: dir + "/none", Bytes: 1 << 20, Segment: segment},
		{Dir: dir, Bytes: 1 << 60, Segment: 1 << 30},
	} {
		_, err := spill.Create(o)
		require.ErrorContains(t, err, "spill:")
	}
}

// A segment that was changed on disk is never lent.
func TestDamageIsFound(t *testing.T) {
	var f *spill.File
	var wrong sync.Once
	f = create(t, spill.Options{Bytes: 100 * segment, Depth: 1, Faults: func(write bool, offset int64, _ int) error {
		if !write {
			wrong.Do(func() { spill.Scribble(f, offset+17) })
		}
		return nil
	}})
	r := f.NewRun()
	require.NoError(t, put(f, r, rand.New(rand.NewPCG(5, 6)), 0, 40_000))
	_, err := numbers(r)
	require.ErrorIs(t, err, spill.ErrDamaged)
	require.Zero(t, f.Stats().UsedBytes)
}

func BenchmarkRoundTrip(b *testing.B) {
	const bytes = 256 << 20
	dir := os.Getenv("GNNSTORE_BENCH_DIR")
	if dir == "" {
		dir = b.TempDir()
	}
	f, err := spill.Create(spill.Options{Dir: dir, Bytes: 2 * bytes, Buffers: 10})
	require.NoError(b, err)
	defer f.Close()
	b.SetBytes(2 * bytes)
	for b.Loop() {
		r := f.NewRun()
		for n := 0; n < bytes; n += spill.UsualSegment {
			buf, err := f.Buffer(bg)
			require.NoError(b, err)
			buf.Used = len(buf.Bytes)
			require.NoError(b, r.Append(buf))
		}
		require.NoError(b, r.Each(bg, func(p []byte, _ int) error {
			if len(p) > spill.UsualSegment {
				return errors.New("too much")
			}
			return nil
		}))
	}
}

// Records come back whole, whatever their size, from more Records than there are buffers.
func TestRecordsComeBackWhole(t *testing.T) {
	const many = 12
	f := create(t, spill.Options{Bytes: 2000 * segment, Buffers: 4})
	rng := rand.New(rand.NewPCG(7, 8))
	for range 3 {
		all, want := make([]*spill.Records, many), make([]map[uint32]int, many)
		for i := range all {
			all[i], want[i] = f.NewRecords(), map[uint32]int{}
		}
		var g errgroup.Group
		var mu sync.Mutex
		for w := range 3 {
			rng := rand.New(rand.NewPCG(rng.Uint64(), uint64(w)))
			g.Go(func() error {
				for range 300 {
					// A record is a number n, and then a word n times.
					n, word, i := 1+rng.IntN(600), rng.Uint32(), rng.IntN(many)
					if rng.IntN(20) == 0 {
						n *= 20
					}
					b := binary.LittleEndian.AppendUint32(nil, uint32(n))
					for range n {
						b = binary.LittleEndian.AppendUint32(b, word)
					}
					if err := all[i].Append(b); err != nil {
						return err
					}
					mu.Lock()
					want[i][word] += n
					mu.Unlock()
				}
				return nil
			})
		}
		require.NoError(t, g.Wait())
		for i, r := range all {
			if i == 0 {
				r.Drop()
				continue
			}
			got := map[uint32]int{}
			require.NoError(t, r.Each(bg, func(b []byte) error {
				mu.Lock()
				defer mu.Unlock()
				for len(b) > 0 {
					n := binary.LittleEndian.Uint32(b)
					for b = b[4:]; n > 0; n-- {
						got[binary.LittleEndian.Uint32(b)]++
						b = b[4:]
					}
				}
				return nil
			}))
			require.Equal(t, want[i], got)
		}
		require.Zero(t, f.Stats().UsedBytes)
	}
}
