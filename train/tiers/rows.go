package tiers

import (
	"context"
	"errors"
	"slices"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/mutable"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/sample"
)

// OpenRows opens the part of a run that a pass over all neighbours uses: the tables of learnt rows,
// without a cache, and the costs of the disk. Such a pass draws no batches ahead. It reads
// neighbour lists through the map of the graph, and opens tables of features itself, with
// Tiers.Disk. There is no planner and no pipeline.
func OpenRows(
	ctx context.Context, d *data.Data, draws sample.Config, l Learning, be kernels.Backend, o Options, faults disk.Faults,
) (_ *Tiers, err error) {
	if o, err = o.Part(); err != nil {
		return nil, err
	}
	t := &Tiers{
		Options: o, Reach: draws.Reach(d.Schema(), d.SeedTypes()...), data: d, draws: draws, learning: l, be: be,
		staging: kernels.NewStaging(be),
	}
	if t.total, err = Memory(o.MemoryBytes); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	n := t.hosted() // the heap, and spare memory, are the process's
	t.heap = HeapLimit{Budget: (t.total-t.sumBytes())*n - rowsFileBytes, Least: t.total / 8 * n}
	t.spare = kernels.LimitSpare(t.total / 32 * n)
	var all, largest int64 // bytes of files
	var files []store.SectionFile
	measure := func(bytes int64, of func() []store.SectionFile) {
		if all += bytes; bytes > largest {
			largest, files = bytes, of()
		}
	}
	for i, drawn := range t.Reach.Drawn() {
		if r := d.Relations[i]; drawn {
			measure(topology.ListBytes(r.Graph, r.Weights, r.Brought()...), func() []store.SectionFile {
				_, neighbors := r.Sections()
				return []store.SectionFile{neighbors}
			})
		}
	}
	for i, read := range append(slices.Clone(t.Reach.Types[0]), d.DrawnTables(t.Reach.Drawn())...) {
		n := d.Input(i)
		switch {
		case !read || n.Nodes == 0:
		case n.Features != nil:
			measure(int64(n.Nodes)*int64(n.Features.RowBytes()), func() (files []store.SectionFile) {
				for _, s := range n.Features.Shards() {
					files = append(files, s.SectionFile)
				}
				return files
			})
		case n.HasRows():
			t.Types = append(t.Types, i)
		}
	}
	t.Disk = disk.Options{Kind: o.Cache.Engine, Depth: ReadersWithin(o.Cache.Readers, t.total), Costs: o.Cache.Costs, Faults: faults}
	if all > t.total/2 {
		t.Disk.Direct, t.Disk.Probe = true, true
	}
	if len(files) > 0 {
		r, err := disk.Open(ctx, files, t.Disk)
		if err != nil {
			return nil, err
		}
		if t.Disk.Direct {
			t.Disk.Kind = r.Kind()
		}
		t.Disk.Costs, t.Disk.Probe = r.Costs(), false
		t.Engine = string(r.Kind()) + " (" + r.Why() + ")"
		r.Close()
	}
	for _, n := range t.Types {
		cache := t.Cache
		cache.DeviceBytes, cache.HostBytes, cache.StaticBytes, cache.Prewarm = 0, 0, 0, false
		cache.Engine, cache.Direct, cache.Costs, cache.Faults, cache.Readers = t.Disk.Kind, t.Disk.Direct, t.Disk.Costs, t.Disk.Faults, t.Disk.Depth
		s, err := t.openLearnt(ctx, n, 0, cache)
		if err != nil {
			return nil, err
		}
		t.Stacks, t.inputs = append(t.Stacks, s), append(t.inputs, 0)
	}
	return t, nil
}

// readerPart: the buffers of a reader may take one part in readerPart of the memory.
const readerPart = 16

// ReadersWithin returns how many reads at a time have buffers: as many as asked, but no more than
// fit if the process may take total bytes. 0 is the usual number, in asked and in the result.
func ReadersWithin(asked int, total int64) int {
	depth := disk.DepthWithin(total / readerPart)
	if asked != 0 && (depth == 0 || asked < depth) {
		depth = asked
	}
	return depth
}

// Total returns the bytes that the process may take in all.
func (t *Tiers) Total() int64 { return t.total }

// RaiseLeast raises the least memory that err names, if it is a *[plan.NotEnough]. Some parts, such
// as the buffers of readers, grow with the memory: they take bytes(total) in a process that may
// take total. The least was computed with their bytes in total.
func RaiseLeast(err error, total int64, bytes func(total int64) int64) {
	var short *plan.NotEnough
	if !errors.As(err, &short) {
		return
	}
	for had := bytes(total); ; {
		need := bytes(short.Least.Total + 1<<20) // the message rounds the least up to whole MiB
		if need <= had {
			return
		}
		short.Least.Fixed, short.Least.Total = short.Least.Fixed+need-had, short.Least.Total+need-had
		had = need
	}
}

// FixedBytes returns the bytes that OpenRows takes, with the program, if the process may take
// total.
func (t *Tiers) FixedBytes(total int64) int64 {
	bytes := ProgramBytes + t.sumBytes()
	depth := ReadersWithin(t.Cache.Readers, total)
	for _, n := range t.Types {
		rows := t.data.Types[n].Nodes
		bytes += mutable.FixedBytes(rows) + disk.ReaderBytes(int64(rows)*int64(t.RowBytes(n)), depth)
	}
	return bytes
}

const (
	// rowsFileBytes is the part of the program file that is in memory, and of maps between two
	// calls of Forget: 20 MiB and 3 of the largest command, 2026-11-23.
	rowsFileBytes = 24 << 20
	// ProgramBytes covers the program, its heap and the runtime, beside what is counted elsewhere.
	ProgramBytes = rowsFileBytes + 16<<20
)

// Forget drops the pages of the dataset's maps that were read from the process's resident memory.
func (t *Tiers) Forget() { t.data.Set.Forget() }
