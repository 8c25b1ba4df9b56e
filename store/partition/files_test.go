package partition

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// linesFile writes lines to a file of the test.
func linesFile(t *testing.T, lines ...string) string {
	path := filepath.Join(t.TempDir(), "graph.part.3")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "")), 0o666))
	return path
}

// repeated returns so many lines, with parts 0, 1 and 2 in turns.
func repeated(n int) (lines []string) {
	for k := range n {
		lines = append(lines, strconv.Itoa(k%3)+"\n")
	}
	return lines
}

// TestFileByID: line k is of the node with the kth smallest original id.
func TestFileByID(t *testing.T) {
	ds, out := open(t, storetest.Build(t, rich(40))), filepath.Join(t.TempDir(), "parts") // ids are 0, 3, 6, …
	lines := repeated(40)
	lines[39] = "0" // the last line may lack its end
	lines[7] = " 2 \r\n"
	_, err := Write(t.Context(), ds, out, Options{Parts: 3, By: []string{linesFile(t, lines...)}, FS: storetest.NoSync})
	require.NoError(t, err)
	require.NoError(t, store.Guard(func() error {
		for k, line := range lines {
			q, err := strconv.Atoi(strings.TrimSpace(line))
			require.NoError(t, err)
			part, err := store.OpenPart(out, q, 3)
			require.NoError(t, err)
			_, ok := part.IDs(0).Stored(int64(3 * k))
			require.True(t, ok, "line %d", k+1)
			require.NoError(t, part.Close())
		}
		return nil
	}))
}

// TestFilesRefused: what cannot be the parts of all nodes is refused, with the file and the line,
// and nothing is written.
func TestFilesRefused(t *testing.T) {
	ds, typed := open(t, storetest.Build(t, rich(40))), open(t, storetest.BuildTyped(t, storetest.Library(40, 3, 1)))
	dir := t.TempDir()
	put := func(k int, line string) []string {
		lines := repeated(40)
		lines[k] = line
		return lines
	}
	good := linesFile(t, repeated(40)...)
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"empty":    {nil, "part.3: 0 lines for the 40 nodes of type node; give each node a line, in the order of their ids"},
		"short":    {repeated(39), "part.3: 39 lines for the 40 nodes"},
		"long":     {repeated(41), "part.3:41: more lines than the 40 nodes of type node"},
		"beyond":   {put(4, "3\n"), "part.3:5: part 3; with {parts} 3 they are 0 to 2"},
		"far":      {put(4, "99999999999999999999\n"), "part.3:5: part 99999999999999999999; with {parts} 3"},
		"negative": {put(39, "-1\n"), "part.3:40: part -1; with {parts} 3 they are 0 to 2"},
		"word":     {put(0, "one\n"), `part.3:1: "one" is not the number of a part`},
		"fraction": {put(0, "1.0\n"), `part.3:1: "1.0" is not the number of a part`},
		"blank":    {put(2, "\n"), `part.3:3: "" is not the number of a part`},
		"two":      {put(2, "1 2\n"), `part.3:3: "1 2" is not the number of a part`},
		"endless":  {put(2, strings.Repeat("1", 1<<17)), "part.3:3: a line of more than 64 KiB"},
		"no node":  {[]string{strings.Repeat("0\n", 39) + "2\n"}, "part 1 of 3 has no node; give fewer {parts}, or {by} rule"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Write(t.Context(), ds, filepath.Join(dir, "parts"), Options{Parts: 3, By: []string{linesFile(t, c.lines...)}})
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
	for _, c := range []struct {
		ds   *store.Dataset
		by   []string
		want string
	}{
		{ds, []string{filepath.Join(dir, "none")}, "none: no such file"},
		{ds, []string{"node="}, "{by} node=: the file has no name"},
		{ds, []string{good, good}, "for the same nodes; leave one"},
		{ds, []string{"ldg", good}, "rule and ldg stand alone; give a file of such a name as ./ldg"},
		{ds, []string{"rule", "ldg"}, "rule and ldg stand alone"},
		{typed, []string{good}, "has 5 node types; give {by} TYPE=FILE for each, with TYPE one of author, paper, shop, venue, reviewer"},
		{typed, []string{"paper=" + good}, "{by}: no file for the 20 nodes of type author; give {by} author=FILE as well"},
	} {
		_, err := Write(t.Context(), c.ds, filepath.Join(dir, "parts"), Options{Parts: 3, By: c.by})
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "\n")
	}
	_, err := Write(t.Context(), ds, filepath.Join(dir, "parts"), Options{Parts: 3, By: []string{ByGreedy}, Memory: 40*nodeBytes - 1})
	require.ErrorContains(t, err, "{by} ldg takes 0 MiB of memory for 40 nodes, and there are 0 MiB; take {by} rule")
	for _, stage := range []string{"place nodes", "read parts", "write ids", "write labels"} {
		ctx, cancel := context.WithCancel(t.Context())
		o := Options{Parts: 3, By: []string{ByGreedy}, Progress: func(s string, _, _ int64, _ string) {
			if s == stage {
				cancel()
			}
		}}
		if stage == "read parts" {
			o.By = []string{good}
		}
		_, err := Write(ctx, ds, filepath.Join(dir, "parts"), o)
		require.ErrorIs(t, err, context.Canceled, stage)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// TestLargePartNoted: a part that a file makes larger than others is a note.
func TestLargePartNoted(t *testing.T) {
	ds := open(t, storetest.Build(t, rich(40)))
	lines := repeated(40)
	for k := range 20 {
		lines[k] = "1\n"
	}
	o := Options{Parts: 3, By: []string{linesFile(t, lines...)}, FS: storetest.NoSync}
	report, err := Write(t.Context(), ds, filepath.Join(t.TempDir(), "parts"), o)
	require.NoError(t, err)
	require.Equal(t, Load{40, 26, 1}, report.Nodes)
	require.Len(t, report.Notes, 3)
	require.Contains(t, report.Notes[0], "nodes are numbered anew")
	require.Contains(t, report.Notes[1], "part 1 has 1.95 times the mean of the nodes;")
	require.Contains(t, report.Notes[2], "times the mean of the nodes that train;")
}
