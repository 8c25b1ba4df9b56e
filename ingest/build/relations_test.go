package build

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// TestSyncsOfRelations: a relation of few edges costs a sync of each of its two sections and of
// their directory. Journals between them sync what is new.
func TestSyncsOfRelations(t *testing.T) {
	storetest.Long(t)
	const relations = 80
	for _, c := range []struct {
		kind     ingest.IDs
		identity string // "": there are no journals
		most     int64  // syncs a relation
	}{
		{ingest.RowIDs, "", 3},
		{ingest.TextIDs, "", 3},
		{ingest.RowIDs, "relations", 3 + 3*7},  // a journal after each of three passes
		{ingest.TextIDs, "relations", 3 + 5*7}, // five
	} {
		f := &fake{schema: ingest.Schema{
			Name: "relations", Identity: c.identity, Featureless: true, NodeTypes: []ingest.NodeType{{Name: "node", Count: 9, IDs: c.kind}},
		}, edges: map[int][][2]int64{}, text: func(id int64) string { return fmt.Sprint("node ", id) }, chunk: 2}
		if c.kind == ingest.TextIDs {
			f.schema.NodeTypes[0].Count, f.schema.NodeTypes[0].Gathered = 0, true
		}
		for i := range relations {
			f.schema.Relations = append(f.schema.Relations, ingest.Relation{Src: "node", Name: fmt.Sprint("r", i), Dst: "node", Edges: 2})
			f.edges[i] = [][2]int64{{int64(i % 9), 3}, {4, int64(i % 9)}}
		}
		var syncs atomic.Int64
		o := Options{Features: "none", FS: errorfs.Wrap(newMem(t), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileSync {
				syncs.Add(1)
			}
			return nil
		}))}
		o.test.journal = c.identity != ""
		_, err := Build(context.Background(), f, "d/x.gnn", o)
		require.NoError(t, err)
		require.LessOrEqual(t, syncs.Load(), relations*c.most+80, "%v %q", c.kind, c.identity)
	}
}
