package build

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// giver is a stream with negatives and labels of nodes.
type giver struct {
	*fake
	lists  ingest.NegativeChunk
	labels ingest.NodeLabelChunk
}

func (g *giver) Extras() ingest.Extras {
	return ingest.Extras{Negatives: g.Negatives, NodeLabels: g.NodeLabels}
}

func (g *giver) Negatives(_ context.Context, _ int, emit func(ingest.NegativeChunk) error) error {
	return emit(g.lists)
}

func (g *giver) NodeLabels(_ context.Context, _ int, emit func(ingest.NodeLabelChunk) error) error {
	return emit(g.labels)
}

// given are some events, each with as many negatives as its time says, and labels of nodes in no
// order.
func given() *giver {
	rng := rand.New(rand.NewPCG(5, 6))
	var events []happened
	g := &giver{lists: ingest.NegativeChunk{Place: ingest.Place{File: "lists"}}, labels: ingest.NodeLabelChunk{Place: ingest.Place{File: "labels"}}}
	seen := map[[3]int64]bool{}
	for range 60 {
		e := happened{src: rng.Int64N(4), dst: rng.Int64N(3), time: float64(rng.IntN(30)), row: float32(rng.IntN(9))}
		events = append(events, e)
		if key := [3]int64{e.src, e.dst, int64(e.time)}; !seen[key] {
			seen[key] = true
			g.lists.Src, g.lists.Dst, g.lists.Times = append(g.lists.Src, e.src), append(g.lists.Dst, e.dst), append(g.lists.Times, e.time)
			for j := range int64(e.time) {
				g.lists.Nodes = append(g.lists.Nodes, (e.src+e.dst+j)%12)
			}
			g.lists.Ends = append(g.lists.Ends, uint32(len(g.lists.Nodes)))
		}
		part := ingest.Part(min(int(e.time)/10, 2))
		g.labels.Nodes, g.labels.Times = append(g.labels.Nodes, e.dst), append(g.labels.Times, e.time)
		g.labels.Classes, g.labels.Parts = append(g.labels.Classes, e.src), append(g.labels.Parts, part)
	}
	g.fake = streamSource(events, streamForm{row: true})
	s := g.schema.Relations[0].Stream
	s.Negatives, s.NodeLabels = true, true
	return g
}

// TestStreamGiven: negatives and labels are as in plain maps, under new numbers of nodes, and after
// a kill anywhere.
func TestStreamGiven(t *testing.T) {
	o := Options{Order: OrderDegree, test: tiny}
	o.test.journal = true
	whole := newDisk(newMem(t), forever)
	o.FS = whole
	want, err := Build(context.Background(), given(), "d/x.gnn", o)
	require.NoError(t, err)
	require.EqualValues(t, 60, want.Streams[0].NodeLabels)
	all := forever - whole.left.Load()

	real := o
	real.FS = nil
	d, rep := build(t, given(), real)
	require.Equal(t, want.Seal, rep.Seal)
	e, ids := d.Events(0), d.IDs(0)
	src, dst := e.Ends(0, e.Len())
	require.Equal(t, store.StreamSplit{Name: "time:0.7/0.15/0.15", Train: 48, Valid: 5, Test: 7}, e.Stream.Split)
	for i := e.Stream.Split.Train; i < e.Len(); i++ {
		u, v, at := ids.Original(src[i]), ids.Original(dst[i]), int64(e.Times(i, i+1)[0])
		var want, got []int64
		for j := range at {
			want = append(want, (u+v+j)%12)
		}
		for _, v := range e.Negatives(i) {
			got = append(got, ids.Original(v))
		}
		require.Equal(t, want, got, "event %d", i)
	}
	nodes, times, classes := e.LabelledNodes(0, 60)
	next := map[float64]int{} // of labels of one time, which stay as they came
	for i, at := range times {
		g := given()
		k := next[at]
		for ; g.labels.Times[k] != at; k++ {
		}
		next[at] = k + 1
		require.Equal(t, []int64{g.labels.Nodes[k], g.labels.Classes[k]}, []int64{ids.Original(nodes[i]), int64(classes[i])})
		require.True(t, i == 0 || times[i-1] <= at)
	}

	step := all/30 + 1
	for n := int64(5); n < all; n += step {
		d := newDisk(newMem(t), n)
		o.FS = d
		_, err := Build(context.Background(), given(), "d/x.gnn", o)
		require.ErrorIs(t, err, errPower)
		mem := d.mem
		require.NoError(t, errors.Join(mem.MkdirAll("d", 0o777), mem.MkdirAll("tmp", 0o777)))
		if _, err := mem.Stat("d/x.gnn"); err == nil {
			continue // sealed, and nobody was told
		}
		o.FS = mem
		got, err := Build(context.Background(), given(), "d/x.gnn", o)
		require.NoError(t, err)
		require.Equal(t, want.Seal, got.Seal)
		require.Equal(t, want.Streams, got.Streams)
		requireOnly(t, mem, "x.gnn")
	}
}

// TestStreamGivenPlan: what comes with a stream counts in a plan, and what nobody knows of it is
// said.
func TestStreamGivenPlan(t *testing.T) {
	g := given()
	plan := func() *Plan {
		p, err := PlanBuild(t.Context(), g, filepath.Join(t.TempDir(), "x.gnn"), Options{})
		require.NoError(t, err)
		return p
	}
	without := plan()
	require.Contains(t, strings.Join(without.Unknown, "\n"), "the number of negatives; as if there were none\nthe number of labels of nodes; as if there were none")
	stream := g.schema.Relations[0].Stream
	stream.About = ingest.About{Lists: int64(len(g.lists.Src)), Negatives: int64(len(g.lists.Nodes)), NodeLabels: int64(len(g.labels.Nodes))}
	with := plan()
	require.Equal(t, 4*stream.About.Negatives+16*stream.About.NodeLabels, with.Bytes-without.Bytes)
	require.Less(t, without.SpillBytes, with.SpillBytes)
	require.Less(t, without.Seconds, with.Seconds)
	require.NotContains(t, strings.Join(with.Unknown, "\n"), "negatives")

	_, rep := build(t, g, Options{test: tiny})
	require.LessOrEqual(t, rep.Bytes, with.Bytes)
}

// TestStreamGivenFullDisk fails one operation after another: nothing is left, and it is said in a
// line.
func TestStreamGivenFullDisk(t *testing.T) {
	failWrites(t, 5, func() ingest.Source { return given() })
}

// TestStreamGivenCancelled: a context that ends in the middle of lists ends the build.
func TestStreamGivenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	g := &cancelled{given(), cancel}
	mem := newMem(t)
	_, err := Build(ctx, g, "d/x.gnn", Options{FS: mem})
	require.ErrorIs(t, err, context.Canceled)
}

type cancelled struct {
	*giver
	cancel func()
}

func (c *cancelled) Extras() ingest.Extras { return ingest.Extras{Negatives: c.Negatives} }

func (c *cancelled) Negatives(ctx context.Context, relation int, emit func(ingest.NegativeChunk) error) error {
	c.cancel()
	return c.giver.Negatives(ctx, relation, emit)
}
