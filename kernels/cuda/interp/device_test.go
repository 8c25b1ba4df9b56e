package interp

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// A device is a memory, and tests' short ways to fill it and to launch kernels on it.
type device struct {
	t   *testing.T
	mem *Memory
}

func newDevice(t *testing.T) *device {
	mem := NewMemory()
	mem.Poison, mem.Races = true, true
	return &device{t, mem}
}

func load(t testing.TB, name string) *Module {
	text, err := os.ReadFile("testdata/" + name + ".ptx")
	require.NoError(t, err)
	m, err := Parse(string(text))
	require.NoError(t, err)
	return m
}

// put allocates memory for a slice of numbers, and copies it there.
func put[T any](d *device, v []T) uint64 {
	var b bytes.Buffer
	require.NoError(d.t, binary.Write(&b, binary.LittleEndian, v))
	addr, err := d.mem.Alloc(max(b.Len(), 1))
	require.NoError(d.t, err)
	require.NoError(d.t, d.mem.Write(addr, b.Bytes()))
	return addr
}

// room allocates n numbers without a value.
func room[T any](d *device, n int) uint64 {
	addr, err := d.mem.Alloc(n * binary.Size(*new(T)))
	require.NoError(d.t, err)
	return addr
}

func get[T any](d *device, addr uint64, n int) []T {
	v := make([]T, n)
	b := make([]byte, binary.Size(v))
	require.NoError(d.t, d.mem.Read(addr, b))
	require.NoError(d.t, binary.Read(bytes.NewReader(b), binary.LittleEndian, v))
	return v
}

// pack lays out the parameters of k. Each has to have the size that the PTX says.
func pack(t testing.TB, k *Kernel, params ...any) []byte {
	require.NotNil(t, k)
	require.Len(t, params, len(k.Params))
	packed := make([]byte, k.ParamBytes)
	for i, p := range k.Params {
		var b bytes.Buffer
		require.NoError(t, binary.Write(&b, binary.LittleEndian, params[i]))
		require.Equal(t, p.Size, b.Len(), p.Name)
		copy(packed[p.Offset:], b.Bytes())
	}
	return packed
}

// launch runs blocks of threads in one dimension, in an order by the seed.
func (d *device) launch(k *Kernel, seed uint64, grid, block uint32, params ...any) error {
	_, err := k.Run(d.mem, Config{
		Grid: [3]uint32{grid, 1, 1}, Block: [3]uint32{block, 1, 1}, Params: pack(d.t, k, params...), Seed: seed,
	})
	return err
}

// everyOrder runs a test with blocks and warps in ascending order, and in three others.
func everyOrder(t *testing.T, test func(t *testing.T, d *device, seed uint64)) {
	for seed := range uint64(4) {
		test(t, newDevice(t), seed)
	}
}

func normal(n int, seed uint64) []float32 {
	random := rand.New(rand.NewPCG(seed, 1))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(random.NormFloat64())
	}
	return v
}

func integers(n int, below uint32, seed uint64) []uint32 {
	random := rand.New(rand.NewPCG(seed, 2))
	v := make([]uint32, n)
	for i := range v {
		v[i] = random.Uint32N(below)
	}
	return v
}

// lists returns the ends of lists of 0 to most-1 elements.
func lists(rows int, most uint32, seed uint64) (start, end []uint32) {
	at := uint32(0)
	for _, n := range integers(rows, most, seed) {
		start = append(start, at)
		at += n
		end = append(end, at)
	}
	return start, end
}
