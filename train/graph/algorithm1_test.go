package graph

import (
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// algorithm1 is FreshGNN's training loop (arXiv 2301.07482, algorithm 1), plainly: its cache is a
// map, which a step looks into while its batch is drawn, and changes at its end. It shares with a
// run how neighbours are drawn, what a layer computes, the loss and the optimizer. How cached rows
// come to a step, how gradients are measured, and who is put in and thrown out is its own.
type algorithm1 struct {
	*trainer // of the same run without history
	t        *testing.T
	settings history.Settings
	cache    [][]map[uint32]entry // by layer that reads it, type and node
	used     [][][]entry          // by layer and type: what the batch at hand has of the cache, by sample.Origin.Index
	counts   map[place]*counted
	now      int              // the step
	given    []kernels.Buffer // of the step
}

type place struct{ layer, typ int }

// counted are some of history.Counts.
type counted struct{ hits, ages, computed, overflow int64 }

// entry is a cached row, and the step that computed it.
type entry struct {
	Row  []uint16
	Step int
}

func newAlgorithm1(t *testing.T, without *trainer, s history.Settings) *algorithm1 {
	a := &algorithm1{trainer: without, t: t, settings: s, counts: map[place]*counted{}}
	for l := range a.Layers {
		a.cache = append(a.cache, nil)
		for typ := range a.data.Types {
			a.cache[l] = append(a.cache[l], map[uint32]entry{})
			a.counts[place{l, typ}] = new(counted)
		}
	}
	return a
}

// Expand has what is in the cache be used, and all else be drawn further.
func (a *algorithm1) Expand(_ context.Context, hop int, found [][][]uint32) (next [][][]uint32, origins [][][]sample.Origin, err error) {
	types := len(a.data.Types)
	next, origins = [][][]uint32{make([][]uint32, types)}, [][][]sample.Origin{make([][]sample.Origin, types)}
	layer := a.Layers - 1 - hop
	for typ, ids := range found[0] {
		n := a.counts[place{layer, typ}]
		for _, v := range ids {
			if e, there := a.cache[layer][typ][v]; there {
				origins[0][typ] = append(origins[0][typ], sample.Origin{From: sample.Slot, Index: uint32(len(a.used[layer][typ]))})
				a.used[layer][typ] = append(a.used[layer][typ], e)
				n.hits++
				n.ages += int64(a.now - e.Step)
				continue
			}
			origins[0][typ] = append(origins[0][typ], sample.Origin{From: sample.Below, Index: uint32(len(next[0][typ]))})
			next[0][typ] = append(next[0][typ], v)
			if a.now >= a.settings.HistoryStart {
				n.computed++
			}
		}
	}
	return next, origins, nil
}

// take takes a step of an epoch.
func (a *algorithm1) take(epoch, step int) (loss float64) {
	a.now = (epoch-1)*a.task.Steps() + step
	a.used = make([][][]entry, a.Layers)
	for l := range a.used {
		a.used[l] = make([][]entry, len(a.data.Types))
	}
	b, seeds := new(sample.Batch), a.task.Seeds(step)
	z := []sample.BatchSeed{a.BatchSeeds().At(a.now)}
	require.NoError(a.t, a.tiers.Sampler.SampleThrough(context.Background(), a, []*sample.Batch{b}, z, [][][]uint32{seeds}))
	origins := make([][][]sample.Origin, a.Layers)
	for l := range b.Layers {
		for typ := range b.Layers[l].Nodes {
			nodes := &b.Layers[l].Nodes[typ]
			origins[l], nodes.Origin = append(origins[l], nodes.Origin), nil // only this loop reads them
		}
	}
	defer a.free()
	tp, graphs, key := a.step.Tape, a.step.Feed.Blocks(b.Layers), sample.StepSeed(a.Seed, epoch, step)|1
	tp.Reset(true)
	x := a.features(b)
	computed, read := make([]model.Rows, a.Layers), make([]model.Rows, a.Layers) // by the layer that reads them
	for l := range graphs {
		if l > 0 {
			computed[l], read[l] = x, make(model.Rows, len(x))
			x = make(model.Rows, len(x))
			for typ := range x {
				if len(origins[l][typ]) > 0 {
					read[l][typ] = a.together(computed[l][typ], origins[l][typ], a.used[l][typ])
					x[typ] = tp.Dropout(read[l][typ], graphs[l].Nodes[typ].IDs, sample.Key(sample.Hash(key, uint64(l)), typ), float32(a.Dropout))
				}
			}
		}
		if !slices.ContainsFunc(b.Layers[l].Nodes, func(f sample.Frontier) bool { return f.Dst > 0 }) {
			x = make(model.Rows, len(x)) // the cache has all that the layers above read
			continue
		}
		x = a.model.Layer(tp, l, x, graphs[l])
	}
	labels, err := a.data.Classes(nil, seeds[a.data.Target])
	require.NoError(a.t, err)
	for _, l := range a.download(tp.CrossEntropy(x[a.data.Target], a.ints(labels), 1/float32(len(labels)))) {
		loss += float64(l)
	}
	tp.Backward()
	for l := 1; l < a.Layers && a.now >= a.settings.HistoryStart; l++ {
		for typ, rows := range read[l] {
			if rows != nil {
				var made []float32
				if computed[l][typ] != nil {
					made = a.download(computed[l][typ].Value)
				}
				a.judge(place{l, typ}, b.Layers[l].Nodes[typ].Src, origins[l][typ], made, a.download(tp.Gradient(rows)))
			}
		}
	}
	a.optim.Step(a.LR, kernels.Tensor{})
	return loss / float64(len(labels))
}

// judge puts in the rows of the nodes with the smallest gradients, except rows that float16 cannot
// hold. It removes the rows of all other nodes, and rows that are too old for the next step.
func (a *algorithm1) judge(at place, nodes []uint32, from []sample.Origin, computed, gradients []float32) {
	cache := a.cache[at.layer][at.typ]
	norms, order := make([]float32, len(nodes)), make([]int, len(nodes))
	for i := range nodes {
		sum := 0.0
		for _, g := range gradients[i*a.Hidden:][:a.Hidden] {
			sum += float64(g) * float64(g)
		}
		norms[i], order[i] = float32(math.Sqrt(sum)), i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(norms[i], norms[j]), cmp.Compare(nodes[i], nodes[j]))
	})
	small := int(a.settings.PGrad * float64(len(nodes)))
	for rank, i := range order {
		holds, row := true, make([]uint16, a.Hidden)
		if from[i].From == sample.Below {
			kernels.Float32ToHalf(row, computed[int(from[i].Index)*a.Hidden:][:a.Hidden])
			if holds = !slices.ContainsFunc(row, func(h uint16) bool { return h&0x7c00 == 0x7c00 }); !holds {
				a.counts[at].overflow++
			}
		}
		switch {
		case rank >= small:
			delete(cache, nodes[i])
		case from[i].From == sample.Below && holds:
			cache[nodes[i]] = entry{row, a.now}
		}
	}
	maps.DeleteFunc(cache, func(_ uint32, e entry) bool { return a.now+1-e.Step > a.settings.TStale })
}

// together is the rows that a layer reads of one type: cached ones are constants, to which those
// that were computed are added where the constants are 0.
func (a *algorithm1) together(computed *tape.Var, from []sample.Origin, used []entry) *tape.Var {
	constants, places := make([]float32, len(from)*a.Hidden), []uint32(nil)
	for i, o := range from {
		if o.From == sample.Slot {
			kernels.HalfToFloat32(constants[i*a.Hidden:][:a.Hidden], used[o.Index].Row)
			continue
		}
		places = append(places, uint32(i))
	}
	x := kernels.Tensor{Buf: a.alloc(kernels.F32, len(constants)), Rows: len(from), Cols: a.Hidden}
	a.Backend.UploadF32(x, constants)
	rows := a.step.Tape.LearntLeaf(x, a.Hidden) // a leaf has its gradient
	if len(places) > 0 {
		rows = a.step.Tape.Sum(rows, a.step.Tape.ScatterRows(computed, a.ints(places), len(from)))
	}
	a.step.Tape.Keep(rows)
	return rows
}

// features are the rows that a batch reads, from the dataset itself.
func (a *algorithm1) features(b *sample.Batch) model.Rows {
	all := make(model.Rows, len(a.data.Types))
	staging := kernels.NewStaging(a.Backend)
	defer staging.Close()
	for typ, ids := range b.Inputs() {
		d := &a.data.Types[typ]
		if d.Features == nil || len(ids) == 0 {
			continue
		}
		x := kernels.Tensor{Buf: a.alloc(d.DType(), len(ids)*d.Dim()), Type: d.DType(), Rows: len(ids), Cols: d.Dim()}
		require.NoError(a.t, staging.Fill(x, func(dst []byte) error {
			for i, v := range ids {
				copy(dst[i*d.Features.RowBytes():], d.Features.Row(v))
			}
			return nil
		}))
		all[typ] = a.step.Tape.Leaf(x)
	}
	return all
}

func (a *algorithm1) alloc(t kernels.DType, n int) kernels.Buffer {
	a.given = append(a.given, a.Backend.Alloc(t, n))
	return a.given[len(a.given)-1]
}

func (a *algorithm1) ints(v []uint32) kernels.Tensor {
	x := kernels.Tensor{Buf: a.alloc(kernels.U32, len(v)), Type: kernels.U32, Rows: len(v), Cols: 1}
	a.Backend.UploadU32(x, v)
	return x
}

func (a *algorithm1) download(x kernels.Tensor) []float32 {
	v := make([]float32, x.Len())
	a.Backend.DownloadF32(v, x)
	return v
}

func (a *algorithm1) free() {
	for _, b := range a.given {
		a.Backend.Free(b)
	}
	a.given = nil
}

// savedSlots is the slots of one layer and type, as the file of hidden rows beside a checkpoint has
// them, with no verdict outstanding.
type savedSlots struct {
	place
	counts  []int64          // in the order of history.Counts
	entries map[uint32]entry // by node
}

// savedPools reads such a file, whose format package history describes, and removes what its
// verdicts reject.
func savedPools(file []byte, hidden int) (all []savedSlots) {
	u32 := func() (n uint32) {
		n, file = binary.LittleEndian.Uint32(file), file[4:]
		return n
	}
	u64 := func() (n uint64) {
		n, file = binary.LittleEndian.Uint64(file), file[8:]
		return n
	}
	file = file[8+4+8+2*4+5*8:]
	u64() // the next step
	pools, verdicts := u32(), u32()
	// node by slot and step
	slots, live := make([]uint64, pools), make([]map[history.Version]uint32, pools)
	for k := range pools {
		r := savedSlots{place: place{int(u32()), int(u32())}, entries: map[uint32]entry{}}
		slots[k] = u64()
		for range 12 {
			r.counts = append(r.counts, int64(u64()))
		}
		var inUse []uint32
		for first := uint32(0); uint64(first) < slots[k]; first += 64 {
			word := u64()
			for i := range uint32(64) {
				if word>>i&1 == 1 {
					inUse = append(inUse, first+i)
				}
			}
		}
		live[k] = map[history.Version]uint32{}
		for _, s := range inUse {
			node := u32()
			live[k][history.Version{Slot: s, Stamp: u32()}] = node
		}
		all = append(all, r)
	}
	for range verdicts {
		for k := range pools {
			for range u32() {
				delete(live[k], history.Version{Slot: u32(), Stamp: u32()})
			}
		}
	}
	for k := range pools {
		for v, node := range live[k] {
			row := make([]uint16, hidden)
			for c := range row {
				row[c] = binary.LittleEndian.Uint16(file[2*(int(v.Slot)*hidden+c):])
			}
			all[k].entries[node] = entry{row, int(v.Stamp)}
		}
		file = file[2*int(slots[k])*hidden:]
	}
	return all
}

// TestReuseIsAlgorithm1: with a lag of one step and slots for all, a run is FreshGNN's algorithm 1,
// step for step and bit for bit: losses, rows that are kept and the steps that computed them, what
// is used and how old it is; and in the end the weights.
func TestReuseIsAlgorithm1(t *testing.T) {
	wide := storetest.Communities(1500, 4, 8, 24, 2) // of rows that make some which float16 cannot hold
	row := wide.Row
	wide.Elem, wide.Row = store.F32, func(v int) []float32 {
		x := slices.Clone(row(v))
		if v%7 == 0 {
			x[0] *= 1e6
		}
		return x
	}
	// An eighth of Amazon Computers: 13,752 nodes of mean degree 36, with 60 % to train on.
	computers := storetest.Communities(1719, 10, 36, 24, 2)
	one, eighth, several, large := open(t, storetest.Communities(1500, 4, 8, 24, 2)), open(t, computers), openTyped(t, storetest.Library(2000, 3, 2)), open(t, wide)
	for name, change := range map[string]func(o *run.Options){
		"sage": func(*run.Options) {},
		"sage for an eighth of computers": func(o *run.Options) {
			o.Layers, o.Fanouts, o.Batch, o.Epochs, o.EpochSteps, o.CheckpointEvery = 3, []int{5, 5, 5}, 12, 4, 83, 40
			o.PGrad, o.TStale, o.HistoryStart = 0.9, 200, 83
		},
		"sage of 3 layers": func(o *run.Options) { o.Layers, o.Fanouts, o.Batch, o.TStale = 3, []int{3, 3, 2}, 12, 3 },
		"sage by labor0":   func(o *run.Options) { o.Sampler, o.Kappa, o.Dependent = sample.Labor0, 4, run.Smoothed },
		"sage beyond half": func(o *run.Options) { o.Norm = "none" },
		"gcn":              func(o *run.Options) { o.Kind, o.Batch, o.Fanouts = model.GCN, 4, []int{sample.All, sample.All} },
		"gat":              func(o *run.Options) { o.Kind, o.Heads = model.GAT, 2 },
		"rsage":            func(o *run.Options) { o.Kind = model.RSAGE },
		"rgcn":             func(o *run.Options) { o.Kind, o.Layers, o.Fanouts, o.TStale = model.RGCN, 3, []int{2, 2, 2}, 4 },
		"hgt":              func(o *run.Options) { o.Kind, o.Heads = model.HGT, 2 },
	} {
		t.Run(name, func(t *testing.T) {
			o := small()
			o.Batch, o.Epochs, o.EpochSteps, o.Fanouts, o.Dropout = 16, 2, 20, []int{3, 2}, 0.3
			o.CheckpointEvery = 1
			s := history.Settings{PGrad: 0.7, TStale: 6, HistoryStart: 4, HistoryLag: 1, HistoryBytes: 1 << 20}
			o.Settings = s
			change(&o)
			ds := one
			switch {
			case o.TStale == 200:
				ds = eighth
			case o.Norm == "none":
				ds = large
			case o.Typed():
				// one learnt row for all authors
				ds, o.Inputs = several, map[string]string{"author": data.Constant}
				o.Batch, o.RelationFanouts = 8, map[string][]int{"prints": make([]int, o.Layers)}
			}
			without := o
			without.Settings, s = history.Settings{}, o.Settings
			a := newAlgorithm1(t, opened(t, ds, without), s)

			o.History, o.KeepCheckpoints = true, 200
			disk, losses := vfs.NewMem(), []float64(nil)
			r, err := runOn(t.Context(), disk, ds, o, run.Hooks{Step: func(_, _, _ int, loss float64) { losses = append(losses, loss) }})
			require.NoError(t, err)
			require.Zero(t, r.History.Refused)
			if ds == eighth {
				require.EqualValues(t, 2*1719, r.History.Slots, "one for each node of each layer")
			}
			require.Zero(t, r.History.ProvisionalHits)
			require.Greater(t, r.History.Hits, int64(50))
			require.Positive(t, min(r.History.EvictedGrad, r.History.EvictedStale))
			require.Equal(t, ds == large, r.History.Overflow > 0)
			for epoch := 1; epoch <= o.Epochs; epoch++ {
				a.task.Begin(epoch)
				for step := range a.task.Steps() {
					require.Equal(t, losses[len(losses)-a.task.Steps()*(o.Epochs-epoch+1)+step], a.take(epoch, step), "loss of step %d", a.now)
					if (a.now+1)%o.CheckpointEvery > 0 {
						continue
					}
					file, err := readFile(disk, "/run/"+run.HistoryName(run.CheckpointName(a.now+1)))
					require.NoError(t, err)
					for _, saved := range savedPools(file, o.Hidden) {
						require.Equal(t, a.cache[saved.layer][saved.typ], saved.entries, "after step %d, %+v", a.now, saved.place)
						n := saved.counts
						require.Equal(t, *a.counts[saved.place], counted{n[0], n[2], n[4], n[11]}, "after step %d, %+v", a.now, saved.place)
					}
				}
			}
			weights, err := a.Hash(t.Context(), nil)
			require.NoError(t, err)
			require.Equal(t, r.ParamsXXH3, weights)
		})
	}
}
