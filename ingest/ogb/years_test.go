package ogb

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/store"
)

// wantYear are the columns of a year, by the formula.
func wantYear(year, largest float64, columns int) (row []float32) {
	for c := range columns {
		angle := (year - largest) / math.Pow(10000, float64(c/2*2)/float64(columns))
		switch {
		case !(year > 0):
			row = append(row, 0)
		case c%2 == 0:
			row = append(row, float32(math.Sin(angle)))
		default:
			row = append(row, float32(math.Cos(angle)))
		}
	}
	return row
}

// requireYears holds rows to features of dim columns with years behind them.
func requireYears(t *testing.T, rows, features []float32, years []float64, dim, columns int) {
	t.Helper()
	largest := 0.0
	for _, y := range years {
		if y > largest {
			largest = y
		}
	}
	require.Len(t, rows, len(years)*(dim+columns))
	for v, year := range years {
		row := rows[v*(dim+columns) : (v+1)*(dim+columns)]
		require.Equal(t, features[v*dim:(v+1)*dim], row[:dim])
		require.Equal(t, wantYear(year, largest, columns), row[dim:], "node %d", v)
	}
}

func TestYearColumns(t *testing.T) {
	plain := arxiv().with(files{"raw/node-feat.csv.gz": "1,0.5\n-1,2\n3,7\n0,0\n", "raw/node_year.csv.gz": "2000\n0\n2013\n-1\n"})
	dir := plain.write(t, "arxiv")
	features := []float32{1, 0.5, -1, 2, 3, 7, 0, 0}
	for _, columns := range []int{2, 8} {
		w, err := openWhole(dir, Options{YearColumns: columns})
		require.NoError(t, err)
		require.Equal(t, 2+columns, w.Schema.Tables[0].Dim)
		require.NotContains(t, strings.Join(w.Schema.Skipped, "\n"), "node_year")
		requireYears(t, w.Rows[0], features, []float64{2000, 0, 2013, -1}, 2, columns)
	}
	for _, path := range []string{"testdata/papers100M-bin", "testdata/typed"} {
		want, err := openWhole(path, Options{})
		require.NoError(t, err)
		got, err := openWhole(path, Options{YearColumns: 6})
		require.NoError(t, err)
		require.Equal(t, len(want.Rows), len(got.Rows))
		for i, table := range want.Schema.Tables {
			if table.Relation != "" {
				require.Equal(t, want.Rows[i], got.Rows[i])
				continue
			}
			require.Equal(t, table.Dim+6, got.Schema.Tables[i].Dim)
			nodes := len(want.Rows[i]) / table.Dim
			largest := false
			for v := range nodes {
				row := got.Rows[i][v*(table.Dim+6) : (v+1)*(table.Dim+6)]
				require.Equal(t, want.Rows[i][v*table.Dim:(v+1)*table.Dim], row[:table.Dim])
				largest = largest || row[table.Dim] == 0 && row[table.Dim+1] == 1
			}
			require.True(t, largest, "no node is of the last year")
		}
	}
}

func TestYearColumnsRefuses(t *testing.T) {
	for _, columns := range []int{-2, 3, 1026} {
		require.ErrorContains(t, Options{YearColumns: columns}.Validate(), "a sine and a cosine each, so an even number up to 1024, or 0 for none")
	}
	for _, c := range []struct {
		change files
		want   string
	}{
		{files{"raw/node_year.csv.gz": "-"}, "DIR: no node_year in raw/, so there is nothing to make columns of; leave {year_columns} out"},
		{files{"raw/node_year.csv.gz": "1,2\n1,2\n1,2\n1,2\n"}, "DIR/raw/node_year.csv.gz: 2 columns, and a node has one year; leave {year_columns} out"},
		{files{"raw/node_year.csv.gz": "2000\n2001\n"}, "DIR/raw/node_year.csv.gz: found 2 rows, DIR/raw/num-node-list.csv.gz declares 4; fetch both again"},
	} {
		dir := arxiv().with(files{"raw/node-feat.csv.gz": "1\n2\n3\n4\n"}).with(c.change).write(t, "arxiv")
		_, err := openWhole(dir, Options{YearColumns: 2})
		require.EqualError(t, err, strings.ReplaceAll(c.want, "DIR", dir))
	}
	w, err := openWhole(arxiv().with(files{"raw/node-feat.csv.gz": "-"}).write(t, "arxiv"), Options{YearColumns: 2})
	require.NoError(t, err)
	require.Empty(t, w.Schema.Tables)
	require.Contains(t, w.Schema.Skipped, "raw/node_year.csv.gz: its node type has no features, which years stand behind")
}

// TestSplitByYear: edges go by the year of the paper that cites, in tables and where nodes are
// renumbered.
func TestSplitByYear(t *testing.T) {
	all := files{
		"raw/num-node-list.csv.gz": "5\n", "raw/num-edge-list.csv.gz": "6\n", "raw/edge.csv.gz": "0,1\n4,1\n2,3\n1,0\n3,1\n4,0\n",
		"raw/node_year.csv.gz": "1999\n2005\n2001\n2003\n2010\n",
	}
	for _, o := range []build.Options{{}, {Order: build.OrderOriginal}} {
		o.EdgeSplit = []string{"time:src.year:0.5/0.17/0.33"}
		d, rep, err := sealed(t, all.write(t, "mine"), o)
		require.NoError(t, err)
		require.Equal(t, []build.EdgeSplitReport{{Name: "time:src.year:0.5/0.17/0.33", Relation: "node__to__node", Train: 3, Valid: 1, Test: 2}}, rep.EdgeSplits)
		valid, _ := d.HeldEdges(0, store.HeldValid)
		src, dst := valid.Ends()
		require.Equal(t, [][]int64{{1}, {0}}, [][]int64{original(d, src), original(d, dst)})
		test, _ := d.HeldEdges(0, store.HeldTest)
		src, _ = test.Ends()
		require.Equal(t, []int64{4, 4}, original(d, src), "ties stay together")
	}
	_, _, err := sealed(t, all.write(t, "mine"), build.Options{EdgeSplit: []string{"time:src.month:0.5/0.17/0.33"}})
	require.ErrorContains(t, err, "the nodes of type node, which edges of node__to__node are from, have no column month; they have year")
	_, _, err = sealed(t, all.with(files{"raw/node_year.csv.gz": "1999\n"}).write(t, "mine"), build.Options{EdgeSplit: []string{"time:src.year:0.5/0.17/0.33"}})
	require.ErrorContains(t, err, "node_year.csv.gz")
}
