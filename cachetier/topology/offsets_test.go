package topology

import (
	"encoding/binary"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/kernels"
)

// TestOffsetsArePackedExactly packs offsets that are too large for a test file, with lists of up to
// 2^40 neighbours, in two portions out of order.
func TestOffsetsArePackedExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		degree := rapid.OneOf(rapid.Uint64Range(0, 3), rapid.Uint64Range(0, 70_000), rapid.Uint64Range(0, 1<<40))
		nodes := rapid.IntRange(0, 150).Draw(t, "nodes")
		want, b := []uint64{0}, make([]byte, 8)
		for v := range nodes {
			want = append(want, want[v]+degree.Draw(t, "degree"))
			b = binary.LittleEndian.AppendUint64(b, want[v+1])
		}
		edges := want[nodes]
		node, err := checkOffsets(b, 0, nodes+1, edges)
		require.NoError(t, err, "node %d", node)

		lines, wide := offsetBytes(nodes, int64(edges))
		o := &offsets{nodes: nodes}
		o.lines, err = kernels.NewHostBuf(int(lines))
		require.NoError(t, err)
		o.wide, err = kernels.NewHostBuf(int(wide))
		require.NoError(t, err)
		defer o.close()
		o.packed, o.full = o.lines.Bytes(), o.wide.Bytes()
		cut := rapid.IntRange(0, len(want)/lineNodes).Draw(t, "cut") * lineNodes
		require.NoError(t, o.pack(b[fileEntry*cut:], cut))
		require.NoError(t, o.pack(b[:fileEntry*cut], 0))

		for v := range want {
			require.Equal(t, want[v], o.at(uint32(v)))
			if v < nodes {
				lo, hi := o.span(uint32(v))
				require.Equal(t, want[v:v+2], []uint64{lo, hi})
			}
		}
		for range 20 {
			e := rapid.OneOf(rapid.SampledFrom(want), rapid.Uint64Range(0, edges)).Draw(t, "edge")
			prefix := sort.Search(nodes, func(v int) bool { return want[v+1] > e })
			require.EqualValues(t, prefix, o.prefix(e))
			if e < edges {
				lo, hi := o.span(o.owner(e))
				require.True(t, lo <= e && e < hi)
			}
		}
	})
}

// TestOffsetsOf65536 checks the largest distance that 16 bits hold, 65,535 edges, and the next
// ones.
func TestOffsetsOf65536(t *testing.T) {
	for _, edges := range []uint64{1<<16 - 1, 1 << 16, 1<<16 + 1} {
		const before = 5 // edges in the line before
		want := make([]uint64, 2*lineNodes)
		for i := range want {
			switch {
			case i == 2*lineNodes-1:
				want[i] = before + edges
			case i >= lineNodes:
				want[i] = before
			}
		}
		var b []byte
		for _, x := range want {
			b = binary.LittleEndian.AppendUint64(b, x)
		}
		o := &offsets{nodes: len(want) - 1, packed: make([]byte, 2*lineBytes), full: make([]byte, wideBytes)}
		require.NoError(t, o.pack(b, 0))
		for v := range want {
			require.Equal(t, want[v], o.at(uint32(v)), "%d edges, node %d", edges, v)
		}
		lo, hi := o.span(2*lineNodes - 2)
		require.Equal(t, edges, hi-lo)
	}
}

// TestAnyOffsetsAreCheckedBeforePacking checks that some portion is refused if a file holds
// impossible offsets, and that packing them stays within bounds.
func TestAnyOffsetsAreCheckedBeforePacking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entry := rapid.OneOf(rapid.Uint64Range(0, 200), rapid.Uint64())
		want := rapid.SliceOfN(entry, 1, 100).Draw(t, "offsets")
		if rapid.Bool().Draw(t, "in order") {
			sort.Slice(want, func(i, j int) bool { return want[i] < want[j] })
			want[0] = 0
		}
		edges := rapid.OneOf(rapid.Just(want[len(want)-1]>>1), rapid.Uint64Range(0, 1<<20)).Draw(t, "edges")
		if rapid.Bool().Draw(t, "true end") {
			want[len(want)-1] = edges
		}
		valid := want[0] == 0 && want[len(want)-1] == edges && sort.SliceIsSorted(want, func(i, j int) bool { return want[i] < want[j] })
		var b []byte
		for _, x := range want {
			b = binary.LittleEndian.AppendUint64(b, x)
		}
		lines, wide := offsetBytes(len(want)-1, int64(edges))
		o := &offsets{packed: make([]byte, lines), full: make([]byte, wide)}
		refused := false
		for lo := 0; lo < len(want); lo += lineNodes {
			hi := min(lo+lineNodes, len(want))
			if _, err := checkOffsets(b[fileEntry*lo:fileEntry*min(hi+1, len(want))], lo, len(want), edges); err != nil {
				refused = true
			} else if o.pack(b[fileEntry*lo:fileEntry*hi], lo) != nil {
				refused = true
			}
		}
		require.Equal(t, valid, !refused)
	})
}
