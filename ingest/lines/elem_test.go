package lines

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
)

func TestEdgeType(t *testing.T) {
	f := func(name string, elem store.Elem, unit Unit) {
		t.Helper()
		e, u, ok := EdgeType(name)
		require.True(t, ok)
		require.Equal(t, elem, e)
		require.Equal(t, unit, u)
	}
	f("f32", store.F32, 0)
	f("i64", store.I64, 0)
	f("i32", store.I32, 0)
	f("u8", store.U8, 0)
	f("s", store.I64, Second)
	f("ns", store.I64, Nanosecond)
	for _, name := range []string{"", "f64", "u32", "min", "I64"} {
		_, _, ok := EdgeType(name)
		require.False(t, ok, name)
	}
}

func TestFit(t *testing.T) {
	for _, n := range []int64{-1 << 63, 1<<63 - 1} {
		require.NoError(t, Fit(n, store.I64))
		require.ErrorContains(t, Fit(n, store.I32), "is not a value of i32, which go from -2147483648 to 2147483647; choose another type")
		require.ErrorContains(t, Fit(n, store.U8), "is not a value of u8, which go from 0 to 255")
	}
	require.NoError(t, Fit(255, store.U8))
	require.NoError(t, Fit(-1<<31, store.I32))
}

// TestClipText: a name in a message stays on its line.
func TestClipText(t *testing.T) {
	require.Equal(t, "a?b?", ClipText("a\nb\x7f"))
	require.Equal(t, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…", ClipText("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"))
	require.Equal(t, "a, b?", List([]string{"a", "b\t"}))
	require.Equal(t, "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, …", List([]string{"1", "1", "1", "1", "1", "1", "1", "1", "1", "1", "1", "1", "1"}))
}
