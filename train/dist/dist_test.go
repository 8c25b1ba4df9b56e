package dist

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wires links processes that are all in this one.
type wires struct {
	host *Host // whose workers are processes
	rank int
}

func (w wires) Rank() int       { return w.rank }
func (w wires) Size() int       { return w.host.workers }
func (w wires) Library() string { return "" }
func (w wires) Abort()          {}
func (w wires) Close() error    { return nil }
func (w wires) AllToAll(ctx context.Context, n laneNumber, send, recv [][]byte) error {
	return end{w.host.lanes[n], w.rank}.AllToAll(ctx, send, recv)
}

// hosts returns processes that host workers together.
func hosts(processes, workers int, o Options) (all []*Host) {
	between := newHost(alone{}, Options{})
	if err := between.SetWorkers(processes); err != nil {
		panic(err)
	}
	for p := range processes {
		h := newHost(wires{between, p}, o)
		if err := h.SetWorkers(workers); err != nil {
			panic(err)
		}
		all = append(all, h)
	}
	return all
}

// together runs work on every worker, and returns the error of each process.
func together(processes, workers int, o Options, work func(ctx context.Context, g *Group) error) []error {
	errs := make([]error, processes)
	var all sync.WaitGroup
	for p, h := range hosts(processes, workers, o) {
		all.Go(func() { errs[p] = h.Run(context.Background(), work) })
	}
	all.Wait()
	return errs
}

func none(t *testing.T, errs []error) {
	t.Helper()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

// layouts calls test with workers on each possible number of processes.
func layouts(t *testing.T, test func(t *testing.T, processes, workers int)) {
	for workers := 1; workers <= 5; workers++ {
		for processes := 1; processes <= workers; processes++ {
			t.Run(fmt.Sprintf("workers=%d/processes=%d", workers, processes), func(t *testing.T) {
				test(t, processes, workers)
			})
		}
	}
}

// TestSum: every worker gets the sums that adding in the order of the workers gives, to the bit,
// whatever number of processes hosts them.
func TestSum(t *testing.T) {
	const times = 6
	layouts(t, func(t *testing.T, processes, workers int) {
		numbers := func(rank, time int) []float32 {
			r := rand.New(rand.NewPCG(uint64(time), 1)) // lengths are the same everywhere
			v := rand.New(rand.NewPCG(uint64(time), uint64(rank)+2))
			x := make([]float32, r.IntN([]int{1, 3 * workers, 10000}[time%3]))
			for i := range x {
				x[i] = float32(v.NormFloat64() * math.Exp(10*v.Float64()))
			}
			return x
		}
		none(t, together(processes, workers, Options{}, func(ctx context.Context, g *Group) error {
			for time := range times {
				x := numbers(g.Rank(), time)
				beside, err := g.Sum(ctx, At{1, time}, fmt.Append(nil, g.Rank(), time), x)
				if err != nil {
					return err
				}
				for p := range workers {
					require.Equal(t, fmt.Sprint(p, time), string(beside[p]))
				}
				want := make([]float64, len(x))
				for p := range workers {
					for i, y := range numbers(p, time) {
						want[i] += float64(y)
					}
				}
				for i := range x {
					if x[i] != float32(want[i]) {
						require.Equal(t, float32(want[i]), x[i])
					}
				}
			}
			return nil
		}))
	})
}

func TestGather(t *testing.T) {
	layouts(t, func(t *testing.T, processes, workers int) {
		none(t, together(processes, workers, Options{}, func(ctx context.Context, g *Group) error {
			require.Len(t, g.Peers(), workers)
			for n := range 5 {
				own := make([]byte, (g.Rank()+n)%3*n)
				for i := range own {
					own[i] = byte(g.Rank())
				}
				all, err := g.Gather(ctx, At{}, own)
				if err != nil {
					return err
				}
				for p, came := range all {
					require.Len(t, came, (p+n)%3*n)
					for _, b := range came {
						require.Equal(t, byte(p), b)
					}
				}
				first, err := g.Broadcast(ctx, At{}, fmt.Append(nil, "from ", g.Rank()))
				require.NoError(t, err)
				require.Equal(t, "from 0", string(first))
			}
			lo, hi := g.Share(7)
			all, err := g.Gather(ctx, At{}, make([]byte, hi-lo))
			require.NoError(t, err)
			n := 0
			for _, part := range all {
				n += len(part)
			}
			require.Equal(t, 7, n)
			return nil
		}))
	})
}

// TestLarge: a message of several rounds arrives whole.
func TestLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it sends 65 MiB")
	}
	none(t, together(2, 2, Options{}, func(ctx context.Context, g *Group) error {
		var own []byte
		most := g.most
		require.Equal(t, mostBytes, most)
		if g.Rank() == 1 {
			own = make([]byte, most+12345)
			own[0], own[most-1], own[most], own[most+12344] = 1, 2, 3, 4
		}
		all, err := g.Gather(ctx, At{}, own)
		if err != nil {
			return err
		}
		require.Empty(t, all[0])
		require.Len(t, all[1], most+12345)
		require.Equal(t, []byte{1, 2, 3, 4}, []byte{all[1][0], all[1][most-1], all[1][most], all[1][most+12344]})
		return nil
	}))
}

// TestFails: a worker fails at any exchange. All others get its error, with its name, in that
// exchange; its own process gets the error itself.
func TestFails(t *testing.T) {
	layouts(t, func(t *testing.T, processes, workers int) {
		for at := range 4 {
			bad, cause := at%workers, errors.New("no space left")
			var mu sync.Mutex
			made := make([]int, workers)
			errs := together(processes, workers, Options{}, func(ctx context.Context, g *Group) error {
				for n := range 4 {
					if g.Rank() == bad && n == at {
						return cause
					}
					if _, err := g.Sum(ctx, At{0, n}, nil, []float32{1, 2}); err != nil {
						return err
					}
					mu.Lock()
					made[g.Rank()]++
					mu.Unlock()
				}
				return nil
			})
			for p, err := range errs {
				if bad >= p*workers/processes && bad < (p+1)*workers/processes {
					require.ErrorIs(t, err, cause)
					continue
				}
				var told *WorkerError
				require.ErrorAs(t, err, &told)
				require.Equal(t, bad, told.Rank)
				require.Regexp(t, fmt.Sprintf(`^worker %d of %d \(.*, process \d+\): no space left$`, bad, workers), err.Error())
			}
			for _, n := range made {
				require.Equal(t, at, n)
			}
		}
	})
}

// TestFailsAtTheEnd: a worker whose work fails after its last exchange tells those that have left.
func TestFailsAtTheEnd(t *testing.T) {
	errs := together(2, 3, Options{}, func(_ context.Context, g *Group) error {
		if g.Rank() == 2 {
			return errors.New("no space left")
		}
		return nil
	})
	require.ErrorContains(t, errs[0], "worker 2 of 3")
	require.ErrorContains(t, errs[1], "worker 2 of 3")
}

// TestStops: the context of one process ends, or of several. All workers stop at the same exchange,
// can go on exchanging, and their contexts end.
func TestStops(t *testing.T) {
	layouts(t, func(t *testing.T, processes, workers int) {
		for _, every := range []int{1, 2} { // each process, or every second one
			var all sync.WaitGroup
			var mu sync.Mutex
			made := make([]int, workers)
			errs := make([]error, processes)
			for p, h := range hosts(processes, workers, Options{}) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				all.Go(func() {
					errs[p] = h.Run(ctx, func(ctx context.Context, g *Group) error {
						for n := 0; ; n++ {
							if n == 3 && p%every == 0 {
								stop()
							}
							if workers > 1 {
								require.NoError(t, ctx.Err())
							}
							_, err := g.Sum(ctx, At{0, n}, nil, []float32{1})
							if workers == 1 {
								err = ctx.Err()
							}
							if err != nil {
								require.ErrorIs(t, err, context.Canceled)
								require.ErrorIs(t, ctx.Err(), context.Canceled)
								break
							}
							mu.Lock()
							made[g.Rank()]++
							mu.Unlock()
						}
						all, err := g.Gather(ctx, At{}, []byte{7})
						require.NoError(t, err)
						require.Len(t, all, workers)
						return nil
					})
				})
			}
			all.Wait()
			none(t, errs)
			for _, n := range made {
				require.Equal(t, made[0], n)
				require.GreaterOrEqual(t, n, 3)
			}
		}
	})
}

// TestStopsAtTheEnd: a worker that is asked to stop when another one has nothing more to exchange
// ends well.
func TestStopsAtTheEnd(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	h := hosts(1, 2, Options{})[0]
	require.NoError(t, h.Run(ctx, func(ctx context.Context, g *Group) error {
		if g.Rank() == 1 {
			stop()
			time.Sleep(time.Millisecond)
			require.NoError(t, ctx.Err())
		}
		return nil
	}))
}

// TestLate: a worker that does not come is named once the others have waited, and they do not wait
// for its end.
func TestLate(t *testing.T) {
	come, gone := make(chan bool), make(chan error, 1)
	errs := together(1, 3, Options{Timeout: 50 * time.Millisecond}, func(ctx context.Context, g *Group) error {
		if g.Rank() == 1 {
			<-come
		}
		_, err := g.Gather(ctx, At{}, nil)
		if g.Rank() == 1 {
			gone <- err
		}
		return err
	})
	require.EqualError(t, errs[0], "waited for 50ms for worker 1, which does not come; {dist_timeout} sets how long to wait")
	close(come)
	require.Error(t, <-gone)
}

// stuck is a link whose second process never begins an exchange.
type stuck struct{ alone }

func (stuck) Size() int { return 3 }
func (stuck) AllToAll(ctx context.Context, _ laneNumber, _, _ [][]byte) error {
	<-ctx.Done()
	return &LateError{For: context.Cause(ctx), processes: []int{1}}
}

// TestLateProcess: all workers of a process that does not come are named, before they have met.
func TestLateProcess(t *testing.T) {
	h := newHost(stuck{}, Options{Timeout: 20 * time.Millisecond})
	require.NoError(t, h.SetWorkers(6))
	var said error
	h.Fatal = func(err error) { said = err }
	err := h.Run(t.Context(), func(context.Context, *Group) error { return nil })
	require.ErrorContains(t, err, "for worker 2 of 6, worker 3 of 6, which do not come")
	require.Equal(t, err, said)
}

// TestLost: workers that meet in different exchanges all get an error.
func TestLost(t *testing.T) {
	var mu sync.Mutex
	var all []error
	together(2, 3, Options{}, func(ctx context.Context, g *Group) (err error) {
		if g.Rank() == 1 {
			_, err = g.Sum(ctx, At{2, 5}, nil, nil)
		} else {
			_, err = g.Gather(ctx, At{2, 5}, nil)
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, err)
		return err
	})
	require.Len(t, all, 3)
	for _, err := range all {
		require.ErrorContains(t, err, "the sum of gradients, step 5 of epoch 2")
	}
}

// TestOtherNumbers: workers that add up different numbers all get an error.
func TestOtherNumbers(t *testing.T) {
	for _, err := range together(2, 2, Options{}, func(ctx context.Context, g *Group) error {
		_, err := g.Sum(ctx, At{}, nil, make([]float32, 10+g.Rank()))
		return err
	}) {
		require.ErrorContains(t, err, "with 11 numbers")
	}
}

// TestAlone: without a group, a worker exchanges with itself.
func TestAlone(t *testing.T) {
	var g *Group
	require.Equal(t, []int{0, 1, 1}, []int{g.Rank(), g.Size(), g.Hosted()})
	all, err := g.Gather(t.Context(), At{}, []byte("own"))
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("own")}, all)
	cause := errors.New("x")
	require.Equal(t, cause, g.Leave(cause))
	lo, hi := g.Share(9)
	require.Equal(t, []int{0, 9}, []int{lo, hi})
}

func TestHeader(t *testing.T) {
	h := header{sums, failed, 1 << 40, At{3, 9}, 7, true, 1 << 33, 1 << 50}
	b := make([]byte, headerBytes)
	h.put(b)
	var got header
	require.NoError(t, got.get(b))
	require.Equal(t, h, got)
	b[0]++
	require.ErrorContains(t, got.get(b), "of another version")
}

func TestParseWay(t *testing.T) {
	for text, want := range map[string]struct {
		Way
		int
	}{"": {Auto, 0}, "auto": {Auto, 0}, "off": {Off, 0}, "local:4": {Local, 4}, "mpi": {MPI, 0}, "mpi:8": {MPI, 8}} {
		w, n, err := ParseWay(text)
		require.NoError(t, err, text)
		require.Equal(t, want.Way, w)
		require.Equal(t, want.int, n)
	}
	for _, text := range []string{
		"local", "local:", "local:0", "local:-1", "local:x", "off:2", "auto:2", "mpi:0", "mpi:99999", "tcp:4", "local:4:2", ":4", ":x",
	} {
		_, _, err := ParseWay(text)
		require.Error(t, err, text)
	}
}

func TestResolve(t *testing.T) {
	env := func(key, value string) func(string) string {
		return func(k string) string {
			if k == key {
				return value
			}
			return ""
		}
	}
	alone := env("", "")
	for _, w := range []Way{Auto, Off, Local} {
		got, err := w.Resolve(alone)
		require.NoError(t, err)
		if w == Auto {
			w = Off
		}
		require.Equal(t, w, got)
		got, err = w.Resolve(env("PMI_SIZE", "1"))
		require.NoError(t, err, "one process is alone")
		require.Equal(t, w, got)
	}
	_, err := MPI.Resolve(alone)
	require.Error(t, err)
	for _, key := range []string{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"} {
		_, err := Local.Resolve(env(key, "4"))
		require.ErrorContains(t, err, "has started 4 processes")
		got, err := Auto.Resolve(env(key, "4"))
		if hasMPI {
			require.NoError(t, err)
			require.Equal(t, MPI, got)
		} else {
			require.ErrorContains(t, err, "gnnstore-mpi")
		}
	}
}

// TestSlurm: srun starts processes that find each other by PMIx or PMI-2, or not at all.
func TestSlurm(t *testing.T) {
	env := func(values ...string) func(string) string {
		return func(key string) string {
			if i := slices.Index(values, key); i >= 0 && i%2 == 0 {
				return values[i+1]
			}
			return ""
		}
	}
	for want, getenv := range map[string]func(string) string{
		"4 Open MPI": env("SLURM_STEP_NUM_TASKS", "4", "PMIX_RANK", "0"),
		"4 MPICH":    env("SLURM_STEP_NUM_TASKS", "4", "PMI_RANK", "1", "PMI_SIZE", "4"),
		"2 Open MPI": env("SLURM_STEP_NUM_TASKS", "1", "OMPI_COMM_WORLD_SIZE", "2", "PMIX_RANK", "0"), // mpirun in an allocation
		"0 ":         env("SLURM_NTASKS", "4"),                                                        // a batch script
	} {
		processes, family := Launched(getenv)
		require.Equal(t, want, fmt.Sprintf("%d %s", processes, family))
	}
	_, err := Auto.Resolve(env("SLURM_STEP_NUM_TASKS", "4", "SLURM_PROCID", "2"))
	require.ErrorContains(t, err, "srun has started 4 processes that cannot find each other")
	way, err := Auto.Resolve(env("SLURM_STEP_NUM_TASKS", "1"))
	require.NoError(t, err)
	require.Equal(t, Off, way)
	way, err = Off.Resolve(env("SLURM_STEP_NUM_TASKS", "4"))
	require.NoError(t, err, "it was asked for")
	require.Equal(t, Off, way)
}
