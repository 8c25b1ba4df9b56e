package interp

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/ptx"
)

// The tests of this file run kernels that ship, at small sizes, beside kernels.Reference.

// Every kernel that ships is understood, and is as its MANIFEST says.
func TestShippedKernels(t *testing.T) {
	all, err := shipped()
	require.NoError(t, err)
	lines := strings.Split(ptx.Manifest(), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "  kernel ") })
	require.Len(t, all, len(lines))
	for _, k := range all {
		var params []string
		for _, p := range k.Params {
			params = append(params, p.Type)
		}
		line := fmt.Sprintf("  kernel %s (%s) %d bytes, wide loads %d stores %d shared %d, shared memory %d, ",
			k.Name, strings.Join(params, " "), k.ParamBytes,
			k.Instructions("ld.global.nc.v4.")+k.Instructions("ld.global.v4."), k.Instructions("st.global.v4."),
			k.Instructions("ld.shared.v4."), k.SharedBytes)
		if k.Instructions("bar.")+k.Instructions("shfl.") > 0 {
			line += "waits"
		} else {
			line += "no waits"
		}
		require.Contains(t, lines, line)
		require.Equal(t, [3]uint32{256, 1, 1}, k.MaxThreads, k.Name)
	}
}

func TestShippedGather(t *testing.T) {
	eachPair(t, func(p *pair, suffix string) {
		const rows, table, cols = 37, 11, 24
		ids := p.ids(rows, table, 1)
		dst, src := p.normal(rows, cols, 2), p.normal(table, cols, 3)
		p.must("gather_rows"+suffix, 2, dst, src, ids, rows, table, cols, 3, p.word)
		p.ref.GatherRows(dst.twin, src.twin, ids.twin)
		p.same(dst, 0)

		halves := p.halves(table, cols, normal(table*cols, 4))
		p.must("gather_rows_half"+suffix, 2, dst, halves, ids, rows, table, cols, 2, p.word)
		p.ref.GatherRows(dst.twin, halves.twin, ids.twin)
		p.same(dst, 0)
	})
}

// An id out of range goes to the error word, and to no address.
func TestShippedGatherFails(t *testing.T) {
	eachPair(t, func(p *pair, suffix string) {
		dst, src, ids := p.normal(5, 8, 1), p.normal(3, 8, 2), p.uints([]uint32{0, 2, 1, 3, 2})
		p.must("gather_rows"+suffix, 1, dst, src, ids, 5, 3, 8, 1, p.word)
		operation, at, ok := ptx.Failure(get[uint64](p.device, p.word, 1)[0])
		require.True(t, ok)
		require.Equal(t, "GatherRows", operation)
		require.Equal(t, uint32(3), at)
		require.NoError(t, p.mem.Write(p.word, make([]byte, 8)))
	})
}

func TestShippedStoreRows(t *testing.T) {
	all, err := shipped()
	require.NoError(t, err)
	for name, odd := range map[string]bool{"store_rows": true, "store_rows_half_wide": false} {
		p := &pair{device: newDevice(t), kernels: all, ref: kernels.NewReference(), seed: 1, odd: odd}
		p.word = put(p.device, []uint64{0})
		const rows, table, slotRows, cols, stride = 9, 12, 20, 16, 24
		values := normal(table*cols, 1)
		values[5*cols] = 1e6 // clamped, and flagged
		slots, x := p.halves(slotRows, stride, make([]float32, slotRows*stride)), p.floats(table, cols, values)
		lost := p.uints(make([]uint32, rows))
		from, to := p.uints([]uint32{0, 5, 2, 3, 4, 1, 6, 7, 8}), p.uints([]uint32{19, 3, 4, 0, 1, 2, 5, 6, 9})
		p.must(name, 2, slots, lost, x, from, to, rows, table, slotRows, cols, stride, 0, p.word)
		p.ref.StoreRows(slots.twin, lost.twin, x.twin, from.twin, to.twin, kernels.Tensor{})
		wide := p.tensor(kernels.F32, slotRows, stride)
		p.ref.Convert(wide, slots.twin)
		want := make([]float32, wide.Len())
		p.ref.DownloadF32(want, wide)
		for i, h := range get[uint16](p.device, slots.at, len(want)) {
			require.Equal(t, want[i], float32(halfToFloat(h)), i)
		}
		marks := make([]uint32, rows)
		p.ref.DownloadU32(marks, lost.twin)
		require.Contains(t, marks, uint32(1))
		require.Equal(t, marks, get[uint32](p.device, lost.at, rows))
	}
}

func TestShippedNeighborMean(t *testing.T) {
	eachPair(t, func(p *pair, suffix string) {
		const dsts, srcs, cols = 19, 14, 40
		g := p.graph(dsts, srcs)
		dst, src := p.normal(dsts, cols, 1), p.normal(srcs, cols, 2)
		p.must("neighbor_mean"+suffix, 2, dst, src, g.start, g.end, g.nbr, dsts, srcs, g.size, cols, 5, p.word)
		p.ref.NeighborMean(dst.twin, src.twin, g.twin)
		p.same(dst, 1e-6)

		half := p.halves(srcs, cols, normal(srcs*cols, 3))
		p.must("neighbor_mean_half"+suffix, 2, dst, half, g.start, g.end, g.nbr, dsts, srcs, g.size, cols, 3, p.word)
		p.ref.NeighborMean(dst.twin, half.twin, g.twin)
		p.same(dst, 1e-6)

		grad := p.normal(srcs, cols, 4) // it is added to
		p.must("neighbor_mean_grad"+suffix, 3, grad, dst, g.start, g.end, g.revStart, g.revDst, dsts, srcs, g.size, cols, 4, p.word, srcs)
		p.ref.NeighborMeanGrad(grad.twin, dst.twin, g.twin, grad.twin.Rows)
		p.same(grad, 2e-6)
	})
}

// The kernels of chains.cu: gradients that go through several operations in one launch.
func TestShippedChains(t *testing.T) {
	eachPair(t, func(p *pair, suffix string) {
		const dsts, srcs, chunk, key, rate = 19, 21, 10, 0x0123456789abcdef, float32(0.5)
		const chunks = (srcs + chunk - 1) / chunk
		for kind := range 8 {
			dropped, masked, normed, cols := kind&1 != 0, kind&2 != 0, kind&4 != 0, 40+100*kind
			if normed {
				cols = 36 + 44*(kind-3) // at most 256
			}
			g := p.graph(dsts, srcs)
			ids, y, ddst := p.uints(integers(srcs, 1000, 1)), p.normal(srcs, cols, 2), p.normal(dsts, cols, 3)
			grad, dropBy, maskBy := p.normal(srcs, cols, 4), operand{}, operand{}
			p.ref.Fill(grad.twin.Slice(5, srcs), 0) // rows from 5 on are fresh
			p.ref.NeighborMeanGrad(grad.twin, ddst.twin, g.twin, grad.twin.Rows)
			if dropped {
				dropBy = ids
				p.ref.Dropout(grad.twin, grad.twin, ids.twin, key, rate)
			}
			if masked {
				maskBy = y
				p.ref.ReLUMask(grad.twin, y.twin)
			}
			mean := []any{grad, ddst, g.start, g.end, g.revStart, g.revDst, dsts, g.size, 5, p.word,
				maskBy, dropBy, uint64(key), uint32(32768), float32(2)}
			run := func(name string, args ...any) {
				grid := [3]uint32{uint32((cols + 255) / 256), chunks, 1}
				require.NoError(t, p.run(name+suffix, grid, append(args, srcs, cols, chunk)...))
			}
			// summed compares the k-th of so many sums. parts has one part a chunk.
			summed := func(parts operand, k, of int, sum operand) {
				got, want := make([]float32, cols), make([]float32, cols)
				for i, v := range get[float32](p.device, parts.at, chunks*of*cols) {
					if i/cols%of == k {
						got[i%cols] += v
					}
				}
				p.ref.DownloadF32(want, sum.twin)
				for i, v := range want {
					require.InDelta(t, v, got[i], 2e-5*(1+math.Abs(float64(v))), "column %d", i)
				}
			}
			zeros := func(rows int) operand { return p.floats(rows, cols, make([]float32, rows*cols)) }
			sum, parts := zeros(1), zeros(chunks)
			if !normed {
				run("neighbor_mean_grad_chain", append([]any{parts}, mean...)...)
				p.same(grad, 2e-6)
				p.ref.ColumnSumGrad(sum.twin, grad.twin)
				summed(parts, 0, 1, sum)
				continue
			}
			x, dx, gain := p.normal(srcs, cols, 5), p.normal(srcs, cols, 6), p.normal(1, cols, 7)
			moments := normal(2*srcs, 8)
			for i := range moments {
				moments[i] = 1 + moments[i]*moments[i]
			}
			stats, dgain, dbias := p.floats(srcs, 2, moments), zeros(1), zeros(1)
			p.ref.LayerNormGrad(dx.twin, dgain.twin, dbias.twin, grad.twin, x.twin, stats.twin, gain.twin, false)
			p.ref.ColumnSumGrad(sum.twin, dx.twin)
			parts = zeros(3 * chunks)
			run("neighbor_mean_norm_grad", slices.Concat([]any{parts}, mean, []any{dx, x, stats, gain, 1, 3})...)
			p.same(grad, 2e-6)
			p.same(dx, 4e-5)
			for i, s := range []operand{dgain, dbias, sum} {
				summed(parts, i, 3, s)
			}
			// Once more: dx is overwritten, and its columns are not summed.
			again, parts := p.normal(srcs, cols, 9), zeros(2*chunks)
			run("layer_norm_grad_chain", parts, grad, again, x, stats, gain, 0, 2)
			p.ref.Fill(again.twin, 0)
			p.ref.LayerNormGrad(again.twin, dgain.twin, dbias.twin, grad.twin, x.twin, stats.twin, gain.twin, false)
			p.same(again, 4e-5)
		}
	})
}

// Where a neighbour or a list is out of range, a kernel sets the error word and reads nothing
// there.
func TestShippedChainsFail(t *testing.T) {
	eachPair(t, func(p *pair, suffix string) {
		const rows, cols = 4, 8
		grad, ddst, start := p.normal(rows, cols, 1), p.normal(rows, cols, 2), p.uints([]uint32{0, 1, 2, 3, 4})
		end, ones := p.uints([]uint32{1, 2, 3, 4}), p.floats(rows, 2, slices.Repeat([]float32{1}, 2*rows))
		x, dx, gain := p.normal(rows, cols, 3), p.normal(rows, cols, 4), p.normal(1, cols, 5)
		parts := p.normal(3, cols, 6)
		for _, c := range []struct {
			revStart, revDst []uint32
			place            uint32
		}{
			{[]uint32{0, 1, 2, 3, 4}, []uint32{0, 1, 4, 3}, 2}, // destination 4 of 4
			{[]uint32{0, 1, 9, 3, 4}, []uint32{0, 1, 2, 3}, 1}, // position 9 of 4
			{[]uint32{0, 1, 2, 3, 5}, []uint32{0, 1, 2, 3}, 3},
		} {
			mean := []any{parts, grad, ddst, start, end, p.uints(c.revStart), p.uints(c.revDst), rows, rows, 0, p.word,
				0, 0, uint64(0), uint32(0), float32(1)}
			norm := []any{dx, x, ones, gain, 0, 3}
			for name, args := range map[string][]any{
				"neighbor_mean_grad_chain": slices.Clone(mean), "neighbor_mean_norm_grad": slices.Concat(mean, norm),
			} {
				p.must(name+suffix, 1, append(args, rows, cols, 64)...)
				operation, place, ok := ptx.Failure(get[uint64](p.device, p.word, 1)[0])
				require.True(t, ok, name)
				require.Equal(t, "NeighborMeanGrad", operation)
				if c.place != 1 { // two lists are out of range there, and either may fail first
					require.Equal(t, c.place, place)
				}
				require.NoError(t, p.mem.Write(p.word, make([]byte, 8)))
			}
		}
	})
}

func TestShippedWeightedSum(t *testing.T) {
	eachPair(t, func(p *pair, suffix string) {
		const dsts, srcs, width, heads = 13, 17, 12, 3
		g := p.graph(dsts, srcs)
		dst, src, w := p.normal(dsts, width*heads, 1), p.normal(srcs, width*heads, 2), p.normal(g.size, heads, 3)
		p.must("weighted_sum"+suffix, 2, dst, src, w, g.start, g.end, g.nbr, dsts, srcs, g.size, width, heads, 4, p.word)
		p.ref.WeightedSum(dst.twin, src.twin, w.twin, g.twin)
		p.same(dst, 2e-6)

		grad := p.normal(g.size, heads, 4)
		p.must("weighted_sum_weight_grad"+suffix, 2, grad, dst, src, g.start, g.end, g.nbr, dsts, srcs, g.size, width, heads, p.word)
		p.ref.WeightedSumWeightGrad(grad.twin, dst.twin, src.twin, g.twin)
		p.same(grad, 4e-6)
	})
}

func TestShippedEdgeSoftmax(t *testing.T) {
	eachPair(t, func(p *pair, suffix string) {
		const dsts, srcs, width, heads, slope, scale = 18, 15, 8, 2, float32(0.2), float32(0.5)
		g := p.graph(dsts, srcs)
		dst, ofSrc, ofDst := p.normal(g.size, heads, 1), p.normal(srcs, heads, 2), p.normal(dsts, heads, 3)
		p.must("edge_softmax", 2, dst, ofSrc, ofDst, 0, g.start, g.end, g.nbr, dsts, srcs, g.size, heads, slope, p.word)
		p.ref.EdgeSoftmax(dst.twin, ofSrc.twin, ofDst.twin, kernels.Tensor{}, g.twin, slope)
		p.same(dst, 1e-6)

		q, k := p.normal(dsts, width*heads, 5), p.normal(srcs, width*heads, 6)
		p.must("edge_dot"+suffix, 2, dst, q, k, g.start, g.end, g.nbr, dsts, srcs, g.size, width, heads, scale, p.word)
		p.ref.EdgeDot(dst.twin, q.twin, k.twin, g.twin, scale)
		p.same(dst, 2e-6)
	})
}

func TestShippedAdam(t *testing.T) {
	step := kernels.AdamStep{
		LR: 0.01, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.02, Correct1: 0.1, Correct2: 0.001,
	}
	eachPair(t, func(p *pair, suffix string) {
		var params []kernels.AdamParam
		var all []operand
		var table []uint64
		chunks := 0
		for i, n := range []int{1500, 7, 1024} {
			squares := normal(n, uint64(10+i))
			for j := range squares {
				squares[j] *= squares[j]
			}
			value, grad, m := p.normal(1, n, uint64(i)), p.normal(1, n, uint64(20+i)), p.normal(1, n, uint64(30+i))
			v := p.floats(1, n, squares)
			all = append(all, value, grad, m, v)
			params = append(params, kernels.AdamParam{Value: value.twin, Grad: grad.twin, M: m.twin, V: v.twin})
			table = append(table, value.at, grad.at, m.at, v.at, uint64(n), uint64(chunks))
			chunks += (n + 1023) / 1024
		}
		factor, flag := p.floats(1, 1, []float32{0.5}), p.uints([]uint32{0})
		p.must("adam"+suffix, 3, put(p.device, table), len(params), chunks, float32(0.99), step.LR, step.Beta1, step.Beta2,
			step.Eps, step.WeightDecay, step.Correct1, step.Correct2, flag, factor)
		p.ref.Adam(params, 0.99, step, kernels.Guard{Void: flag.twin, Scale: factor.twin})
		for _, o := range all {
			p.same(o, 2e-6)
		}
	})
}

func TestShippedClipFactor(t *testing.T) {
	eachPair(t, func(p *pair, suffix string) {
		a, b := p.normal(1, 9000, 1), p.normal(1, 50, 2)
		factor, squares := p.normal(1, 1, 3), p.normal(2, 1, 4)
		table, parts := put(p.device, []uint64{a.at, 9000, 0, b.at, 50, 2}), room[float64](p.device, 3)
		p.must("sum_squares"+suffix, 2, parts, table, 2, 3)
		p.must("clip_factor", 1, factor, squares, parts, table, 2, 3, float64(1.5))
		p.ref.ClipFactor(factor.twin, squares.twin, []kernels.Tensor{a.twin, b.twin}, 1.5)
		p.same(squares, 1e-7)
		p.same(factor, 1e-7)
	})
}

// Products of each layout, by tiles of 64 and of 128 and in slices.
func TestShippedProducts(t *testing.T) {
	eachPair(t, func(p *pair, suffix string) {
		if p.seed > 0 {
			return // 20 million lane instructions
		}
		for _, c := range []struct {
			name           string
			m, n, k, flags int
			transA, transB bool
		}{
			{"matmul_nt_small", 36, 68, 20, 1, false, true},
			{"matmul_nn_small", 68, 12, 36, 2, false, false},
			{"matmul_tn_small", 8, 64, 68, 0, true, false},
			{"matmul_tt_small", 20, 20, 20, 0, true, true},
			{"matmul_nt", 132, 36, 28, 3, false, true},
			{"matmul_nn", 60, 132, 12, 0, false, false},
			{"matmul_tn", 132, 128, 20, 1, true, false},
		} {
			m, n, k := c.m, c.n, c.k
			if suffix == "" {
				m, n, k = m-1, n+1, k+1 // tails
			}
			a, b := p.normal(m, k, 1), p.normal(k, n, 2)
			if c.transA {
				a = p.normal(k, m, 1)
			}
			if c.transB {
				b = p.normal(n, k, 2)
			}
			dst, bias := p.normal(m, n, 3), p.normal(1, n, 4)
			tile := 128
			if strings.HasSuffix(c.name, "small") {
				tile = 64
			}
			grid := [3]uint32{uint32((n + tile - 1) / tile), uint32((m + tile - 1) / tile), 1}
			args := []any{dst, a, b, bias, m, n, k, k, c.flags}
			if !c.transA && c.transB {
				args = append(args, 0, 0, 0) // no second product
			}
			require.NoError(t, p.run(c.name+suffix, grid, args...))
			p.ref.MatMul(dst.twin, a.twin, b.twin, c.transA, c.transB, c.flags&1 != 0)
			p.ref.AddRow(dst.twin, bias.twin)
			if c.flags&2 != 0 {
				p.ref.ReLU(dst.twin, dst.twin)
			}
			p.same(dst, 4e-7*float64(k))
		}
		const m, n, k, slice = 12, 20, 40, 16
		a, b, dst := p.normal(m, k, 5), p.normal(n, k, 6), p.normal(m, n, 7)
		parts := room[float32](p.device, 3*m*n)
		require.NoError(t, p.run("matmul_nt_small"+suffix, [3]uint32{1, 1, 3}, parts, a, b, 0, m, n, k, slice, 0, 0, 0, 0))
		p.must("add_parts", 1, dst, parts, 0, m, n, 3, 1)
		p.ref.MatMul(dst.twin, a.twin, b.twin, false, true, true)
		p.same(dst, 4e-7*k)
	})
}

// Sorts of few ids and of many, and the sums over a sorted list.
func TestShippedSort(t *testing.T) {
	eachPair(t, func(p *pair, suffix string) {
		const cols = 8
		for _, n := range []int{1, 300, 2048, 4500} {
			const table, bits = 97, 7
			list := integers(n, table, uint64(n))
			ids := p.uints(list)
			keys, order := room[uint32](p.device, n), room[uint32](p.device, n)
			if n <= 2048 {
				p.must("sort_small", 1, keys, order, ids, n, bits)
			} else {
				chunks := (n + 2047) / 2048
				counts := room[uint32](p.device, 16*chunks)
				otherKeys, otherOrder := room[uint32](p.device, n), room[uint32](p.device, n)
				from, of := ids.at, uint64(0)
				for bit := 0; bit < bits; bit += 4 {
					p.must("sort_count", 2, counts, from, n, chunks, bit)
					p.must("sort_scan", 1, counts, 16*chunks)
					p.must("sort_scatter", 2, otherKeys, otherOrder, from, of, counts, n, chunks, bit)
					keys, order, otherKeys, otherOrder = otherKeys, otherOrder, keys, order
					from, of = keys, order
				}
			}
			want := make([]uint32, n)
			for i := range want {
				want[i] = uint32(i)
			}
			slices.SortStableFunc(want, func(a, b uint32) int { return int(list[a]) - int(list[b]) })
			require.Equal(t, want, get[uint32](p.device, order, n))

			dst, src := p.normal(table, cols, 1), p.normal(n, cols, 2)
			p.must("add_sorted"+suffix, 3, dst, src, 0, 0, keys, order, n, table, n, cols, 1, p.word)
			p.ref.GatherRowsGrad(dst.twin, src.twin, ids.twin)
			p.same(dst, 1e-5)
		}
	})
}

func TestShippedRows(t *testing.T) {
	eachPair(t, func(p *pair, suffix string) {
		const rows, cols = 11, 44
		x, gain, bias := p.normal(rows, cols, 1), p.normal(1, cols, 2), p.normal(1, cols, 3)
		dst, stats := p.normal(rows, cols, 4), p.normal(rows, 2, 5)
		p.must("layer_norm"+suffix, 1, dst, stats, x, gain, bias, rows, cols, float32(1e-5), 0, 0, 0, 0, float32(1))
		p.ref.LayerNorm(dst.twin, stats.twin, x.twin, gain.twin, bias.twin, 1e-5)
		p.same(dst, 2e-6)
		p.same(stats, 2e-6)

		loss, dx, labels := p.normal(rows, 1, 6), p.normal(rows, cols, 7), p.ids(rows, cols, 8)
		p.must("softmax_cross_entropy"+suffix, 2, loss, dx, x, labels, rows, cols, float32(0.1), p.word)
		p.ref.SoftmaxCrossEntropy(loss.twin, dx.twin, x.twin, labels.twin, 0.1)
		p.same(loss, 2e-6)
		p.same(dx, 2e-6)

		p.must("gelu"+suffix, 1, dst, x, rows*cols)
		p.ref.GELU(dst.twin, x.twin)
		p.same(dst, 2e-6)
		p.must("tanh_cell"+suffix, 1, dst, x, rows*cols)
		p.ref.Tanh(dst.twin, x.twin)
		p.same(dst, 2e-6)

		ids := p.uints([]uint32{0, math.MaxUint32, 5, 7, 9, 1 << 30, 2, 3, 4, 6, 8})
		const key, rate = 0x0123456789abcdef, float32(0.5)
		p.must("dropout"+suffix, 1, dst, x, ids, rows, cols, uint64(key), uint32(32768), float32(2))
		p.ref.Dropout(dst.twin, x.twin, ids.twin, key, rate)
		p.same(dst, 0)
	})
}

// The state of an optimiser beside each row: one lane writes what all lanes have read.
func TestShippedRecords(t *testing.T) {
	step := kernels.AdamStep{LR: 0.01, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.1}
	eachPair(t, func(p *pair, _ string) {
		const rows, cols = 7, 40
		values := normal(rows*(3*cols+1), 1)
		for i := range values {
			at := i % (3*cols + 1)
			if at >= 2*cols {
				values[i] *= values[i]
			}
			if at == 3*cols {
				values[i] = float32(i % 5)
			}
		}
		rec, grad := p.floats(rows, 3*cols+1, values), p.normal(rows, cols, 2)
		p.must("records_adam_steps", 1, rec, grad, rows, cols, step.LR, step.Beta1, step.Beta2, step.Eps,
			step.WeightDecay, 0, 0)
		rule := kernels.RowStep{Rule: kernels.RowAdamSteps, AdamStep: step}
		p.ref.UpdateRecords(rec.twin, grad.twin, rule, kernels.Guard{})
		p.same(rec, 2e-6)
	})
}
