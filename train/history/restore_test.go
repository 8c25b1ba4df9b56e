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
	// rejecting is the oldest verdict that rejects two that its step computed, and one that it used.
	rejecting := func(s *Snapshot) *rejections {
		for i := range s.verdicts {
			if r := &s.verdicts[i][0]; r.own > 1 && len(r.versions) > r.own {
				return r
			}
		}
		panic("there is none")
	}
	for _, c := range []struct {
		want   string
		change func(s *Snapshot)
	}{
		{"goes on at step 4294967296", func(s *Snapshot) { s.step = 1 << 32 }},
		{"verdicts of 21 steps", func(s *Snapshot) { s.verdicts = append(s.verdicts, s.verdicts[0]) }},
		{"an embedding of step 50 among those of steps 66 to 80", func(s *Snapshot) { s.verdicts = s.verdicts[5:] }}, // without its verdict
		{"an embedding of step 0 among those of steps 50 to 80", func(s *Snapshot) {
			s.rings[0].slots[s.rings[0].slot(s.rings[0].freed+1)].stamp = 0
		}},
		{"an embedding of step 81 among those of steps 0 to 80", func(s *Snapshot) {
			s.rings[0].slots[s.rings[0].slot(s.rings[0].freed)].stamp = 81
		}},
		{"damaged: slots", func(s *Snapshot) { s.rings[0].counts.NaN = -1 }},
		{"damaged: slots", func(s *Snapshot) { s.rings[0].taken = s.rings[0].freed + 3001 }},
		{"are live, and counts are", func(s *Snapshot) { s.rings[0].counts.Replaced++ }},
		{"are live, and counts are", func(s *Snapshot) { s.rings[0].counts.Replaced++; s.rings[0].counts.Admitted++ }},
		{"an embedding of node 3000, and there are 3000", func(s *Snapshot) { s.rings[0].slots[s.rings[0].slot(s.rings[0].freed)].node = 3000 }},
		{"node 1234 has two embeddings", func(s *Snapshot) {
			r := &s.rings[0]
			for n := r.freed; n < r.taken; n++ {
				if r.live.has(r.slot(n)) {
					r.slots[r.slot(n)].node = 1234
				}
			}
		}},
		{"rejects 3001 of 3000 embeddings", func(s *Snapshot) { s.verdicts[0][0].versions = make([]Version, 3001) }},
		{"rejects the embedding of step", func(s *Snapshot) { // not in the order of slots
			r := rejecting(s)
			r.versions[0], r.versions[1] = r.versions[1], r.versions[0]
		}},
		{"rejects the embedding of step", func(s *Snapshot) { // one that it computed behind one that it used
			r := rejecting(s)
			r.versions[r.own-1], r.versions[r.own] = r.versions[r.own], r.versions[r.own-1]
		}},
		{"rejects the embedding of step 81", func(s *Snapshot) { rejecting(s).versions[0].Stamp = 81 }},
		{"in slot 3000", func(s *Snapshot) { rejecting(s).versions[0].Slot = 3000 }},
	} {
		err := restored(c.change)
		require.ErrorContains(t, err, "history: read a snapshot: ")
		require.ErrorContains(t, err, "damaged: ")
		require.ErrorContains(t, err, c.want)
	}
}
