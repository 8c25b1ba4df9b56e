package extsort

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestPacks: small buckets that share files read back as written until they are removed. Then no
// file is left. Buckets of the last Sync survive a power cut.
func TestPacks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem := vfs.NewCrashableMem()
		a, err := Open(mem, "spill")
		require.NoError(t, err)
		root, err := mem.OpenDir("")
		require.NoError(t, err)
		require.NoError(t, root.Sync())
		a.Packed = rapid.SampledFrom([]int{30, 300, 6000}).Draw(t, "packed")
		want := map[Bucket][]byte{}
		var live, synced, discarded []Bucket
		check := func() {
			for _, b := range live {
				require.True(t, a.packs.name == b.Name && b.Packed || a.Has(b))
				at := rapid.Int64Range(0, b.Bytes).Draw(t, "at") / sector * sector
				got, err := a.Load(b, at, b.Bytes-at, make([]byte, RoundUp(b.Bytes-at)))
				require.NoError(t, err)
				require.True(t, bytes.Equal(want[b][at:], got), "%v", b)
			}
		}
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"keep", "keep", "keep", "discard", "sync", "crash"}).Draw(t, "step") {
			case "keep":
				text := bytes.Repeat([]byte{byte(i + 1)}, rapid.IntRange(1, 9000).Draw(t, "bytes"))
				b, err := a.Keep(fmt.Sprint("b", i), text)
				require.NoError(t, err)
				require.Equal(t, len(text) <= a.Packed, b.Packed)
				want[b], live = text, append(live, b)
			case "discard":
				if n := len(live); n > 0 {
					k := rapid.IntRange(0, n-1).Draw(t, "which")
					discarded, live = append(discarded, live[k]), slices.Delete(live, k, k+1)
				}
			case "sync":
				require.NoError(t, a.Sync())
				synced = slices.Clone(live)
				require.NoError(t, a.Remove(discarded...))
				discarded = nil
			case "crash":
				packed := a.Packed
				mem = mem.CrashClone(vfs.CrashCloneCfg{})
				a, err = Open(mem, "spill")
				require.NoError(t, err)
				a.Packed = packed
				require.NoError(t, a.Retain(synced))
				live, discarded = slices.Clone(synced), nil
			}
			check()
		}
		require.NoError(t, a.Remove(append(live, discarded...)...))
		require.Zero(t, a.Held())
		left, err := mem.List("spill")
		require.NoError(t, err)
		require.Empty(t, left)
	})
}
