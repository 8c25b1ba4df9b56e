package extsort

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// TestRuns: runs merged in as many rounds as little memory takes equal one sort of all records.
func TestRuns(t *testing.T) {
	by := func(record []byte) (first, second uint64) {
		return uint64(record[0]), binary.LittleEndian.Uint64(record[1:])
	}
	for _, width := range []int{20, 29} {
		fs := vfs.NewMem()
		area, err := Open(fs, "spill")
		require.NoError(t, err)
		area.Packed = 1
		rng := rand.New(rand.NewPCG(1, uint64(width)))
		const n = 20_000
		w, err := area.NewWriter("log", 2, MinBlock)
		require.NoError(t, err)
		to := w.NewAppender()
		var want [][]byte
		for k := range uint64(n) {
			record := make([]byte, width)
			for i := range record {
				record[i] = byte(rng.UintN(256))
			}
			record[0] = byte(rng.IntN(3)) // many are alike
			binary.LittleEndian.PutUint64(record[1:], k)
			to.Put(int(k%2), record)
			want = append(want, record)
		}
		to.Flush()
		logs, err := w.Close()
		require.NoError(t, err)
		slices.SortFunc(want, func(a, b []byte) int {
			if a[0] != b[0] {
				return int(a[0]) - int(b[0])
			}
			return int(binary.LittleEndian.Uint64(a[1:])) - int(binary.LittleEndian.Uint64(b[1:]))
		})
		var sorted atomic.Int64
		runs, err := area.SortRuns(context.Background(), "run", logs, width, 1, 3, by, func(n int) { sorted.Add(int64(n)) })
		require.NoError(t, err)
		require.Greater(t, len(runs), 4)
		require.EqualValues(t, n, sorted.Load())
		for _, memory := range []int64{1, 1 << 30} {
			k := 0
			require.NoError(t, area.MergeRuns(runs, width, memory, by, func(record []byte) error {
				if !bytes.Equal(want[k], record) {
					t.Fatalf("record %d is %x, not %x", k, record, want[k])
				}
				k++
				return nil
			}))
			require.Equal(t, n, k)
		}
		names, err := fs.List("spill")
		require.NoError(t, err)
		require.Len(t, names, len(runs)+2, "what rounds of merging made is gone")
		stop := context.Canceled
		require.ErrorIs(t, area.MergeRuns(runs, width, 1, by, func([]byte) error { return stop }), stop)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = area.SortRuns(ctx, "late", logs, width, 1, 2, by, func(int) {})
		require.ErrorIs(t, err, stop)
	}
}
