package table

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSkipBad: a row that is bad for one column is bad for all sections, and counts once.
func TestSkipBad(t *testing.T) {
	dir := files{
		"s.yaml": "nodes:\n  - {type: a, files: n.csv, id: id, features: [f], label: l, split: s}\n" + pairs,
		"n.csv":  "id,f,l,s\nu,1,x,train\nv,oops,y,train\nw,3,z,nowhere\nx\n\"y\"z,1,x,\ny,5,q,test\n,6,x,test\n",
		"e.csv":  "x,y\nu,y\nu\ny,u\n",
	}.write(t)
	_, err := read(dir, Options{})
	require.EqualError(t, err, dir+`/n.csv: line 3: column f: "oops" is not a number; if they are categories, list the column under categorical`)
	_, err = read(dir, Options{SkipBad: 2})
	require.EqualError(t, err, dir+`/n.csv: line 5: found 1 columns, and 4 are expected; is a cell with a delimiter not in quotes?; 2 bad rows were passed over before it, which is all that {skip_bad} allows`)
	s, err := Open(filepath.Join(dir, "s.yaml"), Options{SkipBad: 6})
	require.NoError(t, err)
	g, err := readAll(s)
	require.NoError(t, err)
	require.Equal(t, []string{"u", "y"}, g.ids["a"])
	require.Equal(t, []float32{1, 5}, g.rows["a/feat"])
	require.Equal(t, []int32{1, 0}, g.labels["a"])
	require.Equal(t, []string{"q", "x"}, g.schema.Labels[0].ClassNames)
	require.Equal(t, [3][]string{{"u"}, nil, {"y"}}, g.splits["a"])
	require.Equal(t, []string{"u>y", "y>u"}, g.edges["a__to__a"])
	n, first := s.Extras().BadRows()
	require.EqualValues(t, 6, n)
	require.ErrorContains(t, first, "n.csv: line 3: column f")
}
