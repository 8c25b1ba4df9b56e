package store_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
)

// described returns encodings for the dataset of everything, with several kinds of columns.
func described() *store.Encodings {
	return &store.Encodings{
		Tables: []store.TableEncoding{
			{Name: "feat", Relation: "user__likes__user", Normalize: "row", Columns: []store.Encoding{
				{Name: "city", Kind: store.CategoryColumn, Encoder: store.OneHot, Width: 3, Categories: []string{"berlin", "Zürich <\xff>"}, Unknown: store.UnknownBucket},
				{Name: "age", Kind: store.NumberColumn, Width: 1, Unit: "years", Missing: store.MissingMean, Filled: 3, Means: []float32{31.25}},
				{Name: "income", Kind: store.NumberColumn, Width: 1, Scale: store.ScaleRank, Scalings: []store.Scaling{{Knots: []float64{-0.1, 1e300}, Below: []float64{0, 1.0 / 3}, Through: []float64{1.0 / 3, 1}}}},
				{Name: "signup", Kind: store.DateColumn, Width: 4, Unit: "s", Missing: store.MissingIndicator, Parts: []string{"month", "age"},
					Reference: "2024-12-31T00:00:00Z", Scale: store.ScaleStandard, Scalings: []store.Scaling{{Offset: 3.5, Divisor: 1}}},
				{Name: "agent", Kind: store.CategoryColumn, Encoder: store.HashedCategory, Width: 8},
			}},
			{Name: "feat", Stream: "likes", Made: "random:3", Seed: 7, Columns: []store.Encoding{{Kind: store.VectorColumn, Width: 3}}},
		},
		Relations: []store.RelationEncoding{{
			Relation: "user__likes__user", Undirected: true, SelfLoops: "drop", Duplicates: "merge",
			Columns: []store.ColumnEncoding{{Name: "kind", From: "type of like", Elem: store.U8}, {Name: "old", From: "\xff"}},
			From:    "likes a lot\xff", ReverseOf: "user__liked__user",
		}},
	}
}

// TestEncodingsGolden compares the text with the recorded bytes, and decodes it.
func TestEncodingsGolden(t *testing.T) {
	const golden = "testdata/encodings.json"
	text, err := described().Encode()
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(golden, text, 0o666))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), string(text))
	e, err := store.DecodeEncodings(text)
	require.NoError(t, err)
	require.Equal(t, []string{"berlin", "Zürich <\uFFFD>"}, e.Tables[0].Columns[0].Categories)
	again, err := e.Encode()
	require.NoError(t, err)
	require.Equal(t, string(text), string(again))
	for i := range text { // every byte matters
		damaged := bytes.Clone(text)
		damaged[i] ^= 1
		_, err := store.DecodeEncodings(damaged)
		require.Error(t, err, i)
	}
}

// smallest seals a dataset of two nodes with a table of two columns, and e as its encodings.
func smallest(t *testing.T, e *store.Encodings) (string, error) {
	path := filepath.Join(t.TempDir(), "x.gnn")
	w, err := store.Create(path, store.WriterOptions{})
	require.NoError(t, err)
	n, err := w.NewNodeType("node", 2)
	require.NoError(t, err)
	require.NoError(t, n.AppendOriginal([]int64{0, 1}))
	require.NoError(t, n.AppendOrder([]store.NodeID{0, 1}))
	require.NoError(t, n.Close())
	f, err := w.AddTable("feat", "node", store.F16, 2, 2)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	if err := w.AddEncodings(e); err != nil {
		require.NoError(t, w.Abort())
		return "", err
	}
	_, err = w.Seal(store.Manifest{Name: "x", Order: "original"})
	require.NoError(t, err)
	return path, nil
}

func of(columns ...store.Encoding) *store.Encodings {
	return &store.Encodings{Tables: []store.TableEncoding{{Name: "feat", NodeType: "node", Columns: columns}}, Relations: []store.RelationEncoding{}}
}

// TestEncodingsAreSealed reads encodings back. Verify finds damaged ones, and AddEncodings refuses
// those that do not fit.
func TestEncodingsAreSealed(t *testing.T) {
	path, err := smallest(t, of(store.NumberColumns([]string{"age", "income"})...))
	require.NoError(t, err)
	d, err := store.Open(path)
	require.NoError(t, err)
	e, err := d.Encodings()
	require.NoError(t, err)
	require.Equal(t, "income", e.Of(&d.Manifest().Tables[0]).Columns[1].Name)
	require.NoError(t, check(path))
	other, err := smallest(t, of(store.NumberColumns([]string{"income", "age"})...))
	require.NoError(t, err)
	swapped, err := store.Open(other)
	require.NoError(t, err)
	require.NotEqual(t, d.Manifest().Seal, swapped.Manifest().Seal, "what columns mean is part of what a dataset is")
	require.NoError(t, swapped.Close())
	require.NoError(t, d.Close())

	file := filepath.Join(path, "encodings.json")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, bytes.Replace(text, []byte("age"), []byte("ago"), 1), 0o666))
	require.ErrorContains(t, check(path), "encodings.json: checksum is ")
	require.NoError(t, os.WriteFile(file, text[:len(text)-1], 0o666))
	_, err = store.Open(path)
	require.ErrorContains(t, err, "an interrupted copy?")

	_, err = smallest(t, of(store.NumberColumns([]string{"age"})...))
	require.ErrorContains(t, err, "1 columns are described, and it has 2")
	_, err = smallest(t, of(store.Encoding{Kind: store.CategoryColumn, Encoder: store.OneHot, Width: 2, Categories: []string{"a"}}))
	require.ErrorContains(t, err, "2 columns for 1 categories")
	_, err = smallest(t, of(store.Encoding{Kind: store.VectorColumn, Width: 2, Unknown: store.UnknownBucket}))
	require.ErrorContains(t, err, `a vector with the rule "bucket" for unknown categories`)
	_, err = smallest(t, of(store.Encoding{Kind: store.VectorColumn, Width: 2, Unit: "m\ns"}))
	require.ErrorContains(t, err, `a vector with the unit "m\ns"`)
	one := store.Encoding{Kind: store.CategoryColumn, Encoder: store.OneHot, Width: 1, Categories: []string{"a"}, Unit: "m"}
	_, err = smallest(t, of(one))
	require.ErrorContains(t, err, `a category with the unit "m"`)
	_, err = smallest(t, &store.Encodings{})
	require.ErrorContains(t, err, "says nothing of table feat")
	columns := of(store.NumberColumns([]string{"age", "income"})...)
	for want, change := range map[string]func(e *store.Encodings){
		"describes label y of node, and there is none": func(e *store.Encodings) {
			e.Labels = []store.LabelEncoding{{Name: "y", NodeType: "node", Classes: 2}}
		},
		"label y of node: 2 classes, and names for 1": func(e *store.Encodings) {
			e.Labels = []store.LabelEncoding{{Name: "y", NodeType: "node", Classes: 2, ClassNames: []string{"a"}}}
		},
		"describes stream talk of node and node, and there is none": func(e *store.Encodings) {
			e.Streams = []store.StreamEncoding{{Stream: "talk", Src: "node", Dst: "node", TimeScale: 2}}
		},
		"times that are multiplied with 0": func(e *store.Encodings) {
			e.Streams = []store.StreamEncoding{{Stream: "talk", Src: "node", Dst: "node"}}
		},
	} {
		e := *columns
		change(&e)
		_, err := smallest(t, &e)
		require.ErrorContains(t, err, want)
	}
}

// TestEncodingsOfClasses: names that take too much room are left out, and all numbers with them.
func TestEncodingsOfClasses(t *testing.T) {
	l := store.Label{Name: "y", NodeType: "node", Classes: 2, ClassNames: []string{"a", "b"}}
	e := l.EncodingOf("species")
	require.True(t, e.Known())
	require.Equal(t, []string{"a", "b"}, e.ClassNames)
	l.ClassNames = []string{"a", strings.Repeat("b", 2<<20)}
	e = l.EncodingOf("species")
	require.False(t, e.Known())
	require.Equal(t, store.LabelEncoding{Name: "y", NodeType: "node", From: "species"}, e)
}

// TestEncodingsAreBounded folds columns that take too much room. Different ones still compare as
// different.
func TestEncodingsAreBounded(t *testing.T) {
	names := make([]string, 1<<16+1)
	for i := range names {
		names[i] = fmt.Sprint("column ", i)
	}
	one := store.NumberColumns(names)
	names[0], names[1] = names[1], names[0]
	other := store.NumberColumns(names)
	require.Len(t, one, 1)
	require.Equal(t, store.FoldedColumns, one[0].Kind)
	require.EqualValues(t, len(names), one[0].Width)
	require.NotEqual(t, one[0].XXH3, other[0].XXH3)

	var wide []store.Encoding
	for i := range 24 {
		c := store.Encoding{Name: fmt.Sprint(i), Kind: store.CategoryColumn, Encoder: store.CategoryIndex, Width: 1}
		for k := range 1 << 12 {
			c.Categories = append(c.Categories, fmt.Sprint(strings.Repeat("<", 80), k))
		}
		wide = append(wide, c)
	}
	e := of(wide...)
	text, err := e.Encode()
	require.NoError(t, err)
	require.Less(t, len(text), 1<<10)
	require.Len(t, e.Tables[0].Columns, 24, "what was given is left as it is")
	read, err := store.DecodeEncodings(text)
	require.NoError(t, err)
	require.EqualValues(t, 24, read.Tables[0].Columns[0].Width)
}

func FuzzDecodeEncodings(f *testing.F) {
	text, err := described().Encode()
	require.NoError(f, err)
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := store.DecodeEncodings(text)
		if err != nil {
			return
		}
		again, err := e.Encode()
		require.NoError(t, err)
		require.Equal(t, string(text), string(again))
	})
}
