package edgelist

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/arrays"
	"github.com/gnnstore/gnnstore/ingest/planetoid"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

// pairsOf writes rows of two ids.
func pairsOf(rows int, ends func(i int) (u, v int)) string {
	var text strings.Builder
	for i := range rows {
		u, v := ends(i)
		fmt.Fprintf(&text, "%d\t%d\n", u, v)
	}
	return text.String()
}

// TestKinds: users and items that are numbered apart are no nodes of one kind, as far as a list can
// tell.
func TestKinds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	ratings := pairsOf(60_000, func(i int) (int, int) {
		if i < 1682 {
			return 1 + 7*i%943, 1 + i
		}
		return 1 + int(943*rng.Float64()*rng.Float64()), 1 + int(1682*rng.Float64()*rng.Float64())
	})
	const remedy = "; say {one_id_space} if they are one kind, or describe both types: gnnstore ingest table {infer} DIR writes a first schema"
	for name, c := range map[string]struct{ text, want string }{
		"pairs.txt":   {ratings, "its columns look like two kinds of nodes, both numbered from 1: 943 and 1682 ids, and "},
		"ratings.txt": {"1 1 5\n1 2 4\n3 9 4\n", "by the name of the file, the columns are two kinds of nodes, and the ids in both (1, the first is 1) would make one node of two" + remedy},
		"u.data":      {"7\t9\t5\t88\n9\t3\t5\t88\n", "by the name of the file, the columns are two kinds of nodes, and the ids in both (1, the first is 9) would make one node of two" + remedy},
		"out.konect":  {"% bip unweighted\n% 4 3 2\n1 1\n1 2\n3 2\n", "a comment says that the columns are two kinds of nodes, and the ids in both (1, the first is 1) would make one node of two" + remedy},
		"r.csv":       {"userId,movieId,rating\n1,2,4.0\n2,1,3\n", "columns userId and movieId are two kinds of nodes, and the ids in both (2, the first is 1) would make one node of two" + remedy},
		"r.inter":     {"user_id:token\titem_id:token\n300000000\t5\n5\t6\n", "columns user_id:token and item_id:token are two kinds of nodes, and the ids in both (1, the first is 5) would make one node of two" + remedy},
	} {
		dir := files{name: c.text}.write(t)
		s, err := Open(filepath.Join(dir, name), Options{})
		require.NoError(t, err)
		for range 2 {
			_, err = sourcetest.Read(s)
			require.Error(t, err, name)
			require.ErrorContains(t, err, name+": "+strings.ReplaceAll(c.want, "DIR", dir))
			require.NotContains(t, err.Error(), "\n")
		}
		for _, o := range []Options{{OneSpace: true}, {Count: 2000}} {
			s, err = Open(filepath.Join(dir, name), o)
			require.NoError(t, err)
			_, err = sourcetest.Read(s)
			require.NoError(t, err)
			require.Empty(t, s.Remarks())
		}
	}

	random := func(n int) int { return rng.IntN(n) }
	seen := 1
	for name, text := range map[string]string{
		"users and items with ids of their own": "user,item\n1,3\n2,4\n",
		"ratings of large ids":                  pairsOf(20_000, func(int) (int, int) { return random(300), 1000 + random(900) }),
		"a random graph":                        pairsOf(20_000, func(int) (int, int) { return random(1000), random(1000) }),
		"a tree":                                pairsOf(20_000, func(i int) (int, int) { return i + 1, random(i + 1) }),
		"neighbours":                            pairsOf(20_000, func(i int) (int, int) { return i / 10, (i/10 + 1 + random(30)) % 2000 }),
		"pairs once":                            pairsOf(20_000, func(i int) (int, int) { u := random(999); return u, u + 1 + random(999-u) }),
		"a crawl": pairsOf(20_000, func(i int) (int, int) { // breadth first, pages numbered as they are found
			page := i / 8
			if i%3 == 0 {
				seen++
				return page, seen - 1
			}
			if to := random(seen); to != page {
				return page, to
			}
			return page, page + 1
		}),
		"a small graph": "0,1\n1,2\n2,0\n0,0\n1,3\n2,4\n",
	} {
		s, err := Open(filepath.Join(files{"g.txt": text}.write(t), "g.txt"), Options{})
		require.NoError(t, err)
		_, err = sourcetest.Read(s)
		require.NoError(t, err, name)
		require.Empty(t, s.Remarks(), name)
	}

	// Too few rows to refuse them.
	path := filepath.Join(files{"g.txt": pairsOf(30, func(i int) (int, int) { return 1 + i%10, 1 + i })}.write(t), "g.txt")
	s, err := Open(path, Options{})
	require.NoError(t, err)
	_, err = sourcetest.Read(s)
	require.NoError(t, err)
	require.Equal(t, []string{path + ": 10 sources and 30 destinations, both numbered from 1, are taken for one kind of node"}, s.Remarks())
}

// TestTriples: a relation between two columns of nodes is no node.
func TestTriples(t *testing.T) {
	dir := files{"edges.csv": "007\tlikes\t008\n008\tknows\t007\n009\tlikes\t007\n"}.write(t)
	_, err := read(dir, Options{})
	require.EqualError(t, err, dir+"/edges.csv: triples: the first column and the third hold the same nodes, and the second a relation; say {columns} 1,3 to pass it over, or describe the relations: gnnstore ingest table {infer} "+dir+" writes a first schema")
	g, err := read(dir, Options{Ends: []string{"1", "3"}})
	require.NoError(t, err)
	require.Equal(t, []string{"007>008", "008>007", "009>007"}, g.Edges[0].Lines())
	_, err = read(files{"edges.csv": "a\tb\t0.5\nb\tc\t1\n"}.write(t), Options{Header: "no"})
	require.NoError(t, err)
}

// TestRealPairs: none of the public graphs is taken for two kinds of nodes when it is written as
// pairs of ids. It needs GNNSTORE_DATA, by which word CI finds the files of such tests.
func TestRealPairs(t *testing.T) {
	var none map[string]any
	root := filepath.Dir(expect(t, "cnr2000", &none))
	ctx := context.Background()
	for _, name := range []string{
		"amazon_computers/amazon_electronics_computers.npz", "coauthor_cs/ms_academic_cs.npz", "dblp_citation/dblp.npz", "cnr2000/cnr-2000-csr.npz",
		"heterophilous/actor.npz", "heterophilous/chameleon_filtered.npz", "heterophilous/squirrel_filtered.npz",
		"heterophilous/squirrel_filtered_directed.npz", "heterophilous/minesweeper.npz", "planetoid_cora", "planetoid_citeseer",
	} {
		var from ingest.Source
		var err error
		if strings.HasSuffix(name, ".npz") {
			from, err = arrays.Open(filepath.Join(root, name), arrays.Options{})
		} else {
			from, err = planetoid.Open(filepath.Join(root, name), 0)
		}
		require.NoError(t, err)
		_, err = from.Schema(ctx)
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "pairs.txt")
		f, err := os.Create(path)
		require.NoError(t, err)
		w := bufio.NewWriter(f)
		require.NoError(t, from.Edges(ctx, 0, func(c ingest.EdgeChunk) error {
			for i, u := range c.Src {
				fmt.Fprintf(w, "%d %d\n", u, c.Dst[i])
			}
			return nil
		}))
		require.NoError(t, w.Flush())
		require.NoError(t, f.Close())
		require.NoError(t, from.Close())
		s, err := Open(path, Options{})
		require.NoError(t, err)
		require.NoError(t, s.Edges(ctx, 0, func(ingest.EdgeChunk) error { return nil }), name)
		require.Empty(t, s.Remarks(), name)
		require.NoError(t, os.Remove(path))
	}
}

// TestFirstWords: firstWords stops after n words, however many the line has.
func TestFirstWords(t *testing.T) {
	for text, want := range map[string]int{"": 0, " a ": 1, "a b": 2, strings.Repeat("4 ", 1<<20): 2} {
		require.Len(t, firstWords([]byte(text), 2), want)
	}
}
