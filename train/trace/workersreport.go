package trace

import "github.com/gnnstore/gnnstore/train/sample"

// WorkersReport has the work of several workers in a step. Numbers are means over the steps.
type WorkersReport struct {
	Hidden int            `json:"hidden"` // columns of a hidden row
	Counts []WorkersCount `json:"counts"` // by sampler, then by κ, number of workers and way; one way for one worker
}

// WorkersCount has the work of so many workers in one way.
type WorkersCount struct {
	Sampler  sample.Kind `json:"sampler"`
	Kappa    int         `json:"kappa"`
	Workers  int         `json:"workers"`
	Parallel Way         `json:"parallel"`

	Hops []WorkersHop `json:"hops"` // from the seeds, which are hop 0, to the rows

	Lists     Spread  `json:"lists"`     // that a worker draws from, one more time for each that asks
	Neighbors Spread  `json:"neighbors"` // of these lists, all
	Rows      Spread  `json:"rows"`      // that a worker reads
	AllRows   float64 `json:"all_rows"`  // that all workers read

	// Bytes that a worker sends to others in a step. Gradients of weights are left out: they are
	// the same in all ways.
	RowBytes    Spread `json:"row_bytes"`
	HiddenBytes Spread `json:"hidden_bytes"` // hidden rows, and their gradients
	ListBytes   Spread `json:"list_bytes"`   // drawn neighbours
	IDBytes     Spread `json:"id_bytes"`     // of nodes and rows that it asks for
	SentBytes   Spread `json:"sent_bytes"`   // of all of these

	ColdSteps int           `json:"cold_steps"` // that Cold counts, the last ones: see Options.Steps
	Cold      []WorkersCold `json:"cold"`       // by policy, then by size
}

// WorkersHop has the nodes of all types at a hop. Hop l has S^l, the nodes l edges away from the
// seeds.
type WorkersHop struct {
	Hop int `json:"hop"`
	// Nodes are the ones that a worker computes. Of the last hop they are the rows that it reads.
	Nodes Spread `json:"nodes"`
	// Sources are the different nodes that a worker finds, S̃^l. Others are the ones that other
	// workers own, c·S̃^l. Their lists, hidden rows or rows come from there.
	Sources Spread `json:"sources"`
	Others  Spread `json:"others"`
	Edges   Spread `json:"edges"` // that a worker draws from its nodes of the hop; none of the last hop
}

// Spread has a mean over workers, and the number of the worker that has most in its step.
type Spread struct {
	Mean    float64 `json:"mean"`
	Largest float64 `json:"largest"`
}

// WorkersCold counts the rows that caches of workers miss in a step. Each worker has a cache of so
// many rows of each table.
type WorkersCold struct {
	Policy Policy  `json:"policy"`
	Asked  string  `json:"asked"`
	Misses Spread  `json:"misses"`
	All    float64 `json:"all"` // misses of all workers
}

// Alone returns the samplers that were only counted where each worker draws for itself.
func (r *WorkersReport) Alone() (all []sample.Kind) {
	for _, kind := range r.samplers() {
		if !ByParts.takes(kind) {
			all = append(all, kind)
		}
	}
	return all
}
