package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
)

// TestColumnsThatDiffer: for each way in which a table can differ, the message names the column and
// the remedy.
func TestColumnsThatDiffer(t *testing.T) {
	learnt := func(change func(t *store.TableEncoding)) *store.TableEncoding {
		e := &store.TableEncoding{Name: "feat", NodeType: "shop", Columns: append(store.NumberColumns([]string{"age", "income"}),
			store.Encoding{Name: "city", Kind: store.CategoryColumn, Encoder: store.OneHot, Width: 2, Categories: []string{"berlin", "paris"}},
			store.Encoding{Name: "rent", Kind: store.NumberColumn, Width: 1, Missing: store.MissingMean, Means: []float32{3}})}
		if change != nil {
			change(e)
		}
		return e
	}
	require.Empty(t, tableDiffers(learnt(nil), learnt(nil)))
	require.Empty(t, tableDiffers(learnt(nil), learnt(func(t *store.TableEncoding) { t.Columns[3].Means = []float32{4} })), "no cell was filled by it")
	require.Empty(t, tableDiffers(learnt(nil), &store.TableEncoding{Columns: []store.Encoding{{Kind: store.VectorColumn, Width: 5}}}), "which cannot be compared")
	for says, change := range map[string]func(t *store.TableEncoding){
		"it has no column income, which was learnt; there are age, pay, city, rent; ingest it with that column":       func(t *store.TableEncoding) { t.Columns[1].Name = "pay" },
		"it has a column tax, which was not learnt; ingest it with the columns age, income, city, rent alone":         func(t *store.TableEncoding) { t.Columns = append(t.Columns, store.NumberColumns([]string{"tax"})...) },
		"its columns are in the order income, age, city, rent, and were learnt as age, income, city, rent; ingest it": func(t *store.TableEncoding) { t.Columns[0], t.Columns[1] = t.Columns[1], t.Columns[0] },
		"column city has the categories paris, zagreb, and was learnt with berlin, paris; ingest both together":       func(t *store.TableEncoding) { t.Columns[2].Categories = []string{"paris", "zagreb"} },
		"column city is a category index, and was learnt as a category onehot; ingest it likewise":                    func(t *store.TableEncoding) { t.Columns[2].Encoder = store.CategoryIndex },
		"column age has missing numbers replaced by rule 0, and they were refused where it was learnt":                func(t *store.TableEncoding) { t.Columns[0].Missing = store.MissingZero },
		"column rent has 2 missing numbers replaced by their mean [4], which was [3] where it was learnt; fill":       func(t *store.TableEncoding) { t.Columns[3].Means, t.Columns[3].Filled = []float32{4}, 2 },
		"column income is scaled by standard (mean 2, deviation 1.5), and by nothing where it was learnt; ingest it likewise": func(t *store.TableEncoding) {
			t.Columns[1].Scale, t.Columns[1].Scalings = store.ScaleStandard, []store.Scaling{{Offset: 2, Divisor: 1.5}}
		},
		"column income is a date, and was learnt as a number; ingest it likewise": func(t *store.TableEncoding) {
			t.Columns[1] = store.Encoding{Name: "income", Kind: store.DateColumn, Width: 1, Parts: []string{store.DateYear}}
		},
		"its rows were normalised, and were not there; ingest it without {normalize}":                     func(t *store.TableEncoding) { t.Normalize = "row" },
		"its features were made by {features} random:4 with {seed} 2, and read there; ingest it likewise": func(t *store.TableEncoding) { t.Made, t.Seed = "random:4", 2 },
		"its many columns are other ones, or in another order": func(t *store.TableEncoding) {
			t.Columns = []store.Encoding{{Kind: store.FoldedColumns, Width: 5, XXH3: "00"}}
		},
	} {
		require.Contains(t, tableDiffers(learnt(nil), learnt(change)), says)
	}
	dated := func(parts []string, reference string) *store.TableEncoding {
		return &store.TableEncoding{Columns: []store.Encoding{{Name: "on", Kind: store.DateColumn, Width: 2, Parts: parts, Reference: reference}}}
	}
	aged := dated([]string{"year", "age"}, "2024-01-01T00:00:00Z")
	require.Contains(t, tableDiffers(aged, dated([]string{"month"}, "")), "column on is a date by its month, and was learnt by its year, age")
	require.Contains(t, tableDiffers(aged, dated([]string{"year", "age"}, "2025-01-01T00:00:00Z")), "column on has ages until 2025-01-01T00:00:00Z, and they were until 2024")
	ranked := func(knot float64) *store.TableEncoding {
		return &store.TableEncoding{Columns: []store.Encoding{{Name: "pay", Kind: store.NumberColumn, Width: 1, Scale: store.ScaleRank,
			Scalings: []store.Scaling{{
				Knots: []float64{1, knot}, Below: []float64{0, 0.5}, Through: []float64{0.5, 1},
			}}}}}
	}
	require.Empty(t, tableDiffers(ranked(2), ranked(2)))
	require.Contains(t, tableDiffers(ranked(2), ranked(3)), "column pay is scaled by rank (from 1 to 3, median 1), and by rank (from 1 to 2, median 1) where it was learnt")
	row := learnt(func(t *store.TableEncoding) { t.Normalize = "row" })
	require.Contains(t, tableDiffers(row, learnt(nil)), "its rows were not normalised, and were there; ingest it with {normalize} row")
}

// TestEdgesThatDiffer: the message names the flag by which edges were stored differently.
func TestEdgesThatDiffer(t *testing.T) {
	plain := store.RelationEncoding{SelfLoops: "keep", Duplicates: "keep"}
	require.Empty(t, edgesDiffer(&plain, &plain))
	both, add, merge := plain, plain, plain
	both.Undirected, both.Duplicates, add.SelfLoops, merge.Duplicates = true, "merge", "add", "merge"
	require.Contains(t, edgesDiffer(&both, &plain), "ingest it with {undirected}")
	require.Contains(t, edgesDiffer(&plain, &both), "ingest it with {undirected} set to false")
	require.Contains(t, edgesDiffer(&plain, &add), "ingest it with {self_loops} keep")
	require.Contains(t, edgesDiffer(&merge, &plain), "ingest it with {duplicates} merge")
}
