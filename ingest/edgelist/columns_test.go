package edgelist

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/store"
)

// TestColumnsFollowEdges: through sorting, merging, reverses and both parts of a split every edge
// keeps the values of its row, which here tell its ends.
func TestColumnsFollowEdges(t *testing.T) {
	var text strings.Builder
	for i := range 600 {
		u, v := i*7%40, (i*i+3*i/40)%40
		fmt.Fprintf(&text, "%d,%d,%d,%d.5\n", 10*u, 10*v, 100*u+v, i%50)
	}
	dir := files{"edges.csv": text.String()}.write(t)
	for name, o := range map[string]build.Options{
		"as they are":   {Order: build.OrderOriginal},
		"sorted":        {Duplicates: build.DuplicatesMerge},
		"turned":        {Reverse: true, EdgeSplit: []string{"random:0.6/0.2/0.2"}},
		"both ways":     {Undirected: true, Duplicates: build.DuplicatesFirst, EdgeSplit: []string{"random:0.6/0.2/0.2"}},
		"split by time": {Reverse: true, EdgeSplit: []string{"time:time:0.6/0.2/0.2"}, Order: build.OrderOriginal},
	} {
		s, err := Open(filepath.Join(dir, "edges.csv"), Options{EdgeColumns: []string{"ends=3:i32", "time=4"}})
		require.NoError(t, err)
		o.Features = "degree"
		out := filepath.Join(t.TempDir(), "g.gnn")
		_, err = build.Build(t.Context(), s, out, o)
		require.NoError(t, err, name)
		ds, err := store.Open(out)
		require.NoError(t, err)
		defer ds.Close()
		ids, edges := ds.IDs(0), 0
		check := func(r *store.Relation, u, v uint32, ends float64) {
			from, to := ids.Original(u)/10, ids.Original(v)/10
			if r.ReverseOf != "" {
				from, to = to, from
			}
			if edges++; o.Undirected && float64(100*to+from) == ends {
				return
			}
			require.EqualValues(t, 100*from+to, ends, "%s: %s", name, r.Key())
		}
		for i := range ds.Manifest().Relations {
			g := ds.Graph(i)
			for e := range g.Edges() {
				u, v := g.Edge(e)
				check(g.Relation, u, v, g.Column("ends").At(e))
			}
			for p := store.HeldValid; p <= store.HeldTest; p++ {
				h, ok := ds.HeldEdges(i, p)
				if !ok {
					continue
				}
				require.NotZero(t, h.Len(), name)
				src, dst := h.Ends()
				for k, u := range src {
					check(g.Relation, u, dst[k], g.Column("ends").Number(h.Column("ends"), k))
				}
			}
		}
		require.GreaterOrEqual(t, edges, 300, name)
	}
}

// TestDatesOfFiles: all files of a list write the dates of a column in one way.
func TestDatesOfFiles(t *testing.T) {
	for second, want := range map[string]string{
		"2020-01-04":           "",
		"2020-01-04T10:00:00Z": `b.csv: line 2, column 3: "2020-01-04T10:00:00Z" is a date with a time zone, and the first in the column is a date without a time zone; write all in one way`,
		"1578132000":           `b.csv: line 2, column 3: "1578132000" is a number, and the first in the column is a date without a time zone; write all in one way`,
	} {
		dir := files{"a.csv": "src,dst,on\n1,2,2020-01-03\n", "b.csv": "src,dst,on\n2,3," + second + "\n"}.write(t)
		s, err := Open(dir, Options{EdgeColumns: []string{"on=on:i64"}})
		require.NoError(t, err)
		_, err = build.Build(t.Context(), s, filepath.Join(t.TempDir(), "g.gnn"), build.Options{Features: "degree"})
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
	}
}
