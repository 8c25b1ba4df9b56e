//go:build cuda && linux

package drivertest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
	"github.com/gnnstore/gnnstore/kernels/cuda/interp"
	"github.com/gnnstore/gnnstore/kernels/cuda/ptx"
)

// Interpreter runs the PTX that ships. It checks each access against the memory of the device, and
// looks for races, between two blocks too.
type Interpreter struct {
	kernels map[string]*interp.Kernel
	memory  *interp.Memory
}

// NewInterpreter returns the runner of one device.
func NewInterpreter(t testing.TB) *Interpreter {
	t.Helper()
	in := &Interpreter{map[string]*interp.Kernel{}, interp.NewMemory()}
	in.memory.Races = true
	for _, file := range ptx.Files() {
		text, err := ptx.Source(file)
		require.NoError(t, err)
		module, err := interp.Parse(string(text))
		require.NoError(t, err, file)
		for _, name := range module.Kernels() {
			in.kernels[name] = module.Kernel(name)
		}
	}
	return in
}

// Launch implements [Runner].
func (in *Interpreter) Launch(kernel string, grid, block driver.Dim, shared uint32, params []byte) error {
	g, b := grid.Full(), block.Full()
	return in.kernels[kernel].Launch(in.memory, [3]uint32{g.X, g.Y, g.Z}, [3]uint32{b.X, b.Y, b.Z}, int(shared), params)
}

// Allocated implements [Memory].
func (in *Interpreter) Allocated(at driver.Ptr, memory []byte) error {
	return in.memory.Register(uint64(at), memory)
}

// Freed implements [Memory].
func (in *Interpreter) Freed(at driver.Ptr) error { return in.memory.Free(uint64(at)) }
