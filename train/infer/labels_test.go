package infer

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
)

// seen keeps logits.
type seen struct{ logits []float32 }

func (s *seen) Measure(f *step.Feed, _ int, out kernels.Tensor, _ []uint32) error {
	s.logits = append(s.logits, f.Download(out)...)
	return nil
}

func (s *seen) Value() (float64, error) { return 0, nil }

// TestEvaluatedLabelsAreHidden: nodes that are evaluated layer by layer do not see their own
// labels, and see the labels of others.
func TestEvaluatedLabelsAreHidden(t *testing.T) {
	ds, err := store.Open(storetest.Build(t, storetest.Communities(300, 3, 6, 8, 3)))
	require.NoError(t, err)
	defer ds.Close()
	d, err := data.Open(ds, data.Options{})
	require.NoError(t, err)
	stack, err := cachetier.Open(t.Context(), d.Types[0].Features, cachetier.Options{})
	require.NoError(t, err)
	defer stack.Close()
	c := model.Config{Kind: model.SAGE, Layers: 2, Hidden: 16, Norm: "layer", LabelInput: 4}
	be := kernels.NewCPU(kernels.CPUOptions{})
	s := step.New(be, model.New(be, c, model.Shape{In: []int{d.Types[0].Dim()}, Out: 3}, 1), nil, optim.Options{})
	defer s.Close()
	shown, err := d.Shown()
	require.NoError(t, err)
	s.Shown = shown
	task := new(seen)
	e := New(d, s, task, Options{Draws: sample.Config{Fanouts: []int{5, 3}}, Bytes: 1 << 30})
	e.Attach([]*cachetier.Stack{stack}, nil)
	logits := func(nodes ...uint32) []float32 {
		task.logits = nil
		_, ok, err := e.Measure(t.Context(), [][]uint32{nodes})
		require.NoError(t, err)
		require.True(t, ok)
		return task.logits
	}
	for _, v := range d.Train[:20] {
		want := logits(v)
		shown.Hide([]uint32{v})
		require.Equal(t, want, logits(v))
		shown.Hide(slices.Concat([]uint32{v}, d.Relations[0].Neighbors(v)))
		require.NotEqual(t, want, logits(v))
		require.NotEmpty(t, shown.Classes(v), "it is shown again")
	}
	require.Equal(t, logits(d.Valid[0]), logits(d.Valid...)[:3], "other nodes without labels change nothing")
}
