// Package stream runs a network over a stream of events.
package stream

import (
	"context"
	"errors"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/run"
)

// Hooks are those of train.Hooks that runs on streams have.
type Hooks struct {
	Backend kernels.Backend
	Start   func(*run.Record)
	Step    func(epoch, step, steps int, loss float64)
	Epoch   func(run.Epoch)
	Note    func(string)
	Text    func(string) string
	Live    func(now func() *run.Result) (stop func())
}

// Run will train on a stream of ds, as train.Run does on its graph: the loop takes the place of this file.
func Run(
	ctx context.Context, ds *store.Dataset, openDir func() (*run.Dir, error), o run.Options, version string, h Hooks,
) (*run.Result, error) {
	return nil, errors.New("runs on streams of events are not there yet")
}
