package train

import (
	"context"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/graph"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/stream"
)

// Run trains on ds and evaluates. It calls openDir for the run directory once it has checked that
// the options fit the dataset. version goes on record. A directory from run.Open continues the run
// in it, at the step after its newest checkpoint; options that would change its results are
// refused.
//
// When ctx ends, the run stops at the next step boundary, even during a read. It writes a
// checkpoint and returns its result so far, with Status Interrupted and no error. If ctx ends
// before the run is on record, Run returns only ctx's error. After another error the directory has
// the newest checkpoint, and the error is in the result. After a failed read or allocation, that
// checkpoint is usually of the last step.
func Run(
	ctx context.Context, ds *store.Dataset, openDir func() (*run.Dir, error), o run.Options, version string, h run.Hooks,
) (*run.Result, error) {
	if o.Streams() {
		return stream.Run(ctx, ds, openDir, o, version, h)
	}
	return graph.Run(ctx, ds, openDir, o, version, h)
}
