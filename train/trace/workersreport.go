package trace

import "github.com/gnnstore/gnnstore/train/sample"

// WorkersReport has the work of several workers in a step. Numbers are means over the steps.
type WorkersReport struct {
	Hidden int            `json:"hidden"` // columns of a hidden row
	Counts []WorkersCount `json:"counts"` // by sampler, then by κ, number of workers and way; one way for one worker
}

// WorkersCount has the work of a number of workers that share a step in one way.
type WorkersCount struct {
	Sampler  sample.Kind `json:"sampler"`
	Kappa    int         `json:"kappa"`
	Workers  int         `json:"workers"`
	Parallel Way         `json:"parallel"`

	Hops []WorkersHop `json:"hops"` // from the seeds, which are hop 0, to the rows

	// Lists counts the lists that a worker draws from. By parts a list counts once for each worker
	// that asks for it.
	Lists     Spread  `json:"lists"`
	Neighbors Spread  `json:"neighbors"` // all neighbours in these lists
	Rows      Spread  `json:"rows"`      // that a worker reads
	AllRows   float64 `json:"all_rows"`  // that all workers read

	// Bytes that a worker sends to others in a step. Gradients of weights are left out: they are
	// the same in all ways.
	RowBytes    Spread `json:"row_bytes"`
	HiddenBytes Spread `json:"hidden_bytes"` // hidden rows, and their gradients
	ListBytes   Spread `json:"list_bytes"`   // drawn neighbours
	IDBytes     Spread `json:"id_bytes"`     // of nodes and rows that it asks for
	SentBytes   Spread `json:"sent_bytes"`   // all of these

	ColdSteps int           `json:"cold_steps"` // Cold counts so many steps, the last ones: see Options.Steps
	Cold      []WorkersCold `json:"cold"`       // by policy, then by size
}

// WorkersHop has the nodes of all types at a hop. Hop l has S^l, the nodes l edges away from the
// seeds.
type WorkersHop struct {
	Hop int `json:"hop"`
	// Nodes counts the nodes that a worker computes, or at the last hop the rows that it reads.
	Nodes Spread `json:"nodes"`
	// Sources counts the different nodes that a worker finds, S̃^l. Others counts the sources that
	// other workers own, c·S̃^l: these send their lists, hidden rows or feature rows.
	Sources Spread `json:"sources"`
	Others  Spread `json:"others"`
	// Edges counts the edges that a worker draws from its nodes of the hop. The last hop has none.
	Edges Spread `json:"edges"`
}

// Spread has the mean of a count over workers, and the count of the worker with most in its step.
type Spread struct {
	Mean    float64 `json:"mean"`
	Largest float64 `json:"largest"`
}

// WorkersCold counts the rows that workers' caches miss in a step. Each worker has a cache of the
// size Asked for each table.
type WorkersCold struct {
	Policy Policy  `json:"policy"`
	Asked  string  `json:"asked"`
	Misses Spread  `json:"misses"`
	All    float64 `json:"all"` // misses of all workers
}

// Alone returns the samplers that were counted as Independent alone.
func (r *WorkersReport) Alone() (all []sample.Kind) {
	for _, kind := range r.samplers() {
		if !ByParts.takes(kind) {
			all = append(all, kind)
		}
	}
	return all
}
