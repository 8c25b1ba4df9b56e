package ingest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSnakeName(t *testing.T) {
	for name, want := range map[string]string{
		"trainMask": "train_mask", "Train Mask": "train_mask", "is-train": "is_train", "Y": "y", "train_mask": "train_mask",
		"NodeID": "node_id", "x1Y": "x1_y", "": "", "ÄÖ": "äö",
	} {
		require.Equal(t, want, SnakeName(name), name)
	}
}

func TestPartOf(t *testing.T) {
	for cell, want := range map[string]int{
		"train": 0, " Train ": 0, "TRAINING": 0, "val": 1, "dev": 1, "validation": 1, "testing": 2, "": NoPart, "NA": NoPart, "none": NoPart,
	} {
		part, ok := PartOf([]byte(cell))
		require.True(t, ok, cell)
		require.Equal(t, want, part, cell)
	}
	for _, cell := range []string{"0", "trainer", "1"} {
		_, ok := PartOf([]byte(cell))
		require.False(t, ok, cell)
	}
	part, ok := PartNumber([]byte(" 2.0"))
	require.True(t, ok)
	require.Equal(t, int(Test), part)
	_, ok = PartNumber([]byte("3"))
	require.False(t, ok)
}

func TestMaskColumns(t *testing.T) {
	require.Equal(t, [3]int{1, 2, -1}, MaskColumns([]string{"id", "is_train", "Val_Mask"}))
	require.Equal(t, [3]int{0, -1, 1}, MaskColumns([]string{"trainMask", "test"}))
	require.True(t, IsMaskName("paper/is_train"))
	require.False(t, IsMaskName("train_idx"))
	for name, want := range map[string]bool{"split": true, "paper/fold": true, "Data Split": true, "part": false, "set": false, "splits": false} {
		require.Equal(t, want, IsSplitName(name), name)
	}
}
