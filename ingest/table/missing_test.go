package table

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMissingNumbers: a schema chooses the replacement of missing numbers, column by column.
func TestMissingNumbers(t *testing.T) {
	const n = "a,b,c\n1,10;20,5\n,30;40,6\nNA,,7\n4,50;70,nan\n"
	for spec, want := range map[string][]float32{
		"features: [a, b, c], missing: 0":                               {1, 10, 20, 5, 0, 30, 40, 6, 0, 0, 0, 7, 4, 50, 70, 0},
		"features: [a, b, c], missing: mean":                            {1, 10, 20, 5, 2.5, 30, 40, 6, 2.5, 30, 43.333332, 7, 4, 50, 70, 6},
		"features: [a, b, c], missing: indicator":                       {1, 0, 10, 20, 0, 5, 0, 0, 1, 30, 40, 0, 6, 0, 0, 1, 0, 0, 1, 7, 0, 4, 0, 50, 70, 0, 0, 1},
		"features: [c, b, a], missing: {a: indicator, b: '0', c: mean}": {5, 10, 20, 1, 0, 6, 30, 40, 0, 1, 7, 0, 0, 0, 1, 6, 50, 70, 4, 0},
		"features: [a, c], categorical: [c], missing: {a: 0}":           {1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 4, 0, 0, 0},
		"features: [a, c], categorical: [c], missing: mean":             {1, 1, 0, 0, 2.5, 0, 1, 0, 2.5, 0, 0, 1, 4, 0, 0, 0},
	} {
		g := nodesOf(t, n, spec)
		require.Equal(t, want, g.rows["a/feat"], spec)
		require.Equal(t, len(want)/4, g.schema.Tables[0].Dim, spec)
		if strings.Contains(spec, "missing: mean") {
			require.Contains(t, g.schema.Skipped, "column a: 2 cells without a number have the mean of the 2 others, 2.5")
		}
	}
	for spec, want := range map[string]string{
		"features: [b, a]":                                    "n.csv: line 3: column a: a number is missing; fill it in, leave the column out, or say in the schema what stands for it, as in missing: {a: mean}",
		"features: [a], missing: refuse":                      "n.csv: line 3: column a: a number is missing",
		"features: [a], missing: zero":                        `s.yaml: line 1: missing "zero": choose refuse, 0, mean or indicator`,
		"features: [a], missing: {a: no}":                     `missing "no": choose refuse, 0, mean or indicator`,
		"features: [a], missing: {b: 0}":                      "missing b: it is not among the features; list it there as well",
		"features: [c], categorical: [c], missing: {c: mean}": "missing c: it is categorical, where a missing value is none of the categories; leave it out here",
		"features: [a, d], missing: mean":                     "features: column d of DIR/n.csv has no numbers in its first rows",
	} {
		dir := files{"s.yaml": "nodes: [{type: a, files: n.csv, " + spec + "}]\n" + pairs, "n.csv": "a,b,c,d\n1,2,3,\n,2,3,\n", "e.csv": "x,y\n0,0\n"}.write(t)
		_, err := read(dir, Options{})
		require.ErrorContains(t, err, strings.ReplaceAll(want, "DIR", dir), spec)
	}
	// Edges as well, and the rows that are passed over are in no mean.
	g, err := read(files{"s.yaml": "edges: [{type: a:to:a, files: e.csv, src: x, dst: y, features: [w, v], missing: {w: mean}}]",
		"e.csv": "x,y,w,v\n0,1,1,1\n1,0,,2\n1,0,90,bad\n1,1,4,3\n"}.write(t), Options{SkipBad: 1})
	require.NoError(t, err)
	require.Equal(t, []float32{1, 1, 2.5, 2, 4, 3}, g.rows["a__to__a/feat"])
}
