package table

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/store"
)

// categoryRows reads a column of texts by a schema with this line.
func categoryRows(t testing.TB, spec string, cells ...string) ([]float32, error) {
	t.Helper()
	dir := files{"s.yaml": "nodes: [{type: a, files: n.csv, features: [c], " + spec + "}]\n" + pairs,
		"n.csv": "id,c\n" + strings.Join(numbered(cells), "\n") + "\n", "e.csv": "x,y\n0,0\n"}.write(t)
	g, err := read(dir, Options{})
	return g.rows["a/feat"], err
}

// TestMaxCategories: the most frequent categories have a column each, in the order of their texts,
// and all others share one. Of equally frequent ones the lesser text stays.
func TestMaxCategories(t *testing.T) {
	cells := []string{"rome", "bern", "oslo", "rome", "wien", "oslo", "", "bern", "rome", "wien"}
	want := []float32{0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1}
	for _, spec := range []string{"max_categories: {c: 2}", "categorical: [c], max_categories: 2", "categorical: [c], max_categories: {c: 2}, unknown: 0",
		"categorical: [c], max_categories: {c: 2}, unknown: {c: bucket}"} {
		rows, err := categoryRows(t, spec, cells...)
		require.NoError(t, err, spec)
		require.Equal(t, want, rows, spec)
	}
	rows, err := categoryRows(t, "categorical: {c: index}, max_categories: {c: 1}", cells...)
	require.NoError(t, err)
	require.Equal(t, []float32{0, 1, 1, 0, 1, 1, -1, 1, 0, 1}, rows)
	rows, err = categoryRows(t, "max_categories: {c: 9}", "b", "a")
	require.NoError(t, err)
	require.Equal(t, []float32{0, 1, 0, 1, 0, 0}, rows, "the column for others is there without others")
	for spec, want := range map[string]string{
		"max_categories: {c: 0}":                  `max_categories "0": it is a number from 1 to 1023`,
		"max_categories: many":                    `max_categories "many": it is a number`,
		"max_categories: {d: 3}":                  "max_categories d: it is not among the features; list it there as well",
		"hash: {c: 2}, max_categories: {c: 3}":    "max_categories c: it is hashed, and any number of texts share its columns; leave it out here",
		"max_categories: {c: 3}, unknown: {c: 0}": "column c has max_categories, and unknown: 0; a column for the other categories has the unknown ones, too: leave unknown out",
		"max_categories: {c: 3}, missing: {c: 0}": "missing c: it is categorical",
		"hash: {c: 2}, categorical: [c]":          "hash c: it is categorical as well; choose hash, which learns nothing, or categorical",
		"hash: {c: 1025}":                         `hash "1025": it is a number from 1 to 1024`,
		"hash: 32":                                "hash: want a number for each column, as in {user_agent: 32}",
		"hash: {c: 2}, unknown: {c: bucket}":      "unknown: column c is hashed, so that no category is unknown; leave it out here",
		"hash: {c: 2}, units: {c: m}":             "units c: it is categorical",
	} {
		_, err := categoryRows(t, spec, cells...)
		require.ErrorContains(t, err, want, spec)
		require.NotContains(t, err.Error(), "\n")
	}
}

// TestMaxCategoriesLike: the column for others is kept, and takes categories that are new.
func TestMaxCategoriesLike(t *testing.T) {
	dir := files{"s.yaml": "nodes: [{type: a, files: n.csv, features: [c, d], max_categories: {c: 1}, hash: {d: 3}}]\n" + pairs,
		"n.csv": "c,d\nrome,x\nbern,y\nrome,\n", "e.csv": "x,y\n0,0\n"}.write(t)
	first, err := read(dir, Options{})
	require.NoError(t, err)
	l := learnt(t, dir)
	text, err := l.Encodings.Encode()
	require.NoError(t, err)
	l.Encodings, err = store.DecodeEncodings(text)
	require.NoError(t, err)
	g, err := follows(t, l, "features: [d, c]", "c,d\noslo,x\nbern,new\nrome,\n")
	require.NoError(t, err)
	require.Equal(t, []float32{0, 1}, g.rows["a/feat"][:2])
	require.Equal(t, first.rows["a/feat"][2:5], g.rows["a/feat"][2:5], "x")
	require.Equal(t, first.rows["a/feat"][10:], g.rows["a/feat"][10:], "bern is another, and nothing is no text")
	for spec, want := range map[string]string{
		"features: [c, d], hash: {d: 4}":       "column d is hashed into 3 columns there; write hash: {d: 3}",
		"features: [c, d], categorical: [d]":   "column d is hashed into 3 columns there",
		"features: [c, d], scale: {d: log}":    "column d is hashed there, and no number to scale; leave it out of scale",
		"features: [c, d], hash: {c: 3}":       "column c is categorical by onehot there; leave it out of hash",
		"features: [c, d], scale: {c: log}":    "column c is categorical by onehot there, and no number to scale",
		"features: [c, d], dates: {c: [year]}": "column c is categorical by onehot there; leave it out of dates",
		"features: [c, d], missing: {d: 0}":    "a missing value has no category; leave the column out of missing",
	} {
		_, err := follows(t, l, spec, "c,d\nrome,x\n")
		require.ErrorContains(t, err, want, spec)
	}
}

// TestHash: a text has 1 or -1 in one of the columns, by its hash alone. Numbers that are equal
// have one text.
func TestHash(t *testing.T) {
	rows, err := categoryRows(t, "hash: {c: 8}", "Mozilla/5.0", "curl/8", "", "Mozilla/5.0", "7", "7.0", "None")
	require.NoError(t, err)
	want := make([]float32, 7*8)
	for i, text := range []string{"Mozilla/5.0", "curl/8", "", "Mozilla/5.0", "7", "7"} {
		if h := xxh3.HashString(text); text != "" {
			want[i*8+int(h/2%8)] = 1 - 2*float32(h%2)
		}
	}
	require.Equal(t, want, rows)
	_, err = categoryRows(t, "hash: {c: 8}", strings.Repeat("long ", 500))
	require.NoError(t, err, "a text of any length")
	require.EqualValues(t, uint64(0xff4e156f69a44f2a), xxh3.HashString("curl/8"), "datasets depend on it")
}

// TestMostFrequentOfMany: with more categories than are counted, the frequent ones are still found.
func TestMostFrequentOfMany(t *testing.T) {
	f := feature{keep: 3}
	f.newCategory()
	learn := func(text string) {
		require.NoError(t, f.category.LearnText(text))
	}
	for i := range 270_000 {
		learn(fmt.Sprintf("once %d", i))
		if i%40 == 0 {
			learn("often")
		}
		if i%50 == 0 {
			learn("also")
		}
		if i%60 == 0 {
			learn("less")
		}
	}
	require.True(t, f.category.Settle())
	require.True(t, f.category.Pruned())
	require.Equal(t, []string{"also", "less", "often"}, f.category.Names)
}
