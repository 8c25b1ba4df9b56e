package history

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRestoreOfImpossible: a state that no run can have come to is refused, whoever made it.
func TestRestoreOfImpossible(t *testing.T) {
	s := newSteady(t, 30, 100, true)
	s.steps(100)
	restored := func(change func(s *Snapshot)) error {
		var snap Snapshot
		snap.Take(s.cache)
		change(&snap)
		var b bytes.Buffer
		_, err := snap.WriteTo(&b)
		require.NoError(t, err)
		_, err = Restore(s.cache.o, &b)
		return err
	}
	require.NoError(t, restored(func(*Snapshot) {}))
	// rejecting returns the oldest verdict that rejects an embedding.
	rejecting := func(s *Snapshot) []Version {
		for i := range s.verdicts {
			if r := s.verdicts[i][0]; len(r) > 0 {
				return r
			}
		}
		panic("there is none")
	}
	oldest := func(s *Snapshot) *slot { // of the slots in use
		var old *slot
		for i := range s.pools[0].slots {
			if x := &s.pools[0].slots[i]; s.pools[0].used[i/64]>>(i%64)&1 == 1 && (old == nil || x.stamp < old.stamp) {
				old = x
			}
		}
		return old
	}
	for _, c := range []struct {
		want   string
		change func(s *Snapshot)
	}{
		{"goes on at step 4294967296", func(s *Snapshot) { s.step = 1 << 32 }},
		{"verdicts of 21 steps", func(s *Snapshot) { s.verdicts = append(s.verdicts, s.verdicts[0]) }},
		// a verdict is missing
		{"among those of steps 66 to 80", func(s *Snapshot) { s.verdicts = s.verdicts[5:] }},
		// older than TStale
		{"an embedding of step 50 among those of steps 51 to 80", func(s *Snapshot) { oldest(s).stamp = 50 }},
		{"an embedding of step 81 among those of steps 51 to 80", func(s *Snapshot) { oldest(s).stamp = 81 }},
		{"damaged: counts", func(s *Snapshot) { s.pools[0].counts.NaN = -1 }},
		{"are live, and counts are", func(s *Snapshot) { s.pools[0].counts.Replaced++ }},
		{"an embedding of node 3000, and there are 3000", func(s *Snapshot) { oldest(s).node = 3000 }},
		{"node 1234 has two embeddings", func(s *Snapshot) {
			for i := range s.pools[0].slots {
				s.pools[0].slots[i].node = 1234
			}
		}},
		{"rejects the embedding of step 81", func(s *Snapshot) { rejecting(s)[0].Stamp = 81 }},
		{"in slot 3000", func(s *Snapshot) { rejecting(s)[0].Slot = 3000 }},
	} {
		err := restored(c.change)
		require.ErrorContains(t, err, "history: read a snapshot: ")
		require.ErrorContains(t, err, "damaged: ")
		require.ErrorContains(t, err, c.want)
	}
}
