package history_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/train/history"
)

// TestSlots: a node that steps meet often enough is worth a slot, by the rule as it is written
// down; and a budget goes to those that save the most.
func TestSlots(t *testing.T) {
	all := []history.Candidate{
		{Classes: []history.Class{{10, 5}, {100, 4}, {1000, 2}}, Saved: 1000}, // met 0.5, 0.04 and 0.002 times a step
		{Classes: []history.Class{{10, 5}, {90, 0}, {20, 20}}, Saved: 100},
	}
	s := history.Settings{PGrad: 0.9, TStale: 100, HistoryBytes: history.Auto}
	// In 100 steps 50, 4 and 0.2 meetings: a slot saves 49,000, 3,000 and -800 bytes, and takes 512
	// in two windows.
	slots := func(slotBytes int64) []int {
		slots, _ := s.Slots(all, slotBytes)
		return slots
	}
	// But 64 MiB have room for all nodes that are met: 200 of the 1000 of the third class, and of
	// the second candidate 10 and all 20.
	n, admitted := s.Slots(all, 512)
	require.Equal(t, [][]int{{310, 30}, {1110, 120}}, [][]int{n, admitted})
	// room for 10 of each candidate, and then for 95 of the first
	n, admitted = s.Slots(all, (64<<20)/115)
	require.Equal(t, [][]int{{105, 10}, {105, 10}}, [][]int{n, admitted})
	all[0].Saved = 1e10 // 64 MiB are one slot, and 110 rows save more than they take
	require.Equal(t, []int{110, 0}, slots(64<<20))
	all[0].Saved = 1000
	s.TStale, s.HistoryBytes = 100, 100*512+511
	require.Equal(t, []int{90, 10}, slots(512))
	s.HistoryBytes = 1 << 40
	require.Equal(t, []int{1110, 120}, slots(512))
	for _, none := range []history.Settings{{PGrad: 0.9, HistoryBytes: 1 << 20}, {TStale: 9, HistoryBytes: 1 << 20}} {
		n, admitted := none.Slots(all, 512)
		require.Equal(t, [][]int{{0, 0}, {0, 0}}, [][]int{n, admitted})
	}
}

func TestResolve(t *testing.T) {
	auto := history.Defaults()
	require.NoError(t, auto.Validate())
	require.Equal(t, history.Settings{PGrad: 0.7, TStale: 18, HistoryStart: 91, HistoryLag: 9, HistoryBytes: history.Auto}, auto.Resolve(91))
	require.Equal(t, 200, auto.Resolve(5000).TStale)
	require.False(t, auto.Resolve(4).Reuses())
	require.Equal(t, 1, auto.Resolve(5).HistoryLag)
	auto.TStale = math.MaxInt32
	require.Equal(t, 100, auto.Resolve(5).HistoryLag, "else gradients would not decide before the run ends")
	given := history.Settings{PGrad: 1, TStale: 7, HistoryStart: 0, HistoryLag: 3, HistoryBytes: 10}
	require.Equal(t, given, given.Resolve(1000))
	require.ErrorContains(t, history.Settings{PGrad: 1.5, TStale: -2, HistoryStart: -3, HistoryBytes: -4}.Validate(),
		"{p_grad} 1.5: from 0, which keeps nothing, to 1\n{t_stale} -2: at least 0, which keeps nothing, or auto\n{history_start} -3: at least 0, or auto\n"+
			"{history_lag} 0: at least 1, or auto\n{history_bytes} -4: at least 0, auto or rest")
}
