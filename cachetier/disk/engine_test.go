package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// bg is for calls that are not cut short.
var bg = context.Background()

// oddFiles returns files of these sizes with random bytes. They are not memory-mapped.
func oddFiles(t testing.TB, sizes ...int) (sections []store.SectionFile, contents [][]byte) {
	rng := rand.NewChaCha8([32]byte{1})
	dir := t.TempDir()
	for i, size := range sizes {
		b := make([]byte, size)
		_, _ = rng.Read(b) // never fails
		name := fmt.Sprintf("odd-%d", i)
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, b, 0o666))
		f, err := os.Open(path)
		require.NoError(t, err)
		t.Cleanup(func() { f.Close() })
		sections = append(sections, store.SectionFile{File: f, Path: path, Dataset: dir, Section: name, Size: int64(size)})
		contents = append(contents, b)
	}
	return sections, contents
}

// mappedFiles returns the shards of a table, which are memory-mapped.
func mappedFiles(t testing.TB) (sections []store.SectionFile, contents [][]byte) {
	d, err := store.Open(storetest.Build(t, storetest.Spec{Nodes: 3000, Dim: 100, ShardBytes: 400 << 10}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	for _, s := range d.Features(0).Shards() {
		b, err := os.ReadFile(s.Path)
		require.NoError(t, err)
		sections, contents = append(sections, s.SectionFile), append(contents, b)
	}
	return sections, contents
}

// openOne opens a Reader of one kind, or skips the test where that kind does not work.
func openOne(t testing.TB, files []store.SectionFile, o Options) *Reader {
	r, err := Open(bg, files, o)
	require.NoError(t, err)
	if r.Kind() != o.Kind {
		r.Close()
		t.Skipf("no %s here: %s", o.Kind, r.Why())
	}
	return r
}

// onAll runs f with every engine: on files of odd sizes where it reads by descriptor, and on a
// dataset's files with Mmap.
func onAll(t *testing.T, f func(t *testing.T, kind Kind, files []store.SectionFile, contents [][]byte)) {
	for _, kind := range Kinds[1:] {
		t.Run(string(kind), func(t *testing.T) {
			files, contents := mappedFiles(t)
			if kind != Mmap {
				files, contents = oddFiles(t, 1<<20+777, 4096, 5, 3*MaxExtent+1)
			}
			f(t, kind, files, contents)
		})
	}
}

func (src *source) setBlock(block int64) { src.block = block }

// TestAnyRequests checks that Merge and Read lend the bytes of any requests, also where sectors are
// larger than here.
func TestAnyRequests(t *testing.T) {
	onAll(t, func(t *testing.T, kind Kind, files []store.SectionFile, contents [][]byte) {
		var readers []*Reader
		for _, block := range []int64{0, 4096} {
			r := openOne(t, files, Options{Kind: kind, Depth: 5})
			defer r.Close()
			if e, ok := r.engine.(interface{ setBlock(int64) }); ok && r.Block() > 1 {
				e.setBlock(max(r.Block(), block))
			}
			readers = append(readers, r)
		}
		rapid.Check(t, func(t *rapid.T) {
			r := rapid.SampledFrom(readers).Draw(t, "reader")
			var requests []Request
			for f := range files {
				for at := int64(0); ; {
					at += rapid.Int64Range(0, 1<<rapid.IntRange(0, 20).Draw(t, "far")).Draw(t, "skip")
					if at >= files[f].Size {
						break
					}
					size := min(files[f].Size-at, int64(rapid.IntRange(1, 1<<rapid.IntRange(0, 20).Draw(t, "large")).Draw(t, "size")))
					requests = append(requests, Request{f, at, int(size)})
					at += size
				}
			}
			var seen atomic.Int64
			traffic, err := r.Read(bg, r.Merge(len(requests), func(i int) Request { return requests[i] }), func(s Extent, b []byte) error {
				if len(b) != s.Size {
					return fmt.Errorf("%d bytes of %+v", len(b), s)
				}
				for _, p := range requests[s.Lo:s.Hi] {
					at := p.Offset - s.Offset
					if !bytes.Equal(contents[s.File][p.Offset:p.Offset+int64(p.Size)], b[at:at+int64(p.Size)]) {
						return fmt.Errorf("wrong bytes of %+v", p)
					}
				}
				seen.Add(int64(s.Hi - s.Lo))
				return nil
			})
			require.NoError(t, err)
			require.EqualValues(t, len(requests), seen.Load())
			extents := drain(r.Merge(len(requests), func(i int) Request { return requests[i] }))
			require.EqualValues(t, len(extents), traffic.Reads)
			var asked int64
			for _, s := range extents {
				lo, hi := hull(s, r.Block())
				asked += hi - lo
			}
			require.Equal(t, asked, traffic.Bytes)
		})
	})
}

// TestEndOfContext ends a Read near its beginning, on a slow disk.
func TestEndOfContext(t *testing.T) {
	onAll(t, func(t *testing.T, kind Kind, files []store.SectionFile, _ [][]byte) {
		var asked, served atomic.Int64
		r := openOne(t, files, Options{Kind: kind, Depth: 4, Faults: func(int, int64, int) Fault { return Fault{Delay: time.Millisecond} }})
		defer r.Close()
		all := drain(everything(files, 1))
		without := func() (Extent, bool) { return all[int(asked.Add(1)-1)%len(all)], true } // never ends
		fine := func(Extent, []byte) error { return nil }
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		_, err := r.Read(ctx, without, func(Extent, []byte) error {
			if served.Add(1) == 3 {
				cancel()
			}
			return nil
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Less(t, asked.Load(), int64(3+adviseAhead+8), "what was under way, and no more")
		asked.Store(0)
		_, err = r.Read(ctx, without, fine)
		require.ErrorIs(t, err, context.Canceled)
		require.Zero(t, asked.Load(), "of a context that had ended")
		ctx, cancel = context.WithTimeout(bg, 5*time.Millisecond)
		defer cancel()
		_, err = r.Read(ctx, without, fine)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = r.Read(bg, everything(files, 1), fine)
		require.NoError(t, err, "a Read that was cut short leaves the Reader as it was")
	})
}

// everything yields extents of many sizes that cover all files.
func everything(files []store.SectionFile, seed uint64) func() (Extent, bool) {
	rng := rand.New(rand.NewPCG(seed, 1))
	i, at := 0, int64(0)
	return func() (s Extent, ok bool) {
		for i < len(files) && at == files[i].Size {
			i, at = i+1, 0
		}
		if i == len(files) {
			return s, false
		}
		s = Extent{File: i, Offset: at, Size: int(min(files[i].Size-at, 1+rng.Int64N(1<<rng.IntN(20))))}
		at += int64(s.Size)
		return s, true
	}
}

// TestFaults checks that under short reads and delays every byte is right, and that an errno is
// returned with file and offset.
func TestFaults(t *testing.T) {
	onAll(t, func(t *testing.T, kind Kind, files []store.SectionFile, contents [][]byte) {
		var mu sync.Mutex
		rng := rand.New(rand.NewPCG(5, 6))
		failing := false
		faults := func(file int, offset int64, size int) (f Fault) {
			mu.Lock()
			defer mu.Unlock()
			if rng.IntN(2) == 0 {
				f.Short = rng.IntN(2 * size)
			}
			if rng.IntN(20) == 0 {
				f.Delay = time.Duration(rng.IntN(300)) * time.Microsecond
			}
			if failing && rng.IntN(15) == 0 {
				f.Errno = syscall.EIO
			}
			return f
		}
		for _, depth := range []int{1, 3, 64} {
			r := openOne(t, files, Options{Kind: kind, Depth: depth, Faults: faults})
			right := func(s Extent, b []byte) error {
				if !bytes.Equal(contents[s.File][s.Offset:s.Offset+int64(s.Size)], b) {
					return fmt.Errorf("wrong bytes of %+v", s)
				}
				return nil
			}
			traffic, err := r.Read(bg, everything(files, 1), right)
			require.NoError(t, err)
			live := r.Live()
			require.Equal(t, traffic.Reads, live.Reads)
			require.Equal(t, traffic.Bytes, live.Bytes)

			failing = true
			failed := 0
			for seed := range uint64(20) {
				_, err = r.Read(bg, everything(files, seed), right)
				if err == nil {
					continue
				}
				failed++
				require.ErrorIs(t, err, syscall.EIO)
				require.Regexp(t, `^disk: read \d+ bytes of .*(odd-\d|\.f16) at 0x[0-9a-f]+: input/output error$`, err)
				require.Zero(t, r.Live().UnderWay)
			}
			require.Positive(t, failed)
			failing = false
			_, err = r.Read(bg, everything(files, 1), right)
			require.NoError(t, err, "an error passes")
			r.Close()
		}
	})
}

// TestADeviceThatDawdles checks that a Read fails if its reads succeed and bring nothing new.
func TestADeviceThatDawdles(t *testing.T) {
	files, _ := oddFiles(t, 100_000)
	for _, kind := range []Kind{Uring, Pread} {
		t.Run(string(kind), func(t *testing.T) {
			r := openOne(t, files, Options{Kind: kind, Faults: func(_ int, _ int64, size int) Fault { return Fault{Short: size} }})
			defer r.Close()
			_, err := r.Read(bg, everything(files, 1), func(Extent, []byte) error { return nil })
			require.ErrorContains(t, err, "the device brings nothing")
			require.ErrorContains(t, err, files[0].Path)
		})
	}
}

func TestLive(t *testing.T) {
	onAll(t, func(t *testing.T, kind Kind, files []store.SectionFile, contents [][]byte) {
		r := openOne(t, files, Options{Kind: kind, Depth: 4})
		defer r.Close()
		require.Equal(t, Live{}, r.Live())
		traffic, err := r.Read(bg, everything(files, 3), func(s Extent, b []byte) error {
			time.Sleep(50 * time.Microsecond)
			return nil
		})
		require.NoError(t, err)
		live := r.Live()
		require.Equal(t, Live{
			Reads: traffic.Reads, Bytes: traffic.Bytes, Depth: live.Depth, Waited: live.Waited, P50: live.P50, P90: live.P90, P99: live.P99, Max: live.Max,
		}, live)
		require.GreaterOrEqual(t, live.Waited, live.Max)
		require.Positive(t, live.Depth)
		require.Positive(t, live.P50)
		require.LessOrEqual(t, live.P50, live.P90)
		require.LessOrEqual(t, live.P90, live.P99)
		require.LessOrEqual(t, live.P99, live.Max)
	})
}

// TestMisuse checks that a caller's bugs panic.
func TestMisuse(t *testing.T) {
	files, _ := oddFiles(t, 10)
	r, err := Open(bg, files, Options{Kind: Buffered})
	require.NoError(t, err)
	_, err = r.Read(bg, everything(files, 1), func(Extent, []byte) error {
		require.PanicsWithValue(t, "disk: Close while a Read is under way", r.Close)
		require.PanicsWithValue(t, "disk: Read while another is under way", func() { _, _ = r.Read(bg, nil, nil) })
		return nil
	})
	require.NoError(t, err)
	r.Close()
	r.Close()
	require.PanicsWithValue(t, "disk: Read after Close", func() { _, _ = r.Read(bg, nil, nil) })
}

// TestAFileThatIsAnother checks that a file is not read by its path once the path names another
// file.
func TestAFileThatIsAnother(t *testing.T) {
	files, contents := oddFiles(t, 50_000, 50_000)
	right := func(r *Reader) {
		defer r.Close()
		_, err := r.Read(bg, everything(files, 1), func(s Extent, b []byte) error {
			if !bytes.Equal(contents[s.File][s.Offset:s.Offset+int64(s.Size)], b) {
				return errors.New("wrong bytes")
			}
			return nil
		})
		require.NoError(t, err)
	}
	require.NoError(t, os.Remove(files[1].Path))
	gone, err := Open(bg, files, Options{Kind: Uring})
	require.NoError(t, err)
	require.Equal(t, Buffered, gone.Kind())
	require.Contains(t, gone.Why(), "it was asked for; the page cache cannot be gone around (")
	right(gone)
	require.NoError(t, os.WriteFile(files[1].Path, make([]byte, 50_000), 0o666))
	other, err := Open(bg, files, Options{Kind: Pread})
	require.NoError(t, err)
	require.Equal(t, Buffered, other.Kind())
	if runtime.GOOS == "linux" {
		require.Contains(t, other.Why(), "replaced since the dataset was opened")
	}
	right(other)
}

// sparse returns a file of size bytes that takes no space.
func sparse(t *testing.T, size int64) []store.SectionFile {
	files, _ := oddFiles(t, 1)
	require.NoError(t, os.Truncate(files[0].Path, size))
	files[0].Size = size
	return files
}

func TestProbe(t *testing.T) {
	files := sparse(t, 3<<30)
	for _, kind := range []Kind{Uring, Pread, Buffered} {
		t.Run(string(kind), func(t *testing.T) {
			r := openOne(t, files, Options{Kind: kind, Probe: true})
			defer r.Close()
			if kind == Buffered {
				if src, err := direct(files); err != nil {
					require.Contains(t, r.Why(), "the device cannot be measured (")
					return
				} else {
					src.closeOwn()
				}
			}
			require.NotEqual(t, Assumed, r.Costs())
			require.Positive(t, r.Costs().Gap())
			require.Regexp(t, `^it was asked for; by (uring|pread) the device gives [\d,.M ]+ reads of 4096 bytes a second and [\d.]+ GB/s in sequence$`, r.Why())
			require.Equal(t, Live{}, r.Live())

			again, err := Open(bg, files, Options{Kind: kind, Probe: true, Costs: r.Costs()})
			require.NoError(t, err)
			defer again.Close()
			require.Equal(t, r.Costs(), again.Costs())
			require.Equal(t, Asked, again.Why())
		})
	}
	small, _ := oddFiles(t, 100)
	r, err := Open(bg, small, Options{Probe: true})
	require.NoError(t, err)
	defer r.Close()
	require.Equal(t, Assumed, r.Costs())
	require.Contains(t, r.Why(), "too little to measure the device by")
	require.Equal(t, Mmap, r.Kind())
}

// TestAutoGoesAroundThePageCache opens files larger than any memory.
func TestAutoGoesAroundThePageCache(t *testing.T) {
	if _, err := kernels.AvailableMemory(); err != nil {
		t.Skip(err)
	}
	files := sparse(t, 8<<40)
	for _, probe := range []bool{false, true} {
		r, err := Open(bg, files, Options{Probe: probe})
		require.NoError(t, err)
		defer r.Close()
		require.Contains(t, r.Why(), "files of 8 TiB do not fit in half of the ")
		if src, err := direct(files); err != nil {
			require.Equal(t, Buffered, r.Kind())
		} else {
			src.closeOwn()
			require.Contains(t, []Kind{Uring, Pread}, r.Kind())
		}
	}
}

func TestProbeFailsOnABrokenDisk(t *testing.T) {
	files := sparse(t, 3<<30)
	_, err := Open(bg, files, Options{Kind: Pread, Probe: true, Faults: func(int, int64, int) Fault { return Fault{Errno: syscall.EIO} }})
	require.ErrorIs(t, err, syscall.EIO)
	require.ErrorContains(t, err, files[0].Path+" at 0x")
	require.NotContains(t, err.Error(), "\n")
}

func TestProbeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	cancel()
	for _, kind := range Kinds {
		_, err := Open(ctx, sparse(t, 3<<30), Options{Kind: kind, Probe: true, Direct: true})
		if src, direct := direct(sparse(t, 1)); direct == nil {
			src.closeOwn()
			require.ErrorIs(t, err, context.Canceled, kind)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 87: "87", 951: "951", 81_549: "81,500", 999_960: "1.00 M", 1_234_567: "1.23 M", 1042: "1,000"} {
		require.Equal(t, want, thousands(n))
	}
}

// TestSlowServesAreShared: where serving takes longer than reading, several goroutines serve.
func TestSlowServesAreShared(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	files, _ := oddFiles(t, 1<<20)
	for _, kind := range []Kind{Uring, Pread, Buffered} {
		t.Run(string(kind), func(t *testing.T) {
			r := openOne(t, files, Options{Kind: kind})
			defer r.Close()
			var now, most atomic.Int64
			i := int64(0)
			_, err := r.Read(bg, func() (Extent, bool) {
				i++
				return Extent{Offset: i * 1000, Size: 1000}, i <= 1000
			}, func(Extent, []byte) error {
				n := now.Add(1)
				defer now.Add(-1)
				for top := most.Load(); n > top && !most.CompareAndSwap(top, n); top = most.Load() {
				}
				time.Sleep(200 * time.Microsecond)
				return nil
			})
			require.NoError(t, err)
			require.Greater(t, most.Load(), int64(1))
		})
	}
}
