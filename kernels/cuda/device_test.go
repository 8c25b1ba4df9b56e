//go:build cuda && linux

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels/cuda/drivertest"
)

// openDevice opens a backend on a device of Go. When the test ends, it is closed, and has to have
// given back everything.
func openDevice(t testing.TB, device drivertest.Options, o Options) (*Backend, *drivertest.Device) {
	d := newDevice(t, device)
	if o.Calls == nil {
		o.Calls = d.Calls()
	}
	b, err := Open(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, b.Close())
		requireNothingHeld(t, d)
	})
	return b, d
}

// newDevice returns a device, whose kernels are the host's where o has none.
func newDevice(t testing.TB, o drivertest.Options) *drivertest.Device {
	if o.Runner == nil {
		o.Runner = drivertest.HostKernels(t)
	}
	return drivertest.New(o)
}

func requireNothingHeld(t testing.TB, d *drivertest.Device) {
	bytes, pieces := d.Held()
	require.Zero(t, bytes)
	require.Zero(t, pieces)
}
