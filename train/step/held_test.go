package step

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// evenly wants one class after another of the seeds, without memory of its own that grows with a
// batch once it is warm.
type evenly struct {
	classes uint32
	labels  []uint32
}

func (k *evenly) Loss(t *tape.Tape, f *Feed, out model.Rows, in Input) (tally func() Tally, err error) {
	k.labels = k.labels[:0]
	for i := range in.Seeds[0] {
		k.labels = append(k.labels, uint32(i)%k.classes)
	}
	losses := f.FetchLoss(t.CrossEntropy(out[0], f.Upload(k.labels), 1/float32(len(k.labels))))
	return func() Tally { return Tally{Loss: Sum(losses), Weight: float64(len(losses))} }, nil
}

// around joins each node to four others.
type around int

func (n around) Nodes() int { return int(n) }

func (n around) Neighbors(v uint32) []uint32 {
	list := []uint32{(v + 1) % uint32(n), (v + 3) % uint32(n), (v + 7) % uint32(n), (v + 31) % uint32(n)}
	slices.Sort(list)
	return list
}

// finding is an Expander that finds a hashed share of the nodes of hidden layers in slots. Node v
// is in slot v.
type finding struct {
	layers int
	share  float64
}

func (f finding) Expand(_ context.Context, hop int, found [][][]uint32) (next [][][]uint32, origins [][][]sample.Origin, err error) {
	for _, types := range found {
		var ids []uint32
		var from []sample.Origin
		for _, v := range types[0] {
			if hop < f.layers-1 && float64(sample.Hash(3, uint64(hop), uint64(v))) < f.share*0x1p64 {
				from = append(from, sample.Origin{From: sample.Slot, Index: v})
				continue
			}
			from = append(from, sample.Origin{From: sample.Below, Index: uint32(len(ids))})
			ids = append(ids, v)
		}
		next, origins = append(next, [][]uint32{ids}), append(origins, [][]sample.Origin{from})
	}
	return next, origins, nil
}

const (
	heldNodes, heldLayers   = 4000, 3
	heldHidden, heldClasses = 8, 3
	heldStride              = 11
)

// batchOf draws a batch of so many seeds through e.
func batchOf(t *testing.T, e sample.Expander, seeds int) *sample.Batch {
	var b sample.Batch
	s := sample.NewSampler(sample.AtHand(around(heldNodes)), sample.Config{Fanouts: []int{3, 3, 3}}, 1)
	ids := make([]uint32, seeds)
	for i := range ids {
		ids[i] = uint32(i * heldNodes / seeds)
	}
	require.NoError(t, s.SampleThrough(context.Background(), e, []*sample.Batch{&b}, []sample.BatchSeed{{First: 5}}, [][][]uint32{{ids}}))
	return &b
}

// heldRun is a Stepper with tables of a slot a node.
type heldRun struct {
	*Stepper
	slots  [][]kernels.Tensor
	bits   [][]uint16 // of the tables, by layer, as they were filled
	inputs []float32  // rows of 5 columns, a node each
	given  []kernels.Buffer
}

func newHeldRun(t *testing.T, be kernels.Backend) *heldRun {
	c := model.Config{Kind: model.SAGE, Layers: heldLayers, Hidden: heldHidden, Norm: "none", Dropout: 0.3}
	r := &heldRun{Stepper: New(be, model.New(be, c, model.Shape{In: []int{5}, Out: heldClasses}, 1), &evenly{classes: heldClasses}, optim.Options{})}
	rng := rand.New(rand.NewPCG(1, 2))
	for range heldLayers - 1 {
		bits := make([]uint16, heldNodes*heldStride)
		for i := range bits {
			bits[i] = uint16(0x3000+rng.IntN(0xc00)) | uint16(rng.IntN(2))<<15
		}
		x := kernels.Tensor{Buf: be.Alloc(kernels.F16, len(bits)), Type: kernels.F16, Rows: heldNodes, Cols: heldStride}
		be.UploadHalf(x, bits)
		r.slots, r.bits, r.given = append(r.slots, []kernels.Tensor{x}), append(r.bits, bits), append(r.given, x.Buf)
	}
	for range heldNodes * 5 {
		r.inputs = append(r.inputs, float32(rng.NormFloat64()))
	}
	t.Cleanup(func() {
		for _, b := range r.given {
			be.Free(b)
		}
		r.Close()
	})
	return r
}

// input is b with its rows.
func (r *heldRun) input(b *sample.Batch) Input {
	ids := b.Inputs()[0]
	x := kernels.Tensor{Buf: r.be.Alloc(kernels.F32, len(ids)*5), Rows: len(ids), Cols: 5}
	r.given = append(r.given, x.Buf)
	var rows []float32
	for _, v := range ids {
		rows = append(rows, r.inputs[v*5:][:5]...)
	}
	r.be.UploadF32(x, rows)
	in := InputOf(b, x)
	in.Key = 77
	return in
}

// table is the rows of layer l's slots.
func (r *heldRun) table(l int) []float32 {
	wide := kernels.Tensor{Buf: r.be.Alloc(kernels.F32, heldNodes*heldStride), Rows: heldNodes, Cols: heldStride}
	defer r.be.Free(wide.Buf)
	r.be.Convert(wide, r.slots[l][0])
	return slices.Clone(r.Feed.Download(wide))
}

func sets() (all []kernels.Backend) {
	for _, set := range kernels.Sets() {
		all = append(all, kernels.NewCPU(kernels.CPUOptions{Threads: 2, Set: set}))
	}
	return append(all, kernels.NewReference())
}

// TestHeld: norms are the norms of the gradients in all rows that a layer reads. Compute stores the
// rows that layers computed, after all reads, and in their slots alone. All is near the results of
// the Reference.
func TestHeld(t *testing.T) {
	var want [][]float32 // of the Reference, which is the last
	for _, be := range slices.Backward(sets()) {
		r := newHeldRun(t, be)
		b := batchOf(t, finding{heldLayers, 0.4}, 20)
		in := r.input(b)
		in.Held, in.Kept = &Held{Slots: r.slots}, new(model.Kept)
		before := [][]float32{r.table(0), r.table(1)}
		for l := range heldLayers - 1 {
			// All computed rows of layer 0, and every other of layer 1, go to slots that this very
			// step reads.
			var free []uint32
			for _, o := range b.Layers[l+1].Nodes[0].Origin {
				if o.From == sample.Slot {
					free = append(free, o.Index)
				}
			}
			require.NotEmpty(t, free)
			var to Store
			to.Layer = l
			for i := 0; i < min(len(free), b.Layers[l].Nodes[0].Dst); i += 1 + l {
				to.Rows, to.To = append(to.Rows, uint32(i)), append(to.To, free[i])
			}
			in.Held.Store = append(in.Held.Store, to)
		}
		require.NoError(t, r.Rehearse(in))
		require.Equal(t, before, [][]float32{r.table(0), r.table(1)}, "a rehearsal stores nothing")
		_, err := compute(r.Stepper, in)
		require.NoError(t, err)

		var got [][]float32
		for l, hidden := range in.Kept.Hidden {
			nodes := &b.Layers[l+1].Nodes[0]
			value, grad := slices.Clone(r.Feed.Download(hidden[0].Value)), slices.Clone(r.Feed.Download(hidden[0].Grad))
			computed := slices.Clone(r.Feed.Download(in.Kept.Computed[l][0].Value))
			for i, o := range nodes.Origin {
				want := computed[int(o.Index*heldHidden)%len(computed):][:heldHidden]
				if o.From == sample.Slot {
					want = before[l][o.Index*heldStride:][:heldHidden]
				}
				require.Equal(t, want, value[i*heldHidden:][:heldHidden])
			}
			require.Len(t, in.Held.Norms[l][0], len(nodes.Src))
			for i, norm := range in.Held.Norms[l][0] {
				sum := 0.0
				for _, v := range grad[i*heldHidden:][:heldHidden] {
					sum += float64(v) * float64(v)
				}
				require.InDelta(t, math.Sqrt(sum), norm, 1e-7)
			}
			after := slices.Clone(before[l])
			half := make([]uint16, heldHidden)
			for i, row := range in.Held.Store[l].Rows {
				kernels.Float32ToHalf(half, computed[row*heldHidden:][:heldHidden])
				kernels.HalfToFloat32(after[in.Held.Store[l].To[i]*heldStride:][:heldHidden], half)
			}
			require.NotEqual(t, before[l], after)
			require.Equal(t, after, r.table(l))
			require.Equal(t, make([]uint32, len(in.Held.Store[l].Rows)), in.Held.Store[l].Lost)
			got = append(got, value, grad, slices.Clone(in.Held.Norms[l][0]))
		}
		got = append(got, gradients(r.Stepper))
		if want == nil {
			want = got
		}
		for i := range want {
			require.InDeltaSlice(t, want[i], got[i], 1e-4, be.Name())
		}
	}
}

// TestLost: rows that float16 cannot hold are told, and the others are not.
func TestLost(t *testing.T) {
	for _, be := range sets() {
		r := newHeldRun(t, be)
		b := batchOf(t, finding{heldLayers, 0.2}, 20)
		for i := range r.inputs[:5*60] {
			r.inputs[i] *= 1e6
		}
		in := r.input(b)
		in.Kept = new(model.Kept)
		in.Held = &Held{Slots: r.slots, Store: []Store{{Layer: 1}, {Layer: 0}}}
		for i := range b.Layers[0].Nodes[0].Dst {
			in.Held.Store[1].Rows, in.Held.Store[1].To = append(in.Held.Store[1].Rows, uint32(i)), append(in.Held.Store[1].To, uint32(i))
		}
		_, err := compute(r.Stepper, in)
		require.NoError(t, err)
		require.Empty(t, in.Held.Store[0].Lost)
		computed, lost := r.Feed.Download(in.Kept.Computed[0][0].Value), 0
		for i, is := range in.Held.Store[1].Lost {
			want := uint32(0)
			if slices.Max(computed[i*heldHidden:][:heldHidden]) >= 65520 {
				want = 1
				lost++
			}
			require.Equal(t, want, is, "row %d", i)
		}
		require.Positive(t, lost)
		require.Less(t, lost, len(in.Held.Store[1].Lost))
	}
}

// TestNothingFound: a batch that found nothing in slots gives the bits of one that did not look,
// with what is stored as without.
func TestNothingFound(t *testing.T) {
	be := kernels.NewCPU(kernels.CPUOptions{Threads: 2})
	run := func(e sample.Expander, h *Held) (Tally, []float32) {
		r := newHeldRun(t, be)
		in := r.input(batchOf(t, e, 20))
		if h != nil {
			h.Slots, in.Held = r.slots, h
		}
		a, err := compute(r.Stepper, in)
		require.NoError(t, err)
		return a, gradients(r.Stepper)
	}
	a, want := run(nil, nil)
	for _, h := range []*Held{nil, {}, {Store: []Store{{Layer: 1, Rows: []uint32{2, 0}, To: []uint32{7, 9}}}}} {
		b, got := run(finding{heldLayers, 0}, h)
		require.Equal(t, a, b)
		require.Equal(t, want, got)
	}
}

// TestOrigins: Blocks uploads origins in one go with all else, and nothing where rows are the rows
// of the layer below, in their order.
func TestOrigins(t *testing.T) {
	f := newFeed(kernels.NewCPU(kernels.CPUOptions{}))
	defer f.Close()
	below, slot := func(i uint32) sample.Origin { return sample.Origin{From: sample.Below, Index: i} }, func(i uint32) sample.Origin {
		return sample.Origin{From: sample.Slot, Index: i}
	}
	layers := func(computed int, origins ...sample.Origin) []sample.Layer {
		src := make([]uint32, len(origins))
		block := sample.Block{Start: []uint32{0}, End: []uint32{0}, RevStart: make([]uint32, len(src)+1)}
		return []sample.Layer{
			{Nodes: []sample.Frontier{{Src: make([]uint32, computed), Dst: computed}}, Blocks: []sample.Block{{
				Start: make([]uint32, computed), End: make([]uint32, computed),
			}}},
			{Nodes: []sample.Frontier{{Src: src, Dst: min(1, len(src)), Origin: origins}}, Blocks: []sample.Block{block}},
		}
	}
	for _, c := range []struct {
		computed int
		origins  []sample.Origin
		at, back []uint32
	}{
		{2, []sample.Origin{below(0), below(1)}, nil, nil},
		{2, []sample.Origin{below(1), below(0)}, []uint32{1, 0}, []uint32{1, 0}},
		{0, []sample.Origin{slot(5), slot(3)}, []uint32{1<<31 + 5, 1<<31 + 3}, nil},
		{2, []sample.Origin{below(0), below(1), slot(0)}, []uint32{0, 1, 1 << 31}, []uint32{0, 1}},
		{3, []sample.Origin{slot(9), below(2), slot(1), below(0), below(1)}, []uint32{1<<31 + 9, 2, 1<<31 + 1, 0, 1}, []uint32{3, 4, 1}},
		{0, nil, nil, nil},
	} {
		nodes := f.Blocks(layers(c.computed, c.origins...))[1].Nodes[0]
		for i, x := range []kernels.Tensor{nodes.At, nodes.Back} {
			got := make([]uint32, x.Rows)
			f.be.DownloadU32(got, x)
			require.Equal(t, append([]uint32{}, [][]uint32{c.at, c.back}[i]...), got, "%+v", c.origins)
		}
	}
	for _, c := range [][]sample.Layer{
		layers(2, below(0), below(0), slot(1)),           // twice, and one never
		layers(2, below(0), slot(1)),                     // never
		layers(1, below(1), slot(1)),                     // not there
		layers(0, slot(1<<31)),                           // beyond a table
		layers(1, below(0), sample.Origin{From: 3}),      // a worker's
		layers(3, below(0), below(1)),                    // never
		layers(1, below(0), sample.Origin{From: 0xffff}), // nobody's
	} {
		require.Panics(t, func() { f.Blocks(c) })
	}
}

// TestHeldSteadyState: once it is warm, a step allocates nothing that grows with the batch, on the
// Go heap or of the backend.
func TestHeldSteadyState(t *testing.T) {
	be := kernels.NewCPU(kernels.CPUOptions{Threads: 1})
	r := newHeldRun(t, be)
	inputs := map[int]Input{}
	for _, seeds := range []int{10, 3000} {
		b := batchOf(t, finding{heldLayers, 0.3}, seeds)
		in := r.input(b)
		in.Held = &Held{Slots: r.slots}
		for l := range heldLayers - 1 {
			to := Store{Layer: l}
			for i := range b.Layers[l].Nodes[0].Dst {
				to.Rows, to.To = append(to.Rows, uint32(i)), append(to.To, uint32(i))
			}
			in.Held.Store = append(in.Held.Store, to)
		}
		inputs[seeds] = in
	}
	step := func(seeds int) {
		_, err := compute(r.Stepper, inputs[seeds])
		require.NoError(t, err)
		require.NoError(t, r.Update(1e-4, nil))
	}
	for range 3 {
		step(3000)
		step(3000) // steps take turns with two sets of memory
		step(10)
	}
	buffers := func() string {
		return fmt.Sprint(r.Tape.Bytes(), r.history.norms.Len(), r.history.stored.Len(), r.Feed.now[blockInts].Len())
	}
	before := buffers()
	bytes := func(seeds int) float64 {
		const steps = 20
		var start, end runtime.MemStats
		runtime.ReadMemStats(&start)
		for range steps {
			step(seeds)
		}
		runtime.ReadMemStats(&end)
		return float64(end.TotalAlloc-start.TotalAlloc) / steps
	}
	small, large := bytes(10), bytes(3000)
	require.Less(t, large-small, 4096.0, "%.0f and %.0f bytes a step", small, large)
	require.Equal(t, before, buffers())
}
