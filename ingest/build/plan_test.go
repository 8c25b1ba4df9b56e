package build

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
)

// declared is everything with all numbers known beforehand.
func declared() *fake {
	f := everything()
	f.schema.NodeTypes[2].Count, f.schema.NodeTypes[3].Count = 35, 20
	f.schema.Relations[1].Edges = 80
	return f
}

// TestPlanIsBuild: a plan and a build have the same passes in the same order. A plan has one line
// for all splits.
func TestPlanIsBuild(t *testing.T) {
	type way struct {
		source func() ingest.Source
		o      Options
	}
	var ways []way
	for _, o := range everyOptions() {
		ways = append(ways, way{func() ingest.Source { return declared() }, o})
		o.test = hooks{}
		ways = append(ways, way{func() ingest.Source { return declared() }, o})
	}
	years := func() ingest.Source { return timed([]int64{5, 4, 3, 2, 1, 0, 7}) }
	events := func() ingest.Source { return streamSource(at(3, 2, 1), streamForm{kind: ingest.IntIDs}) }
	ways = append(ways,
		way{func() ingest.Source { return external() }, Options{Split: "random:0.5/0.2/0.3"}},
		way{func() ingest.Source { return typed() }, Options{Reverse: true, EdgeIDs: true}},
		way{func() ingest.Source { return small() }, Options{EdgeSplit: []string{"random:0.5/0.25/0.25"}, Features: "fastrp:4"}},
		way{years, Options{EdgeSplit: []string{"time:time:0.5/0.25/0.25"}, Features: "random:4"}},
		way{years, Options{EdgeSplit: []string{"time:time:0.5/0.25/0.25"}, Features: "none", Order: OrderOriginal, Reverse: true}},
		way{events, Options{EdgeFeatures: "random:4"}},
		way{func() ingest.Source { return rounds(300) }, Options{Features: "mean", Reverse: true, test: hooks{means: 2000}}},
	)
	for k, w := range ways {
		w.o.FS = newMem(t)
		plan, err := PlanBuild(t.Context(), w.source(), "x.gnn", w.o)
		require.NoError(t, err, k)
		rep, err := Build(t.Context(), w.source(), "x.gnn", w.o)
		require.NoError(t, err, k)
		var planned, made []string
		for _, p := range plan.Passes {
			planned = append(planned, p.Name)
		}
		for _, name := range passNames(rep) {
			if strings.HasPrefix(name, "write split ") {
				name = "write splits"
			}
			if len(made) == 0 || made[len(made)-1] != name {
				made = append(made, name)
			}
		}
		require.Equal(t, planned, made, k)
	}
}
