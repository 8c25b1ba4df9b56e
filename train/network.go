package train

import (
	"context"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/graph"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/stream"
)

// Network is the trained network of a run. Its methods are safe for one goroutine at a time.
type Network struct {
	run.Used
	// One of these is set. They are closed by Close.
	Graph  *graph.Network
	Stream *stream.Network
}

// Open loads the weights of the run that run.Look found, to use them on ds: the dataset that the
// run trained on, or another one that is like it. A run on a stream needs no more of o than its
// run.Use.
func Open(
	ctx context.Context, ds *store.Dataset, dir *run.Dir, o graph.NetworkOptions, h run.Hooks,
) (*Network, error) {
	if dir.Record().Options.Streams() {
		n, err := stream.OpenNetwork(ctx, ds, dir, o.Use, h)
		if err != nil {
			return nil, err
		}
		return &Network{Used: n.Used, Stream: n}, nil
	}
	n, err := graph.OpenNetwork(ctx, ds, dir, o, h)
	if err != nil {
		return nil, err
	}
	return &Network{Used: n.Used, Graph: n}, nil
}

// Cost returns what the network has read so far, and the peaks of memory.
func (n *Network) Cost() run.Cost {
	if n.Stream != nil {
		return n.Stream.Cost()
	}
	return n.Graph.Cost()
}

// Close gives up memory, files and the run.
func (n *Network) Close() error {
	if n.Stream != nil {
		return n.Stream.Close()
	}
	return n.Graph.Close()
}
