package trace

import "github.com/gnnstore/gnnstore/train/sample"

// Report holds the results of Run. Its JSON keys are stable. A row is the features of a node. A
// number of rows counts requests: a batch makes one for each of its different nodes.
//
// Types, Target and Trace.Type are left out for a graph of one type.
type Report struct {
	Dataset  string   `json:"dataset"`
	Seal     string   `json:"seal"`
	Order    string   `json:"order"`           // of nodes: degree and access put first the rows that static should hold
	Nodes    int      `json:"nodes"`           // of all types
	Edges    int64    `json:"edges"`           // of all relations
	RowBytes int      `json:"row_bytes"`       // 0 where the dataset has no features; of several types the sum
	Types    []TypeOf `json:"types,omitempty"` // each alone

	Target          string           `json:"target,omitempty"`   // type of the seeds
	Relation        string           `json:"relation,omitempty"` // the one that was drawn from, if asked for
	Split           string           `json:"split"`              // empty: there is none, and all nodes are seeds
	Seeds           int              `json:"seeds"`              // nodes that batches begin with
	Fanouts         []int            `json:"fanout"`
	RelationFanouts map[string][]int `json:"relation_fanouts,omitempty"` // of relations with fanouts of their own
	Batch           int              `json:"batch"`
	EpochSteps      int              `json:"epoch_steps"` // batches of an epoch
	Steps           int              `json:"steps"`       // batches of a trace
	Dependent       string           `json:"dependent"`   // "nested" or "smoothed"
	LayerDependency bool             `json:"layer_dependency"`
	Poisson         bool             `json:"poisson"`
	Walk            *sample.Walk     `json:"walk,omitempty"` // of rw
	Seed            uint64           `json:"seed"`

	History *HistoryReport `json:"history,omitempty"` // of runs that use hidden rows again
	Workers *WorkersReport `json:"workers,omitempty"`

	Caches []Size   `json:"caches"` // with several types, the caches of all types together
	Growth []Growth `json:"growth"` // by sampler, then by batch size
	Traces []Trace  `json:"traces"` // by sampler, then by κ, in the order in which they were asked for, then by type
}

// TypeOf is one of several types of nodes, or a table of edges. Type is then the table's relation
// and name, and Nodes counts its rows.
type TypeOf struct {
	Type     string `json:"type"`
	Nodes    int    `json:"nodes"`
	RowBytes int    `json:"row_bytes"`        // 0 where it has no table; of learnt rows with two moments, as Adam keeps them
	Caches   []Size `json:"caches,omitempty"` // of its rows, where batches read some
	Edges    bool   `json:"edges,omitempty"`  // it is a table of edges
}

// NodeTypes is the number of types of nodes.
func (r *Report) NodeTypes() int {
	edges := 0
	for _, t := range r.Types {
		if t.Edges {
			edges++
		}
	}
	return max(1, len(r.Types)-edges)
}

// Size is a cache that was asked for.
type Size struct {
	Asked string  `json:"asked"`
	Rows  int64   `json:"rows"`
	Share float64 `json:"share"` // of all rows
}

// Growth has the sizes of batches with one number of seeds, under independent draws.
type Growth struct {
	Sampler sample.Kind `json:"sampler"`
	Batch   int         `json:"batch"`  // |S⁰|, seeds
	Trials  int         `json:"trials"` // batches drawn
	Hops    []Hop       `json:"hops"`
}

// Hop is |Sˡ|, the nodes of all types that a batch has after hop l from its seeds; after the last
// hop, where all types have a table, it is the rows that it reads.
type Hop struct {
	Hop     int     `json:"hop"`
	Mean    float64 `json:"mean"`
	CI95    float64 `json:"ci95"` // half of the mean's 95 % confidence interval, by Student's t
	PerSeed float64 `json:"per_seed"`
}

// Trace describes the requests of one sampler with one κ for the rows of one type, and has the hits
// and misses of caches.
type Trace struct {
	Sampler   sample.Kind `json:"sampler"`
	Kappa     int         `json:"kappa"` // -1: all batches share their draws
	Type      string      `json:"type,omitempty"`
	Requests  int64       `json:"requests"` // of all batches
	Batches   Batches     `json:"rows_per_batch"`
	Different int64       `json:"different_rows"` // of the whole trace
	// WorkingSet counts the different rows that 1, 2, 4, … batches in a row want: the rows to read
	// if they are read together, each once.
	WorkingSet []Window `json:"working_set"`
	Overlap    Overlap  `json:"overlap"`

	// The steps that hits and misses are counted over: see Options.Steps.
	WarmupSteps      int   `json:"warmup_steps"`
	MeasuredSteps    int   `json:"measured_steps"`
	WholePeriods     bool  `json:"whole_periods"` // MeasuredSteps is a multiple of κ, or κ is infinite
	MeasuredRequests int64 `json:"measured_requests"`
	// FirstRequests counts the measured requests that were the first for their row, warm-up
	// included. Every cache that starts empty misses them.
	FirstRequests int64   `json:"first_requests"`
	Caches        []Cache `json:"caches"` // by policy, then by size
}

// Batches sums up the rows of single batches.
type Batches struct {
	Mean float64 `json:"mean"`
	Min  int     `json:"min"`
	Max  int     `json:"max"`
}

// Overlap compares the rows of a batch with the rows of the batch right before it. With nested
// draws the first batch of each κ is left out, since it has other random numbers than the one
// before it. With κ = 1 each batch has its own numbers, and all are compared: that is the overlap
// by chance.
//
// With NS and LABOR-0 and nested draws, a node draws the same neighbours in all batches of a group.
// With LABOR-* it does not, since its probabilities depend on all nodes of a batch.
type Overlap struct {
	Rows  int64   `json:"rows"`  // rows that both wanted
	Share float64 `json:"share"` // of the rows of the later batch
}

// Window is the mean over all whole windows of so many batches, one behind the other from the start
// of the trace.
type Window struct {
	Batches  int     `json:"batches"`
	Windows  int     `json:"windows"`
	Rows     float64 `json:"rows"`
	PerBatch float64 `json:"rows_per_batch"`
}

// Cache has the hits and misses of one cache.
type Cache struct {
	Policy  Policy  `json:"policy"`
	Rows    int64   `json:"rows"`
	Hits    int64   `json:"hits"`
	Misses  int64   `json:"misses"`
	HitRate float64 `json:"hit_rate"`
}
