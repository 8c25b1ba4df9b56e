package graph

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/run"
)

// starving is a Backend that runs out of memory after a number of buffers.
type starving struct {
	kernels.Backend
	left *atomic.Int64
}

func (s starving) Alloc(t kernels.DType, n int) kernels.Buffer {
	if s.left.Add(-1) < 0 {
		panic(&kernels.MemoryError{Bytes: n * t.Size(), Err: syscall.ENOMEM})
	}
	return s.Backend.Alloc(t, n)
}

// TestWorkersStarve: if one worker runs out of memory while it opens, trains or evaluates, all
// workers end with its error.
func TestWorkersStarve(t *testing.T) {
	storetest.Long(t)
	const plenty = 1 << 40
	nodes, links := open(t, storetest.Communities(300, 4, 8, 24, 2)), open(t, linked(200))
	for name, c := range map[string]struct {
		ds    *store.Dataset
		o     run.Options
		parts bool
	}{
		"independent": {nodes, small(), false},
		"sampled":     {nodes, small(), true},
		"parts":       {nodes, small(), true},
		"links":       {links, linkOptions(), true},
	} {
		t.Run(name, func(t *testing.T) {
			open, o := func(int) (*store.Dataset, error) { return store.Open(c.ds.Path()) }, c.o
			if o.Epochs, o.Batch, o.EpochSteps = 2, 60, 3; c.parts {
				open, o = inParts(t, c.ds, 3), byParts(o)
			}
			if name == "sampled" {
				o.Eval = "sampled"
			}
			// starved gives worker bad so many buffers, and returns the number that it asked for.
			starved := func(bad int, buffers int64) (asked int64, err error) {
				var left atomic.Int64
				left.Store(buffers)
				_, err = byWorkersOf(t, open, 3, o, scratch(t), func(w *worker) {
					if w.rank == bad {
						w.hooks.Backend = starving{kernels.NewCPU(kernels.CPUOptions{}), &left}
					}
				})
				return buffers - left.Load(), err
			}
			all, err := starved(0, plenty)
			require.NoError(t, err)
			for i := range all * 9 / 10 {
				bad := int(i % 3)
				_, err := starved(bad, i)
				require.ErrorContains(t, err, fmt.Sprintf("worker %d of 3", bad))
				require.ErrorContains(t, err, "no memory for a buffer")
			}
		})
	}
}
