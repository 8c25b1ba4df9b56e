package export

import (
	"encoding/binary"
	"errors"
	"math"
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
		return WritePairs(out, Pairs{Src: idsOf(t, true), Dst: idsOf(t, false)}, RowOptions{
			Kind: Numbers, Names: []string{"score"}, Cols: 1, Rows: 9, Fewer: true, FS: on,
		}, func(add func(src, dst []store.NodeID, of []uint32, scores []float32) error) error {
			return fill(func(src, dst []store.NodeID, scores []float32) error { return add(src, dst, nil, scores) })
		})
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
	require.ErrorContains(t, err, "out.npy: an array says first how many rows it has, and there may be fewer than 9; take {format} csv or parquet")
	enough := errors.New("enough")
	_, err = write("no.csv", func(add func(src, dst []store.NodeID, scores []float32) error) error {
		return errors.Join(pairs(add), enough)
	})
	require.ErrorIs(t, err, enough)
	left, err := on.List("")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"out.csv", "out"}, left)
}

// TestPairsOfSeveral reads classes of pairs of several relations back, in each format.
func TestPairsOfSeveral(t *testing.T) {
	on := vfs.NewMem()
	write := func(out string) {
		_, err := WritePairs(out, Pairs{Src: idsOf(t, true), Dst: idsOf(t, false), Relations: []string{"likes", "is, like"}}, RowOptions{
			Kind: Class, Column: "class", Cols: 1, Names: []string{"no", "yes"}, Rows: 3, FS: on,
		}, func(add func(src, dst []store.NodeID, of []uint32, rows []float32) error) error {
			if err := add([]store.NodeID{2}, []store.NodeID{0}, []uint32{1}, []float32{0}); err != nil {
				return err
			}
			return add([]store.NodeID{0, 0}, []store.NodeID{1, 2}, []uint32{0, 1}, []float32{1, 1})
		})
		require.NoError(t, err)
	}
	write("out.csv")
	require.Equal(t, "src,dst,relation,class\n\"cid;\"\"dee\"\"\",30,\"is, like\",no\nann,20,likes,yes\nann,10,\"is, like\",yes\n",
		string(content(t, on, "out.csv")))

	type row struct {
		Src      string `parquet:"src"`
		Dst      int64  `parquet:"dst"`
		Relation string `parquet:"relation"`
		Class    string `parquet:"class"`
	}
	write("out")
	b := content(t, on, "out")
	rows, err := parquet.Read[row](strings.NewReader(string(b)), int64(len(b)))
	require.NoError(t, err)
	require.Equal(t, []row{{`cid;"dee"`, 30, "is, like", "no"}, {"ann", 20, "likes", "yes"}, {"ann", 10, "is, like", "yes"}}, rows)

	write("out.npy")
	require.Equal(t, "cid;\"dee\"\nann\nann\n", string(content(t, on, "out.src.txt")))
	require.Equal(t, "is, like\nlikes\nis, like\n", string(content(t, on, "out.relation.txt")))
	for name, want := range map[string][]byte{"out.dst.npy": {30, 20, 10}, "out.npy": {0, 1, 1}} {
		b := content(t, on, name)
		require.Contains(t, string(b[:128]), "'<i8'")
		for i, x := range want {
			require.Equal(t, append([]byte{x}, make([]byte, 7)...), b[128+8*i:128+8*(i+1)], name)
		}
	}
	left, err := on.List("")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"out.csv", "out", "out.src.txt", "out.dst.npy", "out.relation.txt", "out.npy"}, left)
}

// TestPairsOfTimes reads scores of pairs at times back, in each format.
func TestPairsOfTimes(t *testing.T) {
	on, times := vfs.NewMem(), []float64{1700000000.25, -3, 1e-300}
	write := func(out string) {
		_, err := WritePairs(out, Pairs{Src: idsOf(t, true), Dst: idsOf(t, false), Times: times}, RowOptions{
			Kind: Numbers, Names: []string{"score"}, Cols: 1, Rows: 3, FS: on,
		}, func(add func(src, dst []store.NodeID, of []uint32, rows []float32) error) error {
			if err := add([]store.NodeID{2}, []store.NodeID{0}, nil, []float32{0.5}); err != nil {
				return err
			}
			return add([]store.NodeID{0, 0}, []store.NodeID{1, 2}, nil, []float32{1, 2})
		})
		require.NoError(t, err)
	}
	write("out.csv")
	require.Equal(t, "src,dst,time,score\n\"cid;\"\"dee\"\"\",30,1700000000.25,0.5\nann,20,-3,1\nann,10,1e-300,2\n", string(content(t, on, "out.csv")))

	type row struct {
		Src   string  `parquet:"src"`
		Dst   int64   `parquet:"dst"`
		Time  float64 `parquet:"time"`
		Score float32 `parquet:"score"`
	}
	write("out")
	b := content(t, on, "out")
	rows, err := parquet.Read[row](strings.NewReader(string(b)), int64(len(b)))
	require.NoError(t, err)
	require.Equal(t, []row{{`cid;"dee"`, 30, times[0], 0.5}, {"ann", 20, times[1], 1}, {"ann", 10, times[2], 2}}, rows)

	write("out.npy")
	b = content(t, on, "out.time.npy")
	require.Contains(t, string(b[:128]), "'<f8'")
	for i, x := range times {
		require.Equal(t, x, math.Float64frombits(binary.LittleEndian.Uint64(b[128+8*i:])))
	}
}
