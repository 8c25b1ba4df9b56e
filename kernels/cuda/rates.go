//go:build cuda && linux

package cuda

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
)

// GatherWay names how rows of the host get to the device.
type GatherWay string

// Ways of gathering. Their bits are equal.
const (
	Measured GatherWay = ""       // whichever of the others is faster
	Staged   GatherWay = "staged" // the host gathers them, and the device copies
	Reads    GatherWay = "reads"  // the device reads them
)

// What is measured: so many random rows of 512 bytes, some 2 MiB, of a table twice as large, a few
// times without a wait in between, as steps do.
const (
	tryCols, tryRows, tryTable = 128, 4096, 8192
	tryRounds                  = 4
)

// GatherRates implements [kernels.HostGatherer]. The first call measures. No upload may be under
// way then.
func (b *Backend) GatherRates() kernels.GatherRates {
	b.rates.once.Do(func() { b.rates.found = b.measure() })
	return b.rates.found
}

// rates has what GatherRates returns.
type rates struct {
	once  sync.Once
	found kernels.GatherRates
}

func (b *Backend) measure() (r kernels.GatherRates) {
	switch b.options.Gather {
	case Staged:
		return kernels.GatherRates{Why: "the device is not asked to read rows"}
	case Reads:
		return kernels.GatherRates{Reads: true, Why: "the device is asked to read rows"}
	}
	err := b.tryGather(&r)
	switch {
	case err != nil:
		r = kernels.GatherRates{Why: fmt.Sprintf("not measured: %v", err)}
	case r.Read == 0:
		r.Why = "the device cannot read memory of the host"
	case r.Read > r.Staged:
		r.Reads, r.Why = true, "the device reads rows faster than the host gathers them for a copy"
	default:
		r.Why = "the host gathers rows for a copy at least as fast as the device reads them"
	}
	return r
}

// tryGather measures both ways. Memory that is not there is an error.
func (b *Backend) tryGather(r *kernels.GatherRates) (err error) {
	defer kernels.RecoverMemory(&err)
	slots := len(b.pinned.all)
	defer func() {
		err = errors.Join(err, b.gpu.Do(func(c *driver.Calls) error {
			if err := c.StreamSynchronize(b.copies); err != nil {
				return err
			}
			return b.pinned.keep(c, slots)
		}))
	}()
	const size = 4 * tryCols
	table, err := kernels.NewHostBuf(tryTable * size)
	if err != nil {
		return err
	}
	defer table.Close()
	if err := table.Lock(b); err != nil {
		return err
	}
	for i := range table.Bytes() {
		table.Bytes()[i] = byte(i)
	}
	dst := kernels.NewTensor(b, kernels.F32, tryRows, tryCols)
	defer b.Free(dst.Buf)
	rng := rand.New(rand.NewPCG(1, 2))
	ids, moves := make([]uint32, tryRows), make([]kernels.Move, tryRows)
	for i := range ids {
		ids[i] = rng.Uint32N(tryTable)
		moves[i] = kernels.Move{From: ids[i], To: uint32(i)}
	}
	staging := kernels.NewStaging(b)
	defer staging.Close()
	if r.Staged, err = b.rateOf(func() bool {
		return staging.Fill(dst, func(to []byte) error {
			copyRows(to, table.Bytes(), size, moves)
			return nil
		}) == nil
	}); err != nil {
		return err
	}
	r.Read, err = b.rateOf(func() bool { return b.GatherHost(dst, table.Bytes(), ids) })
	return err
}

// rateOf returns the bytes in a second that gather brings, or 0 if it cannot. A first round makes
// the slots.
func (b *Backend) rateOf(gather func() bool) (rate float64, err error) {
	wait := func() error {
		return b.gpu.Do(func(c *driver.Calls) error { return c.StreamSynchronize(b.copies) })
	}
	if !gather() {
		return 0, nil
	}
	if err := wait(); err != nil {
		return 0, err
	}
	began := time.Now()
	for range tryRounds {
		gather()
	}
	if err := wait(); err != nil {
		return 0, err
	}
	return tryRounds * tryRows * 4 * tryCols / max(time.Since(began).Seconds(), 1e-9), nil
}

// copyRows performs moves on all processors, as the host does for a step.
func copyRows(dst, src []byte, size int, moves []kernels.Move) {
	n := runtime.GOMAXPROCS(0)
	var all sync.WaitGroup
	for i := range n {
		some := moves[i*len(moves)/n : (i+1)*len(moves)/n]
		all.Go(func() { kernels.CopyRows(dst, src, size, some) })
	}
	all.Wait()
}
