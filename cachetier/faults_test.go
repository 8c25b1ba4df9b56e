package cachetier_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
)

// TestFilesThatFailAndRecover takes the end of a file away in the middle of a run, and gives it back: the run ends with an
// error, and afterwards every row is right, from whatever tier it comes.
func TestFilesThatFailAndRecover(t *testing.T) {
	f := table(t, tableRows, 100)
	shards := f.Shards()
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t, f)
		groups := drawGroups(t, tableRows)
		shard := rapid.SampledFrom(shards).Draw(t, "shard")
		lost := rapid.Int64Range(0, shard.Rows-1).Draw(t, "rows left")
		whole, err := os.ReadFile(shard.Path)
		require.NoError(t, err)
		s, err := cachetier.Open(f, o)
		require.NoError(t, err)
		defer s.Close()
		_, err = runAll(s, f, groups[:len(groups)/2], 2, false)
		require.NoError(t, err)

		end := shard.DataOffset + lost*shard.Stride
		if o.Engine == disk.Mmap {
			end -= end % int64(os.Getpagesize()) // the rest of a page that the file ends in reads as zeros
		}
		require.NoError(t, os.Truncate(shard.Path, end))
		failed := fill(s, groups)
		require.NoError(t, os.WriteFile(shard.Path, whole, 0o644))
		if failed != nil {
			require.ErrorIs(t, failed, store.ErrCorrupt)
		}
		before := s.Stats()
		s.Reset()
		require.Zero(t, s.SetsInUse())
		within(func() {
			after, err := runAll(s, f, groups, 2, true)
			require.NoError(t, err)
			if len(after) > 0 {
				st := after[len(after)-1].Sub(before)
				require.Equal(t, st.InputRows, st.Tiers.Device.RowsHit+st.Tiers.Host.RowsHit+st.Disk.Rows)
			}
		})
		all := make([]uint32, tableRows)
		for v := range all {
			all[v] = uint32(v)
		}
		got := make([]byte, tableRows*f.RowBytes())
		require.NoError(t, s.Gather(got, all))
		require.True(t, string(direct(f, all)) == string(got), "wrong rows")
	})
}

// fill takes groups through the windows as far as reading goes, without looking at the rows, which a broken file's map cannot
// tell.
func fill(s *cachetier.Stack, groups [][][]uint32) error {
	for _, steps := range groups {
		s.Expect(steps)
		for w := s.Next(); w != nil; w = s.Next() {
			if err := w.Load(); err != nil {
				return err
			}
			for i := range w.Steps() {
				if err := w.Gather(i, make([]byte, tableRows*200)); err != nil {
					return err
				}
			}
			w.Release()
		}
	}
	return nil
}
