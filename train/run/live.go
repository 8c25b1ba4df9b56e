package run

import (
	"time"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/spill"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/tiers"
)

// Live has what a result so far shows only while the run goes on.
type Live struct {
	At      time.Time `json:"at"`      // when the counters were looked at
	Epoch   int       `json:"epoch"`   // under way, from 1; 0 before the first step of this process
	Step    int       `json:"step"`    // the last one done, from 1
	Steps   int       `json:"steps"`   // of an epoch
	Updates int       `json:"updates"` // of the run
	Loss    *float64  `json:"loss"`    // of that step; null before it
	Seconds float64   `json:"seconds"` // since this process began to train
	// ETASeconds is the time that the remaining epochs take at the rate of Recent, evaluation
	// included; absent before a first step. For AutoEpochs it assumes that no later evaluation is
	// better than the best so far.
	ETASeconds *float64 `json:"eta_seconds,omitempty"`
	// RowsPerSecond is the feature rows that the steps of Recent read, per second of training.
	RowsPerSecond float64 `json:"rows_per_second"`
	// ResidentBytes and FileBytes are RssAnon + RssShmem and RssFile now, as Result's peaks are.
	ResidentBytes int64 `json:"resident_bytes"`
	FileBytes     int64 `json:"file_bytes"`
	// ReadsUnderWay counts the disk reads under way; absent where the engine does not count them.
	ReadsUnderWay *int   `json:"reads_under_way,omitempty"`
	Recent        Recent `json:"recent"`
}

// Recent has the counters of the last two to four minutes, or since this process began to train if
// that is less.
type Recent struct {
	Wall    float64 `json:"wall_seconds"`
	Updates int     `json:"updates"`
	cachetier.Stats
	Stages        pipeline.Stats `json:"stage_seconds"`
	LimitingStage string         `json:"limiting_stage"`
}

// Topology has the counters of the tier of neighbour lists, and of its reads. Rows in its counters
// are lists, and IndexBytes counts the offsets.
type Topology struct {
	cachetier.Tier
	Lists int64          `json:"lists"` // in the dataset
	Disk  cachetier.Disk `json:"disk"`
}

// Latency has the times of single disk reads, in seconds.
type Latency struct {
	Reads   int64   `json:"reads"`   // measured
	Seconds float64 `json:"seconds"` // of all of them together
	P50     float64 `json:"p50"`
	P90     float64 `json:"p90"`
	P99     float64 `json:"p99"`
	Max     float64 `json:"max"`
}

// Memory is the split of a budget for the whole process.
type Memory struct {
	BudgetBytes int64        `json:"budget_bytes"`
	Parts       []MemoryPart `json:"parts"`
	// OnDevice is the memory that the run takes on a device, beside the budget: weights, a step,
	// slots of hidden rows, and feature rows that lie there.
	OnDevice int64 `json:"on_device_bytes,omitempty"`
}

// MemoryPart is a part of a budget.
type MemoryPart struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Window describes how far ahead of the step rows are read.
type Window struct {
	Steps int   `json:"steps"`
	Rows  int64 `json:"rows"`  // in the newest window, none twice
	Bytes int64 `json:"bytes"` // the most for rows that wait for their step
}

// MemoryOf returns a split of the memory in the form of a result. Parts of 0 bytes are left out.
func MemoryOf(b plan.Budget) *Memory {
	m := &Memory{BudgetBytes: b.Total, OnDevice: b.OnDevice}
	for _, p := range []MemoryPart{
		{"topology", b.Topology}, {"device", b.DeviceInTotal()}, {"host", b.Host}, {"history", b.History}, {"batches", b.Batches}, {"step", b.Step}, {"fixed", b.Fixed},
	} {
		if p.Bytes > 0 {
			m.Parts = append(m.Parts, p)
		}
	}
	return m
}

// TopologyOf adds up the sizes and counters of the tiers of neighbour lists.
func TopologyOf(t *tiers.Tiers) *Topology {
	var sum Topology
	for _, tier := range t.Topology {
		if tier == nil {
			continue
		}
		s := tier.Stats()
		sum.CapacityBytes += s.ResidentBytes
		sum.CapacityRows += s.ResidentLists
		sum.IndexBytes += s.OffsetBytes
		sum.RowsHit += s.Hits
		sum.RowsMissed += s.Misses
		sum.BytesRead += s.Warmup.BytesRead
		sum.Lists += s.TotalLists
		sum.Disk = sum.Disk.Add(s.Cold)
	}
	sum.UsedBytes, sum.UsedRows = sum.CapacityBytes, sum.CapacityRows
	return &sum
}

// LatencyOf returns the read latency of the table with the most reads, nil if there were none, and
// the number of reads under way in all tables.
func LatencyOf(tables []*cachetier.Stack) (most *Latency, underWay int) {
	for _, s := range tables {
		l := s.Live()
		underWay += int(l.UnderWay)
		if l.Reads > 0 && (most == nil || int64(l.Reads) > int64(most.Reads)) {
			most = &Latency{
				Reads: l.Reads, Seconds: l.Waited.Seconds(),
				P50: l.P50.Seconds(), P90: l.P90.Seconds(), P99: l.P99.Seconds(), Max: l.Max.Seconds(),
			}
		}
	}
	return most, underWay
}

// WindowOf returns the newest window, or nil if rows are not read by windows.
func WindowOf(p *plan.Planner) *Window {
	steps, rows := p.Newest()
	if rows == 0 {
		return nil
	}
	w := &Window{Steps: steps, Rows: int64(rows)}
	for _, s := range p.Tables {
		w.Bytes += int64(s.WindowRows()) * int64(s.RowBytes())
	}
	return w
}

// TableOf has the counters of the tiers of one of several tables.
type TableOf struct {
	Type string `json:"type"` // of the nodes; of a table of edges its relation and name, as SRC__REL__DST/NAME
	Kind string `json:"kind"` // of their input: "table" or "embedding"; "edges" of a table of edges
	cachetier.Stats
}

// EmbeddingOf counts the changes to the learnt rows of a type.
type EmbeddingOf struct {
	Type string `json:"type"` // of the nodes
	Dim  int    `json:"dim"`
	// RowsTouched counts the rows that were changed, RowsWritten the writes of a row to disk, and
	// BytesWritten the bytes of these writes and of keeping checkpoints.
	RowsTouched  int64 `json:"rows_touched"`
	RowsWritten  int64 `json:"rows_written"`
	BytesWritten int64 `json:"bytes_written"`
}

// EmbeddingsOf returns the counters of each type with learnt rows. before has the counters of a
// resumed run so far, or is empty.
func EmbeddingsOf(t *tiers.Tiers, before []EmbeddingOf) (all []EmbeddingOf) {
	names := t.TypeNames()
	for i, l := range t.Learnt {
		c := l.Counts()
		e := EmbeddingOf{names[l.Type], l.Dim, c.RowsTouched, c.RowsWritten, c.BytesWritten}
		if i < len(before) {
			e.RowsWritten, e.BytesWritten = e.RowsWritten+before[i].RowsWritten, e.BytesWritten+before[i].BytesWritten
		}
		all = append(all, e)
	}
	return all
}

// SpillOf returns the counters of the spill, or nil without a spill. before has the counters of
// a resumed run so far, or is nil.
func SpillOf(t *tiers.Tiers, before *spill.Stats) *spill.Stats {
	s, ok := t.SpillStats()
	switch {
	case !ok:
		return before
	case before != nil:
		s = s.Add(*before)
	}
	return &s
}

// RelationOf describes one of several relations, and its fanouts.
type RelationOf struct {
	Key    string `json:"key"`
	Edges  int64  `json:"edges"`
	Fanout []int  `json:"fanout"` // hop by hop; 0 where it is not drawn from
}

// SetTables sets the counters of rows, which are in the order of t's stacks: together, and where
// there are several types, or tables of edges, each alone.
func (r *Result) SetTables(t *tiers.Tiers, each []cachetier.Stats) {
	r.Stats, r.Tables = cachetier.Sum(each), nil
	if names := t.TypeNames(); len(names) > 1 {
		for i, s := range each {
			kind := "table"
			if t.IsLearnt(i) {
				kind = "embedding"
			} else if t.OfEdges(i) {
				kind = "edges"
			}
			r.Tables = append(r.Tables, TableOf{Type: names[t.Types[i]], Kind: kind, Stats: s})
		}
	}
}

// TableStats returns the counters that SetTables was given.
func (r *Result) TableStats() (each []cachetier.Stats) {
	if len(r.Tables) == 0 {
		return []cachetier.Stats{r.Stats}
	}
	for _, t := range r.Tables {
		each = append(each, t.Stats)
	}
	return each
}
