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
	abaci       int
	noAbacus    error
	abacusMarks = plenty
)

const plenty = 1 << 40

// abacusBackend fails when its Marks are done, and from then on.
type abacusBackend struct {
	*kerneltest.RemoteBackend
	marks *int
}

func (b abacusBackend) use() {
	if *b.marks <= 0 {
		panic(&kernels.DeviceError{Device: "abacus", Operation: "Mark", Err: errors.New("a bead fell off")})
	}
}

func (b abacusBackend) Mark() func() {
	*b.marks--
	b.use()
	return b.RemoteBackend.Mark()
}

func (b abacusBackend) DownloadF32(dst []float32, src kernels.Tensor) {
	b.use()
	b.RemoteBackend.DownloadF32(dst, src)
}

func (abacusBackend) Device() string { return "abacus of ten rows" }

func (b abacusBackend) Close() error {
	abaci--
	if *b.marks <= 0 {
		return errors.New("a bead fell off")
	}
	return nil
}

func init() {
	kernels.Register(abacus, func(kernels.Options) (kernels.Backend, error) {
		if noAbacus != nil {
			return nil, noAbacus
		}
		abaci++
		return abacusBackend{kerneltest.Remote(kernels.NewCPU(kernels.CPUOptions{})), &abacusMarks}, nil
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

// TestDeviceLost: when a device fails, the error names the step, the result has it, and the run
// goes on from the newest checkpoint, here on the CPU.
func TestDeviceLost(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	want, err := runOn(t.Context(), vfs.NewMem(), ds, long(), run.Hooks{})
	require.NoError(t, err)
	defer func() { abacusMarks = plenty }()
	for marks := range 12 {
		disk := vfs.NewMem()
		o := long()
		o.Device, abacusMarks = abacus, marks+1
		_, err := runOn(t.Context(), disk, ds, o, run.Hooks{})
		if marks == 0 { // before the first step
			require.EqualError(t, err, "abacus: Mark: a bead fell off")
			continue
		}
		require.Regexp(t, `^epoch [12], step \d+: abacus: Mark: a bead fell off; go on with gnnstore train \{resume\} \{run\} /run, from the newest checkpoint$`, err.Error())
		require.Zero(t, abaci)
		text, err := readFile(disk, "/run/result.json")
		require.NoError(t, err)
		require.Contains(t, string(text), `"status": "failed"`)
		require.Contains(t, string(text), "a bead fell off")

		o.Device = kernels.CPUDevice
		got, err := runOn(t.Context(), disk, ds, o, run.Hooks{})
		require.NoError(t, err)
		sameRun(t, want, got)
	}
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
