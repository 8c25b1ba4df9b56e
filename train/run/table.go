package run

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/task"
)

type audience = setting.Audience[Options]

// Sets of runs that have an option.
var (
	graphs  = &audience{Has: func(o *Options) bool { return !o.Streams() }, Why: notStreams}
	streams = &audience{Has: (*Options).streams, Why: func(*Options) string {
		return "it goes with a network for streams: {model} " + setting.OneOf(model.TemporalKinds)
	}}
	links        = &audience{Has: func(o *Options) bool { return !o.Streams() && o.Links() }, Why: goesWith("{task} link")}
	linksOrEdges = &audience{
		Has: func(o *Options) bool { return !o.Streams() && (o.Links() || o.Edges()) },
		Why: goesWith("{task} link or edge"),
	}
	ranked  = &audience{Has: func(o *Options) bool { return o.Streams() || o.Links() }, Why: goesWith("{task} link")}
	edges   = &audience{Has: func(o *Options) bool { return !o.Streams() && o.Edges() }, Why: goesWith("{task} edge")}
	spread  = &audience{Has: func(o *Options) bool { return !o.Streams() && o.Spread() }, Why: goesWith("{dist}")}
	reusing = &audience{Has: func(o *Options) bool { return !o.Streams() && o.History }, Why: goesWith("{history}")}
)

func (o *Options) streams() bool { return o.Streams() }

func notStreams(o *Options) string {
	return fmt.Sprintf("only networks for graphs have it; leave it out with {model} %s", o.Kind)
}

// goesWith explains that an option needs another option. A network for streams has neither.
func goesWith(option string) func(*Options) string {
	return func(o *Options) string {
		if o.Streams() {
			return notStreams(o)
		}
		return "it goes with " + option
	}
}

// Values of Free for options that a resumed run may change under a condition.
var (
	anyTime     = setting.Always[Options]
	ifNotCosine = func(o *Options) bool { return o.Schedule.Kind != optim.Cosine }
	ifNoInit    = func(o *Options) bool { return o.Init == "" }
	ifNoRows    = func(o *Options) bool { return len(o.InitRows) == 0 }
)

type value = setting.Value

// Table declares every option of a run that a user can set.
var Table = setting.Table[Options]{
	{Key: "task", Group: "What to learn",
		In: func(o *Options) value {
			return setting.Word(&o.Task, NodeTask, LinkTask, EdgeTask).Empty(o.usualTask())
		},
		Usual: true, Brief: "what to learn: node, link or edge",
		Help: "what to learn: node, classes or numbers of nodes; link, which pairs of nodes a relation joins (streams: which events come); or " +
			"edge, classes or numbers of edges"},
	{Key: "target", For: graphs,
		In:    func(o *Options) value { return setting.Word(&o.Target).Commas() },
		Usual: true, Brief: "node type or relation to learn, if there are several",
		Help: "node type to learn, if several have labels and splits; for links and edges their relation, as SRC,REL,DST"},
	{Key: "edge_label", For: edges,
		In: func(o *Options) value { return setting.Word(&o.EdgeLabel) },
		Help: "edge: the column to learn: COLUMN, a class for each different value; COLUMN:sign, negative values against the others; or " +
			"COLUMN:value, numbers"},
	{Key: "metric",
		In: func(o *Options) value {
			return setting.Hint(setting.Word(&o.Metric).Alias("auc", string(metric.ROCAUC)), MetricWords...)
		},
		Usual: true, Brief: "what evaluation measures (default by the task)",
		Help: "accuracy, micro-f1, macro-f1 or roc-auc, auc for short (default accuracy, micro-f1 with several classes a node); " +
			"of links mrr, hits@K, auc or ap (default mrr; auc where all links share their negatives); of numbers rmse or mae (default rmse); of streams ap, auc or mrr (default ap)"},
	{Key: "class_weights", For: graphs,
		In: func(o *Options) value {
			v := setting.Word(&o.ClassWeights).Empty(task.NoWeights).Commas()
			return setting.Hint(v, task.NoWeights, task.BalancedWeights)
		},
		Help: "weights of the classes in the loss: none, balanced, or one number each"},
	{Key: "split", For: graphs,
		In:   func(o *Options) value { return setting.Word(&o.Split) },
		Help: "split to train on, if there are several"},

	{Key: "input", Group: "Input", For: graphs,
		In: func(o *Options) value { return setting.PerName(&o.Inputs, "TYPE=INPUT") },
		Help: "input of a node type, repeatable: TYPE=table or TYPE=table:NAME, stored features; TYPE=embed:D, a learnt row of D columns for each " +
			"node; or TYPE=constant, one learnt row for all (default the first table; without a table embed of {hidden} columns if that takes " +
			"at most 1 GiB, else constant)"},
	{Key: "edge_input", For: graphs,
		In: func(o *Options) value { return setting.ListPerName(&o.EdgeInputs, "RELATION=COLUMN,COLUMN") },
		Help: "what the network reads of a relation's edges, repeatable: RELATION=COLUMN,COLUMN, stored columns; " +
			"or RELATION=table, RELATION=table:NAME, rows of features (" + model.EdgeKinds() + ")"},
	{Key: "label_input", For: graphs,
		In:   func(o *Options) value { return setting.Int(&o.LabelInput) },
		Help: "read the labels of training nodes as input, in this many columns, except those of a step's seeds; 0: do not; not for gat and mlp"},
	{Key: "relation", For: graphs,
		In:   func(o *Options) value { return setting.Word(&o.Relation) },
		Help: RelationHelp},
	{Key: "init", Free: ifNoInit, FreeText: "may be left out",
		In:   func(o *Options) value { return setting.Word(&o.Init) },
		Help: "safetensors file of weights to begin with"},
	{Key: "init_rows", For: graphs, Free: ifNoRows, FreeText: "may be left out",
		In:   func(o *Options) value { return setting.PerName(&o.InitRows, "TYPE=FILE") },
		Help: "file of first values for the learnt rows of a type, repeatable: TYPE=FILE, as predict writes them for layer 0"},

	{Key: "model", Group: "Network",
		In: func(o *Options) value {
			return setting.Hint(setting.Hint(setting.Word(&o.Kind), model.Kinds...), model.TemporalKinds...)
		},
		Usual: true, Brief: "network: sage, gcn, gat and more; of streams tgn, jodie, apan",
		Help: "sage (GraphSAGE-mean), gcn or gat; " + model.TypedKinds() + ", which also read several types of nodes and relations (default rsage for those); " +
			setting.OneOf(model.TemporalKinds) + ", which learn from a stream of events"},
	{Key: "layers",
		In:    func(o *Options) value { return setting.Int(&o.Layers) },
		Usual: true, Brief: "number of layers, as many as {fanout} has",
		Help: "number of layers (default as many as {fanout} has); link: 0 scores the rows of {input} without reading neighbours"},
	{Key: "hidden", ByData: true,
		In:    func(o *Options) value { return setting.Int(&o.Hidden) },
		Usual: true,
		Help:  "width of the hidden layers"},
	{Key: "heads",
		In:   func(o *Options) value { return setting.Int(&o.Heads) },
		Help: "attention heads, which share {hidden}: gat, rgat, hgt, tgn and apan; the last layer of gat and rgat has one"},
	{Key: "bases", For: graphs,
		In:   func(o *Options) value { return setting.Int(&o.Bases) },
		Help: "rgcn: number of basis matrices that relations share; 0: a matrix for each relation"},
	{Key: "norm", ByData: true,
		In:   func(o *Options) value { return setting.Hint(setting.Word(&o.Norm), "layer", "none") },
		Help: "normalisation between layers: layer or none"},
	{Key: "dropout", ByData: true,
		In:   func(o *Options) value { return setting.Float(&o.Dropout) },
		Help: "dropout rate of hidden rows"},
	{Key: "input_dropout", ByData: true, For: graphs,
		In:   func(o *Options) value { return setting.Float(&o.InputDropout) },
		Help: "dropout rate of feature rows"},
	{Key: "attn_dropout",
		In:   func(o *Options) value { return setting.Float(&o.AttnDropout) },
		Help: "dropout rate of attention: gat, rgat, hgt, tgn and apan"},

	{Key: "decoder", Group: "Links and edges", ByData: true, For: linksOrEdges,
		In: func(o *Options) value {
			return setting.Hint(setting.Hint(setting.Word(&o.Decoder), model.Decoders...), model.Linear)
		},
		Help: "link: how two rows give a score: dot, distmult, complex, transe, rotate or mlp (default dot); edge: how two rows give classes: mlp or linear " +
			"(default mlp)"},
	{Key: "loss", ByData: true, For: links,
		In:   func(o *Options) value { return setting.Hint(setting.Word(&o.Loss), task.BCE, task.CE) },
		Help: "link: bce, which judges positives and negatives apart, or ce, a softmax of a positive among its negatives (default bce)"},
	{Key: "negatives", ByData: true, For: links,
		In: func(o *Options) value { return setting.Word(&o.Negatives) },
		Help: "link: how training draws negatives: uniform:N for each positive; filtered:N, the same " +
			"without pairs that are links; shared:N for each {chunk} of positives; in-batch, the ends of the other links in the chunk; with " +
			"{layers} 0 also all, every node (default uniform:1, or filtered:1 where 1 % of all pairs are links)"},
	{Key: "corrupt", ByData: true, For: links,
		In: func(o *Options) value {
			return setting.Hint(setting.Word(&o.Corrupt), task.CorruptDst, task.CorruptSrc, task.CorruptBoth)
		},
		Help: "link: end that negatives replace: dst, src or both (default dst)"},
	{Key: "chunk", For: links,
		In:   func(o *Options) value { return setting.Int(&o.Chunk) },
		Help: "link: positives that share negatives (default 100)"},
	{Key: "n3", ByData: true, For: links,
		In:   func(o *Options) value { return setting.Float(&o.N3) },
		Help: "link: weight of the N3 penalty on the rows and the relation of a positive; distmult and complex"},
	{Key: "margin", For: links,
		In: func(o *Options) value { return setting.Float(&o.Margin) },
		Help: "link: score at distance 0, for {decoder} transe and rotate, which subtract the distance from it (default " +
			strconv.FormatFloat(DefaultMargin, 'g', -1, 64) + " for these)"},
	{Key: "adversarial", ByData: true, For: links,
		In:   func(o *Options) value { return setting.Float(&o.Adversarial) },
		Help: "link: weigh the negatives of a positive by the softmax of this temperature times their scores; {loss} bce; 0: all alike"},
	{Key: "reciprocal", ByData: true, For: links,
		In:   func(o *Options) value { return setting.Bool(&o.Reciprocal) },
		Help: "link: give each relation a second vector, which predicts sources; distmult, complex, transe and rotate"},
	{Key: "keep_targets", For: linksOrEdges,
		In:   func(o *Options) value { return setting.Bool(&o.KeepTargets) },
		Help: "link, edge: let messages pass along the links or edges that a step learns"},
	{Key: "eval_negatives", For: ranked,
		In: func(o *Options) value { return setting.Word(&o.EvalNegatives) },
		Help: "link: how evaluation draws negatives: pairs:N, for each link N pairs that are not edges; uniform:N, nodes that replace its end; " +
			"given, those of the dataset; or all, every node that makes no other link (default given if the dataset has them, else uniform:1000, " +
			"fewer in a small graph, and pairs:1 for auc and ap; all with {layers} 0, unless the rows of all nodes take more than 1 GiB: then uniform:1000 of 500 " +
			"links); streams: what MRR ranks events among: given, or uniform:N destinations drawn for each (default given if the dataset has " +
			"them)"},
	{Key: "eval_edges", For: linksOrEdges,
		In:   func(o *Options) value { return setting.Int(&o.EvalEdges) },
		Help: "link, edge: most links or edges to measure in each part; 0: all, or {eval_nodes} in sampled evaluation"},

	{Key: "fanout", Group: "Sampling", Parts: []string{"relation_fanouts"},
		In:    func(o *Options) value { return FanoutValue(&o.Fanouts, &o.RelationFanouts) },
		Usual: true, Brief: "neighbours drawn at each hop from the seeds; -1: all",
		Help: FanoutHelp},
	{Key: "sampler",
		In: func(o *Options) value {
			v := setting.Hint(setting.Word(&o.Sampler).Empty(string(sample.NS)), sample.Kinds...)
			return setting.Hint(v, RecentNeighbors, UniformNeighbors)
		},
		Help: "how neighbours are drawn: ns (neighbour sampling), labor0 (LABOR-0), labor-star (LABOR-*) or rw (nodes that random walks visit " +
			"most); streams: recent, the latest ones (the default), or uniform, any"},
	{Key: "kappa", For: graphs,
		In:    func(o *Options) value { return KappaValue(&o.Kappa) },
		Usual: true, Brief: "steps in a row whose batches meet the same rows",
		Help: "steps whose batches share random numbers, so that they meet the same rows; 1: independent batches, inf: all steps"},
	{Key: "dependent",
		In: func(o *Options) value { return setting.Word(&o.Dependent, Nested, Smoothed) },
		Help: "how {kappa} steps share random numbers: nested (the same draws for {kappa} steps, then others; labor-star: the same numbers but " +
			"not the same draws, since it computes probabilities for each batch) or smoothed (numbers that drift)"},
	{Key: "layer_dependency", For: graphs,
		In:   func(o *Options) value { return setting.Bool(&o.LayerDependency) },
		Help: "let a node draw the same neighbours at every layer"},
	{Key: "poisson", For: graphs,
		In:   func(o *Options) value { return setting.Bool(&o.Poisson) },
		Help: "labor0: let the number of drawn neighbours vary around {fanout}"},
	{Key: "weighted", For: graphs,
		In:   func(o *Options) value { return setting.Bool(&o.Weighted) },
		Help: "ns: draw and sum neighbours by the weights of their edges"},
	{Key: "walk_length",
		In:   func(o *Options) value { return setting.Int(&o.Walk.Length) },
		Help: "rw: steps of a walk"},
	{Key: "walks",
		In:   func(o *Options) value { return setting.Int(&o.Walk.Walks) },
		Help: "rw: walks from a node"},
	{Key: "walk_restart",
		In:   func(o *Options) value { return setting.Float(&o.Walk.Restart) },
		Help: "rw: probability that a step restarts at the node"},

	{Key: "batch", Group: "Learning", ByData: true,
		In: func(o *Options) value {
			return setting.Int(&o.Batch).Or("auto", Auto).AtLeast(1).AtMost(math.MaxInt32)
		},
		Usual: true, Brief: "seeds a step",
		Help: "seeds a step; streams: events a step (default 50 to 600, the most with 2.5 events a node of the batch on average)"},
	{Key: "epochs", ByData: true, Free: ifNotCosine, FreeText: "may change, but not with cosine",
		In:    func(o *Options) value { return setting.Int(&o.Epochs).Or("auto", Auto).AtLeast(0).Kind("count") },
		Usual: true, Brief: "passes over the training nodes",
		Help: "passes over the training nodes; auto: as many as 500 updates take, then until 20 more have not improved validation"},
	{Key: "epoch_steps", ByData: true,
		In:   func(o *Options) value { return setting.Int(&o.EpochSteps).AtLeast(0) },
		Help: "steps of an epoch; 0: until all training nodes were seen"},
	{Key: "patience",
		In:   func(o *Options) value { return setting.Int(&o.Patience).Or("auto", Auto).AtLeast(0).Kind("count") },
		Help: "stop after this many evaluations without a better one; 0: never; auto: as {epochs} auto says, else never"},
	{Key: "lr", ByData: true,
		In:    func(o *Options) value { return setting.Float(&o.LR).Between(0, 1e6) },
		Usual: true, Brief: "learning rate",
		Help: "learning rate; with {layers} 0 the default is 0.03, 0.005 by {decoder} transe and rotate, or 0.1 by " +
			"{embed_optimizer} adagrad"},
	{Key: "optimizer",
		In: func(o *Options) value {
			return setting.Hint(setting.Word(&o.Optim.Kind).Empty(string(optim.Adam)), optim.Adam, optim.AdamW)
		},
		Help: "adam (L2 penalty) or adamw (decoupled weight decay)"},
	{Key: "weight_decay", ByData: true,
		In:   func(o *Options) value { return setting.Float(&o.Optim.WeightDecay) },
		Help: "weight decay"},
	{Key: "clip_norm",
		In:   func(o *Options) value { return setting.Float(&o.Optim.ClipNorm) },
		Help: "largest norm of all gradients together; 0: no limit"},
	{Key: "embed_optimizer",
		In: func(o *Options) value {
			v := setting.Word(&o.Optim.Rows).Empty(string(optim.RowAdam))
			return setting.Hint(v, optim.RowAdam, optim.RowAdamSteps, optim.RowAdagrad)
		},
		Help: "optimizer of learnt rows: adam, adam-row (corrected for the steps that read a row) or adagrad (which keeps one number a row, where " +
			"adam keeps two a value)"},
	{Key: "seed",
		In:    func(o *Options) value { return setting.Uint(&o.Seed) },
		Usual: true,
		Help:  "seed of weights, batches and dropout"},

	{Key: "schedule", Group: "Schedule of the learning rate",
		In: func(o *Options) value {
			v := setting.Word(&o.Schedule.Kind).Empty(string(optim.Constant))
			return setting.Hint(v, optim.Constant, optim.Cosine, optim.Step)
		},
		Help: "learning rate: constant, cosine or step"},
	{Key: "warmup",
		In:   func(o *Options) value { return setting.Int(&o.Schedule.Warmup) },
		Help: "steps in which the learning rate rises to {lr}"},
	{Key: "min_lr",
		In:   func(o *Options) value { return setting.Float(&o.Schedule.MinLR) },
		Help: "rate at which cosine ends"},
	{Key: "lr_gamma",
		In:   func(o *Options) value { return setting.Float(&o.Schedule.Gamma) },
		Help: "factor by which step lowers the rate; 0 is 0.1"},
	{Key: "lr_every",
		In:   func(o *Options) value { return setting.Int(&o.Schedule.Every) },
		Help: "epochs between two drops of step"},
	{Key: "lr_milestones",
		In:   func(o *Options) value { return setting.Ints(&o.Schedule.Milestones) },
		Help: "epochs after which step lowers the rate"},

	{Key: "history", Group: "Historical embeddings", For: graphs,
		In:    func(o *Options) value { return setting.Bool(&o.History) },
		Usual: true, Brief: "reuse hidden rows of earlier steps",
		Help: "reuse hidden rows of earlier steps whose gradients were small (FreshGNN); what only they need is neither read nor computed"},
	{Key: "p_grad", For: reusing,
		In:   func(o *Options) value { return setting.Float(&o.PGrad) },
		Help: "history: share of a layer's nodes whose rows are kept: those with the smallest gradients; which ones they are matters with a large {t_stale}"},
	{Key: "t_stale", For: reusing,
		In:   func(o *Options) value { return StaleValue(&o.TStale) },
		Help: "history: most steps between computing a row and using it; inf: no limit; auto: a fifth of an epoch's steps, 200 at most"},
	{Key: "history_start", For: reusing,
		In:   func(o *Options) value { return StepsOrAuto(&o.HistoryStart) },
		Help: "history: first step that keeps rows; auto: the first of the second epoch"},
	{Key: "history_lag", For: reusing,
		In:   func(o *Options) value { return StepsOrAuto(&o.HistoryLag) },
		Help: "history: steps until the gradients of a step decide on its rows; auto: half of {t_stale}, 100 at most"},
	{Key: "history_bytes", Flag: "history-memory", For: reusing,
		In: func(o *Options) value {
			return setting.Bytes(&o.HistoryBytes).Or("auto", Auto).Or("rest", history.Rest)
		},
		Help: "history: part of the device region for the kept rows and their index; auto: room for the rows that save more than they take, or up " +
			"to 64MiB if that is more; rest: what other parts of the memory leave"},
	{Key: "history_cold", For: reusing, Free: anyTime,
		In:   func(o *Options) value { return setting.Bool(&o.HistoryCold) },
		Help: "history: let a resumed run begin without the kept rows"},
	{Key: "history_audit", For: reusing, Free: anyTime,
		In:   func(o *Options) value { return setting.Int(&o.HistoryAudit).AtLeast(0).AtMost(maxAudit) },
		Help: "history: how many reused rows of a step to compare with fresh ones; 0: none"},
	{Key: "history_audit_every", For: reusing, Free: anyTime,
		In:   func(o *Options) value { return setting.Int(&o.HistoryAuditEvery).AtLeast(0) },
		Help: fmt.Sprintf("history: steps between two comparisons of {history_audit}; 0: %d", DefaultAuditEvery)},

	{Key: "stream", Group: "Streams of events", For: streams,
		In:   func(o *Options) value { return setting.Word(&o.Stream) },
		Help: "streams: the stream to learn from, if the dataset has several"},
	{Key: "negative_population", For: streams,
		In:   func(o *Options) value { return setting.Word(&o.NegativePopulation, Destinations, AllNodes) },
		Help: "streams: where negatives come from: destinations of the part's events, or all nodes (default destinations)"},
	{Key: "staleness", For: streams,
		In: func(o *Options) value {
			return setting.Int(&o.Staleness).Or("auto", Auto).AtLeast(1).AtMost(maxStaleness).Kind("count")
		},
		Help: "streams: a step sees the state after the K-th step before it; auto: the least K with which training hardly waits for state (default " +
			"1, the plain loop)"},
	{Key: "mitigate", For: streams,
		In: func(o *Options) value { return setting.Float(&o.Mitigate).AtLeast(0).AtMost(1) },
		Help: "streams: in training blend memories that are out of date with those of nodes with the same partners; a memory keeps this share of " +
			"itself, such as 0.95; 1 changes no result (default off)"},
	{Key: "mitigate_audit", For: streams, Free: anyTime,
		In:   func(o *Options) value { return setting.Int(&o.MitigateAudit).AtLeast(0).AtMost(maxAudit) },
		Help: "streams: how many blended memories of a step to compare with those at {staleness} 1; 0: none"},
	{Key: "identity", For: streams,
		In: func(o *Options) value {
			return setting.Int(&o.Identity).Or("auto", Auto).AtLeast(0).AtMost(1 << 16).Kind("count")
		},
		Help: "tgn and jodie: columns of random numbers, computed from ids, that tell nodes without features apart; 0: none (default auto: for " +
			"tgn {hidden} columns if nodes are of one type)"},
	{Key: "pair_features", For: streams,
		In: func(o *Options) value { return setting.Bool(&o.PairFeatures) },
		Help: "streams: when a pair is scored, also read whether it had an event before the batch, how long ago and how many, and the same of its " +
			"destination; the heuristics know this too, so figures are not those of the network alone"},
	{Key: "publish", For: streams, Free: anyTime,
		In: func(o *Options) value { return setting.Word(&o.Publish, Early, Late) },
		Help: "streams: when other steps may read the state of a step: early, once it is computed, or late, after the step; changes no result " +
			"(default early)"},
	{Key: "inflight", For: streams, Free: anyTime,
		In:   func(o *Options) value { return setting.Int(&o.Inflight) },
		Help: "streams: steps whose rows are in memory at a time; changes no result (default {staleness} + 2)"},
	{Key: "warm_events", For: streams,
		In:   func(o *Options) value { return setting.Counted(&o.WarmEvents, 0) },
		Help: "streams: events of an epoch, such as 20M, before the first that is learnt; they only make state"},
	{Key: "times", For: streams,
		In:   func(o *Options) value { return setting.Word(&o.Times, Fixed, Learnt) },
		Help: "streams: whether the frequencies of the time encoding are fixed or learnt (default fixed below 10 million events)"},
	{Key: "times", Flag: "fixed-time", For: streams,
		In:   func(o *Options) value { return setting.Short(setting.Word(&o.Times), Fixed) },
		Help: "streams: {times} fixed"},
	{Key: "state", For: streams,
		In:   func(o *Options) value { return setting.Word(&o.State, NoState) },
		Help: "tgn: none trains without memory and mailbox"},
	{Key: "mails", For: streams,
		In:   func(o *Options) value { return setting.Int(&o.Mails) },
		Help: "apan: mails kept for a node (default 10)"},
	{Key: "time_columns", For: streams,
		In:   func(o *Options) value { return setting.Int(&o.TimeColumns) },
		Help: "streams: columns of the time encoding (default {hidden})"},

	{Key: "eval", Group: "Evaluation",
		In: func(o *Options) value {
			if o.Streams() {
				return setting.Word(&o.Eval, Replay, LiveState, NoEvaluation).Or("auto", "")
			}
			return setting.Hint(setting.Word(&o.Eval, "full", "sampled").Or("auto", ""), Replay, LiveState, NoEvaluation)
		},
		Help: "full, over all neighbours; sampled, on sampled blocks; or auto, full if {eval_bytes} has room; streams: replay, of the whole " +
			"stream (as auto); live, from the state that training left; or none"},
	{Key: "eval_every", ByData: true,
		In:   func(o *Options) value { return setting.Int(&o.EvalEvery).AtLeast(1) },
		Help: "epochs between evaluations"},
	{Key: "eval_test", Free: anyTime,
		In: func(o *Options) value { return setting.Word(&o.EvalTest, TestBest, TestEpoch, TestNone) },
		Help: "when the test part is measured: at the end with the best weights (best), at every evaluation (epoch), or not at all (none); " +
			"resume a run without it to test it later"},
	{Key: "eval_nodes",
		In:   func(o *Options) value { return setting.Int(&o.EvalNodes).AtLeast(1) },
		Help: "nodes a part in sampled evaluation"},
	{Key: "eval_bytes", Flag: "eval-memory",
		In: func(o *Options) value { return setting.Bytes(&o.EvalBytes).Or("auto", Auto) },
		Help: "memory for hidden rows of full-neighbour evaluation; if they need more, they go to disk with {eval} full, else evaluation is " +
			"sampled; auto: an eighth of {memory_bytes}, or 2GiB, as far as training leaves room"},
	{Key: "layer_dtype",
		In:   func(o *Options) value { return setting.Word(&o.LayerDtype, "f16").Or("f32", "") },
		Help: "how hidden rows are stored on disk: f32, or f16, which takes half and rounds them"},

	{Key: "memory_bytes", Flag: "memory", Group: "Memory", Free: anyTime,
		In:    func(o *Options) value { return setting.Bytes(&o.MemoryBytes) },
		Usual: true, Brief: "memory limit of the whole process (default half of the memory)",
		Help: "memory limit of the whole process; it is split among the parts that follow, and the split is printed " +
			"(default half of the memory)"},
	{Key: "topology_bytes", Flag: "topology-memory", Free: anyTime,
		In:   func(o *Options) value { return setting.Bytes(&o.TopologyBytes).Or("auto", Auto) },
		Help: "part for the topology: offsets, and the neighbour lists of the hottest nodes"},
	{Key: "device_bytes", Flag: "device-memory", Free: anyTime,
		In: func(o *Options) value {
			return setting.Bytes(&o.Cache.DeviceBytes).Or("auto", 0).Or("none", NoDevice)
		},
		Help: "part of the device region for the hottest feature rows, fixed; {history_bytes} has the rest of it; auto: " +
			"on a GPU what a step leaves of its memory, on the CPU none"},
	{Key: "device_policy", Flag: "device-policy", Free: anyTime,
		In: func(o *Options) value {
			return setting.Word(&o.Cache.DevicePolicy, policy.LRU, policy.Belady).Or("none", "")
		},
		Help: "which rows that came for a step stay on a device that the host cannot address, in a fifth of " +
			"{device_bytes}: none, lru or belady"},
	{Key: "host_bytes", Flag: "host-memory", Free: anyTime,
		In:   func(o *Options) value { return setting.Bytes(&o.Cache.HostBytes).Or("auto", Auto) },
		Help: "part for feature rows on the host: those that wait for their step, and those kept for later"},
	{Key: "batch_bytes", Flag: "batch-memory", Free: anyTime,
		In:   func(o *Options) value { return setting.Bytes(&o.BatchBytes).Or("auto", Auto) },
		Help: "part for blocks that are drawn ahead of the step"},
	{Key: "policy", Free: anyTime,
		In:   func(o *Options) value { return setting.Hint(setting.Word(&o.Cache.Policy), policy.Kinds...) },
		Help: "which rows the host keeps: " + setting.OneOf(policy.Kinds)},
	{Key: "window", Free: anyTime,
		In:   func(o *Options) value { return setting.Int(&o.Window) },
		Help: "steps whose lists and rows are read together; 0: as many as fit"},
	{Key: "lookahead", Free: anyTime,
		In:   func(o *Options) value { return setting.Int(&o.Lookahead) },
		Help: "windows drawn before the one whose reads are planned, for belady to see"},

	{Key: "spill_bytes", Flag: "spill", Group: "Disk and processors", Free: anyTime,
		In: func(o *Options) value { return setting.Bytes(&o.SpillBytes).Or("auto", Auto) },
		Help: "disk space for rows that later windows want, so that an epoch reads the table fewer times; 0: none; auto: as much as pays, and " +
			"half of the free space at most"},
	{Key: "tmp", Free: anyTime,
		In:   func(o *Options) value { return setting.Word(&o.Tmp) },
		Help: "directory of the spill (default the run directory)"},
	{Key: "engine", Flag: "disk-engine", Free: anyTime,
		In:   func(o *Options) value { return setting.Hint(setting.Word(&o.Cache.Engine), disk.Kinds...) },
		Help: "how the disk is read: " + setting.OneOf(disk.Kinds)},
	{Key: "disk_rate", Free: anyTime,
		In:   func(o *Options) value { return setting.Word(&o.DiskRate).Commas() },
		Help: "limit the disk to this many bytes and transfers a second, for measurements: 200MB,500 (default no limit)"},
	{Key: "workers", Free: anyTime,
		In:   func(o *Options) value { return setting.Int(&o.Workers) },
		Help: "goroutines that sample ahead; by default 2, or with a GPU and without {memory_bytes} all processors but 2"},
	{Key: "device", Free: anyTime,
		In:    func(o *Options) value { return DeviceValue(&o.Device) },
		Usual: true, Brief: "what computes: cpu, cuda or auto",
		Help: DeviceHelp},
	{Key: "matmul",
		In:   func(o *Options) value { return MatMulValue(&o.MatMul) },
		Help: MatMulHelp},
	{Key: "kernels", Free: anyTime,
		In:   func(o *Options) value { return setting.Word(&o.Kernels).Empty("auto") },
		Help: "kernel set: auto, or one that gnnstore version lists"},

	{Key: "dist", Group: "Several workers", For: graphs, Free: anyTime,
		In: func(o *Options) value {
			return setting.Hint(setting.Word(&o.Dist).Empty("auto"), "off", "local:V", "mpi", "mpi:V")
		},
		Usual: true, Brief: "several workers: local:V in this process, or mpi",
		Help: "how many workers train together, and where: local:V, V in this process; mpi, one in each process that mpirun or mpiexec " +
			"started; mpi:V, V in those processes; off, one; auto: mpi if several processes were started, else off"},
	{Key: "parallel", For: spread, Free: anyTime,
		In: func(o *Options) value {
			return setting.Word(&o.Parallel, slices.Concat(ParallelWays, []string{AutoParallel})...)
		},
		Help: "how workers share a step: independent, each draws and reads for itself, and only gradients are exchanged; " +
			"parts, each node has an owner, which draws its neighbours and sends its features; cooperative, the owner also " +
			"computes the node and sends its hidden rows, so that nothing is computed twice; auto starts from independent and " +
			"goes on to parts, then to cooperative, each time if a step is estimated to take less than 0.7 times as long. " +
			"Results of parts are those of independent; results of cooperative are those of one worker, but for their last bits"},
	{Key: "halo_dtype", For: spread,
		In:   func(o *Options) value { return setting.Word(&o.HaloDtype, "f16").Or("f32", "") },
		Help: "how cooperative workers send hidden rows: f32, or f16, which takes half and rounds them; their gradients are sent in f32"},
	{Key: "dist_timeout", For: spread, Free: anyTime,
		In:   func(o *Options) value { return setting.Parsed(&o.DistTimeout, time.ParseDuration) },
		Help: "how long a worker waits for the others before the run fails, as 90s or 10m; 0s: for ever"},
	{Key: "mpi_library", For: spread, Free: anyTime,
		In:   func(o *Options) value { return setting.Word(&o.MPILibrary) },
		Help: "file of the MPI library (default found by the launcher)"},
	{Key: "topology", For: spread, Free: anyTime,
		In: func(o *Options) value { return setting.Word(&o.Topology).Or("none", "") },
		Help: "YAML file of the links between workers: exchanges of large messages then go in rounds, in which no two " +
			"messages pass the same link in the same direction; none: all at once"},

	{Key: "checkpoint_every", Group: "The run", Free: anyTime,
		In:   func(o *Options) value { return setting.Int(&o.CheckpointEvery).AtLeast(0) },
		Help: "steps between checkpoints, beside one an epoch; 0: one an epoch"},
	{Key: "keep_checkpoints", Free: anyTime,
		In:   func(o *Options) value { return setting.Int(&o.KeepCheckpoints).AtLeast(1) },
		Help: "how many checkpoints are kept"},
	{Key: "log_every", Free: anyTime,
		In:   func(o *Options) value { return setting.Int(&o.LogEvery).AtLeast(0) },
		Help: "steps between lines of metrics.jsonl, beside one an epoch; 0: one an epoch"},
}

// Help of options that trace has too.
const (
	FanoutHelp   = "neighbours drawn at each hop from the seeds; -1: all; repeat as RELATION=15,10 for one relation, 0 leaves it out"
	RelationHelp = "the one relation to use, by name or SRC__NAME__DST (default all)"
)

// DeviceHelp explains a device.
const DeviceHelp = "what computes: cpu; cuda, an NVIDIA GPU, in the build of the archive gnnstore-cuda; " +
	"or auto, the GPU if there is one that this build can use, else the CPU"

// DeviceValue reads a device.
func DeviceValue(at *string) *setting.Text {
	return setting.Hint(setting.Word(at).Empty(kernels.AutoDevice), kernels.AutoDevice, kernels.CPUDevice, kernels.CUDADevice)
}

// MatMulHelp explains a precision of products.
const MatMulHelp = "precision of matrix products: f32; bf16, which rounds what is multiplied to 7 bits of mantissa and is faster with AMX, " +
	"or with AVX512_BF16 on AMD's processors; or tf32, which rounds to 10 bits and is faster by {device} cuda with cuBLAS"

// MatMulValue reads a precision of products.
func MatMulValue(at *kernels.Precision) *setting.Text {
	return setting.Word(at, kernels.BF16, kernels.TF32).Or(string(kernels.Float32), "")
}

// FanoutValue reads fanouts for all relations, and for some relations their own.
func FanoutValue(all *[]int, own *map[string][]int) *setting.IntsByName {
	return setting.IntsPerName(all, own, "15,10 or RELATION=15,10")
}

// FanoutText prints fanouts as their flag reads them.
func FanoutText(all []int, own map[string][]int) string { return FanoutValue(&all, &own).String() }

// EdgeInputText prints columns of edges as their flag reads them.
func EdgeInputText(columns map[string][]string) string {
	return setting.ListPerName(&columns, "").String()
}

// StaleValue reads a t_stale: a number of steps, auto or inf.
func StaleValue(at *int) *setting.Number[int] {
	return setting.Int(at).Or("auto", Auto).Or("inf", math.MaxInt32).Kind("count")
}

// StepsOrAuto reads a number of steps, or auto.
func StepsOrAuto(at *int) *setting.Number[int] {
	return setting.Int(at).Or("auto", Auto).Kind("count")
}

// KappaValue reads a number of steps, or inf.
func KappaValue(at *int) *setting.Number[int] {
	return setting.Int(at).Or("inf", sample.Forever).AtLeast(1).Kind("steps")
}

// MetricWords lists the metrics of all tasks, for completion.
var MetricWords = slices.Concat(metric.Kinds, metric.NumberKinds, []metric.Kind{metric.AP, metric.MRR, "hits@20"})
