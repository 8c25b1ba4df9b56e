package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShape: a graph of 10⁹ nodes, and the sizes of papers100M's batches by a trace.
func TestShape(t *testing.T) {
	s := shape{nodes: 1e9, degree: 20, share: 0.01, machines: 16, row: 256, seeds: 16000, hidden: 256}
	require.NoError(t, s.parse("15,10,5"))
	var out bytes.Buffer
	require.NoError(t, s.print(&out, []string{"10Gbit", "25Gbit"}))
	require.Contains(t, out.String(), "1e+09 nodes of degree 20 on 16 machines: 16.0 GB of rows and 5.0 of lists each")
	require.Contains(t, out.String(), "625 steps of 16000 seeds, fanout 15,10,5\n")
	require.Error(t, s.print(&out, []string{"fast"}))
	papers := shape{nodes: 111e6, degree: 14.4, share: 0.01, machines: 2, row: 256, seeds: 2000, hidden: 256}
	require.NoError(t, papers.parse("15,10,5"))
	w, edges := papers.step()
	require.InDelta(t, 380e3, w.InputRows, 60e3)
	require.InDelta(t, w.InputRows, edges+1000, 1)
	for _, fanout := range []string{"", "0", "5,", "a"} {
		require.Error(t, (&shape{}).parse(fanout))
	}
	require.Error(t, (&shape{machines: 1}).parse("5"))
}
