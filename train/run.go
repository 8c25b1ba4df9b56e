package train

import (
	"context"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/graph"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/stream"
)

// Run trains on ds and evaluates, in the run directory that openDir gives once the options are
// known to fit the dataset; version is recorded. A directory from run.Open continues the run in it,
// at the step after its newest checkpoint; options that would change its results are refused.
//
// When ctx ends, the run stops at the next step boundary, even during a read. It writes a
// checkpoint and returns its result so far, with Status Interrupted and no error. If ctx ends
// before the start is on record, Run returns ctx's error alone. After another error the directory
// holds the newest checkpoint, and the error in the result. If the error was a failed read or
// allocation, that checkpoint is of the last step, as a rule.
func Run(
	ctx context.Context, ds *store.Dataset, openDir func() (*run.Dir, error), o run.Options, version string, h run.Hooks,
) (*run.Result, error) {
	if o.Streams() {
		return stream.Run(ctx, ds, openDir, o, version, h)
	}
	return graph.Run(ctx, ds, openDir, o, version, h)
}
