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
func (t *trainer) openFixed(ctx context.Context, o infer.Options) (err error) {
	if t.tiers, err = tiers.OpenRows(ctx, t.data, t.draws, t.learning(), t.be, t.Options.Options, t.internal.faults); err != nil {
		return err
	}
	looks := 0
	o.Look = func() {
		t.Peak.Look()
		t.tiers.FollowHeap()
		if looks++; looks%looksAtMaps == 0 {
			t.tiers.Forget()
		}
	}
	total := t.tiers.Total()
	t.eval = t.evaluatorWithin(total, o)
	hidden := t.eval.InMemoryBytes()
	beside, need := t.fixedWithin(total, t.eval)
	if need > total {
		// Chunks and buffers grow with the memory, and so does the need. So raise the memory until
		// the need within it fits.
		least := int64(0)
		for need = 1 << 20; need > least; {
			least = (need + 1<<20 - 1) >> 20 << 20
			beside, need = t.fixedWithin(least, t.evaluatorWithin(least, o))
		}
		return fmt.Errorf("%s: {memory_bytes} %s is not enough: with this dataset and network the least that works is %d MiB (%s of rows computed at "+
			"a time, read and written, %s the rest)", t.data.Set.Path(), kernels.FormatBytes(total), least>>20, kernels.FormatBytes(need-beside),
			kernels.FormatBytes(beside))
	}
	rest := total - need
	t.EvalBytes = rest - max(0, rest-8<<20)/8 // less what large pages, and lists that wait for the collector, take beside what is counted
	if t.internal.fixed.onDisk && t.EvalBytes < hidden {
		t.EvalBytes = min(t.EvalBytes, t.eval.HiddenBytes()-1)
	}
	if !t.internal.fixed.onDisk {
		t.EvalBytes += hidden
	}
	t.eval.Bytes = t.EvalBytes
	t.tiers.Budget = plan.Budget{Total: total, Fixed: need, Host: t.EvalBytes}
	return nil
}

// evaluatorWithin returns an Evaluator for a process that may take total bytes.
func (t *trainer) evaluatorWithin(total int64, o infer.Options) *infer.Evaluator {
	d := t.tiers.Disk
	o.ChunkBytes = chunkBytes(total)
	// Past the page cache: tables that are read by a map would be in memory beside the rows.
	o.Tables = cachetier.Options{Engine: d.Kind, Readers: tiers.ReadersWithin(t.tiers.Cache.Readers, total), Direct: true, Costs: d.Costs, Faults: d.Faults}
	o.Bytes = 0
	e := infer.New(t.data, t.step, t.task, o)
	e.Attach(t.tiers.Tables(), nil)
	return e
}

// fixedWithin returns the least bytes that a network that learns no more needs with e, in a process
// that may take total bytes. beside is the part of need outside e.
func (t *trainer) fixedWithin(total int64, e *infer.Evaluator) (beside, need int64) {
	beside = t.besideRows(total)
	need = beside + e.MemoryBytes()
	if !t.internal.fixed.onDisk {
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
	return min(max(int64(1)<<(bits.Len64(uint64(total))-1)/chunksInMemory, leastChunk), 32<<20)
}

// besideRows returns the bytes of everything but rows of layers: the program, weights, lists of
// nodes. The process may take total bytes.
func (t *trainer) besideRows(total int64) int64 {
	// A weight has its value and the best epoch's, and while a checkpoint is read these and two
	// moments in it.
	bytes := t.tiers.FixedBytes(total) + (4+4+4*4)*t.Config.Weights(t.shape())
	bytes += 4 * int64(len(t.data.Train)+len(t.data.Valid)+len(t.data.Test))
	most := 0
	for i := range t.data.Types {
		most = max(most, t.data.Types[i].Nodes)
	}
	bytes += writerBytes + int64(most)*4 + int64(most)/4
	if t.labels != nil {
		bytes += t.labels.Bytes()
	}
	bytes += t.task.FixedBytes(!t.internal.fixed.unmeasured())
	if t.internal.beside != nil {
		bytes += t.internal.beside(total)
	}
	return bytes
}
