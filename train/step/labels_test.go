package step

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/sample"
)

// shown has the classes of nodes. Some of them are hidden.
type shown struct {
	classes map[uint32][]uint32
	hidden  []uint32
}

func (s *shown) Classes(v uint32) []uint32 {
	if slices.Contains(s.hidden, v) {
		return nil
	}
	return s.classes[v]
}

func (s *shown) Hide(nodes []uint32) { s.hidden = append(s.hidden, nodes...) }
func (s *shown) Show()               { s.hidden = nil }

type lists [][]uint32

func (l lists) Nodes() int                  { return len(l) }
func (l lists) Neighbors(v uint32) []uint32 { return l[v] }

// labelled is a network that has labels for input, and a batch of papers 0 to 4, some of which cite
// each other. Papers that are not cited by them, or by those that they cite, begin at 20.
func labelled(t *testing.T, be kernels.Backend, kind model.Kind, sampler sample.Kind) (*Stepper, *shown, Input) {
	const papers, authors = 30, 8
	rng := rand.New(rand.NewPCG(3, 4))
	cites, writes, by := make(lists, papers), make(lists, papers), make(lists, authors)
	for v := range papers {
		for range 4 {
			if v < 20 {
				cites[v] = append(cites[v], uint32(rng.IntN(20)))
			}
		}
		if v < 5 {
			cites[v] = append(cites[v], uint32(v+1)%5, 7)
		}
		slices.Sort(cites[v])
		author := rng.IntN(authors / 2)
		if v >= 20 {
			author += authors / 2
		}
		writes[v] = []uint32{uint32(author)}
		by[author] = append(by[author], uint32(v))
	}
	s := model.Shape{In: []int{3}, Out: 3}
	schema := sample.Schema{Types: []int{papers}, Relations: []sample.Relation{{}}}
	all := []sample.Topology{sample.AtHand(cites)}
	if kind.Typed() {
		s.In, s.Types = []int{3, 2}, []string{"paper", "author"}
		schema.Types = append(schema.Types, authors)
		schema.Relations = append(schema.Relations, sample.Relation{Src: 1, Dst: 0}, sample.Relation{Src: 0, Dst: 1})
		all = append(all, sample.AtHand(writes), sample.AtHand(by))
		for i, name := range []string{"paper___cites___paper", "author___writes___paper", "paper___by___author"} {
			s.Relations = append(s.Relations, model.Relation{Name: name, Relation: schema.Relations[i]})
		}
	}
	draws := sample.Config{Kind: sampler, Fanouts: []int{6, 6}}
	s.Reach = draws.Reach(schema, 0)
	c := model.Config{Kind: kind, Layers: 2, Hidden: 6, Heads: 2, Norm: "layer", LabelInput: 4}
	draws.Options = c.Blocks(s)
	in := Input{Seeds: make([][]uint32, len(schema.Types)), Key: 1}
	in.Seeds[0] = []uint32{0, 1, 2, 3, 4}
	var b sample.Batch
	require.NoError(t, sample.NewTyped(schema, all, draws, 1).SampleOne(context.Background(), &b, sample.BatchSeed{First: 5}, in.Seeds...))
	in.Layers = b.Layers
	stepper := New(be, model.New(be, c, s, 1), new(first), optim.Options{})
	for i, ids := range b.Inputs() {
		rows := kernels.Tensor{Buf: be.Alloc(kernels.F32, len(ids)*s.In[i]), Type: kernels.F32, Rows: len(ids), Cols: s.In[i]}
		in.Rows = append(in.Rows, rows)
		values := make([]float32, rows.Len())
		for k := range values {
			values[k] = float32(rng.NormFloat64())
		}
		be.UploadF32(rows, values)
	}
	known := &shown{classes: map[uint32][]uint32{}}
	for v := range uint32(papers) {
		if v%6 != 5 {
			known.classes[v] = []uint32{v % 3}
		}
	}
	stepper.Shown = known
	t.Cleanup(func() {
		for _, rows := range in.Rows {
			be.Free(rows.Buf)
		}
		stepper.Close()
	})
	return stepper, known, in
}

// TestSeedsDoNotSeeTheirLabels: the labels of seeds have no part in logits and gradients, though
// the seeds are neighbours of each other. The labels of other papers that the batch reads do.
func TestSeedsDoNotSeeTheirLabels(t *testing.T) {
	for _, kind := range []model.Kind{model.SAGE, model.GCN, model.RSAGE, model.RGCN, model.RGAT, model.HGT} {
		for _, sampler := range []sample.Kind{sample.NS, sample.LaborStar} {
			s, known, in := labelled(t, kernels.NewCPU(kernels.CPUOptions{}), kind, sampler)
			nodes, edges := in.Layers[0].Nodes[0], &in.Layers[1].Blocks[0]
			read := slices.ContainsFunc(edges.Nbr, func(place uint32) bool { return slices.Contains(in.Seeds[0], in.Layers[1].Nodes[0].Src[place]) })
			require.True(t, read, "a seed cites a seed")
			logits := func() []float32 { return slices.Clone(s.Feed.Download(s.Predict(in)[0].Value)) }
			trained := func() (all []float32) {
				for _, p := range s.Model.Params {
					s.be.Fill(p.Grad, 0)
				}
				_, err := compute(s, in)
				require.NoError(t, err)
				return gradients(s)
			}
			want, wantGradients := logits(), trained()
			require.Nil(t, known.hidden, "a step hides its seeds for itself alone")
			change := func(v uint32, to []uint32) func() {
				was := known.classes[v]
				known.classes[v] = to
				return func() { known.classes[v] = was }
			}
			for v := range uint32(30) {
				for _, to := range [][]uint32{{(v + 1) % 3}, {0, 1, 2}} {
					back := change(v, to)
					switch {
					case slices.Contains(in.Seeds[0], v) || !slices.Contains(nodes.Src, v):
						require.Equal(t, want, logits(), "%s, node %d", kind, v)
						require.Equal(t, wantGradients, trained(), "%s, node %d", kind, v)
					case slices.Contains(nodes.Src[:nodes.Dst], v): // shown to itself, at least
						require.NotEqual(t, want, logits(), "%s, node %d", kind, v)
					}
					back()
				}
			}
			back := change(7, nil) // all seeds cite node 7
			without := logits()
			for i := range in.Seeds[0] {
				require.NotEqual(t, want[3*i:][:3], without[3*i:][:3], "%s, seed %d", kind, i)
			}
			back()
			require.Equal(t, want, logits())
		}
	}
}

// TestLabelsOnAnotherBackend: lists of labels come to memory that is not the host's as to that
// which is.
func TestLabelsOnAnotherBackend(t *testing.T) {
	var want []float32
	for _, be := range []kernels.Backend{kernels.NewCPU(kernels.CPUOptions{}), kerneltest.Remote(kernels.NewCPU(kernels.CPUOptions{}))} {
		s, _, in := labelled(t, be, model.RSAGE, sample.NS)
		_, err := compute(s, in)
		require.NoError(t, err)
		got := gradients(s)
		if want == nil {
			want = got
		}
		require.Equal(t, want, got)
		require.Positive(t, s.LabelBytes())
	}
}
