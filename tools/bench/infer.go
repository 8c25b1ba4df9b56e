package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/tools/cli"
	"github.com/gnnstore/gnnstore/train/infer"
)

// inferLayers is the number of layers of the network in infer, each of inferHidden columns.
const (
	inferLayers = 3
	inferHidden = 128
)

// predicted has the output of gnnstore predict --json for a pass.
type predicted struct {
	Seconds       float64        `json:"seconds"`
	Layers        []infer.Report `json:"layers"`
	PeakRSSBytes  int64          `json:"peak_rss_bytes"`
	PeakFileBytes int64          `json:"peak_file_bytes"`
}

// inferredTurn has the figures of a turn: of gnnstore predict, or of infer.py.
type inferredTurn struct {
	predicted `json:"-"`
	Layers    []float64 `json:"seconds"`
	Furthest  float64   `json:"furthest"`
	Largest   float64   `json:"largest"`
	Peak      int64     `json:"peak"`
}

// seconds adds up all layers.
func (t inferredTurn) seconds() (all float64) {
	all = t.predicted.Seconds
	for _, s := range t.Layers {
		all += s
	}
	return all
}

// memory returns the most MiB that a turn had.
func (t inferredTurn) memory() string {
	if t.Layers != nil {
		return fmt.Sprintf("%d, with maps", t.Peak>>20)
	}
	return fmt.Sprintf("%d, %d", t.PeakRSSBytes>>20, t.PeakFileBytes>>20)
}

// compareInference alternates the logits of all nodes by gnnstore predict, layers holding rows,
// sums and whatever they choose, with PyTorch Geometric's loop over layers where there is a Python,
// from the weights of the same run. For each layer it prints the planned and the actual reads,
// their share of the disk's sequential rate, and the layer's share of the processors' peak: see
// [inferFloor].
func compareInference(ctx context.Context, c *comparison) error {
	run := filepath.Join(c.tmp, "run")
	if err := c.binary.Run(ctx, "train", c.dataset, "--layers", strconv.Itoa(inferLayers), "--hidden", strconv.Itoa(inferHidden), "--fanout", "10,10,10",
		"--batch", strconv.Itoa(c.batch), "--epochs", "1", "--epoch-steps", strconv.Itoa(c.steps), "--eval-memory", "0", "--eval-nodes", "1",
		"--run", run); err != nil {
		return err
	}
	if c.python != "" && (c.what != "logits" || !slices.Contains(c.holds, "auto")) {
		return errors.New("-python goes with -what logits and with auto among -hold, which it is compared with")
	}
	t := turns[inferredTurn]{columns: []column[inferredTurn]{
		{name: "s", format: "%.1f", of: inferredTurn.seconds}, {name: "MiB of its own, of maps", text: inferredTurn.memory},
	}}
	var auto *side[inferredTurn]
	for _, way := range c.holds {
		s := &side[inferredTurn]{name: "gnnstore, --way " + way, turn: func(ctx context.Context) (turn inferredTurn, err error) {
			turn.predicted, err = c.predict(ctx, run, way)
			return turn, err
		}}
		if t.sides = append(t.sides, s); way == "auto" {
			auto = s
		}
	}
	ours := t.sides
	var theirs *side[inferredTurn]
	if c.python != "" {
		c.confine(c.limit / 10 * 11)
		var ready struct {
			Versions string `json:"versions"`
		}
		peer, err := c.startInference(ctx, run, &ready)
		if err != nil {
			return err
		}
		defer peer.close() //nolint:errcheck // what matters was read
		theirs = &side[inferredTurn]{name: ready.Versions + ", a layer at a time", turn: asks[inferredTurn](peer, "turn")}
		t.sides = append(t.sides, theirs)
		t.check = func(_ *side[inferredTurn], turn inferredTurn) error {
			if turn.Furthest > 1e-3*turn.Largest {
				return fmt.Errorf("logits are up to %v apart, of up to %v", turn.Furthest, turn.Largest)
			}
			return nil
		}
	}
	if err := t.run(ctx, c.rounds); err != nil {
		return err
	}
	if err := c.printLayers(ctx, ours); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "\nMedian (smallest–largest) of %d turns:\n\n", c.rounds)
	if theirs != nil {
		theirs.name += fmt.Sprintf(" (%.1f s)", theirs.turns[c.rounds-1].Layers)
	}
	t.print(c.out, "")
	if theirs != nil {
		fmt.Fprintf(c.out, "| theirs / ours, --way auto | %s | |\n", t.over(theirs, auto, 0).spread("%.2f"))
	}
	return nil
}

// printLayers prints a row for each layer of the last turns of gnnstore predict.
func (c *comparison) printLayers(ctx context.Context, sides []*side[inferredTurn]) error {
	f, g := c.ds.Features(0), c.ds.Graph(0)
	floor, err := measureFloor(ctx, f, inferHidden, floorSums, cachetier.Options{Engine: c.engine})
	if err != nil {
		return err
	}
	rate := c.device.Costs.BytesPerSecond
	fmt.Fprintf(c.out, "%s: %d nodes, %d edges; GraphSAGE, %d layers of %d; --memory %s; hidden rows in %s; "+
		"the disk gives %.2f GB/s in sequence. The floor: %v. The last of %d turns:\n\n",
		c.base(), g.Nodes(), g.Edges(), inferLayers, inferHidden, c.memory, c.layerDtype, rate/1e9, floor, c.rounds)
	tableHead(c.out, "| --way | layer | held | parts, planned | read MB, planned | s reading, planned | s | written MB | of the sequential rate: while reading, in all "+
		"| processors at work | processors' s, floor | of the processors' peak |")
	for i, s := range sides {
		for _, l := range s.turns[len(s.turns)-1].predicted.Layers {
			share := "-"
			if l.ReadSeconds > 0 {
				of := 100 * float64(l.BytesRead) / rate
				share = fmt.Sprintf("%.0f %%, %.0f %%", of/l.ReadSeconds, of/l.Seconds)
			}
			in, out, elem := inferHidden, inferHidden, kernels.F32
			if l.Layer == 1 {
				in = f.Dim()
			}
			if l.Layer == 1 && f.Table.Elem == store.F16 || l.Layer > 1 && c.layerDtype == store.F16.String() {
				elem = kernels.F16
			}
			if l.Layer == inferLayers {
				out = int(c.ds.Manifest().Labels[0].Classes)
			}
			least, all := floor.seconds(l, g.Edges(), elem, in, out), l.Seconds*float64(runtime.GOMAXPROCS(0))
			fmt.Fprintf(c.out, "| %s | %d, %s | %s | %d, %d | %.0f, %.0f | %.1f, %.1f | %.1f | %.0f | %s | %.0f %% | %.1f, %.1f | %.0f %% |\n",
				c.holds[i], l.Layer, l.Type, l.Way, l.Parts, l.PlannedParts,
				float64(l.BytesRead)/1e6, float64(l.PlannedBytesRead)/1e6, l.ReadSeconds, l.PlannedReadSeconds, l.Seconds, float64(l.BytesWritten)/1e6, share,
				100*l.ProcessorSeconds/all, l.ProcessorSeconds, least, 100*least/all)
		}
	}
	return nil
}

// predict writes the logits of all nodes, in a memory cgroup of its own.
func (c *comparison) predict(ctx context.Context, run, way string) (p predicted, err error) {
	group, err := cli.NewCgroup(fmt.Sprint(os.Getpid(), "-predict"), c.limit/10*11)
	if err != nil {
		fmt.Fprintf(c.out, "note: %v\n\n", err)
	}
	defer group.Close()
	cmd := group.Command(ctx, string(c.binary), "predict", run, filepath.Join(c.tmp, "logits.npy"), "--what", c.what, "--memory", c.memory,
		"--way", way, "--layer-dtype", c.layerDtype, "--force", "--json")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return p, fmt.Errorf("%w: %s", err, cli.LastLine(stderr.Bytes()))
	}
	return p, json.Unmarshal(stdout.Bytes(), &p)
}

// startInference starts infer.py on the files of the dataset and the weights of a run.
func (c *comparison) startInference(ctx context.Context, run string, ready any) (*python, error) {
	job, err := jobOf(c.ds, c.tmp)
	if err != nil {
		return nil, err
	}
	weights := filepath.Join(run, "best.safetensors")
	if _, err := os.Stat(weights); err != nil {
		weights = filepath.Join(run, "last.safetensors")
	}
	job["hot"], job["weights"], job["layers"], job["threads"], job["batch"] = 0, weights, inferLayers, c.threads, c.nodes
	job["ours"] = filepath.Join(c.tmp, "logits.npy")
	path, err := (&npyWriter{dir: c.tmp}).job(job)
	if err != nil {
		return nil, err
	}
	return c.startPython(ctx, ready, "infer.py", path)
}
