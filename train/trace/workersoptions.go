package trace

import (
	"errors"
	"slices"

	"github.com/gnnstore/gnnstore/train/sample"
)

// Workers chooses the workers whose work is counted. DefaultWorkers has the defaults.
type Workers struct {
	// Most is the largest number of workers. 1, 2, 4 and so on up to Most are counted, and Most.
	Most int `json:"most"`
	// Ways are the ways of sharing a step. Default: for each sampler, all ways that it goes with.
	Ways []Way `json:"parallel"`
	// Hidden is the number of columns of a hidden row. A row takes 4 bytes a column.
	Hidden int `json:"hidden"`
}

// Way names a way in which workers share a step, as run.ParallelWays does.
type Way string

// The ways in which workers share a step.
const (
	Independent Way = "independent" // each worker draws and reads for its share of the seeds
	ByParts     Way = "parts"       // owners of nodes draw and read for all workers
	Cooperative Way = "cooperative" // owners compute as well
)

// Ways lists the ways in which workers share a step.
var Ways = []Way{Independent, ByParts, Cooperative}

// mostWorkers bounds the workers of a trace, since each has files of its own.
const mostWorkers = 256

// DefaultWorkers returns the defaults. The caller sets Most, which has none.
func DefaultWorkers() Workers { return Workers{Hidden: 128} }

// takes reports whether a sampler's draws in a way follow from the draws of the batch of all
// workers.
func (w Way) takes(kind sample.Kind) bool {
	return w == Independent || kind != sample.LaborStar && !kind.Walks()
}

// ways returns the ways to count under a sampler.
func (w *Workers) ways(kind sample.Kind) (all []Way) {
	ways := w.Ways
	if len(ways) == 0 {
		ways = Ways
	}
	for _, way := range ways {
		if way.takes(kind) {
			all = append(all, way)
		}
	}
	return all
}

// counts returns the numbers of workers that are counted.
func (w *Workers) counts() (all []int) {
	for n := 1; n < w.Most; n *= 2 {
		all = append(all, n)
	}
	return append(all, w.Most)
}

// validate reports every problem that does not lie in the dataset.
func (w *Workers) validate(o Options) error {
	var errs sample.Problems
	fail := errs.If
	fail(w.Most < 1 || w.Most > mostWorkers, "{workers} %d: from 1 to %d", w.Most, mostWorkers)
	fail(o.History != nil, "{workers} %d: workers keep no hidden rows here; leave {history} out", w.Most)
	fail(w.Most > o.Batch && w.Most <= mostWorkers, "{workers} %d: a batch has %d seeds, and some workers would "+
		"have none; take at most %d, or a larger {batch}", w.Most, o.Batch, o.Batch)
	fail(w.Hidden < 1, "{hidden} %d: at least 1", w.Hidden)
	twice(&errs, "{parallel}", w.Ways)
	for _, way := range w.Ways {
		known := slices.Contains(Ways, way)
		fail(!known, "{parallel} %s: there are %s", way, sample.Names(Ways))
		for _, kind := range o.Samplers {
			refused := known && slices.Contains(sample.Kinds, kind) && !way.takes(kind)
			why := "compares lists, which have different owners"
			if way == Cooperative && kind == sample.LaborStar {
				why = "draws otherwise on each worker, and here all counts are of one batch"
			}
			fail(refused, "{parallel} %s: {samplers} %s %s; take {parallel} %s, or ns or labor0", way, kind, why, Independent)
		}
	}
	return errors.Join(errs...)
}
