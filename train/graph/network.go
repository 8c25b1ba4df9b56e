package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/infer"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/run"
	tasks "github.com/gnnstore/gnnstore/train/task"
)

// NetworkOptions choose the weights of a run, and the memory and the disk to use them in.
type NetworkOptions struct {
	run.Use
	// Metric is the metric of Measure. Empty: the run's.
	Metric metric.Kind
	// Hold is the data that a layer holds in memory while it reads the layer below:
	// infer.Options.Hold. Default: the choice that reads for less time.
	Hold infer.Hold
	// LayerDtype is as in run.Options; empty: the run's.
	LayerDtype string
	// Unseen is for nodes of another dataset that the run has learnt no row for: empty refuses
	// them, and MeanOfLearnt gives them the mean row.
	Unseen string
	// Predicts promises that Measure is not called, so that nothing is kept ready for it.
	Predicts bool
	// Probe prepares for FitProbe.
	Probe bool
	// GoesOn makes a Predict that is cut short leave its finished rows in Scratch, and the next
	// Predict start after them.
	GoesOn bool
}

// Validate reports every problem.
func (o NetworkOptions) Validate() error {
	errs := []error{o.Use.Validate()}
	if o.Metric != "" && !slices.Contains(metric.Kinds, o.Metric) && !o.Metric.OfLinks() && !o.Metric.OfNumbers() {
		errs = append(errs, fmt.Errorf("{metric} %s: there are accuracy, micro-f1, macro-f1 and roc-auc, of numbers rmse and mae, and of links %s", o.Metric, metric.LinkKinds))
	}
	if o.Unseen != "" && o.Unseen != MeanOfLearnt {
		errs = append(errs, fmt.Errorf("{unseen} %s: there is mean", o.Unseen))
	}
	if !slices.Contains([]infer.Hold{infer.HoldAuto, infer.HoldRows, infer.HoldSums}, o.Hold) {
		errs = append(errs, fmt.Errorf("{way} %s: there are %s", o.Hold, strings.Join(infer.Holds, ", ")))
	}
	if !slices.Contains([]string{"", "f32", "f16"}, o.LayerDtype) {
		errs = append(errs, fmt.Errorf("{layer_dtype} %s: there are f32 and f16", o.LayerDtype))
	}
	return errors.Join(errs...)
}

// fits returns an error if a run of these options has no use for one of o.
func (o NetworkOptions) fits(with run.Options) error {
	switch {
	case with.Links() && o.Metric != "" && !o.Metric.OfLinks():
		return fmt.Errorf("{metric} %s: it learns links, of which there are %s", o.Metric, metric.LinkKinds)
	case !with.Links() && o.Metric != "" && !slices.Contains(metric.Kinds, o.Metric) && !o.Metric.OfNumbers():
		return fmt.Errorf("{metric} %s: it learns classes of nodes, of which there are accuracy, micro-f1, macro-f1 and roc-auc; of their numbers rmse and mae", o.Metric)
	case o.Probe && (with.Links() || with.Edges()):
		return errors.New("{baseline}: the linear model is one of nodes, and this run learns links or edges; leave it out")
	case !with.Links() && o.EvalNegatives != "":
		return fmt.Errorf("{eval_negatives} %s: it learns classes of nodes, which are not measured among negatives; leave it out", o.EvalNegatives)
	}
	return nil
}

// Network is the trained network of a run, to measure it and to predict with. It computes over all
// neighbours, within the memory budget of a training run. Hidden rows take the rest of that budget,
// or are in NetworkOptions.Scratch. One goroutine at a time.
type Network struct {
	run.Used
	Objective
	c        *core
	rowBytes int64 // memory that rows of links' ends may take
	other    bool  // its dataset is not the one that the run trained on
	learnt   *learntElsewhere
	columns  *nodeColumns // nil before FitProbe, as probe is
	probe    *tasks.Probe
	release  func() error // releases the run's lock, if learnt rows are read; else nil
}

// OpenNetwork loads the weights of the run that run.Look found, with the dataset that it trained
// on, or with another of the same schema: see comparable. Nothing is written to the run. If rows
// are learnt, their files are read, so the run may not go on until Close.
func OpenNetwork(
	ctx context.Context, ds *store.Dataset, dir *run.Dir, o NetworkOptions, h run.Hooks,
) (*Network, error) {
	return openNetwork(ctx, ds, dir, o, h, internal{})
}

func openNetwork(
	ctx context.Context, ds *store.Dataset, dir *run.Dir, o NetworkOptions, h run.Hooks, in internal,
) (_ *Network, err error) {
	defer kernels.RecoverMemory(&err)
	if err := o.Validate(); err != nil {
		return nil, err
	}
	record, with := dir.Record(), o.of(dir.Record())
	if err := o.fits(with); err != nil {
		return nil, dir.About(err)
	}
	n := &Network{other: ds.Manifest().Whole() != record.Seal}
	if n.other {
		known, err := comparable(dir, ds, func(format string, args ...any) {
			if h.Note != nil {
				h.Note(fmt.Sprintf(format, args...))
			}
		})
		if err != nil {
			return nil, dir.About(err)
		}
		in.known, with.Inputs = known, known.Inputs
		if known.Learns {
			if n.learnt, err = bringLearnt(ctx, ds, dir, o, h, in.faults); err != nil {
				return nil, dir.About(err)
			}
			defer func() {
				if n.c == nil {
					n.learnt.close()
				}
			}()
			known.rows = n.learnt.tables
		}
		if !slices.ContainsFunc(ds.Manifest().Splits, func(s store.Split) bool { return s.Name == with.Split }) {
			with.Split = "" // the only one
		}
	}
	in.beside, in.probe = func(int64) int64 { return o.Beside }, o.Probe
	if !with.Sampler.Walks() {
		in.fixed = &fixed{o.Scratch != "", o.Predicts}
	}
	if with.Links() || with.Edges() {
		nodes := int64(0)
		for _, t := range ds.Manifest().NodeTypes {
			nodes += t.Count
		}
		rowBytes := func(total int64) int64 {
			if with.MemoryBytes > 0 {
				return total / 8
			}
			return 1 << 30
		}
		n.rowBytes = rowBytes(with.MemoryBytes)
		in.beside = func(total int64) int64 { // rows, those that are scored together, and lists of their nodes
			rows := rowBytes(total)
			return o.Beside + min(rows, 4*int64(with.Hidden)*nodes) + chunkBytes(8*rows) + 5*nodes
		}
	}
	if n.c, err = newCore(ctx, ds, with, h, in); err != nil {
		return nil, err
	}
	n.Objective = Objective{n.c.data, n.c.task}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	n.c.Dir = dir
	if n.c.learnt.any() {
		switch owners, workers := dir.Owners(), h.Group.Size(); {
		case owners == 0 && workers > 1:
			return nil, dir.About(errors.New("its learnt rows are of one worker, which needs the whole dataset; give that"))
		case max(owners, 1) != workers:
			return nil, dir.About(fmt.Errorf("its learnt rows are dealt out among %d workers, and there are %d here; use as many",
				owners, workers))
		}
		if n.release, err = dir.Share(); err != nil {
			return nil, err
		}
	}
	n.c.place(run.WorkerDir(dir.Path(), h.Group.Rank()))
	n.c.eval.Dir, n.c.eval.FS, n.c.eval.Hold = o.Scratch, nil, o.Hold
	if err := n.c.eval.CheckHold(); err != nil {
		return nil, dir.About(err)
	}
	if err := n.load(ctx, o.Use); err != nil {
		return nil, err
	}
	if o.GoesOn {
		n.c.eval.Of = fmt.Sprintf("run %s, %d updates", dir.Path(), n.Updates)
	}
	return n, nil
}

// of returns the options of a recorded run, with o's options in their place.
func (o NetworkOptions) of(record *run.Record) run.Options {
	with := o.Use.Of(record)
	if o.Metric != "" {
		with.Metric = o.Metric
	}
	if o.LayerDtype != "" {
		with.LayerDtype = o.LayerDtype
	}
	with.EvalBytes, with.Eval, with.ClassWeights = run.Auto, string(infer.Full), tasks.NoWeights
	with.History, with.Settings = false, history.Settings{} // no step is taken
	if with.Sampler.Walks() {
		with.Eval = ""
	}
	return with
}

// load takes the weights that u chooses. It restores learnt rows to their checkpoint.
func (n *Network) load(ctx context.Context, u run.Use) error {
	t := n.c
	name, s, err := t.Dir.LoadLatest(u.OlderCheckpoint, t.Note)
	if err != nil {
		return err
	}
	if err := n.take(ctx, s, u); err != nil {
		return fmt.Errorf("run %s: %s: %w", t.Dir.Path(), name, err)
	}
	return nil
}

// take loads the parts of a checkpoint that the network consists of.
func (n *Network) take(ctx context.Context, s *checkpoint.State, u run.Use) (err error) {
	t, at := n.c, new(run.Progress)
	if t.learnt.any() {
		run.OwnMeta(s.Meta, t.Hooks.Group.Rank(), embeddingsKey)
	}
	used := append(t.NetworkParts(at), learntState{t.learnt, at})
	if n.other { // its steps and its seal differ from the run's
		if err := json.Unmarshal([]byte(s.Meta[progressKey]), at); err != nil {
			return fmt.Errorf("%s: %w", progressKey, err)
		}
	} else if err := t.CheckProgress(s, at, at); err != nil {
		return err
	}
	if err := used.Check(s); err != nil {
		return err
	}
	if n.Used, err = u.Pick(at); err != nil {
		return err
	}
	if err := used.Load(s); err != nil {
		return err
	}
	if err := t.learnt.look(ctx); err != nil {
		return err
	}
	if n.Checkpoint == run.LastWeights {
		return nil
	}
	t.model.Upload(t.Best)
	t.Result.Best = at.SoFar.Best
	if t.learnt.any() && n.Updates != at.Updates {
		_, err := t.learnt.showBest(ctx) // Close needs no way back: nothing is written
		return err
	}
	return nil
}

// Follow calls show after each chunk of nodes: done of the nodes of type kind have their rows of a
// layer. The first layer is 1.
func (n *Network) Follow(show func(layer, layers int, kind string, done, nodes int)) {
	n.c.eval.Progress = func(p infer.Progress) { show(p.Layer, p.Layers, p.Type, p.Done, p.Nodes) }
}

// FollowLayers calls show when a layer is finished for all nodes of a type.
func (n *Network) FollowLayers(show func(r infer.Report)) { n.c.eval.Reported = show }

// FollowSpace calls show before hidden rows are written, with the most bytes that they take in
// NetworkOptions.Scratch and the bytes free there, or -1 if that is not known. beside is the bytes
// that the caller writes there meanwhile.
func (n *Network) FollowSpace(beside int64, show func(bytes, free int64)) {
	n.c.eval.SpaceBeside, n.c.eval.Space = beside, show
}

// Left reports whether the last computation was cut short and left rows of layers in
// NetworkOptions.Scratch, for the next one to go on after them.
func (n *Network) Left() bool { return n.c.eval.Left() }

// Tidy removes rows that others have left in NetworkOptions.Scratch. It is for a caller that
// already has all predictions that the rows were for.
func (n *Network) Tidy() error { return n.c.eval.Tidy() }

// PlanPredict returns the plan by which Predict would compute the layers up to layer for nodes of
// type kind, with its reads. It returns nil for layer 0, which is not computed.
func (n *Network) PlanPredict(layer, kind int, nodes []uint32) ([]infer.Planned, error) {
	switch {
	case layer == 0:
		return nil, nil
	case n.c.eval.Walks():
		return nil, errWalks
	}
	return n.c.eval.Plan(layer-1, kind, nodes)
}

// Measured is the metric of some nodes, or links. Its JSON keys are stable.
type Measured struct {
	Nodes string   `json:"nodes"` // train, valid, test or all-labelled
	Count int      `json:"count"` // nodes with a label, or measured links or edges
	Value *float64 `json:"value"` // null where the metric has none
	// Baseline is the metric of an answer without a network, which BaselineOf names. Constant is
	// the network's answer, if it gave the same one everywhere.
	Baseline   *float64 `json:"baseline,omitempty"`
	BaselineOf string   `json:"baseline_of,omitempty"`
	// RankedWithin is as in run.LinksOf.
	RankedWithin map[string]float64 `json:"ranked_within,omitempty"`
	// Probe is the metric of the linear model of FitProbe.
	Probe    *float64 `json:"linear_probe,omitempty"`
	Constant string   `json:"constant_prediction,omitempty"`
	// Report has other measures, and each class, where one worker learns classes.
	Report *metric.Report `json:"report,omitempty"`
	Why    string         `json:"why,omitempty"`
	// Method is "full", over all neighbours, or, of networks of random walks, "sampled".
	Method    string  `json:"method"`
	Seconds   float64 `json:"seconds"`
	BytesRead int64   `json:"bytes_read"` // of feature rows, from disk
	// Layers reports on the computation of each layer for the nodes of each type, beside its plan.
	Layers []infer.Report `json:"layers"`
}

// LabelledParts has the parts of nodes that Measure accepts.
var LabelledParts = []string{"train", "valid", "test", "all-labelled"}

// Measure returns the metric of the nodes with a label, in a part of the split or everywhere.
// For edges and links it is the metric of a part of the edge split, among the negatives of the
// run's evaluation. Training links are measured while messages pass along them.
func (n *Network) Measure(ctx context.Context, part string) (m Measured, err error) {
	defer kernels.RecoverMemory(&err)
	if n.c.internal.fixed.unmeasured() {
		panic("graph: Measure of a Network that only predicts")
	}
	began, before := time.Now(), n.bytesRead()
	m = Measured{Nodes: part, Method: n.c.eval.Method(), Layers: []infer.Report{}}
	defer n.FollowLayers(n.c.eval.Reported)
	n.FollowLayers(func(r infer.Report) { m.Layers = append(m.Layers, r) })
	nodes, err := n.measured(ctx, &m)
	if err != nil {
		return m, err
	}
	take := n.c.startReport()
	v, ok, err := n.c.eval.Measure(ctx, nodes)
	report := take()
	m.Seconds, m.BytesRead = time.Since(began).Seconds(), n.bytesRead()-before
	switch {
	case errors.Is(err, metric.ErrUndefined):
		m.Why = err.Error()
	case err != nil:
		return m, err
	case ok:
		m.Value, m.Why, m.Constant, m.Report, m.RankedWithin = &v, "", n.c.task.Constant(), report, n.c.rankedWithin()
		b, err := n.c.task.Baseline(ctx, nodes)
		if err != nil {
			return m, err
		}
		if b != nil {
			m.Baseline, m.BaselineOf = &b.Value, b.What
		}
	}
	if n.probe != nil && len(nodes) > 0 {
		v, err := n.probe.Measure(ctx, nodes[n.c.data.Target])
		if err == nil {
			m.Probe = &v
		} else if !errors.Is(err, metric.ErrUndefined) {
			return m, fmt.Errorf("{baseline}: %w", err)
		}
	}
	return m, n.c.data.Set.Unchanged()
}

// measured returns the nodes to evaluate for m, by type, or none if there is nothing to measure. It
// sets m.Count, and in m.Why the reason for nothing.
func (n *Network) measured(ctx context.Context, m *Measured) (nodes [][]uint32, err error) {
	if n.Edges() {
		return n.heldOut(ctx, m)
	}
	links, ok := n.c.task.(*tasks.Links)
	if !ok {
		nodes, err := labelled(n.c.data, m.Nodes)
		m.Count, m.Why = len(nodes), "no node of it has a label"
		return n.c.data.Seeds(nodes), err
	}
	parts := []tasks.Part{tasks.Train, tasks.Valid, tasks.Test}
	i := slices.IndexFunc(parts, func(p tasks.Part) bool { return p.String() == m.Nodes })
	if i < 0 {
		return nil, fmt.Errorf("{nodes} %s: links have the parts train, valid and test", m.Nodes)
	}
	if m.Count, m.Why = links.Count(parts[i]), "it has no links"; m.Count == 0 {
		return nil, nil
	}
	if err := links.Measurable(parts[i]); err != nil { // as it is of links of training where negatives are given
		m.Why = err.Error()
		return nil, nil
	}
	err = store.Guard(func() error {
		nodes, err = links.Part(ctx, parts[i])
		return err
	})
	return nodes, err
}

// heldOut is measured for a run that learns edges. It does not measure training edges: messages
// pass along them and would give them away.
func (n *Network) heldOut(ctx context.Context, m *Measured) (nodes [][]uint32, err error) {
	edges, parts := n.c.task.(*tasks.Edges), []tasks.Part{tasks.Valid, tasks.Test}
	i := slices.IndexFunc(parts, func(p tasks.Part) bool { return p.String() == m.Nodes })
	switch {
	case n.other:
		m.Why = "what is learnt of edges is measured on the dataset that the run trained on, and on no other one"
		return nil, nil
	case m.Nodes == tasks.Train.String():
		m.Why = "messages along edges that were trained on would tell them"
		return nil, nil
	case i < 0:
		return nil, fmt.Errorf("{nodes} %s: edges are measured where they are held out, in the parts valid and test", m.Nodes)
	}
	if m.Count, m.Why = edges.Count(parts[i]), "it has no edges"; m.Count == 0 {
		return nil, nil
	}
	err = store.Guard(func() error {
		nodes, err = edges.Part(ctx, parts[i])
		return err
	})
	return nodes, err
}

// labelled returns the nodes of a part that have a label.
func labelled(d *data.Data, part string) (nodes []uint32, err error) {
	switch part {
	case "train":
		return d.Train, nil
	case "valid":
		return d.Valid, nil
	case "test":
		return d.Test, nil
	case "all-labelled":
		if d.NoLabels {
			return nil, nil
		}
		err = store.Guard(func() error {
			for v := range uint32(d.Types[d.Target].Nodes) {
				if d.Labels.Has(v) {
					nodes = append(nodes, v)
				}
			}
			return nil
		})
		return nodes, err
	}
	return nil, fmt.Errorf("{nodes} %s: there are train, valid, test and all-labelled", part)
}

// Cost returns the bytes read so far for rows of features and of hidden layers, and the peaks of
// memory.
func (n *Network) Cost() run.Cost { return n.c.Peak.Cost(n.bytesRead()) }

func (n *Network) bytesRead() int64 {
	return cachetier.Sum(n.c.tiers.Stats()).Disk.BytesRead + n.c.eval.DiskRead().BytesRead + n.columns.bytesRead()
}

// Metric returns the metric of Measure.
func (n *Network) Metric() metric.Kind { return n.c.task.Kind() }

// Data returns the data that the network is used on.
func (n *Network) Data() *data.Data { return n.c.data }

// Close gives up memory, files and the run.
func (n *Network) Close() error {
	err := n.closeProbe()
	n.c.Close()
	if n.learnt != nil {
		n.learnt.close()
	}
	if n.release != nil {
		err = errors.Join(err, n.release())
	}
	return err
}
