package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/graph"
	"github.com/gnnstore/gnnstore/train/infer"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/stream"
)

// networkOptions are the options of eval and predict that choose the weights of a run, and the
// memory and disk to use them in.
type networkOptions struct {
	graph.NetworkOptions
	tmp   string
	group *dist.Group // of workers that each have a part of the dataset, or of learnt rows; nil: there is no other
}

// networkRows declares the options of a T that uses the network of a run. at returns them, and tmp
// is the default of {tmp}, for its help.
func networkRows[T any](at func(*T) *networkOptions, tmp string) setting.Table[T] {
	return setting.Table[T]{
		{Key: "checkpoint",
			In:   func(o *T) setting.Value { return setting.Hint(setting.Word(&at(o).Checkpoint), "best", "last") },
			Help: "weights to use: best, which validation chose, or last (default best where there is one)"},
		{Key: "older_checkpoint",
			In:   func(o *T) setting.Value { return setting.Bool(&at(o).OlderCheckpoint) },
			Help: "if the newest checkpoint is damaged or missing, use an earlier one (default: refuse)"},
		{Key: "unseen",
			In:   func(o *T) setting.Value { return setting.Hint(setting.Word(&at(o).Unseen), "mean") },
			Help: "input of nodes of another DATASET whose ids have no learnt row in the run: mean, of all rows of their type (default: refuse)"},
		{Key: "memory_bytes", Flag: "memory",
			In:   func(o *T) setting.Value { return setting.Bytes(&at(o).MemoryBytes) },
			Help: "memory limit of the whole process (default that of the run)"},
		{Key: "device",
			In: func(o *T) setting.Value { return run.DeviceValue(&at(o).Device) },
			Help: "what computes: cpu; cuda, an NVIDIA GPU, in the build of the archive gnnstore-cuda; " +
				"or auto, the GPU if the run trained on one and there is one, else the CPU"},
		{Key: "matmul",
			In:   func(o *T) setting.Value { return run.MatMulValue(&at(o).MatMul) },
			Help: run.MatMulHelp},
		{Key: "way",
			In: func(o *T) setting.Value {
				return setting.Hint(setting.Word(&at(o).Hold).Or("auto", string(infer.HoldAuto)), infer.HoldRows, infer.HoldSums)
			},
			Help: "what a layer holds in memory while it reads the one below: rows, sums, or auto, the one that reads for less time"},
		{Key: "tmp",
			In:   func(o *T) setting.Value { return setting.Word(&at(o).tmp) },
			Help: "directory for what does not fit in memory: hidden rows, and of a stream the state of nodes (default " + tmp + ")"},
		{Key: "layer_dtype",
			In:   func(o *T) setting.Value { return setting.Hint(setting.Word(&at(o).LayerDtype), "f32", "f16") },
			Help: "how hidden rows are stored on disk: f32, or f16, which takes half and rounds them (default the run's)"},
	}
}

// autoDevice replaces an empty device by the GPU if kernels.Auto finds one. If there is a GPU that
// cannot be used, it prints why.
func autoDevice(stderr io.Writer, device *string) {
	if *device != "" {
		return
	}
	found, err := kernels.Auto()
	if err != nil {
		printf(stderr, "note: --device auto takes the CPU: %s\n", oneLine(err))
	}
	if found != kernels.CPUDevice {
		*device = found
	}
}

// usedRun is a run with the dataset that its network is used on.
type usedRun struct {
	dir     *run.Dir
	ds      *store.Dataset
	events  *store.Events // nil: the run learnt from a graph
	network *train.Network
	scratch func() // removes the scratch directory; nil: there is none
}

// use opens the dataset of this path, or the one that the run trained on if path is empty.
func (o *networkOptions) use(stderr io.Writer, p *progress, dir *run.Dir, path string) (*usedRun, error) {
	path, err := datasetOf(p, dir, path)
	if err != nil {
		return nil, err
	}
	record := dir.Record()
	if !kernels.IsCPU(record.Device) && o.MatMul != kernels.BF16 {
		autoDevice(stderr, &o.Device)
	}
	of := &record.Options
	memory := cmp.Or(o.MemoryBytes, of.MemoryBytes)
	u := &usedRun{dir: dir}
	if o.group.Size() > 1 && store.IsParts(path) {
		u.ds, err = openPart(path, memory, o.group)
		return u, err
	}
	if !of.Streams() {
		u.ds, err = openGraph(stderr, path, memory, "the run learnt from relations")
		return u, err
	}
	if u.ds, err = openDataset(stderr, path, memory); err != nil {
		return nil, err
	}
	if u.events, err = stream.Find(u.ds, of.Stream); err != nil {
		return nil, errors.Join(dir.About(err), u.ds.Close())
	}
	return u, nil
}

// open opens the network. What does not fit in memory goes to o.Scratch.
func (u *usedRun) open(ctx context.Context, p *progress, o *networkOptions) (err error) {
	u.network, err = train.Open(ctx, u.ds, u.dir, o.NetworkOptions, run.Hooks{
		Note: func(s string) { p.line("note: %s", withFlags(s)) }, Text: withFlags, Group: o.group,
	})
	if err == nil && u.events != nil {
		u.network.Stream.Follow(func(done, all int64) { p.show("replay", done, all, "events") })
	}
	return err
}

// openIn opens the network with a scratch directory of its own, made in --tmp or by default in tmp.
func (u *usedRun) openIn(ctx context.Context, p *progress, o *networkOptions, tmp string) error {
	dir, remove, err := scratchDir(cmp.Or(o.tmp, tmp))
	if err != nil {
		return err
	}
	u.scratch, o.Scratch = remove, filepath.Join(dir, "rows") // a network puts files beside it, too
	return u.open(ctx, p, o)
}

// Close closes the network and the dataset, and removes the scratch directory.
func (u *usedRun) Close() (err error) {
	if u.network != nil {
		err = u.network.Close()
	}
	if u.scratch != nil {
		u.scratch()
	}
	return errors.Join(err, u.ds.Close())
}

// used is the part of a result that names the network and the dataset it was used on.
type used struct {
	Run     string `json:"run"`
	Dataset string `json:"dataset"`
	Seal    string `json:"seal"`
	run.Used
}

func (u *usedRun) used() used {
	return used{u.dir.Path(), u.ds.Place(), u.ds.Manifest().Whole(), u.network.Used}
}

// text names the weights.
func (u *used) text() string {
	return fmt.Sprintf("%s weights, of epoch %d", u.Checkpoint, u.Epoch)
}

// datasetOf returns path, or the path of the dataset that a run trained on if path is empty.
func datasetOf(p *progress, dir *run.Dir, path string) (string, error) {
	if dir.Found() != "" {
		p.line("note: %s", withFlags(dir.Found()))
	}
	trained := dir.Record().Dataset
	if err := stillThere("run "+dir.Path(), trained, path); err != nil {
		return "", err
	}
	return cmp.Or(path, trained), nil
}

// stillThere refuses a run, or a file of its options, whose dataset has moved, unless the user gave
// its place.
func stillThere(about, trained, given string) error {
	if _, err := os.Stat(trained); given == "" && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: its dataset %s is no longer there; give its new place as DATASET", about, trained)
	}
	return nil
}

// ofGraphs refuses flags that only networks for graphs take.
func ofGraphs(dir *run.Dir, given func(flag string) bool, flags ...string) error {
	for _, flag := range flags {
		if given(flag) {
			return fmt.Errorf("run %s: --%s is of networks for graphs, and this one learns from a stream; leave it out", dir.Path(), flag)
		}
	}
	return nil
}

// showLayers shows the layers of a network while they are computed, as part of what.
func showLayers(p *progress, n *graph.Network, what string) {
	n.Follow(func(layer, layers int, kind string, done, nodes int) {
		p.show(fmt.Sprintf("%slayer %d of %d, %s", what, layer, layers, kind), int64(done), int64(nodes), "nodes")
	})
}

// showSpace shows how much disk space hidden rows take, and how much is free in the directory
// where. beside is the size of the files that are written at the same time.
func showSpace(p *progress, n *graph.Network, where string, beside int64) {
	n.FollowSpace(beside, func(bytes, free int64) {
		if bytes > 0 && free >= 0 {
			p.line("disk: hidden rows take up to %s in %s, where %s are free", size(bytes), where, size(free))
		}
	})
}
