package topology

import "github.com/gnnstore/gnnstore/cachetier/disk"

// Stats counts what a Tier holds, and what it did since Open or Resize. Its JSON keys are stable.
// Except for seconds, it depends only on the options and on what was asked for.
type Stats struct {
	OffsetBytes   int64 `json:"offset_bytes"`   // taken by offsets
	ResidentBytes int64 `json:"resident_bytes"` // taken by resident lists, and by the weights, values and rows of their edges
	ResidentLists int64 `json:"resident_lists"`
	TotalBytes    int64 `json:"total_bytes"` // of all lists, and of the weights, values and rows of their edges
	TotalLists    int64 `json:"total_lists"`

	// Asked counts the times that a batch wanted a list: Hits times it was resident, Misses times
	// it was not. A read serves all batches of a group, so Cold.Rows, which counts lists, is at
	// most Misses.
	Asked  int64 `json:"asked"`
	Hits   int64 `json:"hits"`
	Misses int64 `json:"misses"`

	Cold   disk.Account `json:"cold"`   // by Read, and by ReadWeights, ReadValues and ReadRows, which add bytes and reads but no rows
	Warmup disk.Account `json:"warmup"` // by Open, Resize and SelfLoops: offsets and lists, from start to end
}

// Count adds what batches asked for: hits lists that were resident, and misses that were not.
func (t *Tier) Count(hits, misses int64) {
	t.stats.Lock()
	defer t.stats.Unlock()
	t.stats.Asked += hits + misses
	t.stats.Hits += hits
	t.stats.Misses += misses
}

// Stats returns a copy of the counters. It does not wait for a Read.
func (t *Tier) Stats() Stats {
	t.stats.Lock()
	defer t.stats.Unlock()
	return t.stats.Stats
}

// Sub returns the counters since earlier, an older copy from the same Tier. Fields for what the
// Tier holds now keep the values of s.
func (s Stats) Sub(earlier Stats) Stats {
	s.Asked -= earlier.Asked
	s.Hits -= earlier.Hits
	s.Misses -= earlier.Misses
	s.Cold, s.Warmup = s.Cold.Sub(earlier.Cold), s.Warmup.Sub(earlier.Warmup)
	return s
}

// Add returns s plus the counters of an earlier Tier over the same graph. Fields for what the
// Tier holds now keep the values of s.
func (s Stats) Add(earlier Stats) Stats {
	s.Asked += earlier.Asked
	s.Hits += earlier.Hits
	s.Misses += earlier.Misses
	s.Cold, s.Warmup = s.Cold.Add(earlier.Cold), s.Warmup.Add(earlier.Warmup)
	return s
}
