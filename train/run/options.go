package run

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/task"
	"github.com/gnnstore/gnnstore/train/tiers"
)

// Options is the effective configuration of a run. DefaultOptions has the defaults.
type Options struct {
	// Task is NodeTask, the default; LinkTask, whose examples LinkOptions describes; or EdgeTask,
	// which learns the edge column EdgeLabel, written as in data.Options. Of LinkOptions, EdgeTask
	// uses KeepTargets and EvalEdges.
	Task      string `json:"task,omitempty"`
	EdgeLabel string `json:"edge_label,omitempty"`
	task.LinkOptions
	model.Config
	StreamOptions
	// Fanouts[h] is the number of neighbours drawn at hop h from the seeds, sample.All for every
	// one. There are as many as layers.
	Fanouts []int `json:"fanout"`
	// RelationFanouts has fanouts of single relations, by name or key, in place of Fanouts.
	RelationFanouts map[string][]int `json:"relation_fanouts,omitempty"`
	// Sampler draws the neighbours; empty is sample.NS. LayerDependency, Poisson, Weighted and
	// Walk are as in sample.Config. An MLP draws nothing, whatever they say.
	Sampler         sample.Kind `json:"sampler"`
	LayerDependency bool        `json:"layer_dependency"`
	Poisson         bool        `json:"poisson"`
	Weighted        bool        `json:"weighted"`
	Walk            sample.Walk `json:"walk"`
	// Kappa is the κ of sample.Schedule, the number of steps whose draws depend on each other: 1
	// makes batches independent, and sample.Forever makes all steps of the run depend. Dependent
	// is the kind of dependence, Nested or Smoothed.
	Kappa     int    `json:"kappa"`
	Dependent string `json:"dependent"`
	// Batch is the number of seeds of a step; more than there are make one step an epoch. On a
	// stream it is the number of events; Auto takes as many as the stream's nodes allow.
	Batch int `json:"batch"`
	// Epochs is the number of passes over the training nodes or edges; Auto: as AutoEpochs decides.
	Epochs int `json:"epochs"`
	// EpochSteps ends an epoch after so many steps; 0: when all training nodes were seen.
	EpochSteps int     `json:"epoch_steps"`
	LR         float64 `json:"lr"` // before the schedule
	Seed       uint64  `json:"seed"`
	// Patience stops the run after this many evaluations without a better one; 0: never. Auto:
	// never if Epochs is a number, else as AutoEpochs decides.
	Patience  int `json:"patience"`
	EvalEvery int `json:"eval_every"`
	// History makes steps reuse hidden rows of earlier steps. Settings configures that, and has no
	// effect on other runs.
	History bool `json:"history,omitempty"`
	history.Settings
	// HistoryCold makes a resumed run begin without kept rows. It then has other results than a run
	// that was never cut.
	HistoryCold bool `json:"history_cold,omitempty"`
	// HistoryAudit is the number of reused rows of a step that are compared with rows computed
	// anew; 0: none. An audit comes every HistoryAuditEvery steps, 0 being DefaultAuditEvery, and
	// changes no result.
	HistoryAudit      int `json:"history_audit,omitempty"`
	HistoryAuditEvery int `json:"history_audit_every,omitempty"`
	// Optim is the rule that applies gradients, and Schedule the learning rate over the steps.
	Optim    optim.Options  `json:"optim"`
	Schedule optim.Schedule `json:"schedule"`
	// ClassWeights weighs the loss of a row by its class: "none", "balanced", or a number for each
	// class with commas between.
	ClassWeights string `json:"class_weights"`
	// Metric is the metric of evaluation. Empty is accuracy, or micro-F1 where a node has several
	// classes, MRR or ROC-AUC for LinkTask, and RMSE where numbers are learnt.
	Metric metric.Kind `json:"metric"`
	// EvalTest is TestBest, which measures the test set once, with the weights that validation
	// chose, TestEpoch, which measures it at every evaluation, or TestNone.
	EvalTest string `json:"eval_test"`
	// Eval is the way to evaluate: "full", over all neighbours; "sampled", on blocks sampled with
	// the training fanouts, from EvalNodes nodes of each part at most; or "auto", as empty: full
	// if the hidden rows fit EvalBytes.
	Eval string `json:"eval,omitempty"`
	// EvalBytes bounds the hidden rows of full-neighbour evaluation in memory. Where Eval is "full"
	// and they take more, they are on disk, in the run directory, while a part is measured. Auto is
	// an eighth of MemoryBytes where that is given, 8 MiB at least, else 2 GiB, and 0 where
	// training leaves no room for it.
	EvalBytes int64 `json:"eval_bytes"`
	EvalNodes int   `json:"eval_nodes"`
	// LayerDtype is the type of hidden rows on disk: "f32", as empty, or "f16", which takes half
	// the bytes and rounds them.
	LayerDtype string `json:"layer_dtype,omitempty"`
	// Split names the split to train on; empty where the target has just one.
	Split string `json:"split"`
	// Target is the node type to learn; empty where just one has a label and a split. For LinkTask
	// and EdgeTask it is the relation whose links or edges are learnt, as SRC,REL,DST, by name or
	// key; empty where just one has an edge split. Relation is the one relation to use, by name or
	// key; empty: all of them. Inputs has the input of the nodes of a type, by the type's name: see
	// data.Options.
	Target   string            `json:"target,omitempty"`
	Relation string            `json:"relation,omitempty"`
	Inputs   map[string]string `json:"input,omitempty"`
	// EdgeInputs has the edge columns that the network reads, by name or key of their relation, as
	// they are stored: float32, or integers as float32. table, or table:NAME, reads rows of an
	// edge table. Nothing normalises them.
	EdgeInputs map[string][]string `json:"edge_input,omitempty"`
	// CheckpointEvery is the number of steps between checkpoints, beside the one after every epoch;
	// 0: only that.
	CheckpointEvery int `json:"checkpoint_every"`
	KeepCheckpoints int `json:"keep_checkpoints"` // the newest ones
	LogEvery        int `json:"log_every"`        // steps between lines of metrics, beside the one an epoch; 0: only that
	// Init is a safetensors file of weights to begin with; empty: drawn from Seed. A run that is
	// resumed has no use for it, unless it was cut before its first checkpoint; then what it began
	// with counts.
	Init string `json:"init"`
	// InitRows has, by type name, a file of rows that the type's learnt rows begin with in place of
	// rows drawn from Seed. Hooks.OpenRows decides which kinds of file there are. A resumed
	// run uses it as it uses Init.
	InitRows map[string]string `json:"init_rows,omitempty"`
	// Device computes: one of kernels.Devices; empty is the CPU. Commands choose one by
	// kernels.Auto.
	Device string `json:"device,omitempty"`
	// MatMul is the precision of products: kernels.TF32, of a GPU with cuBLAS; empty or
	// kernels.Float32 is float32.
	MatMul kernels.Precision `json:"matmul,omitempty"`
	// Kernels is the kernel set of the CPU, one of kernels.Sets; empty or "auto" is the fastest.
	Kernels string `json:"kernels"`
	WorkerOptions
	tiers.Options
	// Left names the options, by key, that were not given, so that Settle may choose them. It is
	// not recorded; the record has the chosen values.
	Left map[string]bool `json:"-"`
}

// DefaultAuditEvery is the number of steps from one audit to the next. Audits of 256 nodes then
// read a thirtieth of what steps of 1000 seeds with fanouts of 10,10 read (ogbn-arxiv).
const DefaultAuditEvery = 20

// Auto stands for a budget that is a part of MemoryBytes, and for epochs that a run decides on.
const Auto = tiers.Auto

// NoDevice as Cache.DeviceBytes is [tiers.NoDevice].
const NoDevice = tiers.NoDevice

// DefaultOptions trains a two-layer GraphSAGE.
func DefaultOptions() Options {
	return Options{
		Config:  model.Config{Kind: model.SAGE, Layers: 2, Hidden: 128, Dropout: 0.5, Norm: "layer", Heads: 8},
		Fanouts: []int{15, 10}, Sampler: sample.NS, Walk: sample.DefaultWalk, Kappa: 1, Dependent: Nested,
		Batch: 1000, Epochs: Auto, Patience: Auto, LR: 0.003, Seed: 1, ClassWeights: task.NoWeights,
		Optim:    optim.Options{Kind: optim.Adam, Rows: optim.RowAdam},
		Schedule: optim.Schedule{Kind: optim.Constant}, Kernels: "auto",
		EvalEvery: 1, EvalTest: TestBest, EvalBytes: Auto, EvalNodes: 20000,
		KeepCheckpoints: 2, LogEvery: 100, Options: tiers.DefaultOptions(),
	}
}

// DefaultLR is the learning rate of o where none was asked for. Rows alone take larger steps than
// the weights of a network, since a step changes few of them: Adagrad begins with the 0.1 that
// knowledge graphs are embedded with (Lacroix et al. 2018; Marius, PyTorch-BigGraph), and Adam with
// the best of 0.003, 0.01, 0.03 and 0.1 on WN18RR in 15 epochs of 1000 links a step. Decoders by
// distance need smaller steps: after five epochs on WN18RR the validation MRR of RotatE is 0.31 at
// a rate of 0.005, and 0.10 at 0.02.
func (o Options) DefaultLR() float64 {
	switch {
	case o.Layers > 0 || !o.Links():
		return DefaultOptions().LR
	case o.Optim.Rows == optim.RowAdagrad:
		return 0.1
	case o.Decoder.Distance():
		return 0.005
	}
	return 0.03
}

// DefaultMargin is the margin of decoders that score by distances, as Sun et al. (2019) have it for
// FB15k-237.
const DefaultMargin = 9.0

// UnmarshalJSON reads options from the record of a run. An option that the recording version had no
// key for gets the value that this version acted by.
func (o *Options) UnmarshalJSON(text []byte) error {
	type plain Options
	recorded := plain{Sampler: sample.NS, Walk: sample.DefaultWalk, Kappa: 1, Dependent: Nested, Optim: optim.Options{Rows: optim.RowAdam}}
	err := json.Unmarshal(text, &recorded)
	*o = Options(recorded)
	return err
}

// Values of Options.Dependent. Nested batches use the same random numbers for κ steps, then others.
// Smoothed batches use numbers that drift from the ones to the others over κ steps.
const (
	Nested   = "nested"
	Smoothed = "smoothed"
)

// Values of Options.Task.
const (
	NodeTask = "node" // the classes of nodes, or their numbers
	LinkTask = "link" // the edges of a relation
	EdgeTask = "edge" // the classes of the edges of a relation, or their numbers
)

// Values of Options.EvalTest.
const (
	TestBest  = "best"
	TestEpoch = "epoch"
	TestNone  = "none" // the test part is not measured
)

// Links reports whether links are learnt.
func (o Options) Links() bool { return o.Task == LinkTask }

// Edges reports whether classes or numbers of edges are learnt.
func (o Options) Edges() bool { return o.Task == EdgeTask }

// WithDefaults returns o with the defaults that depend on its task.
func (o Options) WithDefaults() Options {
	if o.Links() {
		o.LinkOptions, o.Decoder = o.LinkOptions.Filled(), cmp.Or(o.Decoder, model.Dot)
		if o.Decoder.Distance() {
			o.Margin = cmp.Or(o.Margin, DefaultMargin)
		}
	}
	if o.Edges() {
		o.Decoder = cmp.Or(o.Decoder, model.PairMLP)
	}
	return o
}

// validateTask checks the options of the task, and refuses options of another task.
func (o Options) validateTask() error {
	var errs sample.Problems
	fail := errs.If
	if o.Edges() {
		return errors.Join(append(errs, o.validateEdges())...)
	}
	fail(o.Layers == 0 && !o.Links(), "{layers} 0: rows as they are say nothing of classes; take it with {task} link, or {layers} 1 or more")
	if !o.Links() {
		fail(o.Metric != "" && !slices.Contains(metric.Kinds, o.Metric) && !o.Metric.OfNumbers(),
			"{metric} %s: there are %s, of numbers %s, and with {task} link %s", o.Metric, sample.Names(metric.Kinds), sample.Names(metric.NumberKinds),
			metric.LinkKinds)
		return errors.Join(errs...)
	}
	fail(o.Decoder == model.Linear, "{decoder} linear: it is of {task} edge; of {task} link there are %s", sample.Names(model.Decoders))
	fail(o.Metric != "" && !o.Metric.OfLinks(), "{metric} %s: of {task} link there are %s", o.Metric, metric.LinkKinds)
	fail(o.ClassWeights != "" && o.ClassWeights != task.NoWeights, "{class_weights}: links have no classes; leave it out with {task} link")
	fail(o.LabelInput > 0, "{label_input} %d: labels are of {task} node; leave it out with {task} link", o.LabelInput)
	fail(o.Split != "", "{split} %s: links are split when they are ingested, by {edge_split}; leave it out with {task} link", o.Split)
	fail(o.Sampler.Walks() && !o.KeepTargets, "{sampler} rw: walks pass along the links that are scored; take ns, labor0 or labor-star, "+
		"or leave these links in with {keep_targets}")
	return errors.Join(append(errs, o.LinkOptions.Validate())...)
}

// validateEdges is validateTask for EdgeTask.
func (o Options) validateEdges() error {
	var errs sample.Problems
	fail := errs.If
	fail(o.EdgeLabel == "", "{task} edge: say by {edge_label} which column of the edges is learnt: COLUMN, COLUMN:sign or COLUMN:value")
	fail(o.EvalEdges < 0, "{eval_edges} %d: at least 0, which is all", o.EvalEdges)
	fail(o.Decoder != "" && !slices.Contains(model.EdgeDecoders, o.Decoder), "{decoder} %s: of {task} edge there are %s", o.Decoder,
		sample.Names(model.EdgeDecoders))
	kinds := metric.Kinds
	if strings.HasSuffix(o.EdgeLabel, ":value") {
		kinds = metric.NumberKinds
	}
	fail(o.Metric != "" && !slices.Contains(kinds, o.Metric), "{metric} %s: of {task} edge with {edge_label} %s there are %s", o.Metric, o.EdgeLabel,
		sample.Names(kinds))
	fail(o.LabelInput > 0, "{label_input} %d: labels are of {task} node; leave it out with {task} edge", o.LabelInput)
	fail(o.Split != "", "{split} %s: edges are split when they are ingested, by {edge_split}; leave it out with {task} edge", o.Split)
	fail(o.Sampler.Walks() && !o.KeepTargets, "{sampler} rw: walks pass along the edges that are learnt; take ns, labor0 or labor-star, "+
		"or leave these edges in with {keep_targets}")
	return errors.Join(errs...)
}

// Validate reports every problem.
func (o Options) Validate() error {
	d := o.defaults()
	return errors.Join(Table.Check(&o, &d), o.validateTogether())
}

// validateTogether reports what Table.Check does not see: options that do not go together, and
// options of other packages.
func (o Options) validateTogether() error {
	if o.Streams() {
		return errors.Join(o.validateStream(), o.validateRun())
	}
	return errors.Join(o.validateGraph(), o.validateRun())
}

// validateGraph checks the options of networks for graphs.
func (o Options) validateGraph() error {
	errs := sample.Problems{o.Config.Validate(), o.validateTask()}
	fail := errs.If
	fail(len(o.Fanouts) != o.Layers, "{fanout} has %d numbers and {layers} is %d: one a layer", len(o.Fanouts), o.Layers)
	draws := o.draws()
	draws.Fanouts = nil
	for _, k := range slices.Compact(slices.Sorted(slices.Values(o.Fanouts))) {
		if k != sample.All && (k < 1 || k > math.MaxInt32) {
			fail(true, "{fanout} %d: at least 1, or -1 for every neighbour", k)
		} else {
			draws.Fanouts = append(draws.Fanouts, k)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.RelationFanouts)) {
		fanouts := o.RelationFanouts[name]
		fail(len(fanouts) != o.Layers, "{fanout} %s has %d numbers and {layers} is %d: one a layer", name, len(fanouts), o.Layers)
		for _, k := range fanouts {
			fail(k < sample.All || k > math.MaxInt32, "{fanout} %s %d: at least 0, or -1 for every neighbour", name, k)
		}
	}
	errs = append(errs, draws.Validate(), o.validateEdgeInputs(), o.validateHistory())
	errs = append(errs, o.validateWorkers()...)
	if o.ClassWeights != "" && o.ClassWeights != task.NoWeights && o.ClassWeights != task.BalancedWeights {
		_, err := task.ParseWeights(o.ClassWeights)
		fail(err != nil, "{class_weights} %s: %v", o.ClassWeights, err)
	}
	fail(o.Eval == "full" && o.Sampler.Walks(), "{eval} full: {sampler} rw weighs the nodes that walks visit, and knows no weights for "+
		"all neighbours; take {eval} sampled")
	fail(o.Batch == Auto, "{batch} auto: only networks for streams choose it; give a number of seeds")
	fail(o.EvalBytes < Auto, "{eval_bytes} %d: at least 0", o.EvalBytes)
	return errors.Join(errs...)
}

// validateRun checks the options that all runs have.
func (o Options) validateRun() error {
	errs := []error{
		o.Optim.Validate(), o.Schedule.Validate(), validateDevice(o.Device), validateMatMul(o.MatMul, o.Device),
	}
	if !kernels.IsCPU(o.Device) && o.Kernels != "" && o.Kernels != "auto" {
		errs = append(errs, fmt.Errorf("{kernels} %s: a set for the CPU; leave it out with {device} %s", o.Kernels, o.Device))
	}
	if kernels.IsCPU(o.Device) {
		errs = append(errs, validateKernels(o.Kernels, o.MatMul))
	}
	return errors.Join(append(errs, o.Options.Validate())...)
}

// validateDevice returns an error if this build has no such device.
func validateDevice(name string) error {
	if _, err := kernels.ParseDevice(name); err != nil {
		return fmt.Errorf("{device} %w", err)
	}
	return nil
}

// validateMatMul returns an error if no such device has products of this precision.
func validateMatMul(p kernels.Precision, device string) error {
	switch {
	case p == kernels.TF32 && kernels.IsCPU(device):
		return fmt.Errorf("{matmul} %s: the CPU computes products in f32 or bf16; take {device} cuda, or {matmul} f32", p)
	case p == kernels.BF16 && !kernels.IsCPU(device):
		return fmt.Errorf("{matmul} %s: a GPU computes products in f32 or tf32; take {device} cpu, or {matmul} f32", p)
	}
	return nil
}

// validateKernels returns an error if this machine lacks a kernel set with products of this
// precision.
func validateKernels(set string, p kernels.Precision) error {
	_, err := kernels.ParseSet(set, p)
	switch {
	case err == nil, len(kernels.SetsOf(p)) == 0: // then validateMatMul has an error
		return nil
	case set == "" || set == "auto":
		return fmt.Errorf("{matmul} %s: %w; take {matmul} f32, or {kernels} %s", p, err, kernels.SetsOf(p)[0])
	case p != kernels.BF16 && slices.Contains(kernels.SetsOf(kernels.BF16), kernels.Set(set)):
		return fmt.Errorf("{kernels}: %w; or take {matmul} bf16", err)
	}
	return fmt.Errorf("{kernels}: %w", err)
}

// validateEdgeInputs checks EdgeInputs as far as that needs no graph.
func (o Options) validateEdgeInputs() error {
	var errs sample.Problems
	fail := errs.If
	for _, name := range slices.Sorted(maps.Keys(o.EdgeInputs)) {
		columns := o.EdgeInputs[name]
		for i, c := range columns {
			fail(slices.Contains(columns[:i], c), "{edge_input} %s: column %s is there twice", name, c)
		}
		fail(len(columns) == 0 || slices.Contains(columns, ""),
			"{edge_input} %s: it names no column; write %s=COLUMN, or several with commas between", name, name)
	}
	switch {
	case len(o.EdgeInputs) == 0:
	case !o.Kind.ReadsEdges():
		fail(true, "{edge_input}: {model} %s reads no values of edges; take %s", o.Kind, model.EdgeKinds())
	default:
		fail(o.Sampler.Walks(), "{edge_input}: {sampler} rw visits nodes and draws no edges; take ns, labor0 or labor-star")
	}
	return errors.Join(errs...)
}

// validateHistory checks the options of reusing hidden rows.
func (o Options) validateHistory() error {
	var errs sample.Problems
	fail := errs.If
	if !o.History {
		return nil
	}
	fail(o.Kind.All() == 0, "{history}: {model} %s draws no neighbours, so there are no rows to use again; take a network that does", o.Kind)
	fail(o.Kind.All() != 0 && o.Layers < 2, "{history}: it keeps the rows between layers, and {layers} is %d; take 2 or more", o.Layers)
	fail(o.LabelInput > 0, "{history}: with {label_input} a row that is kept may hold the label of a later seed; leave one of the two out")
	fail((o.Links() || o.Edges()) && !o.KeepTargets, "{history}: a row that is kept may hold an edge that a later step learns; leave {history} out, or "+
		"have such edges stay with {keep_targets}")
	return errors.Join(append(errs, o.Settings.Validate())...)
}

// maxAudit is the most nodes of an audit: it takes time, and no more is learnt from more of them.
const maxAudit = 1 << 20

// draws returns the configuration of sampling, for a network that reads neighbours.
func (o Options) draws() sample.Config {
	return sample.Config{
		Kind: o.Sampler, Fanouts: o.Fanouts, LayerDependency: o.LayerDependency, Poisson: o.Poisson, Weighted: o.Weighted,
		Smoothed: o.Dependent == Smoothed && o.Kappa != 1, Walk: o.Walk, Options: o.Kind.Sampling(),
	}
}

// Sampling returns the configuration of sampling. An MLP, and a run without layers, draw nothing.
func (o Options) Sampling() sample.Config {
	if o.Layers == 0 {
		return sample.Config{Fanouts: []int{0}}
	}
	if o.Kind.All() == 0 {
		return sample.Config{Fanouts: make([]int, o.Layers), Options: o.Kind.Sampling()}
	}
	return o.draws()
}

// BatchSeeds returns the schedule of the random numbers that batches are drawn from.
func (o Options) BatchSeeds() sample.Schedule { return sample.Schedule{Seed: o.Seed, Kappa: o.Kappa} }

// Draws describes the sampling for people, as in "labor0, kappa 64 smoothed". It returns "" for
// plain NS with independent batches.
func (o Options) Draws() string {
	c := o.Sampling()
	words := []string{cmp.Or(string(c.Kind), string(sample.NS))}
	add := func(when bool, format string, args ...any) {
		if when {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(c.Kind.Walks(), "%d walks of %d", c.Walk.Walks, c.Walk.Length)
	add(c.Weighted, "weighted")
	add(c.Poisson, "poisson")
	add(c.LayerDependency, "layer dependency")
	add(o.Kappa != 1 && o.Kind.All() != 0, "kappa %s %s", sample.KappaText(o.Kappa), o.Dependent)
	if len(words) == 1 && words[0] == string(sample.NS) {
		return ""
	}
	return strings.Join(words, ", ")
}
