package ogb

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

func TestConform(t *testing.T) {
	input := func(path string, o Options) func() (ingest.Source, error) {
		return func() (ingest.Source, error) { return o.Open(path) }
	}
	const n = ingest.ChunkRows + 9 // nodes, and edges
	var edges, feat, label, year strings.Builder
	var parts [3]strings.Builder
	for i := range n {
		fmt.Fprintf(&edges, "%d,%d\n", i, i*7%n)
		fmt.Fprintf(&feat, "%d,1,2,3,4\n", i)
		fmt.Fprintf(&label, "%d\n", i%4)
		fmt.Fprintf(&year, "%d\n", 1990+i%30)
		fmt.Fprintf(&parts[i%3], "%d\n", i)
	}
	large := files{
		"raw/num-node-list.csv.gz": fmt.Sprint(n), "raw/num-edge-list.csv.gz": fmt.Sprint(n), "raw/edge.csv.gz": edges.String(),
		"raw/node-feat.csv.gz": feat.String(), "raw/node-label.csv.gz": label.String(), "raw/edge-feat.csv.gz": feat.String(), "raw/edge_year.csv.gz": year.String(),
		"split/random/train.csv.gz": parts[0].String(), "split/random/valid.csv.gz": parts[1].String(), "split/random/test.csv.gz": parts[2].String(),
	}
	packed := filepath.Join(t.TempDir(), "tiny.zip")
	require.NoError(t, os.WriteFile(packed, arxiv().with(files{"split/random/train.csv.gz": "-"}).zipped(t, "tiny/"), 0o600))
	sourcetest.Conform(t, input(large.write(t, "large"), Options{AddReverse: Yes}), input(packed, Options{}), input(arxiv().write(t, "arxiv"), Options{}),
		input("testdata/papers100M-bin", Options{}), input("testdata/papers100M-bin", Options{AddReverse: Yes}), input("testdata/typed", Options{}),
		input(large.with(files{"raw/node_year.csv.gz": year.String()}).write(t, "years"), Options{YearColumns: 2}), input("testdata/papers100M-bin", Options{YearColumns: 8}),
		input("testdata/typed", Options{YearColumns: 4}), input(collab().write(t, "collab"), Options{}), input(citation(t).write(t, "citation_v2"), Options{}),
		input(biokg().write(t, "biokg"), Options{}))
}
