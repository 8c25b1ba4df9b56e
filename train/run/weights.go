package run

import (
	"fmt"
	"strconv"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/step"
)

// What the metadata of a file of weights says of their run, for people and other programs as well.
const (
	epochsKey = "gnnstore.epochs" // whole ones
	stepsKey  = "gnnstore.steps"  // updates in all; those beyond the whole epochs are of the one under way
	sealKey   = "gnnstore.dataset_seal"
	modelKey  = "gnnstore.model"
	seedKey   = "gnnstore.seed"
)

// Meta is the metadata of weights after so many updates.
func (r *Result) Meta(updates int) map[string]string {
	return map[string]string{
		epochsKey: strconv.Itoa(len(r.Epochs)), stepsKey: strconv.Itoa(updates), sealKey: r.Seal,
		modelKey: string(r.Options.Kind), seedKey: strconv.FormatUint(r.Options.Seed, 10),
	}
}

// checkMeta says why weights are none of this run.
func (r *Result) checkMeta(meta map[string]string) error {
	if seal := meta[sealKey]; seal != r.Seal {
		return fmt.Errorf("it is of a dataset with seal %q, and %s has %s", seal, r.Dataset, r.Seal)
	}
	if kind := meta[modelKey]; kind != string(r.Options.Kind) {
		return fmt.Errorf("it is of a %q model, and {model} is %s", kind, r.Options.Kind)
	}
	if seed := meta[seedKey]; seed != strconv.FormatUint(r.Options.Seed, 10) {
		return fmt.Errorf("it is of a run with seed %s, and {seed} is %d", seed, r.Options.Seed)
	}
	return nil
}

// InitialWeights reads the weights that a run begins with: a safetensors file with those that find,
// of the model, looks for, and maybe others.
func InitialWeights(path string, find func(all []checkpoint.Tensor, prefix string) ([]checkpoint.Tensor, error)) ([]checkpoint.Tensor, error) {
	tensors, _, err := checkpoint.Load(vfs.Default, path)
	if err != nil {
		return nil, err
	}
	weights, err := find(tensors, "")
	if err != nil {
		return nil, fmt.Errorf("{init} %s: %w", path, err)
	}
	if w, i := notFinite(weights); i >= 0 {
		return nil, fmt.Errorf("{init} %s: weight %s[%d] is %v: it is no network that works", path, w.Name, i, w.Data[i])
	}
	return weights, nil
}

// notFinite returns the tensor and the index of the first value that is not finite; i is -1 if all
// are.
func notFinite(weights []checkpoint.Tensor) (w checkpoint.Tensor, i int) {
	for _, w := range weights {
		if i := step.NotFinite(w.Data); i >= 0 {
			return w, i
		}
	}
	return w, -1
}

// CheckWeights refuses weights that are not finite after this many updates.
func (d *Dir) CheckWeights(weights []checkpoint.Tensor, updates int) error {
	if w, i := notFinite(weights); i >= 0 {
		return fmt.Errorf("step %d: weight %s[%d] is %v; lower {lr}%s", updates, w.Name, i, w.Data[i], d.LastGood())
	}
	return nil
}

// ExplainOdd adds the cause to the error of a loss or a node state that is not finite, if it is not
// in the data: these weights, or too large a step.
func (d *Dir) ExplainOdd(what error, weights []checkpoint.Tensor) error {
	if w, i := notFinite(weights); i >= 0 {
		return fmt.Errorf("%w, since weight %s[%d] became %v in the step before; lower {lr}%s", what, w.Name, i, w.Data[i], d.LastGood())
	}
	return fmt.Errorf("%w, though features and weights are finite: they grew too large; lower {lr}%s", what, d.LastGood())
}

// LastGood names the newest checkpoint, to end the error of a run that went astray. It returns ""
// if there is none, or if d is nil, as in a plan.
func (d *Dir) LastGood() string {
	if d == nil {
		return ""
	}
	if path := d.Newest(); path != "" {
		return "; the state before it is in " + path
	}
	return ""
}
