package interp

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/ptx"
)

// shipped parses all files of package ptx once.
var shipped = sync.OnceValues(func() (map[string]*Kernel, error) {
	all := map[string]*Kernel{}
	for _, file := range ptx.Files() {
		text, err := ptx.Source(file)
		if err != nil {
			return nil, err
		}
		m, err := Parse(string(text))
		if err != nil {
			return nil, err
		}
		for _, name := range m.Kernels() {
			all[name] = m.Kernel(name)
		}
	}
	return all, nil
})

// A pair is a device with the kernels that ship, beside the oracle, which holds the same operands.
type pair struct {
	*device
	kernels map[string]*Kernel
	ref     *kernels.Reference
	seed    uint64
	odd     bool   // operands start 4 bytes (2 for halves) past a multiple of 16
	word    uint64 // the kernels' error word
	limit   int64  // warp instructions of a launch; 0: the package's
}

// operand is a tensor on both sides.
type operand struct {
	at   uint64
	twin kernels.Tensor
}

// eachPair runs a test with kernels that load 16 bytes at once and with those that do not, each in
// two orders of blocks and warps. suffix is of the kernels' names.
func eachPair(t *testing.T, test func(p *pair, suffix string)) {
	all, err := shipped()
	require.NoError(t, err)
	for suffix, odd := range map[string]bool{"": true, "_wide": false} {
		for seed := range uint64(2) {
			p := &pair{device: newDevice(t), kernels: all, ref: kernels.NewReference(), seed: seed, odd: odd}
			p.word = put(p.device, []uint64{0})
			test(p, suffix)
			require.Zero(t, get[uint64](p.device, p.word, 1)[0], "the error word")
		}
	}
}

// lay puts values where an allocation ends with the last of them.
func lay[T any](p *pair, values []T, size uint64) uint64 {
	if !p.odd {
		return put(p.device, values)
	}
	return put(p.device, append(make([]T, 1), values...)) + size
}

func (p *pair) floats(rows, cols int, values []float32) operand {
	o := operand{lay(p, values, 4), p.tensor(kernels.F32, rows, cols)}
	p.ref.UploadF32(o.twin, values)
	return o
}

func (p *pair) halves(rows, cols int, values []float32) operand {
	bits := make([]uint16, len(values))
	kernels.Float32ToHalf(bits, values)
	o := operand{lay(p, bits, 2), p.tensor(kernels.F16, rows, cols)}
	p.ref.UploadHalf(o.twin, bits)
	return o
}

func (p *pair) uints(values []uint32) operand {
	o := operand{lay(p, values, 4), p.tensor(kernels.U32, len(values), 1)}
	p.ref.UploadU32(o.twin, values)
	return o
}

func (p *pair) tensor(t kernels.DType, rows, cols int) kernels.Tensor {
	return kernels.Tensor{Buf: p.ref.Alloc(t, rows*cols), Type: t, Rows: rows, Cols: cols}
}

// normal makes an operand of normally distributed values; ids one of integers.
func (p *pair) normal(rows, cols int, seed uint64) operand {
	return p.floats(rows, cols, normal(rows*cols, seed))
}

func (p *pair) ids(n, below int, seed uint64) operand {
	return p.uints(integers(n, uint32(below), seed))
}

// run launches a kernel with blocks of 256 threads. An int fits a parameter of four or eight bytes.
func (p *pair) run(name string, grid [3]uint32, args ...any) error {
	k := p.kernels[name]
	require.NotNil(p.t, k, name)
	require.Len(p.t, args, len(k.Params), name)
	for i, arg := range args {
		switch v := arg.(type) {
		case operand:
			args[i] = v.at
		case int:
			args[i] = uint64(v)
			if k.Params[i].Size == 4 {
				args[i] = uint32(v)
			}
		}
	}
	_, err := k.Run(p.mem, Config{
		Grid: grid, Block: [3]uint32{256, 1, 1}, Params: pack(p.t, k, args...), Seed: p.seed, Limit: p.limit,
	})
	return err
}

// must is run on a row of blocks, without errors.
func (p *pair) must(name string, blocks int, args ...any) {
	require.NoError(p.t, p.run(name, [3]uint32{uint32(blocks), 1, 1}, args...))
}

// same compares an operand on both sides: each element to within tolerance·(1+|x|).
func (p *pair) same(o operand, tolerance float64) {
	p.t.Helper()
	want := make([]float32, o.twin.Len())
	p.ref.DownloadF32(want, o.twin)
	got := get[float32](p.device, o.at, len(want))
	if tolerance == 0 {
		require.Equal(p.t, want, got)
		return
	}
	for i, v := range want {
		require.InDelta(p.t, v, got[i], tolerance*(1+max(float64(v), -float64(v))), "element %d", i)
	}
}

// A graph is lists of neighbours on both sides, and the edges by their source.
type graph struct {
	start, end, nbr             operand
	revStart, revDst, revEdge   operand
	twin                        kernels.Adjacency
	destinations, sources, size int
}

func (p *pair) graph(destinations, sources int) graph {
	start, end := lists(destinations, 9, 21)
	nbr := integers(int(end[destinations-1]), uint32(sources), 22)
	revStart, revDst, revEdge := []uint32{0}, []uint32{}, []uint32{}
	for u := range uint32(sources) {
		for d := range destinations {
			for e := start[d]; e < end[d]; e++ {
				if nbr[e] == u {
					revDst, revEdge = append(revDst, uint32(d)), append(revEdge, e)
				}
			}
		}
		revStart = append(revStart, uint32(len(revDst)))
	}
	g := graph{start: p.uints(start), end: p.uints(end), nbr: p.uints(nbr),
		revStart: p.uints(revStart), revDst: p.uints(revDst), revEdge: p.uints(revEdge),
		destinations: destinations, sources: sources, size: len(nbr)}
	g.twin = kernels.Adjacency{Start: g.start.twin, End: g.end.twin, Nbr: g.nbr.twin,
		RevStart: g.revStart.twin, RevDst: g.revDst.twin, RevEdge: g.revEdge.twin}
	return g
}
