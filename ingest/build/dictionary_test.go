package build

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
)

// TestTableCache: parts of dictionaries stay in memory up to a quarter of the room, and each counts
// once.
func TestTableCache(t *testing.T) {
	p, err := new(Options).effective()
	require.NoError(t, err)
	b := &builder{plan: *p}
	most := b.room() / 4 / tableBytes // entries
	part := func(name string, entries int64) extsort.Bucket {
		return extsort.Bucket{Name: name, Bytes: entries * entryBytes}
	}
	half, other, more := part("half", most/2), part("other", most/2), part("more", 2)
	require.True(t, b.keeps(&dictionary{Rows: []extsort.Bucket{half, other}}))
	require.False(t, b.keeps(&dictionary{Rows: []extsort.Bucket{half, other, more}}))
	table := new(rowTable)
	for range 2 { // the second time they are there
		b.keep(half, table)
		b.keep(other, table)
		b.keep(more, table)
		require.Len(t, b.cached.tables, 2)
		require.Equal(t, 2*(most/2)*tableBytes, b.cached.bytes)
		require.LessOrEqual(t, b.cached.bytes, b.room()/4)
	}
	got, err := b.load(&dictionary{Rows: []extsort.Bucket{half}}, 0)
	require.NoError(t, err)
	require.Same(t, table, got)
	require.NoError(t, b.freeTables(t.Context()))
	require.Empty(t, b.cached.tables)
	require.Zero(t, b.cached.bytes)
}
