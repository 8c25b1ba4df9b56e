package main

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// Blocks are written whole, and steps on the batch are timed.
func TestRun(t *testing.T) {
	out := t.TempDir()
	var printed strings.Builder
	dataset := storetest.Build(t, storetest.Communities(3000, 5, 8, 16, 1))
	require.NoError(t, run(&printed, dataset, out, kernels.CPUDevice, 50, 3))
	require.Regexp(t, `^nodes \[[0-9]+ [0-9]+ [0-9]+ 50\], [0-9]+ edges
figure step [0-9.]+ ms
figure step_least [0-9.]+ ms
figure step_in_a_row [0-9.]+ ms
figure upload_and_step [0-9.]+ ms
figure upload_and_step_least [0-9.]+ ms
figure upload_and_step_in_a_row [0-9.]+ ms
loss [0-9.]+, then [0-9.]+
$`, printed.String())
	text, err := os.ReadFile(filepath.Join(out, "blocks.json"))
	require.NoError(t, err)
	var blocks struct{ Nodes []int }
	require.NoError(t, json.Unmarshal(text, &blocks))
	require.Len(t, blocks.Nodes, 4)
	for l := range fanouts {
		// The destinations come in order, and with the sources below the numbers of nodes.
		for end, limit := range map[string]int{"src": blocks.Nodes[l], "dst": blocks.Nodes[l+1]} {
			numbers, err := os.ReadFile(filepath.Join(out, string(rune('0'+l))+"."+end))
			require.NoError(t, err)
			require.NotEmpty(t, numbers)
			last := uint32(0)
			for i := 0; i < len(numbers); i += 4 {
				n := binary.LittleEndian.Uint32(numbers[i:])
				require.Less(t, int(n), limit)
				if end == "dst" {
					require.GreaterOrEqual(t, n, last)
				}
				last = n
			}
		}
	}
	require.ErrorContains(t, run(&printed, dataset, out, kernels.CPUDevice, 5000, 3), "too few")
}
