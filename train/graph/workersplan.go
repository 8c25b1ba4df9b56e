package graph

import (
	"context"
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
)

// WorkersPlan estimates what a run of several workers takes, in each of the ways in which they can
// share a step, from the first steps of its first epoch. Its JSON keys are stable.
type WorkersPlan struct {
	Dataset string      `json:"dataset"`
	Options run.Options `json:"options"`
	Workers int         `json:"workers"`
	Machine int         `json:"workers_of_machine"` // that share processors, disk and memory
	Memory  plan.Budget `json:"memory"`             // of a worker that reads for itself
	Link    plan.Link   `json:"link"`
	// LinkFrom is "given", "measured" or "assumed".
	LinkFrom string        `json:"link_from"`
	Steps    int           `json:"steps"` // of an epoch
	Drawn    int           `json:"drawn"` // steps that the figures come from
	Ways     []plan.Shared `json:"ways"`
	Advised  string        `json:"advised"` // what auto takes
	// Way is the way that the run takes: Advised, unless the options name one. The figures below
	// are of this way.
	Way           string  `json:"way"`
	Seconds       float64 `json:"seconds"` // of a step
	EpochSeconds  float64 `json:"epoch_seconds"`
	LimitingStage string  `json:"limiting_stage"`
}

// AssumedNetwork is the network of a plan for workers on machines of their own, if none is given.
const AssumedNetwork = "10Gbit"

// MakeWorkersPlan estimates what Run would take with so many workers, which are not started. They
// share this machine if Options.Dist has them in this process; otherwise each has a machine like
// this one, and the network is link, or AssumedNetwork if link is nil. It writes nothing.
func MakeWorkersPlan(
	ctx context.Context, ds *store.Dataset, o run.Options, link *plan.Link,
) (_ *WorkersPlan, err error) {
	defer kernels.RecoverMemory(&err)
	if err := o.Validate(); err != nil {
		return nil, err
	}
	way, workers, err := dist.ParseWay(o.Dist)
	if err != nil {
		return nil, err
	}
	p := &WorkersPlan{Dataset: ds.Path(), Workers: workers, Machine: 1, LinkFrom: "given"}
	switch {
	case way == dist.Local:
		p.Machine, p.LinkFrom = workers, "measured"
		p.Link, err = linkOfProcess(ctx, workers)
	case link == nil:
		p.LinkFrom = "assumed"
		p.Link, err = plan.ParseLink(AssumedNetwork)
	default:
		p.Link = *link
	}
	if err != nil {
		return nil, err
	}
	of := &planned{workers: workers, link: p.Link, machine: p.Machine}
	c, err := newCore(ctx, ds, o, run.Hooks{}, internal{planned: of})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	p.Options, p.Memory, p.Steps, p.Ways = c.Options, c.tiers.Budget, c.task.Steps(), c.shared
	p.Drawn = min(tracedSteps, p.Steps)
	best := plan.Choose(p.Ways)
	if best < 0 {
		return nil, fmt.Errorf("{dist} %s: %s", o.Dist, p.Ways[0].Refused)
	}
	p.Advised = p.Ways[best].Way
	if i := slices.IndexFunc(p.Ways, func(w plan.Shared) bool { return w.Way == o.Parallel }); i >= 0 {
		best = i
	}
	taken := &p.Ways[best]
	if taken.Refused != "" {
		return nil, fmt.Errorf("{parallel} %s: %s; {parallel} %s would work", taken.Way, taken.Refused, p.Advised)
	}
	p.Way, p.Seconds, p.LimitingStage = taken.Way, taken.Seconds, taken.LimitingStage
	p.EpochSeconds = p.Seconds * float64(p.Steps)
	return p, nil
}

// linkOfProcess measures exchanges among workers of this process.
func linkOfProcess(ctx context.Context, workers int) (l plan.Link, err error) {
	host, err := dist.Open(dist.Options{Way: dist.Local, Workers: workers, Timeout: run.DefaultDistTimeout})
	if err != nil {
		return l, err
	}
	defer host.Close()
	err = host.Run(ctx, func(ctx context.Context, g *dist.Group) error {
		bytes, latency, err := g.Measure(ctx)
		if g.Rank() == 0 {
			l = plan.Link{BytesPerSecond: bytes, Latency: latency}
		}
		return err
	})
	return l, err
}
