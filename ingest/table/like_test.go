package table

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// learnt returns what a dataset of a schema would keep.
func learnt(t *testing.T, dir string) *ingest.Like {
	t.Helper()
	s, err := Open(filepath.Join(dir, "s.yaml"), Options{})
	require.NoError(t, err)
	defer s.Close()
	form, err := s.Schema(t.Context())
	require.NoError(t, err)
	l := &ingest.Like{Name: "shop.gnn", Identity: "x", Encodings: &store.Encodings{}}
	for i, columns := range s.Describe().Tables {
		of := form.Tables[i]
		l.Encodings.Tables = append(l.Encodings.Tables, store.TableEncoding{
			Name: of.Name, NodeType: of.NodeType, Relation: of.Relation, Columns: columns,
		})
	}
	for _, of := range form.Labels {
		l.Labels = append(l.Labels, store.LabelEncoding{
			Name: of.Name, NodeType: of.NodeType, Classes: int64(max(3, len(of.ClassNames))), ClassNames: of.ClassNames,
			Numbers: of.Numbers, Multi: of.Multi,
		})
	}
	return l
}

// follows reads a schema that follows l.
func follows(t *testing.T, l *ingest.Like, nodes, n string) (graph, error) {
	t.Helper()
	dir := files{"s.yaml": "nodes: [{type: a, files: n.csv, " + nodes + "}]\n" + pairs, "n.csv": n, "e.csv": "x,y\n0,0\n"}.write(t)
	return read(dir, Options{Like: l})
}

// TestLike: rows have the numbers that they have in the dataset to follow, whatever else is in the
// file, and in whichever order its columns are.
func TestLike(t *testing.T) {
	const whole = "city,age,v,label\nberlin,1,10;20,cold\nparis,,30;40,warm\nrome,4,,cold\nparis,5,1;2,mild\n"
	for _, spec := range []string{
		"features: [city, age, v], categorical: [city], missing: {age: mean, v: 0}, label: label",
		"features: [v, city, age], categorical: {city: index}, missing: {age: indicator, v: mean}, label: label",
		"features: [age, v, city], categorical: [city], missing: {age: 0, v: indicator}",
	} {
		dir := files{"s.yaml": "nodes: [{type: a, files: n.csv, " + spec + "}]\n" + pairs, "n.csv": whole, "e.csv": "x,y\n0,0\n"}.write(t)
		l := learnt(t, dir)
		want, err := read(dir, Options{})
		require.NoError(t, err)
		again, err := read(dir, Options{Like: l})
		require.NoError(t, err)
		require.Equal(t, want.rows, again.rows)
		require.Equal(t, want.labels, again.labels)
		// The last two rows alone, columns in another order, by a schema that says no more than it
		// must.
		last, err := follows(t, l, "features: [v, age, city], label: label", "label,city,v,age\ncold,rome,,4\nmild,paris,1;2,5\n")
		if l.Labels == nil {
			require.ErrorContains(t, err, "node type a has no label there; leave it out of the schema")
			continue
		}
		require.NoError(t, err)
		all := want.rows["a/feat"]
		require.Equal(t, all[len(all)/2:], last.rows["a/feat"], spec)
		require.Equal(t, want.labels["a"][2:], last.labels["a"])
		require.Equal(t, want.schema.Labels, last.schema.Labels)
	}
}

// TestLikeUnknown: a category that the other dataset does not have is refused, or as a missing one
// and counted.
func TestLikeUnknown(t *testing.T) {
	dir := files{"s.yaml": "nodes: [{type: a, files: n.csv, features: [c, d], categorical: {c: onehot, d: index}, label: l}]\n" + pairs,
		"n.csv": "c,d,l\nberlin,x,0\nparis,y,1\nparis,y,2\n", "e.csv": "x,y\n0,0\n"}.write(t)
	l := learnt(t, dir)
	g, err := follows(t, l, "features: [c, d], unknown: 0, label: l", "c,d,l\nzagreb,y,1\nparis,z,1\n,x,\n")
	require.NoError(t, err)
	require.Equal(t, []float32{0, 0, 1, 0, 1, -1, 0, 0, 0}, g.rows["a/feat"])
	require.Equal(t, []int32{1, 1, -1}, g.labels["a"])
	require.Equal(t, ingest.Label{Name: "label", NodeType: "a", Classes: 3}, g.schema.Labels[0], "three classes, though one is met")
	require.Contains(t, g.schema.Skipped,
		`column c: 1 cells have other categories than the dataset to follow, such as "zagreb", and are taken for missing ones`)
	for spec, want := range map[string]string{
		"features: [c, d]":                                 "line 3: column c: \"zagreb\" is none of the categories of shop.gnn; in the schema, unknown: {c: 0} takes it for a missing one",
		"features: [c, d], unknown: {d: 0}":                "column c: \"zagreb\" is none of",
		"features: [c, d], unknown: drop":                  `unknown "drop": choose refuse; 0, which takes the category for a missing one; or bucket`,
		"features: [c, d], unknown: bucket:0":              `unknown "bucket:0": choose refuse`,
		"features: [c, d], unknown: refuse:2":              `unknown "refuse:2": choose refuse`,
		"features: [c, d], unknown: {c: bucket}":           "column c has no bucket for unknown categories there; choose unknown: {c: 0} or refuse",
		"features: [c, d], unknown: {e: 0}":                "unknown e: it is not among the features",
		"features: [c, d], unknown: 0, label: l":           `line 2: column l: "3" is none of the classes of shop.gnn`,
		"features: [c]":                                    "table feat: column d is there, and not among the features of the schema; list it",
		"features: [c, d, l]":                              "table feat: column l is not there; leave it out of features; there are c, d",
		"features: {other: [c, d]}":                        "table other: that dataset has no such table; leave its columns out of the schema",
		"label: l":                                         "{like} shop.gnn: its table feat of a has the columns c, d; list them under features",
		"features: [c, d], categorical: {c: index}":        "column c is categorical by onehot there; write categorical: {c: onehot}",
		"features: [c, d], value: l":                       "node type a has label there; write label: COLUMN in the schema",
		"features: [c, d], unknown: 0, missing: {c: mean}": "column c is categorical there",
	} {
		_, err := follows(t, l, spec, "c,d,l\nparis,y,3\nzagreb,x,1\n")
		require.ErrorContains(t, err, want, spec)
	}
}

// TestLikeBucket: unknown categories share a number that the first dataset has for them, and so do
// its rare ones.
func TestLikeBucket(t *testing.T) {
	dir := files{"s.yaml": "nodes: [{type: a, files: n.csv, features: [c, d], categorical: {c: onehot, d: index}, unknown: {c: 'bucket:2', d: bucket}}]\n" + pairs,
		"n.csv": "c,d\nrome,x\nbern,y\noslo,z\noslo,x\nrome,\nrome,x\n", "e.csv": "x,y\n0,0\n"}.write(t)
	first, err := read(dir, Options{})
	require.NoError(t, err)
	require.Equal(t, []float32{0, 1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 2, 1, 0, 0, 0, 0, 1, 0, -1, 0, 1, 0, 0}, first.rows["a/feat"], "oslo, rome, and bern as a rare one")
	l := learnt(t, dir)
	columns := l.Encodings.Tables[0].Columns
	require.Equal(t, store.Encoding{
		Name: "c", Kind: store.CategoryColumn, Encoder: store.OneHot, Width: 3, Categories: []string{"oslo", "rome"}, Unknown: store.UnknownBucket,
	}, columns[0])
	require.Equal(t, []string{"x", "y", "z"}, columns[1].Categories)
	const n = "d,c\nw,graz\nx,bern\n,\n"
	g, err := follows(t, l, "features: [d, c]", n)
	require.NoError(t, err)
	require.Equal(t, []float32{0, 0, 1, 3, 0, 0, 1, 0, 0, 0, 0, -1}, g.rows["a/feat"])
	require.Contains(t, g.schema.Skipped, `column c: 2 cells have other categories than the dataset to follow, such as "graz", and are in its bucket for unknown ones`)
	g, err = follows(t, l, "features: [d, c], unknown: 0", n)
	require.NoError(t, err)
	require.Equal(t, []float32{0, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0, -1}, g.rows["a/feat"])
	_, err = follows(t, l, "features: [d, c], unknown: {c: refuse}", n)
	require.ErrorContains(t, err, `"graz" is none of the categories of shop.gnn`)

	dir = files{"s.yaml": "nodes: [{type: a, files: n.csv, features: [c], unknown: {c: bucket}}]\n" + pairs, "n.csv": "c\n1\n", "e.csv": "x,y\n0,0\n"}.write(t)
	_, err = read(dir, Options{})
	require.ErrorContains(t, err, "unknown: column c is not categorical, so it has no categories; list it under categorical")
}

// TestLikeRelations: the values of a column of relations are the relations there, and their
// features are as there.
func TestLikeRelations(t *testing.T) {
	const spec = "edges: [{type: 'a:*:a', files: e.csv, src: x, dst: y, relation_column: r, features: [how], categorical: [how]}]\n"
	dir := files{"s.yaml": spec, "e.csv": "x,y,r,how\n0,1,met at,well\n1,2,likes,badly\n2,0,met at,\n"}.write(t)
	l := learnt(t, dir)
	l.Encodings.Relations = append(l.Encodings.Relations, store.RelationEncoding{Relation: "a__met_at__a", From: "met at"},
		store.RelationEncoding{Relation: "a__likes__a"}, store.RelationEncoding{Relation: "a__rev_likes__a", ReverseOf: "a__likes__a"})
	dir = files{"s.yaml": spec, "e.csv": "y,how,r,x\n1,badly,met at,0\n"}.write(t)
	g, err := read(dir, Options{Like: l})
	require.NoError(t, err)
	var keys []string
	for _, r := range g.schema.Relations {
		keys = append(keys, r.Key())
	}
	require.Equal(t, []string{"a__met_at__a", "a__likes__a"}, keys, "as there, though nobody likes anybody here")
	require.Equal(t, []float32{1, 0}, g.rows["a__met_at__a/feat"])
	require.Empty(t, g.rows["a__likes__a/feat"])
	for row, want := range map[string]string{
		"0,1,knows,well": `e.csv: line 2: column r: "knows" is none of the relations of shop.gnn`,
		"0,1,likes,ill":  `e.csv: line 2: column how: "ill" is none of the categories of shop.gnn`,
	} {
		dir = files{"s.yaml": spec, "e.csv": "x,y,r,how\n" + row + "\n"}.write(t)
		_, err = read(dir, Options{Like: l})
		require.ErrorContains(t, err, want)
	}
	dir = files{"s.yaml": "edges: [{type: 'a:*:b', files: e.csv, src: x, dst: y, relation_column: r}]\n", "e.csv": "x,y,r\n0,1,likes\n"}.write(t)
	_, err = read(dir, Options{Like: l})
	require.ErrorContains(t, err, "{like} shop.gnn: there are no relations from a to b there that no other entry has; leave the entry out")
}

// TestLikeSilent: a dataset that says nothing of its columns is taken, unless columns have
// categories or means.
func TestLikeSilent(t *testing.T) {
	l := &ingest.Like{Name: "old.gnn", Silent: true, Encodings: &store.Encodings{Tables: []store.TableEncoding{
		{Name: "feat", NodeType: "a", Columns: []store.Encoding{{Kind: store.VectorColumn, Width: 2}}},
	}}}
	g, err := follows(t, l, "features: [v, w]", "w,v\n1,2\n")
	require.NoError(t, err)
	require.Equal(t, []float32{2, 1}, g.rows["a/feat"])
	for _, spec := range []string{"features: [v, w], categorical: [w]", "features: [v, w], missing: {w: mean}"} {
		_, err := follows(t, l, spec, "w,v\n1,2\n")
		require.ErrorContains(t, err, "it does not say the categories and means of its columns, such as w; ingest it again")
	}
}

// TestLikeNumbers: a column of numbers keeps its rule for missing ones, and its length.
func TestLikeNumbers(t *testing.T) {
	dir := files{"s.yaml": "nodes: [{type: a, files: n.csv, features: [v, w], missing: {w: mean}}]\n" + pairs,
		"n.csv": "v,w\n1;2,4\n3;4,\n", "e.csv": "x,y\n0,0\n"}.write(t)
	l := learnt(t, dir)
	for spec, want := range map[string]string{
		"features: [v, w], categorical: [w]":   "column w is a number there; leave it out of categorical",
		"features: [v, w], missing: {w: 0}":    "column w has the rule mean for missing numbers there; write missing: {w: mean}, or leave it out",
		"features: [w, v], missing: {v: '0'}":  "column v has the rule refuse for missing numbers there",
		"features: [v, w], missing: {w: mean}": "column v of DIR/n.csv has no cells of 2 numbers, as the dataset to follow has",
	} {
		_, err := follows(t, l, spec, "v,w\n1;2;3,4\n")
		require.ErrorContains(t, err, "line 1", spec)
		if spec != "features: [v, w], missing: {w: mean}" {
			require.ErrorContains(t, err, want, spec)
		}
	}
	g, err := follows(t, l, "features: [w, v]", "w,v\n,7;8\n")
	require.NoError(t, err)
	require.Equal(t, []float32{7, 8, 4}, g.rows["a/feat"])
}
