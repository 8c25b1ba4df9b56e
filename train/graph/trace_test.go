package graph

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/trace"
)

// tracedRows returns the number of rows, by type, that a trace asks for with the options of a run.
func tracedRows(t *testing.T, ds *store.Dataset, o run.Options) map[string]int64 {
	p := trace.DefaultOptions()
	p.Samplers, p.Kappas, p.Smoothed = []sample.Kind{o.Sampler}, []int{o.Kappa}, o.Dependent == run.Smoothed
	p.Fanouts, p.RelationFanouts, p.Target, p.Relation = o.Fanouts, o.RelationFanouts, o.Target, o.Relation
	p.Batch, p.Epochs, p.Seed, p.Caches, p.Tmp = o.Batch, o.Epochs, o.Seed, nil, t.TempDir()
	r, err := trace.Run(context.Background(), ds, p)
	require.NoError(t, err)
	rows := map[string]int64{}
	for _, trace := range r.Traces {
		rows[trace.Type] = trace.Requests
	}
	return rows
}

// TestTraceIsWhatTrainingReads: a trace asks for as many rows of each table as training with the
// same options reads.
func TestTraceIsWhatTrainingReads(t *testing.T) {
	ds := openTyped(t, storetest.Library(400, 3, 6))
	for name, change := range map[string]func(o *run.Options){
		"ns":         func(*run.Options) {},
		"labor0":     func(o *run.Options) { o.Sampler, o.Kappa, o.Dependent = sample.Labor0, 5, run.Smoothed },
		"labor-star": func(o *run.Options) { o.Sampler, o.Kappa = sample.LaborStar, sample.Forever },
		"fanouts": func(o *run.Options) {
			o.RelationFanouts = map[string][]int{"cites": {7, -1}, "author__writes__paper": {0, 4}, "prints": {1, 0}}
		},
	} {
		o := typed(model.RSAGE)
		o.Epochs, o.Inputs = 2, map[string]string{"author": data.Constant} // a trace knows tables alone
		change(&o)
		read := map[string]int64{}
		for _, table := range trained(t, ds, o).Tables {
			read[table.Type] = table.InputRows
		}
		require.Len(t, read, 2)
		require.NotZero(t, read["venue"])
		require.Equal(t, read, tracedRows(t, ds, o), name)
	}

	o := small()
	o.Epochs = 2
	one := open(t, storetest.Communities(300, 3, 6, 8, 3))
	require.Equal(t, map[string]int64{"": trained(t, one, o).InputRows}, tracedRows(t, one, o))
	o.Relation = "cites"
	require.Equal(t, map[string]int64{"": trained(t, ds, o).InputRows}, tracedRows(t, ds, o))
}
