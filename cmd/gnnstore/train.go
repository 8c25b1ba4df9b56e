package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/live"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/stream"
)

type trainOptions struct {
	run.Options
	kind, sampler    string
	fanouts          *fanouts
	inputs           named
	initRows         named
	edges            *edgeInputs
	history          *historyFlags
	stream           *streamFlags
	kappa            kappa
	epochs, patience autoCount
	optimizer        string
	embedOptimizer   string
	schedule, metric string
	policy, engine   string
	device           byteSize
	host, topology   autoSize
	eval             autoSize
	batch            autoSize // blocks in flight
	spill            autoSize
	memory           byteSize
	run, listen      string
	resume           bool
	plan             bool
	json             bool
	brief            bool // a line an evaluated epoch only
	told             bool // --model was given, or is on record
}

func newTrain() *cobra.Command {
	o := &trainOptions{
		Options: run.DefaultOptions(),
		policy:  string(cachetier.Belady), engine: string(disk.Auto),
	}
	o.texts()
	cmd := &cobra.Command{
		Use:   "train DATASET",
		Short: "Train a network on a dataset",
		Long: "Train a network on a sealed dataset and keep the record in a run directory.\n\n" +
			"The same dataset, options and seed give the same losses and weights, bit for bit, at any --workers, --*-memory,\n" +
			"--policy and --disk-engine. Ctrl-C, a closed terminal or SIGTERM ends it at the next step, with a checkpoint. After\n" +
			"that, or after a crash, --resume with the same --run goes on at the step after the newest checkpoint, with the options\n" +
			"it began with, and ends with the weights that it would have had. Then DATASET may be left out.\n\n" +
			"Without --epochs, a run says at the start how long it trains and why, and at the end what ended it: it makes the\n" +
			"epochs that 500 updates take, and goes on until 20 more have brought no better validation, up to 5,000 updates or\n" +
			"50 epochs, whichever is more. Without validation nodes, with --patience 0 and with --schedule cosine it makes the\n" +
			"epochs that 500 updates take, and 10 at least. Where going once through all examples takes more than 2,000 steps, an\n" +
			"epoch ends, and is validated, after 500 or a twentieth of them.\n\n" +
			"Some values go by what is learnt, unless given: up to 1,000 labelled nodes of one type, links among nodes with learnt\n" +
			"rows, 100 or more a node, and links of several relations have settings of their own, which the run says at the start.\n\n" +
			"--model tgn, jodie and apan learn from a stream of events which of them come next. Times and neighbours are those before an\n" +
			"event, and what the nodes have is the state that earlier events left. They have one layer, and unless told otherwise 10 neighbours,\n" +
			"100 columns and a learning rate of 0.001. A step has as many events as a node can have in it without missing much, 50 to 600: the line\n" +
			"of the batch says how many. TGN tells nodes of one type without features apart by random columns: see --identity.",
		Example: "  gnnstore train arxiv.gnn --fanout 15,10,5 --hidden 256 --epochs 20 --host-memory 1GiB\n" +
			"  gnnstore train arxiv.gnn --sampler labor0 --kappa 64 --dependent smoothed --memory 256MiB\n" +
			"  gnnstore train wiki.gnn --model tgn --epochs 5\n" +
			"  gnnstore train arxiv.gnn --run runs/long --checkpoint-every 200\n" +
			"  gnnstore train --resume --run runs/long\n" +
			"  gnnstore stats runs/long --watch",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.resume && len(args) == 0 {
				return nil
			}
			return exactArgs("DATASET")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			path := ""
			if len(args) > 0 {
				path = args[0]
			}
			if o.resume && o.run == "" {
				return misuse(errors.New("--resume needs --run DIR, the directory of the run to go on with"))
			}
			if o.resume && run.Begun(o.run) {
				return resumeTrain(cmd, path, o)
			}
			if err := o.resolve(cmd.Flags().Changed); err != nil {
				return misuse(err)
			}
			if path == "" {
				return misuse(fmt.Errorf("%s holds no run, so DATASET is missing", o.run))
			}
			if o.plan {
				return planTrain(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), path, o)
			}
			if o.resume {
				return resumeTrain(cmd, path, o)
			}
			return runTrain(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), path, o, o.newDir(path))
		},
	}
	cmd.Flags().SortFlags = false
	o.flags(cmd.Flags())
	return cmd
}

// texts fills the fields that stand for options while they are flags.
func (o *trainOptions) texts() {
	o.kind, o.metric = string(o.Kind), string(o.Metric)
	o.fanouts = newFanouts(o.Fanouts, o.RelationFanouts)
	o.inputs = named{kind: "TYPE=INPUT", of: maps.Clone(o.Inputs)}
	o.initRows = named{kind: "TYPE=FILE", of: maps.Clone(o.InitRows)}
	o.edges, o.history, o.stream = newEdgeInputs(o.EdgeInputs), newHistoryFlags(&o.Options), newStreamFlags(&o.Options)
	o.sampler, o.kappa = cmp.Or(string(o.Sampler), string(sample.NS)), kappa(o.Kappa)
	o.embedOptimizer = cmp.Or(string(o.Optim.Rows), string(optim.RowAdam))
	o.optimizer, o.schedule = cmp.Or(string(o.Optim.Kind), string(optim.Adam)), cmp.Or(string(o.Schedule.Kind), string(optim.Constant))
	o.epochs, o.patience = autoCount(o.Epochs), autoCount(o.Patience)
	o.eval, o.memory = autoSize(o.EvalBytes), byteSize(o.MemoryBytes)
	o.batch, o.host, o.topology = autoSize(o.BatchBytes), autoSize(o.Cache.HostBytes), autoSize(o.TopologyBytes)
	o.spill = autoSize(o.SpillBytes)
}

// flags binds every option, its value now the default.
func (o *trainOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.kind, "model", o.kind, "sage (GraphSAGE-mean), gcn, gat; "+model.TypedKinds()+", which know several types of nodes and relations, and of which rsage is the default there; or "+
		streamKinds()+", which learn from a stream of events")
	f.IntVar(&o.Layers, "layers", o.Layers, "number of layers (default as many as --fanout has); link: 0 scores the rows of --input as they are, and reads no neighbours")
	f.Var(o.fanouts, "fanout", fanoutUsage)
	f.Var(&o.inputs, "input", "what nodes of a type have for input, again for each: TYPE=table, TYPE=table:NAME, TYPE=embed:D, a learnt row of D columns "+
		"for each node, or TYPE=constant, one for all (default the first table; without one embed of --hidden columns where that takes at most "+
		"1 GiB, else constant)")
	f.Var(o.edges, "edge-input", "columns of a relation's edges that the network reads, as they are stored, again for each: RELATION=COLUMN,COLUMN; "+
		"or the rows of their table of features: RELATION=table, RELATION=table:NAME ("+model.EdgeKinds()+")")
	f.StringVar(&o.Task, "task", cmp.Or(o.Task, usualTask(&o.Options)), "what is learnt: node, the classes of nodes, or their numbers; link, which pairs of nodes a relation "+
		"joins, or of streams which events come; or edge, the classes of its edges, or numbers")
	f.StringVar(&o.EdgeLabel, "edge-label", o.EdgeLabel, "edge: column of the edges that is learnt: COLUMN, each different value a class; COLUMN:sign, negative values "+
		"and the others; or COLUMN:value, numbers")
	f.StringVar(&o.Target, "target", o.Target, "type of nodes to learn, where several have labels and splits; of links and edges their relation, as SRC,REL,DST")
	f.StringVar((*string)(&o.Decoder), "decoder", string(o.Decoder), "link: score of a pair by its two rows: dot, distmult, complex or mlp (default dot); edge: classes by the two "+
		"rows side by side: mlp or linear (default mlp)")
	f.StringVar(&o.Loss, "loss", o.Loss, "link: bce, of positives and negatives apart, or ce, softmax of a positive among its negatives (default bce)")
	f.StringVar(&o.Negatives, "negatives", o.Negatives, "link: what training takes for no links: uniform:N of each positive, shared:N of each --chunk of them, or "+
		"in-batch, the ends of the others in the chunk; with --layers 0 also all, every node (default uniform:1)")
	f.StringVar(&o.EvalNegatives, "eval-negatives", o.EvalNegatives, "link: those of evaluation: pairs:N for each link, which are no edges, uniform:N nodes in the place "+
		"of its end, given, or all, every node but those of other links (default given where there are some, else pairs:1, and for mrr and hits@K "+
		"uniform:1000, or all with --layers 0, unless the rows of all nodes take more than 1 GiB: then uniform:1000 of 500 links); streams: what events are "+
		"ranked among for MRR: given, or uniform:N destinations that are drawn for each (default given where there are some)")
	f.StringVar(&o.Corrupt, "corrupt", o.Corrupt, "link: end that negatives replace: dst, src or both (default dst)")
	f.IntVar(&o.Chunk, "chunk", o.Chunk, "link: positives that share negatives (default 100)")
	f.Float64Var(&o.N3, "n3", o.N3, "link: weight of the N3 penalty of a positive's rows and relation; distmult and complex")
	f.IntVar(&o.EvalEdges, "eval-edges", o.EvalEdges, "link, edge: those of a part that are measured at most; 0 all, or --eval-nodes in sampled evaluation")
	f.BoolVar(&o.KeepTargets, "keep-targets", o.KeepTargets, "link, edge: let messages pass along those that a step learns")
	f.StringVar(&o.Relation, "relation", o.Relation, relationUsage)
	f.StringVar(&o.sampler, "sampler", o.sampler, "how they are drawn: ns (neighbour sampling), labor0 (LABOR-0), labor-star (LABOR-*) "+
		"or rw (those that random walks visit most); of streams recent, the last ones, as by default, or uniform, any")
	f.Var(&o.kappa, "kappa", "steps over which batches draw alike, so that they meet the same rows; 1 is independent "+
		"batches, inf all steps")
	f.StringVar(&o.Dependent, "dependent", o.Dependent, "how they do: nested (the same draws for --kappa steps, then "+
		"others; of labor-star the same random numbers alone, since it finds probabilities for each batch) or smoothed (draws that drift)")
	f.BoolVar(&o.LayerDependency, "layer-dependency", o.LayerDependency, "let a node draw the same neighbours at every layer")
	f.BoolVar(&o.Poisson, "poisson", o.Poisson, "labor0: let how many neighbours are drawn vary around --fanout")
	f.BoolVar(&o.Weighted, "weighted", o.Weighted, "ns: draw and sum neighbours by the weights of their edges")
	f.IntVar(&o.Walk.Length, "walk-length", o.Walk.Length, "rw: steps of a walk")
	f.IntVar(&o.Walk.Walks, "walks", o.Walk.Walks, "rw: walks from a node")
	f.Float64Var(&o.Walk.Restart, "walk-restart", o.Walk.Restart, "rw: probability that a step begins at the node again")
	f.IntVar(&o.Hidden, "hidden", o.Hidden, "width of the hidden layers")
	f.IntVar(&o.Heads, "heads", o.Heads, "attention heads of the hidden layers of gat and rgat, which share --hidden; the last layer has one")
	f.Float64Var(&o.AttnDropout, "attn-dropout", o.AttnDropout, "dropout rate of the attention of gat and rgat")
	f.IntVar(&o.Bases, "bases", o.Bases, "rgcn: matrices that those of all relations are sums of; 0 each relation has its own")
	f.IntVar(&o.LabelInput, "label-input", o.LabelInput, "columns in which the labels of training nodes are input, but for those of a step's seeds; "+
		"0 they are none; not for gat and mlp")
	f.Float64Var(&o.Dropout, "dropout", o.Dropout, "dropout rate of hidden rows")
	f.Float64Var(&o.InputDropout, "input-dropout", o.InputDropout, "dropout rate of feature rows")
	f.StringVar(&o.Norm, "norm", o.Norm, "normalisation between layers: layer or none")
	f.IntVar(&o.Batch, "batch", o.Batch, "seeds a step; of streams events (default 50 to 600, the most with which a node of a batch has 2.5 in it on average)")
	f.Var(&o.epochs, "epochs", "passes over the training nodes; auto is as many as 500 updates take, and then until 20 have brought no "+
		"better validation")
	f.IntVar(&o.EpochSteps, "epoch-steps", o.EpochSteps, "steps after which an epoch ends; 0 when all training nodes were seen")
	f.Float64Var(&o.LR, "lr", o.LR, "learning rate; with --layers 0 0.03 unless given, or 0.1 by --embed-optimizer adagrad")
	f.StringVar(&o.optimizer, "optimizer", o.optimizer, "adam (L2 penalty) or adamw (decoupled weight decay)")
	f.Float64Var(&o.Optim.WeightDecay, "weight-decay", o.Optim.WeightDecay, "weight decay")
	f.Float64Var(&o.Optim.ClipNorm, "clip-norm", o.Optim.ClipNorm, "largest norm of all gradients together; 0 any")
	f.StringVar(&o.embedOptimizer, "embed-optimizer", o.embedOptimizer, "of learnt rows: adam, adam-row (corrected for the steps that read a row) or adagrad "+
		"(a number a row beside its values, where adam has two for each)")
	f.StringVar(&o.schedule, "schedule", o.schedule, "learning rate: constant, cosine or step")
	f.IntVar(&o.Schedule.Warmup, "warmup", o.Schedule.Warmup, "steps in which the learning rate rises to --lr")
	f.Float64Var(&o.Schedule.MinLR, "min-lr", o.Schedule.MinLR, "where cosine ends")
	f.Float64Var(&o.Schedule.Gamma, "lr-gamma", o.Schedule.Gamma, "factor of step; 0 is 0.1")
	f.IntVar(&o.Schedule.Every, "lr-every", o.Schedule.Every, "epochs between two drops of step")
	f.IntSliceVar(&o.Schedule.Milestones, "lr-milestones", o.Schedule.Milestones, "epochs after which step drops")
	f.StringVar(&o.ClassWeights, "class-weights", o.ClassWeights, "weights of the classes in the loss: none, balanced, or one number each")
	f.StringVar(&o.metric, "metric", o.metric, "accuracy, micro-f1, macro-f1 or roc-auc, auc for short (default accuracy, micro-f1 with several classes a node); "+
		"of links auc, ap, mrr or hits@K (default auc); of numbers rmse or mae (default rmse); of streams ap, auc or mrr (default ap)")
	o.history.flags(f, &o.Options)
	o.stream.flags(f, &o.Options)
	f.Uint64Var(&o.Seed, "seed", o.Seed, "seed of weights, batches and dropout")
	f.StringVar(&o.Split, "split", o.Split, "split to train on, where there are several")
	f.Var(&o.patience, "patience", "stop after so many evaluations without a better one; 0 never; auto is what --epochs auto says, else never")
	f.IntVar(&o.EvalEvery, "eval-every", o.EvalEvery, "epochs between evaluations")
	f.StringVar(&o.EvalTest, "eval-test", o.EvalTest, "test with the best weights at the end (best), or at every evaluation (epoch)")
	f.StringVar(&o.Eval, "eval", cmp.Or(o.Eval, "auto"), "over all neighbours (full), on sampled blocks (sampled), or full where --eval-memory has room (auto); of streams by replay of "+
		"the stream (replay, as auto), from the state that training left (live), or none")
	f.Var(&o.eval, "eval-memory", "hidden rows of full-neighbour evaluation in memory; beyond it they are on disk under --eval full, and else evaluation is sampled; auto is an "+
		"eighth of --memory, or 2GiB, as far as training leaves room")
	f.StringVar(&o.LayerDtype, "layer-dtype", cmp.Or(o.LayerDtype, "f32"), "hidden rows on disk: f32, or f16, which takes half and rounds them")
	f.IntVar(&o.EvalNodes, "eval-nodes", o.EvalNodes, "nodes a part in sampled evaluation")
	f.IntVar(&o.Workers, "workers", o.Workers, "goroutines that sample ahead")
	f.Var(&o.memory, "memory", "what the process may take in all; it is split among the parts that follow, and the split is printed "+
		"(default half of the memory)")
	f.Var(&o.topology, "topology-memory", "part for the topology: offsets, and the neighbour lists of the hottest nodes")
	f.Var(&o.device, "device-memory", "part of the device region for the hottest feature rows, fixed; --history-memory has the rest of it")
	f.Var(&o.host, "host-memory", "part for feature rows on the host: those that wait for their step, and those kept for later")
	f.Var(&o.batch, "batch-memory", "part for blocks that are drawn ahead of the step")
	f.StringVar(&o.policy, "policy", o.policy, "which rows the host keeps: "+texts(policy.Kinds))
	f.IntVar(&o.Window, "window", o.Window, "steps whose lists and rows are read together; 0 as many as fit")
	f.IntVar(&o.Lookahead, "lookahead", o.Lookahead, "windows drawn before the one whose reads are planned, for belady to see")
	f.Var(&o.spill, "spill", "disk space for rows that later windows want, so that an epoch reads the table few times; 0 none; auto is as much as pays, "+
		"and half of the free space at most")
	f.StringVar(&o.Tmp, "tmp", o.Tmp, "directory of the spill (default the run directory)")
	f.StringVar(&o.engine, "disk-engine", o.engine, "how the disk is read: "+texts(disk.Kinds))
	f.StringVar(&o.DiskRate, "disk-rate", o.DiskRate, "hold the disk to so many bytes and transfers a second, for measurements: 200MB,500 (default as it is)")
	f.StringVar(&o.Kernels, "kernels", cmp.Or(o.Kernels, "auto"), "kernel set: auto, or one that gnnstore version lists")
	f.StringVar(&o.Init, "init", o.Init, "safetensors file of weights to begin with")
	f.Var(&o.initRows, "init-rows", "file of rows that learnt rows of a type begin with, again for each: TYPE=FILE, as predict --layer 0 writes them")
	f.StringVar(&o.run, "run", "", "run directory (default a fresh runs/NAME-N)")
	f.BoolVar(&o.resume, "resume", false, "go on with the run in --run, or begin it")
	f.IntVar(&o.CheckpointEvery, "checkpoint-every", o.CheckpointEvery, "steps between checkpoints, beside one an epoch; 0 only that")
	f.IntVar(&o.KeepCheckpoints, "keep-checkpoints", o.KeepCheckpoints, "how many checkpoints are kept")
	f.IntVar(&o.LogEvery, "log-every", o.LogEvery, "steps between lines of metrics.jsonl, beside one an epoch; 0 only that")
	f.StringVar(&o.listen, "listen", "", "serve statistics over HTTP at HOST:PORT: /stats, /watch, /metrics, /healthz; without HOST to this machine alone")
	f.BoolVar(&o.plan, "plan", false, "say what a run would take, by its first steps, and write nothing")
	f.BoolVar(&o.json, "json", false, "print the result as JSON; epochs go to stderr")
}

// resolve turns the texts of flags into options.
func (o *trainOptions) resolve(given func(flag string) bool) error {
	var errs []error
	var err error
	if o.Fanouts, o.RelationFanouts, err = o.fanouts.read(o.Layers, given); err != nil {
		errs = append(errs, err)
	}
	if !given("layers") {
		o.Layers = len(o.Fanouts)
	}
	o.Inputs, o.EdgeInputs, o.InitRows = o.inputs.of, o.edges.read(), o.initRows.of
	o.told = given("model")
	o.Kind, o.Sampler, o.Kappa = model.Kind(o.kind), sample.Kind(o.sampler), int(o.kappa)
	if !given("task") || o.Task == usualTask(&o.Options) {
		o.Task = "" // as runs have it that began before there were others
	}
	if o.metric == "auc" {
		o.metric = string(metric.ROCAUC)
	}
	o.Metric, o.Optim.Kind, o.Schedule.Kind = metric.Kind(o.metric), optim.Kind(o.optimizer), optim.ScheduleKind(o.schedule)
	o.Optim.Rows = optim.RowKind(o.embedOptimizer)
	if !given("lr") {
		o.LR = o.DefaultLR()
	}
	o.Left = nil
	for _, name := range []string{"lr", "hidden", "dropout", "input-dropout", "weight-decay", "eval-every", "epoch-steps", "batch", "decoder", "negatives",
		"loss", "corrupt", "n3"} {
		if !given(name) {
			if o.Left == nil {
				o.Left = map[string]bool{}
			}
			o.Left[keyOf(name)] = true
		}
	}
	o.Epochs, o.Patience = int(o.epochs), int(o.patience)
	o.history.resolve(&o.Options)
	o.stream.resolve(&o.Options, given)
	if o.Eval == "auto" { // as it is on record
		o.Eval = ""
	}
	if o.LayerDtype == "f32" {
		o.LayerDtype = ""
	}
	o.EvalBytes, o.MemoryBytes = int64(o.eval), int64(o.memory)
	o.BatchBytes, o.TopologyBytes, o.SpillBytes = int64(o.batch), int64(o.topology), int64(o.spill)
	o.Cache = cachetier.Options{
		DeviceBytes: int64(o.device), HostBytes: int64(o.host),
		Policy: cachetier.Policy(o.policy), Engine: disk.Kind(o.engine),
	}
	if o.listen != "" {
		listen, err := live.ParseListen(o.listen)
		if err != nil {
			errs = append(errs, fmt.Errorf("--listen: %w", err))
		}
		o.listen = listen
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return o.Validate()
}

// newDir makes o.run, or a fresh directory below runs named after the dataset.
func (o *trainOptions) newDir(dataset string) func() (*run.Dir, error) {
	return func() (*run.Dir, error) {
		if o.run != "" {
			return run.Create(o.run)
		}
		return run.Fresh("runs", strings.TrimSuffix(filepath.Base(filepath.Clean(dataset)), ".gnn"))
	}
}

// open opens the dataset, which has what the network learns from: a stream, or relations.
func (o *trainOptions) open(stderr io.Writer, path string) (*store.Dataset, error) {
	if !o.Streams() {
		ds, err := openGraph(stderr, path, o.MemoryBytes, fmt.Sprintf("--model %s learns from relations, and --model %s from streams", o.Kind, streamKinds()))
		if err == nil {
			o.chooseModel(stderr, ds.Manifest())
		}
		return ds, err
	}
	ds, err := openDataset(stderr, path, o.MemoryBytes)
	if err == nil && len(ds.Manifest().Streams) == 0 {
		err = errors.Join(fmt.Errorf("%s has no stream of events, which --model %s learns from; gnnstore ingest makes datasets with one, of formats events, jodie, tgb, tgl and tgn",
			path, o.Kind), ds.Close())
	}
	return ds, err
}

// chooseModel takes R-SAGE if no model was given and training reads several node types or
// relations.
func (o *trainOptions) chooseModel(stderr io.Writer, m *store.Manifest) {
	types, relations := len(m.NodeTypes), 0
	for _, r := range m.Relations {
		if o.Relation == "" || o.Relation == r.Name || o.Relation == r.Key() {
			relations++
			if o.Relation != "" && r.Src == r.Dst {
				types = 1
			}
		}
	}
	if o.told || o.Layers == 0 || types == 1 && relations <= 1 {
		return
	}
	o.Kind = model.RSAGE
	printf(stderr, "note: --model %s, since there are %d types of nodes and %d relations; others for such graphs are %s\n", o.Kind, types, relations, model.TypedKinds())
}

func runTrain(ctx context.Context, stdout, stderr io.Writer, path string, o *trainOptions, openDir func() (*run.Dir, error)) error {
	ds, err := o.open(stderr, path)
	if err != nil {
		return err
	}
	defer ds.Close()
	r, err := trainOn(ctx, stdout, stderr, ds, o, openDir)
	if err != nil {
		return err
	}
	if err := o.print(stdout, r); err != nil {
		return err
	}
	if r.Status == run.Interrupted {
		return fmt.Errorf("interrupted after %d whole epochs; go on with gnnstore train --resume --run %s", len(r.Epochs), r.Run)
	}
	return nil
}

// planTrain prints what a run would take.
func planTrain(ctx context.Context, stdout, stderr io.Writer, path string, o *trainOptions) error {
	ds, err := o.open(stderr, path)
	if err != nil {
		return err
	}
	defer ds.Close()
	if o.Streams() {
		return planStream(ctx, stdout, ds, o)
	}
	p, err := train.MakePlan(ctx, ds, o.Options)
	if err != nil {
		return err
	}
	epochsWithFlags(p.AutoEpochs)
	if o.json {
		return printJSON(stdout, p)
	}
	drawing := "with the reading of lists"
	if draws := p.Options.Draws(); draws != "" {
		drawing = draws + "; " + drawing
	}
	fmt.Fprintln(stdout, p.Memory)
	if r := p.Region; r != nil {
		printf(stdout, "device region %s: %s slots for hidden rows %s, %s feature rows %s\n", size(r.SlotBytes+r.RowBytes), count(r.Slots), size(r.SlotBytes),
			count(r.Rows), size(r.RowBytes))
	}
	tabulate(stdout, [][]string{
		{"a step", "", ""},
		{"feature rows", count(int64(p.InputRows)), fmt.Sprintf("%s of them from disk (%s), %s read", count(int64(p.ColdRows)), percent(p.MissRate), size(int64(p.FeatureBytes)))},
		{"neighbour lists", seconds(p.ListSeconds), size(int64(p.TopologyBytes)) + " read"},
		{"loading", seconds(p.LoadSeconds), fmt.Sprintf("rows, %d steps at a time", p.Window)},
		{"drawing", seconds(p.SampleSeconds), drawing},
		{"computing", seconds(p.StepSeconds), ""},
		{"in all", seconds(p.Seconds), "limited by " + p.LimitingStage},
	})
	if w := p.Ways; w != nil {
		way := func(name string, v plan.Way, taken bool) []string {
			if taken {
				name += ", as it will be"
			}
			return []string{name, seconds(v.Seconds), seconds(v.Device), seconds(v.Processor), size(int64(v.RowBytes)), size(int64(v.ListBytes)),
				size(int64(v.SpillBytes)), size(int64(v.Read)), size(int64(v.Written))}
		}
		byWindows := p.Window > 1 && !p.Joined
		fmt.Fprintln(stdout, "\nrows and lists of an epoch, three ways:")
		tabulate(stdout, [][]string{
			{"", "takes", "disk busy", "processors", "rows read", "lists read", "spill read", "read in all", "written"},
			way("row by row", w.Rows, p.Window == 1 && !p.Joined),
			way(fmt.Sprintf("by %d windows", w.WindowCount), w.Windows, byWindows),
			way(fmt.Sprintf("by a join, %d horizons", w.Horizons), w.Join, p.Joined),
		})
		fmt.Fprintln(stdout, "the longer of disk and processors counts, without drawing and computing; what is written wears flash")
		if p.Spill != "" {
			fmt.Fprintln(stdout, withFlags(p.Spill))
		}
		if !p.Joined {
			printf(stdout, "the join would take %s of disk space (--spill)\n", size(w.SpillBytes))
		}
	}
	for _, t := range p.Tables {
		printf(stdout, "rows of %s: %s a step, %s of them from disk, %s read in %s\n", t.Type, count(int64(t.InputRows)), count(int64(t.ColdRows)),
			size(int64(t.FeatureBytes)), seconds(t.LoadSeconds))
	}
	for _, e := range p.EdgeInputs {
		printf(stdout, "values of the edges of %s: %s, %d bytes an edge, %s beside %s of neighbour lists\n", e.Relation,
			strings.Join(e.Columns, ", "), e.EdgeBytes, size(e.Bytes), size(e.ListBytes))
	}
	printf(stdout, "\nan epoch of %s steps: about %s; judged by %d steps that were drawn\n", count(int64(p.Steps)), seconds(p.EpochSeconds), p.Drawn)
	if p.AutoSettings != nil {
		printf(stdout, "%s\n", withFlags(p.AutoSettings.Reason))
	}
	if p.AutoEpochs != nil {
		printf(stdout, "%s\n", p.AutoEpochs.Reason)
	}
	if p.Evaluation != "" {
		printf(stdout, "%s\n", withFlags(p.Evaluation))
	}
	return nil
}

func (o *trainOptions) print(stdout io.Writer, r *run.Result) error {
	r.Advice = live.Advise(r)
	resultWithFlags(r)
	if o.json {
		return printJSON(stdout, r)
	}
	printResult(stdout, r)
	if len(r.Epochs) > 0 && r.Options.Sampler != sample.RW { // there is a checkpoint, and a network that predicts
		what := ""
		if s := r.Stream; s != nil && s.Src != s.Dst {
			what = " --type " + s.Src
		}
		if r.Options.Links() {
			what = " --what embeddings"
			if src, rest, _ := strings.Cut(r.Options.Target, ","); src != "" && !strings.HasSuffix(rest, ","+src) {
				what += " --type " + src
			}
		}
		printf(stdout, "\npredict: gnnstore predict %s %s.parquet%s\n", r.Run, filepath.Base(r.Run), what)
	}
	return nil
}

// resumeTrain goes on with the run in o.run, which began with options of its own: only flags that are given count. A run
// that has finished prints its result again; one that had not begun does.
func resumeTrain(cmd *cobra.Command, dataset string, o *trainOptions) error {
	dir, record, err := run.Open(o.run)
	if err != nil {
		return err
	}
	defer dir.Close()
	openDir := func() (*run.Dir, error) { return dir, nil }
	if record == nil {
		return runTrain(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), dataset, o, openDir)
	}
	again := &trainOptions{Options: record.Options}
	if err := again.override(record, cmd.Flags()); err != nil {
		return misuse(err)
	}
	if again.HistoryBytes == history.Rest { // the run replaced rest by a number
		again.HistoryBytes = record.Options.HistoryBytes
	}
	if err := again.Resumes(record.Options); err != nil {
		return fmt.Errorf("resume %s: %w", o.run, err)
	}
	r, ok, err := dir.Finished()
	if err != nil {
		return err
	}
	if ok && r.Covers(again.Options) {
		return again.print(cmd.OutOrStdout(), r)
	}
	return runTrain(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), cmp.Or(dataset, record.Dataset), again, openDir)
}

// override takes the options of a record, and then the flags that were given.
func (o *trainOptions) override(record *run.Record, given *pflag.FlagSet) error {
	o.Kernels, o.Init, o.InitRows = record.Kernels, "", nil // what auto meant then
	o.policy, o.engine = string(o.Cache.Policy), string(o.Cache.Engine)
	o.device = byteSize(o.Cache.DeviceBytes)
	o.texts()
	o.fanouts.given = true
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.flags(f)
	var errs []error
	given.Visit(func(g *pflag.Flag) {
		mine := f.Lookup(g.Name)
		if mine == nil {
			return
		}
		if list, ok := g.Value.(pflag.SliceValue); ok {
			errs = append(errs, mine.Value.(pflag.SliceValue).Replace(list.GetSlice()))
			return
		}
		errs = append(errs, f.Set(g.Name, g.Value.String()))
	})
	return errors.Join(errors.Join(errs...), o.resolve(func(string) bool { return true })) // evaluation stays as it was
}

// trainOn trains in the directory that openDir gives, and prints a line an epoch.
func trainOn(ctx context.Context, stdout, stderr io.Writer, ds *store.Dataset, o *trainOptions, openDir func() (*run.Dir, error)) (*run.Result, error) {
	var path string
	named := func() (*run.Dir, error) {
		dir, err := openDir()
		if err == nil {
			path = dir.Path()
		}
		return dir, err
	}
	if o.json {
		stdout = stderr
	}
	p := newProgress(stderr)
	defer p.clear()
	var epochs string // that there are
	note := func(s string) { p.line("note: %s", withFlags(s)) }
	h := train.Hooks{
		Backend:  kernels.NewCPU(kernels.CPUOptions{Set: kernels.Set(o.Kernels)}),
		OpenRows: openRowFile,
		Start: func(rec *run.Record) {
			epochs = run.EpochsText(o.Options, rec.AutoEpochs)
			printf(stdout, "run %s   %s\n%s\n", path, describe(rec.Options, rec), rec.Memory)
			if rec.AutoSettings != nil {
				printf(stdout, "%s\n", rec.AutoSettings.Reason)
			}
			if rec.AutoEpochs != nil {
				printf(stdout, "%s\n", rec.AutoEpochs.Reason)
			}
			if rec.AutoStaleness != nil {
				printf(stdout, "%s\n", rec.AutoStaleness.Reason)
			}
			if n := len(rec.Resumed); n > 0 {
				printf(stdout, "resumed after %s steps\n", count(int64(rec.Resumed[n-1].Updates)))
			}
		},
		Note: note,
		Text: withFlags,
		Live: func(now func() *run.Result) func() {
			return live.Serve(live.Options{Run: path, Listen: o.listen, Now: now, Note: note, Text: withFlags}).Close
		},
		Step: func(epoch, step, steps int, loss float64) {
			if p.tty != nil {
				p.show(fmt.Sprintf("epoch %d/%s", epoch, epochs), int64(step), int64(steps), "steps")
			}
		},
		Epoch: func(e run.Epoch) {
			p.clear()
			if !o.brief || e.ValidAcc != nil {
				fmt.Fprintln(stdout, epochLine(e, epochs, o.Streams()))
			}
		},
	}
	if o.Streams() {
		return stream.Run(ctx, ds, named, o.Options, version(), stream.Hooks{
			Pass: func(what string, done, all int64) {
				if p.tty != nil {
					p.show(what, done, all, "events")
				}
			},
			Backend: h.Backend, Start: h.Start, Step: h.Step, Epoch: h.Epoch, Note: h.Note, Text: h.Text, Live: h.Live,
		})
	}
	return train.Run(ctx, ds, named, o.Options, version(), h)
}

// texts lists names for a flag's description.
func texts[S ~string](names []S) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = string(n)
	}
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " or " + list[last]
}

// kappa is a number of steps, or sample.Forever.
type kappa int

func (k *kappa) Set(s string) error {
	n, err := sample.ParseKappa(s)
	if err == nil {
		*k = kappa(n)
	}
	return err
}

func (k *kappa) String() string {
	return sample.KappaText(int(*k))
}

func (k *kappa) Type() string { return "steps" }

func describe(o run.Options, rec *run.Record) string {
	if o.Streams() {
		return describeStream(o, rec)
	}
	draws := o.Draws()
	if draws != "" {
		draws = " by " + draws
	}
	if len(o.EdgeInputs) > 0 {
		draws += ", edges " + edgeInputsText(o.EdgeInputs)
	}
	if o.Links() {
		draws += fmt.Sprintf("; links %s by %s, %s, negatives %s, measured among %s", cmp.Or(o.Target, "of all relations"), o.Decoder, o.Loss, o.Negatives, o.EvalNegatives)
	}
	if o.Edges() {
		draws += fmt.Sprintf("; edges %s by %s, %s", o.Target, o.EdgeLabel, o.Decoder)
	}
	network := fmt.Sprintf("%s, %d layers of %d, fanout %s", o.Kind, o.Layers, o.Hidden, fanoutsText(o.Fanouts, o.RelationFanouts))
	if o.Layers == 0 {
		network = "rows as they are"
	}
	return fmt.Sprintf("%s%s, batch %d, lr %g, seed %d   kernels %s, disk %s, evaluation %s",
		network, draws, o.Batch, o.LR, o.Seed, rec.Kernels, rec.DiskEngine, rec.Evaluation)
}

// epochLine is an epoch in a line. What it read is left out of a stream's that has no rows to read.
func epochLine(e run.Epoch, epochs string, stream bool) string {
	width := len(strings.TrimSuffix(epochs, "+"))
	trained := "-     "
	if !math.IsNaN(e.TrainAcc) {
		trained = fmt.Sprintf("%.4f", e.TrainAcc)
	}
	line := fmt.Sprintf("epoch %*d/%s   loss %.4f   %s %s   %s ", width, e.Epoch, epochs, e.Loss, column("train", e.Metric), trained,
		column("valid", e.Metric))
	if e.ValidAcc != nil {
		line += fmt.Sprintf("%.4f", *e.ValidAcc)
	} else {
		line += "-     "
	}
	if e.TestAcc != nil {
		line += fmt.Sprintf("   %s %.4f", column("test", e.Metric), *e.TestAcc)
	}
	if e.Seconds > 0 {
		line += fmt.Sprintf("   %6s", seconds(e.Seconds))
		if !stream || e.InputRows > 0 {
			line += fmt.Sprintf("   rows %s/s   disk %s/s   hit %s", number(float64(e.InputRows)/e.Seconds), size(int64(float64(e.DiskBytes)/e.Seconds)), percent(e.HitRate))
		}
	}
	return line
}

// column is what the metric of a part of the split is called: the name of the part, and of the metric unless it is accuracy.
func column(part string, k metric.Kind) string {
	if k == "" || k == metric.Accuracy {
		return part
	}
	return part + "_" + k.Key()
}

func printResult(w io.Writer, r *run.Result) {
	printf(w, "\n%s\n", outcome(r))
	printBaseline(w, r)
	printEnded(w, r)
	printf(w, "weights %s   run %s\n\n", r.ParamsXXH3, r.Run)
	printStreamResult(w, r)
	printTiers(w, r)
}

// printEnded says why a run of --epochs auto ended.
func printEnded(w io.Writer, r *run.Result) {
	if a := r.AutoEpochs; a != nil && a.Ended != "" {
		fmt.Fprintln(w, clean(a.Ended))
	}
}

// printBaseline prints the metric of the answer without a network.
func printBaseline(w io.Writer, r *run.Result) {
	if b := r.Baseline; b != nil {
		printf(w, "without a network, by %s: %s %s, %s %s\n", b.What, column("valid", r.Metric), measured(r.Metric, b.Valid), column("test", r.Metric),
			measured(r.Metric, b.Test))
	}
}

// outcome is a run in a line.
func outcome(r *run.Result) string {
	s := fmt.Sprintf("%s after %d epochs", r.Status, len(r.Epochs))
	switch {
	case r.Best.Epoch > 0:
		s += fmt.Sprintf("; best epoch %d: %s %s, %s %s", r.Best.Epoch, column("valid", r.Best.Metric), measured(r.Best.Metric, r.Best.ValidAcc),
			column("test", r.Best.Metric), measured(r.Best.Metric, r.Best.TestAcc))
	case r.Best.TestAcc != nil:
		s += "; " + column("test", r.Best.Metric) + " " + measured(r.Best.Metric, r.Best.TestAcc)
	}
	if r.Error != "" {
		s += ": " + r.Error
	}
	return s
}
