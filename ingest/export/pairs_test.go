package export

import (
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
)

// TestPairs reads pairs back, from nodes that are known by texts to those known by numbers.
func TestPairs(t *testing.T) {
	on := vfs.NewMem()
	write := func(out string, fill func(add func(src, dst []store.NodeID, scores []float32) error) error) (*RowsReport, error) {
		return WritePairs(out, idsOf(t, true), idsOf(t, false), RowOptions{Rows: 9, FS: on}, fill)
	}
	pairs := func(add func(src, dst []store.NodeID, scores []float32) error) error {
		if err := add([]store.NodeID{1, 2}, []store.NodeID{0, 2}, []float32{0.5, -3e10}); err != nil {
			return err
		}
		return add([]store.NodeID{0}, []store.NodeID{1}, []float32{1.0 / 3})
	}
	r, err := write("out.csv", pairs)
	require.NoError(t, err)
	text := "src,dst,score\n\"b,ob\",30,0.5\n\"cid;\"\"dee\"\"\",10,-3e+10\nann,20,0.33333334\n"
	require.Equal(t, text, string(content(t, on, "out.csv")))
	require.Equal(t, &RowsReport{CSV, []string{"out.csv"}, int64(len(text))}, r)

	type row struct {
		Src   string  `parquet:"src"`
		Dst   int64   `parquet:"dst"`
		Score float32 `parquet:"score"`
	}
	_, err = write("out", pairs)
	require.NoError(t, err)
	b := content(t, on, "out")
	rows, err := parquet.Read[row](strings.NewReader(string(b)), int64(len(b)))
	require.NoError(t, err)
	require.Equal(t, []row{{"b,ob", 30, 0.5}, {`cid;"dee"`, 10, -3e10}, {"ann", 20, 1.0 / 3}}, rows)

	_, err = write("out.npy", pairs)
	require.ErrorContains(t, err, "out.npy: scores of pairs are written as csv or parquet; take --format csv")
	enough := errors.New("enough")
	_, err = write("no.csv", func(add func(src, dst []store.NodeID, scores []float32) error) error {
		return errors.Join(pairs(add), enough)
	})
	require.ErrorIs(t, err, enough)
	left, err := on.List("")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"out.csv", "out"}, left)
}
