package kerneltest

import (
	"encoding/binary"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

// testGatherHost has the device read rows of locked memory, if it can: whole tables and parts of
// them, rows of whole words and of an odd number of halves.
func testGatherHost(r *rig) {
	g := kernels.HostGathererOf(r.b)
	if g == nil {
		return
	}
	read := 0
	for _, s := range tableSizes {
		for _, typ := range []kernels.DType{kernels.F32, kernels.F16, kernels.U32} {
			for _, skipped := range []int{0, 1, 3} { // rows before the part
				r.at("%d of %d, %d columns of %v, from row %d", s.list, s.table, s.cols, typ, skipped)
				if typ == kernels.U32 && s.cols != 1 {
					continue // a rig has columns of them
				}
				size := s.cols * typ.Size()
				part := r.hostMemory(g, (skipped+s.table)*size)[skipped*size:]
				ids := make([]uint32, s.list)
				for i := range ids {
					ids[i] = r.rng.Uint32N(uint32(s.table))
				}
				dst := r.zeros(typ, s.list, s.cols)
				ok := g.GatherHost(dst.tensor, part, ids)
				if !ok {
					r.unchanged(dst)
					continue
				}
				read++
				want := make([]byte, 0, s.list*size)
				for i, id := range ids {
					want = append(want, part[int(id)*size:][:size]...)
					ids[i] = 1 << 31 // they are the caller's
				}
				dst.expect(want)
				r.unchanged(dst)
			}
		}
	}
	if read == 0 {
		r.t.Skip("the device reads no memory of the host")
	}
	r.at("unlocked")
	dst := r.normal(2, 4)
	require.False(r.t, g.GatherHost(dst.tensor, make([]byte, 64), []uint32{0, 1}))
	r.unchanged(dst)
	table := r.hostMemory(g, 8192)
	r.refuses(map[string]func(){
		"outside":    func() { g.GatherHost(r.normal(2, 4).tensor, table, []uint32{0, 512}) },
		"ids":        func() { g.GatherHost(r.normal(2, 4).tensor, table, []uint32{0}) },
		"half a row": func() { g.GatherHost(r.normal(2, 3).tensor, table, []uint32{0, 1}) },
		"beyond":     func() { t := r.normal(2, 4).tensor; t.Rows = 100; g.GatherHost(t, table, make([]uint32, 100)) },
		"freed": func() {
			b := r.b.Alloc(kernels.F32, 8)
			r.b.Free(b)
			g.GatherHost(kernels.Tensor{Buf: b, Rows: 2, Cols: 4}, table, []uint32{0, 1})
		},
		"of a matrix": func() { g.GatherHost(kernels.Tensor{Rows: 2, Cols: 4}, table, []uint32{0, 1}) },
	})
	r.gatherInTurn(g)
}

// gatherInTurn gathers into the same tensor again and again. An operation uses it each time.
func (r *rig) gatherInTurn(g kernels.HostGatherer) {
	const rows, cols, rounds = 200, 12, 5
	r.at("in turn")
	table := r.hostMemory(g, rounds*rows*cols*4)
	for i := range rounds * rows * cols {
		_, _ = binary.Encode(table[4*i:], binary.LittleEndian, float32(i%97))
	}
	x, sum, want := r.normal(rows, cols), r.floats(rows, cols, make([]float32, rows*cols)), make([]float32, rows*cols)
	ids := make([]uint32, rows)
	for round := range rounds {
		for i := range ids {
			ids[i] = uint32((i*7 + round*rows) % (rounds * rows))
			for c := range cols {
				want[i*cols+c] += float32((int(ids[i])*cols + c) % 97)
			}
		}
		require.True(r.t, g.GatherHost(x.tensor, table, ids))
		r.b.Add(sum.tensor, x.tensor)
	}
	copy(sum.floats[sum.off:], want)
	r.unchanged(sum)
}

// hostMemory returns n random bytes of locked memory, which is unlocked when the test ends.
func (r *rig) hostMemory(g kernels.HostGatherer, n int) []byte {
	h, err := kernels.NewHostBuf(max(n, 1<<14)) // a page at least
	require.NoError(r.t, err)
	r.t.Cleanup(h.Close)
	if err := h.Lock(g); err != nil {
		r.t.Skip(err)
	}
	b := h.Bytes()
	for i := range b[:n] {
		b[i] = byte(r.rng.Uint32())
	}
	return b[:n]
}

// zeros makes an operand of any type.
func (r *rig) zeros(t kernels.DType, rows, cols int) operand {
	switch t {
	case kernels.F16:
		return r.halfBits(rows, cols, make([]uint16, rows*cols))
	case kernels.U32:
		return r.uints(make([]uint32, rows*cols))
	}
	return r.floats(rows, cols, make([]float32, rows*cols))
}

// expect sets what the window of o should hold.
func (o operand) expect(b []byte) {
	n := o.tensor.Len()
	switch o.tensor.Type {
	case kernels.F32:
		_, _ = binary.Decode(b, binary.LittleEndian, o.floats[o.off:o.off+n])
	case kernels.F16:
		_, _ = binary.Decode(b, binary.LittleEndian, o.halves[o.off:o.off+n])
	case kernels.U32:
		_, _ = binary.Decode(b, binary.LittleEndian, o.uints[o.off:o.off+n])
	}
}
