package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// TestNodesIn: nodes come once each and ascend, however often and in whichever order a file names
// them, with no memory for its lines.
func TestNodesIn(t *testing.T) {
	ds, err := store.Open(storetest.Build(t, storetest.Spec{Nodes: 30}))
	require.NoError(t, err)
	defer ds.Close()
	read := func(ctx context.Context, text string) ([]uint32, error) {
		return nodesIn(ctx, strings.NewReader(text), ds.IDs(0), 30)
	}
	nodes, err := read(t.Context(), "\ufeff29\r\n\n3\n29\n 3 \n0")
	require.NoError(t, err)
	require.Equal(t, []uint32{0, 3, 29}, nodes)
	require.Equal(t, 3, cap(nodes))
	_, err = read(t.Context(), "3\n"+strings.Repeat("7", mostLine+1))
	require.EqualError(t, err, ", line 2: it is longer than 1 MiB, and no id; give a file with an id a line")
	_, err = read(t.Context(), "\n\n")
	require.EqualError(t, err, ": no id is in it")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err = read(ctx, strings.Repeat("3\n", 1<<17))
	require.ErrorIs(t, err, context.Canceled)
}
