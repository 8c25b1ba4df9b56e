package graph

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/infer"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/tiers"
)

// fixed has the options of a network that learns no more.
type fixed struct {
	onDisk bool // hidden rows that do not fit in memory go to disk; else all must fit
	// predicts: nothing is measured.
	predicts bool
}

// unmeasured reports whether nothing will be measured; f is nil where the network learns.
func (f *fixed) unmeasured() bool { return f != nil && f.predicts }

// openFixed opens the tables and the evaluator of a network that learns no more. It computes over
// all neighbours: no batch is drawn ahead and no step is taken. Memory beyond its need is for rows,
// of hidden layers or of the layer below the current one.
func (c *core) openFixed(ctx context.Context, o infer.Options) (err error) {
	if c.tiers, err = tiers.OpenRows(ctx, c.data, c.draws, c.learning(), c.Backend, c.Options.Options, c.internal.faults); err != nil {
		return err
	}
	looks := 0
	o.Look = func() {
		c.Peak.Look()
		c.tiers.FollowHeap()
		if looks++; looks%looksAtMaps == 0 {
			c.tiers.Forget()
		}
	}
	total := c.tiers.Total()
	c.eval = c.evaluatorWithin(total, o)
	hidden := c.eval.InMemoryBytes()
	beside, need := c.fixedWithin(total, c.eval)
	if need > total {
		// Chunks and buffers grow with the memory, and so does the need. So raise the memory until
		// the need within it fits.
		least := int64(0)
		for need = 1 << 20; need > least; {
			least = (need + 1<<20 - 1) >> 20 << 20
			beside, need = c.fixedWithin(least, c.evaluatorWithin(least, o))
		}
		of, each, n := "", "", int64(max(c.Hosted, 1))
		if n > 1 {
			of, each = fmt.Sprintf(" for %d workers", n), "each: "
		}
		return fmt.Errorf("%s: {memory_bytes} %s%s is not enough: with this dataset and network the least that works is %d MiB "+
			"(%s%s of rows computed at a time, read and written, %s the rest)", c.data.Set.Path(), kernels.FormatBytes(n*total), of,
			n*least>>20, each, kernels.FormatBytes(need-beside), kernels.FormatBytes(beside))
	}
	rest := total - need
	c.EvalBytes = rest - max(0, rest-8<<20)/8 // less what large pages, and lists that wait for the collector, take beside what is counted
	if c.internal.fixed.onDisk && c.EvalBytes < hidden && c.ownedPart() == nil {
		c.EvalBytes = min(c.EvalBytes, c.eval.HiddenBytes()-1)
	}
	if !c.internal.fixed.onDisk && c.ownedPart() == nil {
		c.EvalBytes += hidden
	}
	c.eval.Bytes = c.EvalBytes
	c.tiers.Budget = plan.Budget{Total: total, Fixed: need, Host: c.EvalBytes}
	return nil
}

// evaluatorWithin returns an Evaluator for a process that may take total bytes.
func (c *core) evaluatorWithin(total int64, o infer.Options) *infer.Evaluator {
	d := c.tiers.Disk
	o.ChunkBytes = chunkBytes(total)
	// Past the page cache: tables that are read by a map would be in memory beside the rows.
	o.Tables = cachetier.Options{Engine: d.Kind, Readers: tiers.ReadersWithin(c.tiers.Cache.Readers, total), Direct: true, Costs: d.Costs, Faults: d.Faults}
	o.Bytes = 0
	e := infer.New(c.data, c.step, c.task, o)
	e.Attach(c.tiers.Tables(), nil)
	return e
}

// fixedWithin returns the least bytes that a network that learns no more needs with e, in a process
// that may take total bytes. beside is the part of need outside e.
func (c *core) fixedWithin(total int64, e *infer.Evaluator) (beside, need int64) {
	beside = c.besideRows(total)
	need = beside + e.MemoryBytes()
	if !c.internal.fixed.onDisk && c.ownedPart() == nil { // else MemoryBytes has them
		need += e.InMemoryBytes()
	}
	return beside, need
}

const (
	// chunksInMemory is the number of chunks of rows that would fill the memory. Computing one
	// chunk takes eight times its bytes.
	chunksInMemory = 256
	leastChunk     = 128 << 10
	// looksAtMaps is the number of chunks whose lists are read before the maps are dropped from
	// memory. A chunk reads up to 1 MiB of them, and 16 KiB with the least memory.
	looksAtMaps = 8
	// writerBytes is the least memory for writing predictions. A quarter of a byte a node comes on
	// top: see export.WriteRows.
	writerBytes = 8 << 20
)

// chunkBytes returns the bytes of rows that are computed at a time within total. It grows in powers
// of two, so that the least memory stays the least.
func chunkBytes(total int64) int64 {
	power := int64(1) << max(bits.Len64(uint64(total))-1, 0) // the largest one up to total
	return min(max(power/chunksInMemory, leastChunk), 32<<20)
}

// besideRows returns the bytes of everything but rows of layers: the program, weights, lists of
// nodes. The process may take total bytes.
func (c *core) besideRows(total int64) int64 {
	// A weight has its value and the best epoch's, and while a checkpoint is read these and two
	// moments in it.
	bytes := c.tiers.FixedBytes(total) + (4+4+4*4)*c.Config.Weights(c.shape())
	bytes += 4 * int64(len(c.data.Train)+len(c.data.Valid)+len(c.data.Test))
	most := 0
	for i := range c.data.Types {
		most = max(most, c.data.Types[i].Nodes)
	}
	bytes += writerBytes + int64(most)*4 + int64(most)/4
	if c.labels != nil {
		bytes += c.labels.Bytes()
	}
	bytes += c.task.FixedBytes(total, !c.internal.fixed.unmeasured())
	return bytes + c.internal.beside.of(total) + c.probeBytes()
}
