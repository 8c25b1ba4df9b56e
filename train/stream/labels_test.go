package stream

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// TestLabels: classes are told from the embeddings that the plain loop makes, event by event, and
// as well as naive counting says.
func TestLabels(t *testing.T) {
	for _, c := range []struct {
		kind    model.Kind
		classes int
		after   bool
	}{{model.TGN, 2, false}, {model.TGN, 2, true}, {model.JODIE, 3, false}} {
		kind, classes := c.kind, c.classes
		ds := labelledDrifting(t, 900, classes)
		o := options(kind)
		o.Epochs = 1
		path, _ := trained(t, ds, o)
		n := network(t, ds, path, run.Use{})
		got, err := n.MeasureLabels(t.Context(), c.after)
		require.NoError(t, err)

		want := n.labelled(c.after)
		require.NoError(t, want.list())
		want.probe = temporal.NewProbe(kernels.NewCPU(kernels.CPUOptions{}), n.Columns(), classes, sample.Hash(o.Seed, labelTag))
		defer want.probe.Close()
		want.test = want.newScores()
		e := n.c.events
		labels := e.Labels(0, e.Len())
		tests, right := 0, 0
		plainReplay(t, ds, n, e.Len(), func(lo, hi int64, embed func(v uint32, at float64) []float32) {
			for i := lo; i < hi; i++ {
				if labels[i] < 0 {
					continue
				}
				src, _ := e.Ends(i, i+1)
				at := e.Times(i, i+1)[0]
				if c.after {
					at = math.Nextafter(at, math.Inf(1))
				}
				z := embed(src[0], at)
				require.NoError(t, want.take(t.Context(), []uint32{uint32(i)}, []uint32{0}, z))
				if i < n.c.split.Train+n.c.split.Valid {
					continue
				}
				best, logits := 0, want.probe.Logits(z)
				for c := range logits {
					if logits[c] > logits[best] {
						best = c
					}
				}
				if tests++; best == int(labels[i]) {
					right++
				}
			}
		})
		require.NoError(t, want.end(t.Context()))
		require.Equal(t, want.LabelsOf, got, kind)
		require.EqualValues(t, tests, got.Test)
		require.Equal(t, got.Train, got.Learnt)
		t.Logf("%s: %+v %+v", kind, *got.ValidScore, *got.TestScore)
		if classes > 2 {
			require.InDelta(t, float64(right)/float64(tests), got.TestScore.Accuracy, 1e-12)
			continue
		}
		pairs, above := 0.0, 0.0
		for _, p := range want.test.positives {
			for _, q := range want.test.negatives {
				if pairs++; p > q {
					above++
				} else if p == q {
					above += 0.5
				}
			}
		}
		require.InDelta(t, above/pairs, got.TestScore.AUC, 1e-12)
		require.EqualValues(t, len(want.test.positives), got.Positives[2])
	}
}

// TestLabelsRefused: a stream without labels, and one with nothing to tell apart.
func TestLabelsRefused(t *testing.T) {
	path, _ := trained(t, drifting(t, 500), options(model.TGN))
	_, err := network(t, drifting(t, 500), path, run.Use{}).MeasureLabels(t.Context(), false)
	require.ErrorContains(t, err, "stream events has labels of 0 classes, and at least 2 are to be told apart; ingest it with labels of events")
	path, _ = trained(t, labelledDrifting(t, 500, 2), options(model.JODIE))
	_, err = network(t, labelledDrifting(t, 500, 2), path, run.Use{}).MeasureLabels(t.Context(), true)
	require.ErrorContains(t, err, "{model} jodie reads no neighbours, so that it sees an event once it is in the state; take {labels} before")
}

// TestLabelsOfManyClasses: a dataset with more classes than ingest takes now is refused before
// memory is made for them. With as many as it takes, LabelBytes counts what the classifier takes.
func TestLabelsOfManyClasses(t *testing.T) {
	of := func(classes int) *store.Dataset {
		s := driftingSpec(500, 2)
		s.Classes = classes
		ds, err := store.Open(storetest.BuildStream(t, s))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, ds.Close()) })
		return ds
	}
	ds := of(mostClasses + 1)
	path, _ := trained(t, ds, options(model.TGN))
	_, err := network(t, ds, path, run.Use{}).MeasureLabels(t.Context(), false)
	require.ErrorContains(t, err, "stream events has labels of 65537 classes, and at most 65536 are told apart; ingest it again with labels that are classes")

	const classes, columns = 20_000, 16
	be := kernels.NewCPU(kernels.CPUOptions{})
	before := kernels.HostBytes()
	p := temporal.NewProbe(be, columns, classes, 1)
	defer p.Close()
	z := make([]float32, probeRows*columns)
	p.Step(z, make([]uint32, probeRows), 1e-3)
	host := int64(4 * len(p.Logits(z)))
	for _, w := range p.Weights() {
		host += int64(4*len(w)) * (probeSteps / probeEvery)
	}
	backend := kernels.HostBytes() - before
	counted := LabelBytes(of(classes).Events(0), columns)
	require.LessOrEqual(t, backend+host, counted)
	if backend > 0 { // with the race detector, HostBufs lie in the Go heap and are not counted
		require.Greater(t, 2*(backend+host), counted, "and not much more")
	}
}

// TestLabelsOfNodes: what sources are at the times of their events is told as well as from labels
// of these events, and labels may lie anywhere between.
func TestLabelsOfNodes(t *testing.T) {
	s := driftingSpec(900, 3)
	for i := range s.Times {
		s.Times[i] = float64(i) // each its own, so that a time says which events are before
	}
	open := func(s storetest.StreamSpec) *store.Dataset {
		ds, err := store.Open(storetest.BuildStream(t, s))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, ds.Close()) })
		return ds
	}
	ofEvents := open(s)
	o := options(model.TGN)
	o.Epochs = 1
	path, _ := trained(t, ofEvents, o)
	want, err := network(t, ofEvents, path, run.Use{}).MeasureLabels(t.Context(), false)
	require.NoError(t, err)

	labels := s.Labels
	label := func(after float64) *LabelsOf {
		nodes := s
		nodes.Labels, nodes.Classes = nil, 0
		nodes.LabelSplit.Name = "given"
		nodes.NodeLabels = []storetest.NodeLabel{{Node: 3, Time: -5, Class: 1}} // before there is anything to tell it by
		nodes.LabelSplit.Train = 1
		for i, class := range labels {
			if class < 0 {
				continue
			}
			nodes.NodeLabels = append(nodes.NodeLabels, storetest.NodeLabel{Node: s.Src[i], Time: s.Times[i] + after, Class: class})
			switch p := &nodes.LabelSplit; {
			case int64(i) < s.Split.Train:
				p.Train++
			case int64(i) < s.Split.Train+s.Split.Valid:
				p.Valid++
			default:
				p.Test++
			}
		}
		got, err := network(t, open(nodes), path, run.Use{}).MeasureLabels(t.Context(), false)
		require.NoError(t, err)
		require.True(t, got.OfNodes)
		got.OfNodes = false
		return got
	}
	require.Equal(t, want, label(0))
	later := label(0.5)
	require.Equal(t, []int64{want.Train, want.Valid, want.Test}, []int64{later.Train, later.Valid, later.Test})
	require.NotEqual(t, want.TestScore, later.TestScore, "the event is among the neighbours")
}
