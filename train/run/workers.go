package run

import (
	"errors"
	"fmt"
	"time"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/task"
)

// WorkerOptions has the number of workers that train a run, how they are connected, and how they
// share a step. Only their number, Cooperative and HaloDtype affect results.
type WorkerOptions struct {
	// Dist is as dist.ParseWay reads it; empty: one worker.
	Dist string `json:"dist,omitempty"`
	// Parallel names the way in which workers share a step: Independent, the default, ByParts,
	// Cooperative, or AutoParallel. A run records the way that AutoParallel has become.
	Parallel string `json:"parallel,omitempty"`
	// HaloDtype is the type in which Cooperative workers send hidden rows: "f32", as empty, or
	// "f16", which takes half and rounds them. Gradients are sent in float32.
	HaloDtype string `json:"halo_dtype,omitempty"`
	// DistTimeout bounds the time that a worker waits for the others. MPILibrary is a file: see
	// dist.Options.
	DistTimeout time.Duration `json:"dist_timeout,omitempty"`
	MPILibrary  string        `json:"mpi_library,omitempty"`
	// Topology is a file with the links between workers, as rounds.Parse reads it: see
	// dist.Host.SetTopology. Empty: messages are all sent at once.
	Topology string `json:"topology,omitempty"`
}

// Ways in which workers share a step. Independent and ByParts give the same results, to the bit.
// Cooperative gives the results of one worker, but for the order in which gradients are added up.
const (
	// Independent: each worker draws for its share of a step's seeds, from the whole dataset, and
	// only gradients travel.
	Independent = "independent"
	// ByParts: each worker owns a part of the nodes. It draws from their lists, and reads their
	// rows, for all workers. Seeds are shared as in Independent, or, where parts own ranges, each
	// worker gets seeds that it owns, as far as shares stay equal.
	ByParts = "parts"
	// Cooperative: each worker owns a part of the nodes. It draws from their lists, reads their
	// rows and computes their hidden rows, for all workers. Workers exchange hidden rows between
	// layers, and nothing is computed twice. Cooperative Minibatching (Balin et al.), algorithm 1.
	Cooperative = "cooperative"
	// AutoParallel chooses a way by an estimate of their steps at the start: see plan.Choose.
	AutoParallel = "auto"
)

// ParallelWays lists the ways that AutoParallel chooses from.
var ParallelWays = []string{Independent, ByParts, Cooperative}

// ParallelChoice has the decision on AutoParallel. Its JSON keys are stable.
type ParallelChoice struct {
	Way    string    `json:"way"`
	Reason string    `json:"reason"` // a sentence, which names options by their keys
	Link   plan.Link `json:"link"`   // measured between workers
	// Ways has the estimates of all ways. It is empty if only one was left.
	Ways []plan.Shared `json:"ways,omitempty"`
}

// InWay returns o with Parallel set to one of the ways, and an error if AutoParallel cannot choose
// this way. It refuses LABOR-* by Cooperative, which changes results: a run has to ask for that.
// learns reports whether the network has learnt rows.
func (o Options) InWay(way string, learns bool) (Options, error) {
	o.Parallel = way
	err := errors.Join(errors.Join(o.validateWorkers()...), o.CheckLearnt(learns))
	if way == Cooperative && o.Sampling().Kind == sample.LaborStar {
		err = errors.Join(err, fmt.Errorf("{parallel} %s: each worker would weigh its own nodes alone by {sampler} %s",
			way, sample.LaborStar))
	}
	return o, err
}

// anyWay returns nil if fails returns nil for one of the ways. Otherwise it returns the error for
// the first one.
func anyWay(fails func(way string) error) (err error) {
	for i, way := range ParallelWays {
		switch e := fails(way); {
		case e == nil:
			return nil
		case i == 0:
			err = e
		}
	}
	return err
}

// DefaultDistTimeout is the default of WorkerOptions.DistTimeout where there are several workers.
const DefaultDistTimeout = 10 * time.Minute

// Spread reports whether several workers may train the run.
func (o WorkerOptions) Spread() bool { return o.Dist != "" && o.Dist != string(dist.Off) }

// ByOwners reports whether the owner of a node draws and reads for all workers.
func (o WorkerOptions) ByOwners() bool { return o.Parallel == ByParts || o.Parallel == Cooperative }

// validateWorkers refuses what several workers cannot train.
func (o Options) validateWorkers() []error {
	var errs sample.Problems
	fail := errs.If
	if !o.Spread() {
		return nil
	}
	if o.Parallel == AutoParallel {
		if err := anyWay(func(way string) error { _, err := o.InWay(way, false); return err }); err != nil {
			return []error{err}
		}
		return nil
	}
	_, _, err := dist.ParseWay(o.Dist)
	fail(err != nil, "{dist} %w", err)
	fail(o.Links() && o.Negatives == task.All, "{dist} %s: {negatives} all: each worker would score all nodes; take "+
		"{negatives} shared:64, or leave {dist} out", o.Dist)
	fail(!kernels.IsCPU(o.Device), "{dist} %s: workers compute on the CPU; take {device} cpu", o.Dist)
	if o.ByOwners() {
		const instead = "; take {parallel} " + Independent
		kind := o.Sampling().Kind
		fail(kind == sample.LaborStar && o.Parallel == ByParts || kind == sample.RW, "{parallel} %s: {sampler} %s compares lists, which have different "+
			"owners%s", o.Parallel, kind, instead)
	}
	fail(o.HaloDtype != "" && o.Parallel != Cooperative, "{halo_dtype} %s: only with {parallel} %s hidden rows are sent; "+
		"leave it out", o.HaloDtype, Cooperative)
	fail(o.DistTimeout < 0, "{dist_timeout} %v: at least 0, which is for ever", o.DistTimeout)
	return errs
}

// CheckLearnt refuses learnt rows that several workers cannot train: learns reports whether a type
// has some.
func (o WorkerOptions) CheckLearnt(learns bool) error {
	if o.Spread() && o.Parallel == AutoParallel {
		return anyWay(func(way string) error {
			o.Parallel = way
			return o.CheckLearnt(learns)
		})
	}
	if o.Spread() && learns && !o.ByOwners() {
		return fmt.Errorf("{dist} %s: each worker would change its own copy of learnt rows; take {parallel} %s, "+
			"or give the types {input} TYPE=table or TYPE=constant", o.Dist, ByParts)
	}
	return nil
}
