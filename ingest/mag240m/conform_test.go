package mag240m

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

func TestConform(t *testing.T) {
	input := func(f files, o Options) func() (ingest.Source, error) {
		root := f.write(t)
		if o.FullFeatures != "" {
			o.FullFeatures = filepath.Join(root, folder, o.FullFeatures)
		}
		return func() (ingest.Source, error) { return o.Open(root) }
	}
	full := download(t).with("full.npy", npyFile("<f2", "(105, 3)", true, halves(true, paper, author, institution)))
	require.Len(t, full, len(download(t))+1)
	sourcetest.Conform(t, input(download(t), Options{}), input(download(t).from(t, "split_dict.pt", "split_dict.older.pt"), Options{}),
		input(full, Options{FullFeatures: "full.npy", RowOrder: "paper,author,institution"}), input(download(t), Options{YearColumns: 4}))
}
