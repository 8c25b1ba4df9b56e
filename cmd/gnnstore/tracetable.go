package main

import (
	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/trace"
)

// traceReuse is the set of traces with --history.
var traceReuse = &setting.Audience[traceOptions]{
	Has: func(o *traceOptions) bool { return o.on },
	Why: func(*traceOptions) string { return "it goes with {history}" },
}

// traceWorkers is the set of traces that count workers.
var traceWorkers = &setting.Audience[traceOptions]{
	Has: func(o *traceOptions) bool { return o.workers.Most > 0 },
	Why: func(*traceOptions) string { return "it goes with {workers}" },
}

// traceHidden is the set of traces with hidden rows.
var traceHidden = &setting.Audience[traceOptions]{
	Has: func(o *traceOptions) bool { return o.on || o.workers.Most > 0 },
	Why: func(*traceOptions) string { return "it goes with {history} or {workers}" },
}

// traceTable declares the options of trace. Many are options of train, but take several values.
var traceTable = setting.Table[traceOptions]{
	{Key: "target", Group: "The graph",
		In:   func(o *traceOptions) setting.Value { return setting.Word(&o.Target) },
		Help: "node type of the seeds, if several have labels and splits, or none has"},
	{Key: "relation",
		In:   func(o *traceOptions) setting.Value { return setting.Word(&o.Relation) },
		Help: run.RelationHelp},
	{Key: "input",
		In:   func(o *traceOptions) setting.Value { return setting.PerName(&o.Inputs, "TYPE=INPUT") },
		Help: "input of a node type, repeatable: TYPE=embed:D, learnt rows of D columns, TYPE=table:NAME or TYPE=constant (default the first table)"},
	{Key: "edge_input",
		In: func(o *traceOptions) setting.Value {
			return setting.ListPerName(&o.EdgeInputs, "RELATION=COLUMN,COLUMN")
		},
		Help: "edge tables whose rows are read, repeatable: RELATION=table, RELATION=table:NAME"},
	{Key: "split",
		In:   func(o *traceOptions) setting.Value { return setting.Word(&o.Split) },
		Help: "split whose training nodes are the seeds, if there are several"},

	{Key: "samplers", Group: "Sampling",
		In: func(o *traceOptions) setting.Value {
			return setting.Each(&o.Samplers, func(s *sample.Kind) *setting.Text {
				return setting.Hint(setting.Word(s), sample.Kinds...)
			})
		},
		Usual: true, Brief: "ns, labor0, labor-star or rw",
		Help: "samplers to draw with: " + setting.OneOf(sample.Kinds)},
	{Key: "fanout", Parts: []string{"relation_fanouts"},
		In:    func(o *traceOptions) setting.Value { return run.FanoutValue(&o.Fanouts, &o.RelationFanouts) },
		Usual: true, Brief: "neighbours drawn at each hop from the seeds; -1: all",
		Help: run.FanoutHelp},
	{Key: "layers",
		In:   func(o *traceOptions) setting.Value { return setting.Int(&o.layers) },
		Help: "number of hops (default as many as --fanout has)"},
	{Key: "kappa",
		In:    func(o *traceOptions) setting.Value { return setting.Each(&o.Kappas, run.KappaValue) },
		Usual: true,
		Help:  "batches in a row that share random numbers; inf: all"},
	{Key: "dependent",
		In: func(o *traceOptions) setting.Value {
			return setting.Word(&o.dependent, run.Nested, run.Smoothed)
		},
		Help: "how {kappa} batches share random numbers: nested, the same draws for κ batches (labor-star: the same numbers but not the same draws, since it computes " +
			"probabilities for each batch), or smoothed, numbers that drift over κ batches"},
	{Key: "layer_dependency",
		In:   func(o *traceOptions) setting.Value { return setting.Bool(&o.LayerDependency) },
		Help: "let a node draw the same at every layer"},
	{Key: "poisson",
		In:   func(o *traceOptions) setting.Value { return setting.Bool(&o.Poisson) },
		Help: "labor0: let the number of drawn neighbours vary around {fanout}"},
	{Key: "walk_length",
		In:   func(o *traceOptions) setting.Value { return setting.Int(&o.Walk.Length) },
		Help: "rw: steps of a walk"},
	{Key: "walks",
		In:   func(o *traceOptions) setting.Value { return setting.Int(&o.Walk.Walks) },
		Help: "rw: walks from a node"},
	{Key: "walk_restart",
		In:   func(o *traceOptions) setting.Value { return setting.Float(&o.Walk.Restart) },
		Help: "rw: probability that a step restarts at the node"},
	{Key: "seed",
		In:   func(o *traceOptions) setting.Value { return setting.Uint(&o.Seed) },
		Help: "seed of batches and draws"},

	{Key: "cache", Group: "Caches and batches",
		In: func(o *traceOptions) setting.Value {
			return setting.Each(&o.Caches, func(c *trace.Capacity) setting.Custom[trace.Capacity] {
				return setting.Parsed(c, trace.ParseCapacity)
			})
		},
		Usual: true, Brief: "sizes of caches: shares of all rows, or numbers of rows",
		Help: "sizes of caches: shares of all rows, or numbers of rows, of each table apart"},
	{Key: "policies",
		In: func(o *traceOptions) setting.Value {
			return setting.Each(&o.Policies, func(p *trace.Policy) *setting.Text {
				return setting.Hint(setting.Word(p), trace.Policies...)
			})
		},
		Usual: true, Brief: "policies of caches",
		Help: "policies of caches: " + setting.OneOf(trace.Policies)},
	{Key: "batch",
		In:    func(o *traceOptions) setting.Value { return setting.Int(&o.Batch) },
		Usual: true,
		Help:  "seeds a batch"},
	{Key: "batches",
		In:   func(o *traceOptions) setting.Value { return setting.Ints(&o.Growth) },
		Help: "batch sizes of the growth curve (default 64 to 16384, as far as there are seeds)"},
	{Key: "steps",
		In:    func(o *traceOptions) setting.Value { return setting.Int(&o.Steps) },
		Usual: true, Brief: "batches of a trace",
		Help: "batches of a trace (default an epoch, at most 256, and at least twice the largest κ)"},
	{Key: "epochs",
		In:   func(o *traceOptions) setting.Value { return setting.Int(&o.Epochs) },
		Help: "passes over the training nodes, instead of {steps}"},

	{Key: "history", Group: "Historical embeddings",
		In:    func(o *traceOptions) setting.Value { return setting.Bool(&o.on) },
		Usual: true, Brief: "report what train --history would save",
		Help: "report what reusing hidden rows saves, as train --history does, for every t-stale, lag and memory below"},
	{Key: "p_grad", For: traceReuse,
		In:   func(o *traceOptions) setting.Value { return setting.Float(&o.history.PGrad) },
		Help: "history: share of a layer's nodes whose rows are kept; here chosen at random"},
	{Key: "t_stale", For: traceReuse,
		In:   func(o *traceOptions) setting.Value { return setting.Each(&o.history.TStale, run.StaleValue) },
		Help: "history: most steps between computing a row and using it; inf: no limit; auto: a fifth of an epoch's steps, 200 at most"},
	{Key: "history_start", For: traceReuse,
		In:   func(o *traceOptions) setting.Value { return run.StepsOrAuto(&o.history.HistoryStart) },
		Help: "history: first step that keeps rows; auto: the first of the second epoch"},
	{Key: "history_lag", For: traceReuse,
		In:   func(o *traceOptions) setting.Value { return setting.Each(&o.history.HistoryLag, run.StepsOrAuto) },
		Help: "history: steps until the gradients of a step decide on its rows; auto: half of {t_stale}, 100 at most"},
	{Key: "history_bytes", Flag: "history-memory", For: traceReuse,
		In: func(o *traceOptions) setting.Value {
			return setting.Each(&o.history.Slots, func(s *trace.Slots) setting.Custom[trace.Slots] {
				return setting.Parsed(s, parseSlots)
			})
		},
		Help: "history: memory for kept rows: sizes, shares of each layer's nodes such as 0.5%, or all; auto: room for the rows that save more " +
			"than they take, or up to 64MiB if that is more"},
	{Key: "hidden", For: traceHidden,
		In:   func(o *traceOptions) setting.Value { return setting.Int(&o.history.Hidden) },
		Help: "history, workers: columns of a hidden row"},
	{Key: "window_bytes", Flag: "window-memory", For: traceReuse,
		In:   func(o *traceOptions) setting.Value { return setting.Bytes(&o.history.WindowBytes) },
		Help: "history: memory for feature rows; with it, windows of steps are planned, with the disk reads that they make"},
	{Key: "window", For: traceReuse,
		In:   func(o *traceOptions) setting.Value { return setting.Int(&o.history.Window) },
		Help: "history: most steps of a window (default as many as fit)"},
	{Key: "equal_bytes", For: traceReuse,
		In:   func(o *traceOptions) setting.Value { return setting.Bool(&o.history.EqualBytes) },
		Help: "history: take the bytes of kept rows from {window_bytes}, and compare with a static prefix of the same bytes"},
	{Key: "disk_costs", For: traceReuse,
		In:   func(o *traceOptions) setting.Value { return setting.Word(&o.costs) },
		Help: "history: reads and bytes a second of the disk, such as 70000,1.5e9 (default measured)"},

	{Key: "workers", Group: "Workers",
		In:    func(o *traceOptions) setting.Value { return setting.Int(&o.workers.Most) },
		Usual: true, Brief: "report what 1, 2, 4 … V workers would draw, read, compute and send",
		Help: "report what each of 1, 2, 4 … up to so many workers would draw, read, compute and send in a step of " +
			"{batch} seeds, as with train --dist; {cache} is for each worker (default none)"},
	{Key: "parallel", For: traceWorkers,
		In: func(o *traceOptions) setting.Value {
			return setting.Each(&o.workers.Ways, func(w *trace.Way) *setting.Text {
				return setting.Hint(setting.Word(w), trace.Ways...)
			})
		},
		Help: "workers: ways of sharing a step: " + setting.OneOf(trace.Ways) + " (default all that each sampler goes with)"},

	{Key: "threads", Group: "The report",
		In:   func(o *traceOptions) setting.Value { return setting.Int(&o.Threads) },
		Help: "goroutines that draw and simulate; they change no result"},
	{Key: "tmp",
		In:   func(o *traceOptions) setting.Value { return setting.Word(&o.Tmp) },
		Help: "directory for the trace (default the system's, for temporary files)"},
	{Key: "svg",
		In:    func(o *traceOptions) setting.Value { return setting.Word(&o.svg) },
		Usual: true, Brief: "draw the report into this file",
		Help: "also draw a picture, in this file"},
	{Key: "html",
		In:    func(o *traceOptions) setting.Value { return setting.Word(&o.html) },
		Usual: true, Brief: "write the report as one HTML page to this file",
		Help: "also " + htmlHelp("the report")},
	{Key: "json",
		In:   func(o *traceOptions) setting.Value { return setting.Bool(&o.json) },
		Help: "print the report as JSON"},
}
