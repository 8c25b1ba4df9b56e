package main

import (
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store/setting"
)

// buildOptions are the options of the commands that make datasets.
type buildOptions struct {
	build.Options
	plan, json bool
}

// leastDefault bounds the default budget from below, for machines with little memory.
const leastDefault = 256 << 20

func defaultBuild() buildOptions {
	o := build.Options{
		SelfLoops: build.SelfLoopsKeep, Duplicates: build.DuplicatesKeep, Order: build.OrderDegree, DType: build.F16, Normalize: build.NormalizeNone,
		Seed: 1, Memory: 1 << 30, Text: withFlags,
	}
	if total, err := kernels.SystemMemory(); err == nil {
		o.Memory = max(total/4>>20<<20, leastDefault)
		if some := kernels.Addressable(o.Memory) >> 20 << 20; some >= build.LeastMemory {
			o.Memory = some
		}
	}
	return buildOptions{Options: o}
}

// complete finishes the options. given takes a key.
func (o *buildOptions) complete(given func(key string) bool) {
	o.Directed = given("undirected") && !o.Undirected
	o.OneWay = given("reverse") && !o.Reverse
	o.Memory = max(o.Memory, 1) // 0 would be the default
}

// buildRows declares the options of a T that makes datasets. at returns the options in a T.
func buildRows[T any](at func(*T) *buildOptions) setting.Table[T] {
	type value = setting.Value
	return setting.Table[T]{
		{Key: "undirected", Usual: true, Brief: "add the reverse of every edge within a node type, and merge duplicates",
			In:   func(o *T) value { return setting.Bool(&at(o).Undirected) },
			Help: "add the reverse of every edge within a node type, and merge duplicates; the default if nodes have labels and a list has each edge once, the smaller id first, unless =false"},
		{Key: "reverse",
			In:   func(o *T) value { return setting.Bool(&at(o).Reverse) },
			Help: "add a relation rev_NAME for each relation that has no reverse yet; the default for triples with node labels, unless =false"},
		{Key: "self_loops",
			In:   func(o *T) value { return setting.Word(&at(o).SelfLoops) },
			Help: "keep, drop, or add: exactly one a node"},
		{Key: "duplicates",
			In:   func(o *T) value { return setting.Word(&at(o).Duplicates) },
			Help: "edges that occur more than once: keep them, or merge them; where weights or other values of merged edges differ, say what they become: first, sum, max or mean"},
		{Key: "edge_ids",
			In:   func(o *T) value { return setting.Bool(&at(o).EdgeIDs) },
			Help: "keep the number of each edge as read"},
		{Key: "edge_split", Usual: true, Brief: "hold edges out for link prediction: random:a/b/c or time:COLUMN:a/b/c",
			In:   func(o *T) value { return setting.Repeated(&at(o).EdgeSplit) },
			Help: "hold edges out for link prediction: random:a/b/c, or time:COLUMN:a/b/c by a column of the edges or src.COLUMN of nodes (ogb: src.year), or REL=… of one relation; may be repeated"},
		{Key: "features", Usual: true, Brief: "features to make: degree, random:D, fastrp:D, mean or none",
			In:   func(o *T) value { return setting.Word(&at(o).Features) },
			Help: "features to make for node types without features, or for all: degree, random:D, fastrp:D, mean (of in-neighbours' rows), none"},
		{Key: "counts",
			In:   func(o *T) value { return setting.Word(&at(o).Counts) },
			Help: "add columns with the number of a node's edges, by relation and direction: all (types with features), none, or TYPE,TYPE (default as a schema asks)"},
		{Key: "normalize",
			In:   func(o *T) value { return setting.Word(&at(o).Normalize) },
			Help: "none, or row: divide each row of features by the sum of its magnitudes"},
		{Key: "dtype",
			In:   func(o *T) value { return setting.Word(&at(o).DType) },
			Help: "how features are stored: f16 or f32"},
		{Key: "clamp",
			In:   func(o *T) value { return setting.Bool(&at(o).Clamp) },
			Help: "round values that float16 cannot hold to those it can, instead of refusing them"},
		{Key: "split", Usual: true, Brief: "given, random:a/b/c or per-class:t/v",
			In:   func(o *T) value { return setting.Word(&at(o).Split) },
			Help: "given, random:a/b/c or per-class:t/v (default given, else random:0.6/0.2/0.2); of streams given or time:a/b/c (default given, else time:0.7/0.15/0.15)"},
		{Key: "allow_leak",
			In:   func(o *T) value { return setting.Repeated(&at(o).AllowLeak) },
			Help: "column of features that may tell the label, which is refused otherwise; may be repeated"},
		{Key: "seed",
			In:   func(o *T) value { return setting.Uint(&at(o).Seed) },
			Help: "seed of made features and splits"},
		{Key: "name",
			In:   func(o *T) value { return setting.Word(&at(o).Name) },
			Help: "name of the dataset (default from the source)"},
		{Key: "order",
			In:   func(o *T) value { return setting.Word(&at(o).Order) },
			Help: "how nodes are numbered: degree or access (hot rows first), or original"},
		{Key: "skip_bad", Usual: true, Brief: "skip at most this many rows that cannot be read",
			In:   func(o *T) value { return setting.Int64(&at(o).SkipBad) },
			Help: "skip at most this many rows and edges that cannot be read or name unknown nodes"},
		{Key: "memory", Usual: true, Brief: "memory limit of the whole process",
			In:   func(o *T) value { return setting.Bytes(&at(o).Memory) },
			Help: "memory limit of the whole process; by default a quarter of the machine's"},
		{Key: "tmp",
			In:   func(o *T) value { return setting.Word(&at(o).Tmp) },
			Help: "directory for what does not fit in memory (default inside the unfinished dataset)"},
		{Key: "plan", Usual: true,
			In:   func(o *T) value { return setting.Bool(&at(o).plan) },
			Help: "print what it would take, pass by pass, and write nothing"},
		{Key: "json", Usual: true,
			In:   func(o *T) value { return setting.Bool(&at(o).json) },
			Help: "print the report as JSON"},
	}
}
