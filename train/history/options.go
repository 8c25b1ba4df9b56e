package history

import (
	"errors"
	"math"

	"github.com/gnnstore/gnnstore/train/sample"
)

// Options selects the embeddings that a Cache keeps, and the steps that use them. They are the same
// for a whole run, since results depend on them and on nothing else. Steps are numbered as the run
// numbers them.
type Options struct {
	Seed uint64
	// Layers and Types are the numbers of layers and types of a sample.Batch.
	Layers, Types int
	// PGrad is p_grad: of the nodes of a layer and type in a step, the share with the smallest
	// gradients whose embeddings are accepted.
	PGrad float64
	// TStale is t_stale: the most steps from the step that computes an embedding to one that uses
	// it. If it or PGrad is 0, nothing is kept.
	TStale int
	// Lag is K: the verdict on the embeddings of step i is known to the plans of step i + K and
	// later ones. Default 1.
	Lag int
	// Start is the first step that keeps and uses embeddings.
	Start int
	// First is the first step that is planned. Restore takes it from the snapshot.
	First int
	// Takes is called when the plan of a step has given slots of the pool Kept[k] to embeddings.
	// Restore calls it for every slot that is in use. It must not keep slots. Default nil.
	Takes func(k, step int, slots []uint32)
	// Kept is whose embeddings are kept. Each layer and type that it leaves out is computed by each
	// step.
	Kept []Kept
}

// Kept is a pool of slots for the embeddings of one node type that Layer reads and Layer - 1 makes.
// Layers are numbered as in sample.Batch. Layer 0 reads features, which are not kept here.
type Kept struct {
	Layer, Type, Slots int
	// Nodes bounds the numbers of those that may be kept: where they are few beside the slots they
	// are found faster. Default: not known.
	Nodes int
	// Admits reports whether the embedding of a node may be kept. It depends on the node alone, and
	// is the same for the whole run. Default: all may be kept.
	Admits func(v uint32) bool
}

// Prefix admits the first n nodes, which are the hottest where a dataset is ordered by heat.
func Prefix(n int) func(v uint32) bool { return func(v uint32) bool { return int64(v) < int64(n) } }

// maxStep is the last step: stamps have 32 bits.
const maxStep = math.MaxUint32

// maxSlots is the most slots of a pool: the index stores a slot's number plus 1 in 32 bits.
const maxSlots = math.MaxUint32

// Validate reports every option that cannot be followed.
func (o Options) Validate() error {
	var errs sample.Problems
	fail := errs.If
	fail(o.Layers < 1 || o.Types < 1, "%d layers and %d types: at least 1 of each", o.Layers, o.Types)
	fail(!(o.PGrad >= 0 && o.PGrad <= 1), "{p_grad} %v: from 0, which keeps nothing, to 1", o.PGrad)
	fail(o.TStale < 0, "{t_stale} %d: at least 0, which keeps nothing", o.TStale)
	fail(o.Lag < 0, "{history_lag} %d: at least 1", o.Lag)
	fail(o.Start < 0, "{history_start} %d: at least 0", o.Start)
	fail(o.First < 0 || o.First > maxStep, "first step %d: from 0 to %d", o.First, uint32(maxStep))
	type place struct{ layer, typ int }
	seen := map[place]bool{}
	for _, k := range o.Kept {
		at := place{k.Layer, k.Type}
		fail(k.Layer < 1 || k.Layer >= o.Layers || k.Type < 0 || k.Type >= o.Types,
			"embeddings of layer %d and type %d: there are %d layers and %d types, and layer 0 has none", k.Layer, k.Type, o.Layers, o.Types)
		fail(seen[at], "embeddings of layer %d and type %d twice: put their slots together", k.Layer, k.Type)
		fail(k.Nodes < 0, "%d nodes of type %d: at least 0, which is not known", k.Nodes, k.Type)
		fail(k.Slots < 0 || k.Slots > maxSlots, "%d slots for layer %d and type %d: from 0 to %d", k.Slots, k.Layer, k.Type, uint32(maxSlots))
		seen[at] = true
	}
	return errors.Join(errs...)
}

// withDefaults is o as a Cache follows it.
func (o Options) withDefaults() Options {
	if o.Lag == 0 {
		o.Lag = 1
	}
	if o.PGrad == 0 || o.TStale == 0 {
		o.Kept = nil
	}
	return o
}
