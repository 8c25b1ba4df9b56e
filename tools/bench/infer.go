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

// inferredTurn has the figures of a turn of infer.py.
type inferredTurn struct {
	Seconds  []float64 `json:"seconds"` // by layer
	Furthest float64   `json:"furthest"`
	Largest  float64   `json:"largest"`
	Peak     int64     `json:"peak"`
}

// compareInference alternates the logits of all nodes by gnnstore predict, layers holding rows,
// sums and whatever they choose, with PyTorch Geometric's loop over layers where there is a Python,
// from the weights of the same run; and says layer by layer what was planned and what came of it.
func compareInference(ctx context.Context, c *comparison) error {
	ds, device, err := c.open(ctx, c.dataset)
	if err != nil {
		return err
	}
	defer ds.Close()
	run := filepath.Join(c.tmp, "run")
	if err := c.binary.Run(ctx, "train", c.dataset, "--layers", strconv.Itoa(inferLayers), "--hidden", strconv.Itoa(inferHidden), "--fanout", "10,10,10",
		"--batch", strconv.Itoa(c.batch), "--epochs", "1", "--epoch-steps", strconv.Itoa(c.steps), "--eval-memory", "0", "--eval-nodes", "1",
		"--run", run); err != nil {
		return err
	}
	if c.python != "" && (c.what != "logits" || !slices.Contains(c.holds, "auto")) {
		return errors.New("-python goes with -what logits and with auto among -hold, which it is compared with")
	}
	limit, err := bytesOf(c.memory)
	if err != nil {
		return err
	}
	var peer *python
	var ready struct {
		Versions string `json:"versions"`
	}
	if c.python != "" {
		if c.group, err = cli.NewCgroup(fmt.Sprint(os.Getpid()), limit/10*11); err != nil {
			fmt.Fprintf(c.out, "note: %v; so memory is without bounds\n\n", err)
		}
		defer func() { c.group.Close() }()
		if peer, err = c.startInference(ctx, ds, run, &ready); err != nil {
			return err
		}
		defer peer.close() //nolint:errcheck // what matters was read
	}
	took, their := map[string]series{}, series{}
	passes := map[string]predicted{}
	var turn inferredTurn
	for range c.rounds {
		for _, way := range c.holds {
			p, err := c.predict(ctx, run, way, limit/10*11)
			if err != nil {
				return fmt.Errorf("--way %s: %w", way, err)
			}
			passes[way], took[way] = p, append(took[way], p.Seconds)
		}
		if peer == nil {
			continue
		}
		if err := peer.turn(&turn); err != nil {
			return err
		}
		if turn.Furthest > 1e-3*turn.Largest {
			return fmt.Errorf("logits are up to %v apart, of up to %v", turn.Furthest, turn.Largest)
		}
		all := 0.0
		for _, s := range turn.Seconds {
			all += s
		}
		their = append(their, all)
	}
	floor, err := measureFloor(ctx, ds.Features(0), inferHidden, floorSums, cachetier.Options{Engine: c.engine})
	if err != nil {
		return err
	}
	rate := device.Costs.BytesPerSecond
	fmt.Fprintf(c.out, "%s: %d nodes, %d edges; GraphSAGE, %d layers of %d; --memory %s; hidden rows in %s; the disk gives %.2f GB/s in sequence. The floor: %v. The last of %d turns:\n\n",
		filepath.Base(c.dataset), ds.Graph(0).Nodes(), ds.Graph(0).Edges(), inferLayers, inferHidden, c.memory, c.layerDtype, rate/1e9, floor, c.rounds)
	tableHead(c.out, "| --way | layer | held | parts, planned | read MB, planned | s reading, planned | s | written MB | of the sequential rate: while reading, in all "+
		"| processors at work | processors' s, floor | of the processors' peak |")
	for _, way := range c.holds {
		for _, l := range passes[way].Layers {
			share := "-"
			if l.ReadSeconds > 0 {
				of := 100 * float64(l.BytesRead) / rate
				share = fmt.Sprintf("%.0f %%, %.0f %%", of/l.ReadSeconds, of/l.Seconds)
			}
			in, out, elem := inferHidden, inferHidden, kernels.F32
			if l.Layer == 1 {
				in = ds.Features(0).Dim()
			}
			if l.Layer == 1 && ds.Features(0).Table.Elem == store.F16 || l.Layer > 1 && c.layerDtype == store.F16.String() {
				elem = kernels.F16
			}
			if l.Layer == inferLayers {
				out = int(ds.Manifest().Labels[0].Classes)
			}
			least, all := floor.seconds(l, ds.Graph(0).Edges(), elem, in, out), l.Seconds*float64(runtime.GOMAXPROCS(0))
			fmt.Fprintf(c.out, "| %s | %d, %s | %s | %d, %d | %.0f, %.0f | %.1f, %.1f | %.1f | %.0f | %s | %.0f %% | %.1f, %.1f | %.0f %% |\n", way, l.Layer, l.Type, l.Way, l.Parts, l.PlannedParts,
				float64(l.BytesRead)/1e6, float64(l.PlannedBytesRead)/1e6, l.ReadSeconds, l.PlannedReadSeconds, l.Seconds, float64(l.BytesWritten)/1e6, share,
				100*l.ProcessorSeconds/all, l.ProcessorSeconds, least, 100*least/all)
		}
	}
	fmt.Fprintf(c.out, "\nMedian (smallest–largest) of %d turns:\n\n", c.rounds)
	tableHead(c.out, "| | s | MiB of its own, of maps |")
	for _, way := range c.holds {
		p := passes[way]
		fmt.Fprintf(c.out, "| gnnstore, --way %s | %s | %d, %d |\n", way, took[way].spread("%.1f"), p.PeakRSSBytes>>20, p.PeakFileBytes>>20)
	}
	if peer != nil {
		fmt.Fprintf(c.out, "| %s, a layer at a time (%.1f s) | %s | %d, with maps |\n", ready.Versions, turn.Seconds, their.spread("%.1f"), turn.Peak>>20)
		fmt.Fprintf(c.out, "| theirs / ours, --way auto | %s | |\n", their.over(took["auto"]).spread("%.2f"))
	}
	return nil
}

// predict writes the logits of all nodes, in a memory cgroup of its own.
func (c *comparison) predict(ctx context.Context, run, way string, limit int64) (p predicted, err error) {
	group, err := cli.NewCgroup(fmt.Sprint(os.Getpid(), "-predict"), limit)
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

// startInference starts infer.py on the files of ds and the weights of a run.
func (c *comparison) startInference(ctx context.Context, ds *store.Dataset, run string, ready any) (*python, error) {
	job := jobOf(ds)
	job["hot"], job["weights"], job["layers"], job["threads"], job["batch"] = 0, filepath.Join(run, "best.safetensors"), inferLayers, c.threads, c.nodes
	job["ours"] = filepath.Join(c.tmp, "logits.npy")
	if _, err := os.Stat(job["weights"].(string)); err != nil {
		job["weights"] = filepath.Join(run, "last.safetensors")
	}
	text, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(c.tmp, "job.json")
	if err := os.WriteFile(path, text, 0o666); err != nil {
		return nil, err
	}
	return c.startPython(ctx, ready, "infer.py", path)
}
