package ogb

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
)

// plain is a dataset whose tables were unpacked, each with a byte order mark as a spreadsheet
// leaves it.
func (f files) plain() files {
	all := files{}
	for path, text := range f {
		if cut, ok := strings.CutSuffix(path, ".csv.gz"); ok {
			path, text = cut+".csv", "\xef\xbb\xbf"+text
		}
		all[path] = text
	}
	return all
}

// TestUnpacked: tables that have lost their .gz are the same tables.
func TestUnpacked(t *testing.T) {
	for name, in := range map[string]files{"arxiv": arxiv().with(files{"raw/node-feat.csv.gz": "1,2\n3,4\n5,6\n7,8\n"}), "mag": mag()} {
		want, err := openWhole(in.write(t, name), Options{})
		require.NoError(t, err)
		dir := in.plain().write(t, name)
		got, err := openWhole(dir, Options{})
		require.NoError(t, err)
		require.Contains(t, got.Schema.Identity, "edge.csv\"")
		for i, note := range want.Schema.Skipped {
			want.Schema.Skipped[i] = strings.Replace(note, ".csv.gz: ", ".csv: ", 1)
		}
		want.Schema.Identity, got.Schema.Identity = "", ""
		require.Equal(t, want, got)
	}

	// The packed table goes first where both are there, and errors name the one that is read.
	dir := arxiv().with(files{"raw/edge.csv": "3,3\n2,2\n1,1\n", "raw/node-feat.csv.gz": "-"}).write(t, "arxiv")
	w, err := openWhole(dir, Options{})
	require.NoError(t, err)
	require.Equal(t, []int64{0, 2, 3}, w.Edges[0].Src)
	require.Contains(t, w.Schema.Skipped, "raw/edge.csv: edge.csv.gz beside it is read instead")
	dir = arxiv().with(files{"raw/edge.csv": "0,1\n2,x\n", "raw/edge.csv.gz": "-"}).write(t, "arxiv")
	s, err := Options{}.Open(dir)
	require.NoError(t, err)
	defer s.Close()
	require.EqualError(t, s.Edges(t.Context(), 0, func(ingest.EdgeChunk) error { return nil }), filepath.Join(dir, "raw/edge.csv")+`: line 2: "x" is not an integer`)
}
