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
			"Without --epochs, a run says at the start how long it trains and why, and at the end what ended it. It makes the\n" +
			"epochs that 500 updates take, and goes on until 20 more have brought no better validation, up to 5,000 updates or 50\n" +
			"epochs, whichever is more. Without validation nodes, with --patience 0 and with --schedule cosine it makes the\n" +
			"epochs that 500 updates take, and 10 at least. If a pass over all examples takes more than 2,000 steps, an epoch\n" +
			"ends, and is validated, after 500 steps or a twentieth of the pass.\n\n" +
			"Some defaults depend on the data: up to 1,000 labelled nodes of one type, links among nodes with learnt rows and 100\n" +
			"or more links a node, and links of several relations have settings of their own, which the run prints at the start.\n\n" +
			"--model tgn, jodie and apan learn from a stream of events which events come next. They see the times and neighbours\n" +
			"before an event, and the state that earlier events left on the nodes. They have one layer, and by default 10\n" +
			"neighbours, 100 columns and a learning rate of 0.001. The default batch has 50 to 600 events, so that a node misses\n" +
			"little of its own events; the run prints how many. TGN tells nodes of one type without features apart by random\n" +
			"columns: see --identity.",
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
	f.StringVar(&o.kind, "model", o.kind, "sage (GraphSAGE-mean), gcn or gat; "+model.TypedKinds()+", which also read several types of nodes and relations (default rsage for those); "+
		streamKinds()+", which learn from a stream of events")
	f.IntVar(&o.Layers, "layers", o.Layers, "number of layers (default as many as --fanout has); link: 0 scores the rows of --input without reading neighbours")
	f.Var(o.fanouts, "fanout", fanoutUsage)
	f.Var(&o.inputs, "input", "input of a node type, repeatable: TYPE=table or TYPE=table:NAME, stored features; TYPE=embed:D, a learnt row of D columns for each "+
		"node; or TYPE=constant, one learnt row for all (default the first table; without a table embed of --hidden columns if that takes "+
		"at most 1 GiB, else constant)")
	f.Var(o.edges, "edge-input", "what the network reads of a relation's edges, repeatable: RELATION=COLUMN,COLUMN, stored columns; "+
		"or RELATION=table, RELATION=table:NAME, rows of features ("+model.EdgeKinds()+")")
	f.StringVar(&o.Task, "task", cmp.Or(o.Task, usualTask(&o.Options)), "what to learn: node, classes or numbers of nodes; link, which pairs of nodes a relation joins (streams: which events come); or "+
		"edge, classes or numbers of edges")
	f.StringVar(&o.EdgeLabel, "edge-label", o.EdgeLabel, "edge: the column to learn: COLUMN, a class for each different value; COLUMN:sign, negative values against the others; or "+
		"COLUMN:value, numbers")
	f.StringVar(&o.Target, "target", o.Target, "node type to learn, if several have labels and splits; for links and edges their relation, as SRC,REL,DST")
	f.StringVar((*string)(&o.Decoder), "decoder", string(o.Decoder), "link: how two rows give a score: dot, distmult, complex or mlp (default dot); edge: how two rows give classes: mlp or linear "+
		"(default mlp)")
	f.StringVar(&o.Loss, "loss", o.Loss, "link: bce, which judges positives and negatives apart, or ce, a softmax of a positive among its negatives (default bce)")
	f.StringVar(&o.Negatives, "negatives", o.Negatives, "link: how training draws negatives: uniform:N for each positive; filtered:N, the same "+
		"without pairs that are links; shared:N for each --chunk of positives; in-batch, the ends of the other links in the chunk; with "+
		"--layers 0 also all, every node (default uniform:1, or filtered:1 where 1 % of all pairs are links)")
	f.StringVar(&o.EvalNegatives, "eval-negatives", o.EvalNegatives, "link: how evaluation draws negatives: pairs:N, for each link N pairs that are not edges; uniform:N, nodes that replace its end; "+
		"given, those of the dataset; or all, every node that makes no other link (default given if the dataset has them, else pairs:1; for "+
		"mrr and hits@K uniform:1000, or all with --layers 0, unless the rows of all nodes take more than 1 GiB: then uniform:1000 of 500 "+
		"links); streams: what MRR ranks events among: given, or uniform:N destinations drawn for each (default given if the dataset has "+
		"them)")
	f.StringVar(&o.Corrupt, "corrupt", o.Corrupt, "link: end that negatives replace: dst, src or both (default dst)")
	f.IntVar(&o.Chunk, "chunk", o.Chunk, "link: positives that share negatives (default 100)")
	f.Float64Var(&o.N3, "n3", o.N3, "link: weight of the N3 penalty on the rows and the relation of a positive; distmult and complex")
	f.IntVar(&o.EvalEdges, "eval-edges", o.EvalEdges, "link, edge: most links or edges to measure in each part; 0: all, or --eval-nodes in sampled evaluation")
	f.BoolVar(&o.KeepTargets, "keep-targets", o.KeepTargets, "link, edge: let messages pass along the links or edges that a step learns")
	f.StringVar(&o.Relation, "relation", o.Relation, relationUsage)
	f.StringVar(&o.sampler, "sampler", o.sampler, "how neighbours are drawn: ns (neighbour sampling), labor0 (LABOR-0), labor-star (LABOR-*) or rw (those that random walks visit "+
		"most); streams: recent, the latest ones (the default), or uniform, any")
	f.Var(&o.kappa, "kappa", "steps whose batches share random numbers, so that they meet the same rows; 1: independent batches, inf: all steps")
	f.StringVar(&o.Dependent, "dependent", o.Dependent, "how --kappa steps share random numbers: nested (the same draws for --kappa steps, then others; labor-star: the same numbers but "+
		"not the same draws, since it computes probabilities for each batch) or smoothed (numbers that drift)")
	f.BoolVar(&o.LayerDependency, "layer-dependency", o.LayerDependency, "let a node draw the same neighbours at every layer")
	f.BoolVar(&o.Poisson, "poisson", o.Poisson, "labor0: let the number of drawn neighbours vary around --fanout")
	f.BoolVar(&o.Weighted, "weighted", o.Weighted, "ns: draw and sum neighbours by the weights of their edges")
	f.IntVar(&o.Walk.Length, "walk-length", o.Walk.Length, "rw: steps of a walk")
	f.IntVar(&o.Walk.Walks, "walks", o.Walk.Walks, "rw: walks from a node")
	f.Float64Var(&o.Walk.Restart, "walk-restart", o.Walk.Restart, "rw: probability that a step restarts at the node")
	f.IntVar(&o.Hidden, "hidden", o.Hidden, "width of the hidden layers")
	f.IntVar(&o.Heads, "heads", o.Heads, "attention heads of the hidden layers of gat and rgat, which share --hidden; the last layer has one")
	f.Float64Var(&o.AttnDropout, "attn-dropout", o.AttnDropout, "dropout rate of the attention of gat and rgat")
	f.IntVar(&o.Bases, "bases", o.Bases, "rgcn: number of basis matrices that relations share; 0: a matrix for each relation")
	f.IntVar(&o.LabelInput, "label-input", o.LabelInput, "read the labels of training nodes as input, in this many columns, except those of a step's seeds; 0: do not; not for gat and mlp")
	f.Float64Var(&o.Dropout, "dropout", o.Dropout, "dropout rate of hidden rows")
	f.Float64Var(&o.InputDropout, "input-dropout", o.InputDropout, "dropout rate of feature rows")
	f.StringVar(&o.Norm, "norm", o.Norm, "normalisation between layers: layer or none")
	f.IntVar(&o.Batch, "batch", o.Batch, "seeds a step; streams: events a step (default 50 to 600, the most with 2.5 events a node of the batch on average)")
	f.Var(&o.epochs, "epochs", "passes over the training nodes; auto: as many as 500 updates take, then until 20 have brought no better validation")
	f.IntVar(&o.EpochSteps, "epoch-steps", o.EpochSteps, "steps of an epoch; 0: until all training nodes were seen")
	f.Float64Var(&o.LR, "lr", o.LR, "learning rate; with --layers 0 the default is 0.03, or 0.1 by --embed-optimizer adagrad")
	f.StringVar(&o.optimizer, "optimizer", o.optimizer, "adam (L2 penalty) or adamw (decoupled weight decay)")
	f.Float64Var(&o.Optim.WeightDecay, "weight-decay", o.Optim.WeightDecay, "weight decay")
	f.Float64Var(&o.Optim.ClipNorm, "clip-norm", o.Optim.ClipNorm, "largest norm of all gradients together; 0: no limit")
	f.StringVar(&o.embedOptimizer, "embed-optimizer", o.embedOptimizer, "optimizer of learnt rows: adam, adam-row (corrected for the steps that read a row) or adagrad (which keeps one number a row, where "+
		"adam keeps two a value)")
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
	f.StringVar(&o.Split, "split", o.Split, "split to train on, if there are several")
	f.Var(&o.patience, "patience", "stop after this many evaluations without a better one; 0: never; auto: as --epochs auto says, else never")
	f.IntVar(&o.EvalEvery, "eval-every", o.EvalEvery, "epochs between evaluations")
	f.StringVar(&o.EvalTest, "eval-test", o.EvalTest, "test with the best weights at the end (best), or at every evaluation (epoch)")
	f.StringVar(&o.Eval, "eval", cmp.Or(o.Eval, "auto"), "full, over all neighbours; sampled, on sampled blocks; or auto, full if --eval-memory has room; streams: replay, of the whole "+
		"stream (as auto); live, from the state that training left; or none")
	f.Var(&o.eval, "eval-memory", "memory for hidden rows of full-neighbour evaluation; if they need more, they go to disk with --eval full, else evaluation is "+
		"sampled; auto: an eighth of --memory, or 2GiB, as far as training leaves room")
	f.StringVar(&o.LayerDtype, "layer-dtype", cmp.Or(o.LayerDtype, "f32"), "how hidden rows are stored on disk: f32, or f16, which takes half and rounds them")
	f.IntVar(&o.EvalNodes, "eval-nodes", o.EvalNodes, "nodes a part in sampled evaluation")
	f.IntVar(&o.Workers, "workers", o.Workers, "goroutines that sample ahead")
	f.Var(&o.memory, "memory", "memory limit of the whole process; it is split among the parts that follow, and the split is printed "+
		"(default half of the memory)")
	f.Var(&o.topology, "topology-memory", "part for the topology: offsets, and the neighbour lists of the hottest nodes")
	f.Var(&o.device, "device-memory", "part of the device region for the hottest feature rows, fixed; --history-memory has the rest of it")
	f.Var(&o.host, "host-memory", "part for feature rows on the host: those that wait for their step, and those kept for later")
	f.Var(&o.batch, "batch-memory", "part for blocks that are drawn ahead of the step")
	f.StringVar(&o.policy, "policy", o.policy, "which rows the host keeps: "+texts(policy.Kinds))
	f.IntVar(&o.Window, "window", o.Window, "steps whose lists and rows are read together; 0: as many as fit")
	f.IntVar(&o.Lookahead, "lookahead", o.Lookahead, "windows drawn before the one whose reads are planned, for belady to see")
	f.Var(&o.spill, "spill", "disk space for rows that later windows want, so that an epoch reads the table fewer times; 0: none; auto: as much as pays, and "+
		"half of the free space at most")
	f.StringVar(&o.Tmp, "tmp", o.Tmp, "directory of the spill (default the run directory)")
	f.StringVar(&o.engine, "disk-engine", o.engine, "how the disk is read: "+texts(disk.Kinds))
	f.StringVar(&o.DiskRate, "disk-rate", o.DiskRate, "limit the disk to this many bytes and transfers a second, for measurements: 200MB,500 (default no limit)")
	f.StringVar(&o.Kernels, "kernels", cmp.Or(o.Kernels, "auto"), "kernel set: auto, or one that gnnstore version lists")
	f.StringVar(&o.Init, "init", o.Init, "safetensors file of weights to begin with")
	f.Var(&o.initRows, "init-rows", "file of first values for the learnt rows of a type, repeatable: TYPE=FILE, as predict --layer 0 writes it")
	f.StringVar(&o.run, "run", "", "run directory (default a fresh runs/NAME-N)")
	f.BoolVar(&o.resume, "resume", false, "go on with the run in --run, or begin it")
	f.IntVar(&o.CheckpointEvery, "checkpoint-every", o.CheckpointEvery, "steps between checkpoints, beside one an epoch; 0: one an epoch")
	f.IntVar(&o.KeepCheckpoints, "keep-checkpoints", o.KeepCheckpoints, "how many checkpoints are kept")
	f.IntVar(&o.LogEvery, "log-every", o.LogEvery, "steps between lines of metrics.jsonl, beside one an epoch; 0: one an epoch")
	f.StringVar(&o.listen, "listen", "", "serve statistics over HTTP at HOST:PORT: /stats, /watch, /metrics, /healthz; without HOST to this machine alone")
	f.BoolVar(&o.plan, "plan", false, "print what a run would take, by its first steps, and write nothing")
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
	for _, name := range []string{"lr", "hidden", "dropout", "input-dropout", "weight-decay", "epochs", "eval-every", "epoch-steps", "batch", "decoder", "negatives",
		"norm", "loss", "corrupt", "n3"} {
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

// resumeTrain goes on with the run in o.run, which began with options of its own: only flags that
// are given count. A run that has finished prints its result again; one that had not begun does.
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

// column is what the metric of a part of the split is called: the name of the part, and of the
// metric unless it is accuracy.
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
