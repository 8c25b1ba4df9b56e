package graph

import (
	"context"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
)

// abacus is a device that this package's tests register. abaci counts the open ones, and noAbacus
// is the error of opening one.
const abacus = "abacus"

var (
	abaci    int
	noAbacus error
)

type abacusBackend struct{ *kerneltest.RemoteBackend }

func (abacusBackend) Device() string { return "abacus of ten rows" }

func (abacusBackend) Close() error {
	abaci--
	return nil
}

func init() {
	kernels.Register(abacus, func(kernels.Options) (kernels.Backend, error) {
		if noAbacus != nil {
			return nil, noAbacus
		}
		abaci++
		return abacusBackend{kerneltest.Remote(kernels.NewCPU(kernels.CPUOptions{}))}, nil
	})
}

// TestDevice: a run computes on the device that is asked for, records it and what its steps had it
// do, and closes it.
func TestDevice(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	want := trained(t, ds, small())
	require.Equal(t, kernels.CPUDevice, want.Device)
	require.Empty(t, want.DeviceName)
	require.Nil(t, want.Bus)

	o := small()
	o.Device = abacus
	got := trained(t, ds, o)
	sameWork(t, want, got)
	require.Equal(t, abacus, got.Device)
	require.Equal(t, "abacus of ten rows", got.DeviceName)
	steps := int64(got.Epochs[0].Steps * len(got.Epochs))
	require.Equal(t, steps, got.Bus.Steps)
	require.Equal(t, steps, got.Bus.Waits, "evaluation and checkpoints are no part of steps")
	require.Positive(t, got.Bus.UploadBytes)
	require.Zero(t, want.Memory.OnDevice)
	require.Positive(t, got.Memory.OnDevice)
	require.Zero(t, abaci)

	noAbacus = errors.New("its beads are lost")
	defer func() { noAbacus = nil }()
	_, err := Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{})
	require.EqualError(t, err, "{device} abacus: its beads are lost; compute on the CPU with {device} cpu")
	o.Device = "slide rule"
	_, err = Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{})
	require.ErrorContains(t, err, "{device} slide rule: there are auto, cpu, cuda, and this build has cpu, abacus")
	require.Zero(t, abaci)
}

// TestDeviceResumes: a run goes on where it was cut on another device, with a note, and counts the
// steps of all processes.
func TestDeviceResumes(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	want, err := runOn(t.Context(), vfs.NewMem(), ds, long(), run.Hooks{})
	require.NoError(t, err)
	disk := vfs.NewMem()
	var counted int64
	for cut, device := range []string{"", abacus, abacus, kernels.CPUDevice, abacus} {
		o := long()
		o.Device = device
		ctx, cancel := context.WithCancel(t.Context())
		var notes []string
		steps := 0
		h := run.Hooks{Note: func(s string) { notes = append(notes, s) }, Step: func(int, int, int, float64) {
			if steps++; steps == 5 && cut < 4 {
				cancel()
			}
		}}
		got, err := runOn(ctx, disk, ds, o, h)
		cancel()
		require.NoError(t, err)
		switch cut {
		case 1, 4:
			require.Contains(t, notes, "the run began on {device} cpu and goes on on abacus: results will differ in their last bits")
		case 3:
			require.Contains(t, notes, "the run began on {device} abacus and goes on on cpu: results will differ in their last bits")
		default:
			for _, n := range notes {
				require.NotContains(t, n, "goes on")
			}
		}
		if device == abacus {
			counted += int64(steps)
		}
		if counted > 0 {
			require.Equal(t, counted, got.Bus.Steps)
			require.Equal(t, counted, got.Bus.Waits)
		}
		if cut == 4 {
			sameRun(t, want, got)
		}
	}
	_, record, err := run.OpenOn(disk, "/run")
	require.NoError(t, err)
	require.Equal(t, abacus, record.Device)
	require.Len(t, record.Resumed, 4)
	require.Equal(t, kernels.CPUDevice, record.Resumed[2].Device)
	require.Equal(t, "abacus of ten rows", record.Resumed[3].DeviceName)
}

// TestDeviceOfNetwork: a network computes on the CPU, unless another device is asked for.
func TestDeviceOfNetwork(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	o := small()
	o.Device = abacus
	r := trained(t, ds, o)
	dir, err := run.Look(r.Run)
	require.NoError(t, err)
	defer dir.Close()
	var values []float64
	for _, device := range []string{"", abacus} {
		n, err := OpenNetwork(t.Context(), ds, dir, NetworkOptions{Use: run.Use{Device: device}}, run.Hooks{})
		require.NoError(t, err)
		require.Equal(t, map[string]int{"": 0, abacus: 1}[device], abaci)
		m, err := n.Measure(t.Context(), "test")
		require.NoError(t, err)
		values = append(values, *m.Value)
		require.NoError(t, n.Close())
		require.Zero(t, abaci)
	}
	require.Equal(t, values[0], values[1])
	_, err = OpenNetwork(t.Context(), ds, dir, NetworkOptions{Use: run.Use{Device: "slide rule"}}, run.Hooks{})
	require.ErrorContains(t, err, "{device} slide rule: there are")
}

// TestDeviceMemory: what a device has in memory of its own is no part of the budget, which then
// suffices for larger steps.
func TestDeviceMemory(t *testing.T) {
	ds := open(t, storetest.Communities(3000, 4, 8, 64, 2))
	for name, o := range map[string]run.Options{"plain": small(), "history": reusing()} {
		o.Hidden, o.Batch, o.Epochs, o.EvalBytes = 512, 800, 1, 0 // sampled evaluation, in any memory
		if o.History {
			o.HistoryBytes = 4 << 20
		}
		part := func(m *run.Memory, name string) int64 {
			for _, p := range m.Parts {
				if p.Name == name {
					return p.Bytes
				}
			}
			return 0
		}
		want := trained(t, ds, o)
		o.Device = abacus
		got := trained(t, ds, o)
		sameWork(t, want, got, name)
		left := int64(0) // the budget for others
		for _, p := range []string{"step", "fixed"} {
			require.Less(t, part(got.Memory, p), part(want.Memory, p), "%s, %s", name, p)
			left += part(want.Memory, p) - part(got.Memory, p)
		}
		require.Greater(t, got.Memory.OnDevice, left, "a device has the rows of one more step")
		if o.History {
			require.Less(t, part(got.Memory, "history"), part(want.Memory, "history")/4)
		}
		least := map[string]int64{} // memory that works
		for _, device := range []string{"", abacus} {
			var short *plan.NotEnough
			o.MemoryBytes, o.Device = 1<<20, device
			_, err := Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{})
			require.ErrorAs(t, err, &short, name)
			least[device] = short.Least.Total
		}
		require.Less(t, least[abacus], least[""], name)
		o.MemoryBytes = least[abacus]
		sameWork(t, want, trained(t, ds, o), name)
	}
}
