//go:build mpi && linux

package dist

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/train/dist/rounds"
)

// TestLaunched is for a launcher: mpirun -n 3 dist.test -test.run Launched. Any number of workers
// exchanges right among its processes, while memory is collected; and Go has its signals.
func TestLaunched(t *testing.T) {
	processes, _ := Launched(os.Getenv)
	if processes == 0 {
		t.Skip("no launcher has started this: go run ./tools/ci workers does")
	}
	h, err := Open(Options{Way: MPI, Getenv: os.Getenv})
	require.NoError(t, err)
	require.Equal(t, processes, h.Processes())
	require.True(t, faults(), "a fault of a page is an error")
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1, syscall.SIGUSR2)
	for _, s := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2} {
		require.NoError(t, syscall.Kill(os.Getpid(), s))
		require.Equal(t, s, <-asked)
	}
	for workers := processes; workers <= 2*processes+1; workers++ {
		require.NoError(t, h.SetWorkers(workers))
		if workers > 1 && workers%2 == 0 { // then in rounds
			require.NoError(t, h.SetTopology(rounds.Switch(workers, 1e9)))
		} else {
			require.NoError(t, h.SetTopology(nil))
		}
		require.NoError(t, h.Run(t.Context(), func(ctx context.Context, g *Group) error {
			for n := range 40 {
				x := make([]float32, 1000*n)
				for i := range x {
					x[i] = float32(g.Rank()+1) / float32(i+3)
				}
				beside, err := g.Sum(ctx, At{1, n}, fmt.Append(nil, g.Rank()%10), x)
				if err != nil {
					return err
				}
				for p := range workers {
					require.Equal(t, fmt.Sprint(p%10), string(beside[p]))
				}
				for i := range x {
					sum := 0.0
					for p := range workers {
						sum += float64(float32(p+1) / float32(i+3))
					}
					if x[i] != float32(sum) {
						require.Equal(t, float32(sum), x[i])
					}
				}
				all, err := g.Gather(ctx, At{}, make([]byte, g.Rank()*n*1000))
				if err != nil {
					return err
				}
				for p := range workers {
					require.Len(t, all[p], p*n*1000)
				}
				runtime.GC()
			}
			return nil
		}))
	}
	require.NoError(t, h.Close())
}

// TestHangs is for a launcher of three processes, which it ends: a worker never comes, or its whole
// process is stopped.
func TestHangs(t *testing.T) {
	how := os.Getenv("GNNSTORE_HANGS")
	if processes, _ := Launched(os.Getenv); processes != 3 || how == "" {
		t.Skip("no launcher has started this: go run ./tools/ci workers does")
	}
	h, err := Open(Options{
		Way: MPI, Timeout: time.Second, Getenv: os.Getenv, Fatal: func(err error) { fmt.Println("fatal:", err) },
	})
	require.NoError(t, err)
	_ = h.Run(t.Context(), func(ctx context.Context, g *Group) error {
		if g.Rank() == 1 && how == "stopped" {
			require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGSTOP))
		}
		if g.Rank() == 1 {
			select {}
		}
		_, err := g.Gather(ctx, At{}, nil)
		return err
	})
}

var sink byte

// faults reads a page that may not be read, and reports whether that was an error of Go's.
func faults() (ok bool) {
	page, err := syscall.Mmap(-1, 0, 4096, syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return false
	}
	defer func() { _ = syscall.Munmap(page) }()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { ok = recover() != nil }()
	sink = page[0]
	return false
}
