package interp

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemory(t *testing.T) {
	m := NewMemory()
	a, err := m.Alloc(10)
	require.NoError(t, err)
	b, err := m.Alloc(300)
	require.NoError(t, err)
	require.Zero(t, a%256)
	require.Zero(t, b%256)
	require.GreaterOrEqual(t, b-a, uint64(guardBytes))
	require.Equal(t, 310, m.Held())

	require.NoError(t, m.Write(a+2, []byte{1, 2, 3}))
	got := make([]byte, 4)
	require.NoError(t, m.Read(a+1, got))
	require.Equal(t, []byte{0, 1, 2, 3}, got)
	lent, err := m.Bytes(a, 10)
	require.NoError(t, err)
	lent[2] = 9
	require.NoError(t, m.Read(a+2, got[:1]))
	require.Equal(t, byte(9), got[0])
	_, err = m.Bytes(a+10, 0) // the end is fine for nothing
	require.NoError(t, err)

	require.ErrorIs(t, m.Write(a+8, got), ErrBounds)
	require.ErrorContains(t, m.Write(a+8, got), "over the end of the 10 bytes")
	require.ErrorContains(t, m.Read(a+10, got), "0 past the end of the 10 bytes")
	require.ErrorContains(t, m.Read(b-4, got), "4 before the 300 bytes")
	require.ErrorIs(t, m.Read(0, got), ErrBounds)
	_, err = m.Bytes(^uint64(0), 4)
	require.ErrorIs(t, err, ErrBounds)
	_, err = m.Bytes(a, -1)
	require.Error(t, err)

	require.Error(t, m.Free(a+1))
	require.NoError(t, m.Free(a))
	require.Error(t, m.Free(a))
	require.ErrorIs(t, m.Read(a, got), ErrBounds)
	c, err := m.Alloc(10)
	require.NoError(t, err)
	require.Greater(t, c, b, "an address is not used again")
	for _, n := range []int{0, -1, memoryLimit} {
		_, err = m.Alloc(n)
		require.Error(t, err)
	}
	m = &Memory{Poison: true} // the zero value works too
	a, err = m.Alloc(4)
	require.NoError(t, err)
	require.NoError(t, m.Read(a, got))
	require.Equal(t, []byte{0xff, 0xff, 0xff, 0xff}, got)
}

// Memory of the caller is read and written where it is, and is checked like any other.
func TestRegister(t *testing.T) {
	k := load(t, "elementwise").Kernel("axpy")
	d := newDevice(t)
	host := make([]byte, 4*33)
	x := put(d, normal(32, 1))
	const below, above = 0x1234_5678_9000, 0x7fff_0000_0000
	for _, addr := range []uint64{below, above} {
		require.NoError(t, d.mem.Register(addr, host[:4*32]))
		require.NoError(t, d.launch(k, 0, 1, 32, addr, x, float32(1), uint64(32)))
		require.Equal(t, host[:4*32], get[byte](d, addr, 4*32))
		requireFault(t, d.launch(k, 0, 1, 64, addr, x, float32(1), uint64(33)), ErrBounds, "0 past the end of the 128 bytes")
		require.Error(t, d.mem.Register(addr, host))
		require.Error(t, d.mem.Register(addr-64, host))
		require.Error(t, d.mem.Register(addr+64, host))
	}
	require.NotEqual(t, make([]byte, 4*32), host[:4*32])
	require.Equal(t, make([]byte, 4), host[4*32:])
	require.Equal(t, 4*32, d.mem.Held())
	y := put(d, normal(32, 1))
	require.Greater(t, y, x)
	require.Less(t, y, uint64(above))
	require.Equal(t, normal(32, 1), get[float32](d, x, 32))
	require.NoError(t, d.mem.Free(below))
	require.Error(t, d.mem.Free(below))
	requireFault(t, d.launch(k, 0, 1, 32, uint64(below), x, float32(1), uint64(32)), ErrBounds)
	require.NoError(t, d.mem.Register(below, host))
	for _, addr := range []uint64{0, sharedWindow, localWindow + windowBytes - 1, x, ^uint64(0) - 1} {
		require.Error(t, d.mem.Register(addr, host), "%#x", addr)
	}
	require.Error(t, d.mem.Register(1<<40, nil))
	// What is in the way of the next allocation is an error too.
	_, err := d.mem.Alloc(1)
	require.NoError(t, err)
	require.NoError(t, d.mem.Register(d.mem.top+100, host))
	_, err = d.mem.Alloc(101)
	require.ErrorContains(t, err, "over the 132 at")
	require.Equal(t, 2*4*32+1, d.mem.Held())
}

// Launches on one memory may run at once, beside Alloc and Free, if their bytes are apart.
func TestLaunchesAtOnce(t *testing.T) {
	k := load(t, "reduce").Kernel("reverse") // it has a variable of the module
	mem := NewMemory()
	var wg sync.WaitGroup
	for g := range 4 {
		addr := make([]uint64, 3)
		for i, n := range []int{32, 32, 4} {
			var err error
			addr[i], err = mem.Alloc(n)
			require.NoError(t, err)
		}
		require.NoError(t, mem.Write(addr[1], []byte{byte(g)}))
		params := pack(t, k, addr[0], addr[1], addr[2])
		wg.Go(func() {
			for range 20 {
				if err := k.Launch(mem, [3]uint32{1, 1, 1}, [3]uint32{32, 1, 1}, 32, params); err != nil {
					t.Error(err)
				}
				extra, err := mem.Alloc(100)
				if err == nil {
					err = mem.Free(extra)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
		defer func() {
			got := make([]byte, 32)
			require.NoError(t, mem.Read(addr[0], got))
			require.Equal(t, byte(g), got[31])
		}()
	}
	wg.Wait()
}
