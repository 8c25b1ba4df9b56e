package build

import (
	"fmt"
	"maps"

	"github.com/gnnstore/gnnstore/store"
)

// Report describes what a [Build] read and made. Its JSON keys are stable.
type Report struct {
	Name      string           `json:"name"`
	Path      string           `json:"path"`
	Seal      string           `json:"seal"`
	Order     Order            `json:"order"`
	NodeTypes []NodeTypeReport `json:"node_types"`
	Relations []RelationReport `json:"relations"`
	Streams   []StreamReport   `json:"streams,omitempty"`
	Tables    []TableReport    `json:"tables"`
	Labels    []LabelReport    `json:"labels"`
	Splits    []SplitReport    `json:"splits"`
	// EdgeSplits are the edges that are held out, by relation.
	EdgeSplits []EdgeSplitReport `json:"edge_splits"`
	Dropped    []string          `json:"dropped"` // what the source holds and the dataset does not, a sentence each
	Notes      []string          `json:"notes"`   // what was decided without being asked for, a sentence each
	Passes     []PassReport      `json:"passes"`
	Resumed    int               `json:"resumed"` // passes that an interrupted Build had done
	Seconds    float64           `json:"seconds"` // of this Build
	Bytes      int64             `json:"bytes"`   // of all sections

	Memory        int64 `json:"memory_bytes"`    // allowed
	PeakRSSBytes  int64 `json:"peak_rss_bytes"`  // RssAnon + RssShmem, the most of this Build
	PeakFileBytes int64 `json:"peak_file_bytes"` // mapped file pages
}

// NodeTypeReport is one kind of node.
type NodeTypeReport struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

// RelationReport counts one kind of edge, from reading to storing: Edges = EdgesRead - Skipped -
// SelfLoopsDropped + SelfLoopsAdded - HeldOut - DuplicatesMerged + ReverseAdded. Duplicates counts
// only edges that are not held out.
type RelationReport struct {
	Key              string `json:"key"` // src__name__dst
	EdgesRead        int64  `json:"edges_read"`
	SelfLoops        int64  `json:"self_loops"`        // among those read
	Duplicates       int64  `json:"duplicates"`        // edges read that repeat another from the same source to the same destination
	DuplicatesMerged int64  `json:"duplicates_merged"` // of them not stored; all when undirected, else none
	ReverseAdded     int64  `json:"reverse_added"`     // edges stored because only their reverse was read
	SelfLoopsDropped int64  `json:"self_loops_dropped"`
	SelfLoopsAdded   int64  `json:"self_loops_added"`
	Skipped          int64  `json:"skipped"`  // one of their ends is no node, and that was allowed
	HeldOut          int64  `json:"held_out"` // by an edge split, equal ones each
	Edges            int64  `json:"edges"`    // stored

	// These count pairs of nodes, if there is one relation and it joins nodes of one type.
	// PairsCompared counts the pairs looked at: all up to 16,384, else a sample by hash.
	// PairsBothWays counts the pairs among them with edges in both directions. EdgesAscending
	// counts the edges whose source has the smaller row.
	PairsCompared  int64 `json:"pairs_compared,omitempty"`
	PairsBothWays  int64 `json:"pairs_both_ways,omitempty"`
	EdgesAscending int64 `json:"edges_ascending,omitempty"`

	// ReverseOf is the key of the relation that has these edges the other way round, as far as
	// Options.Reverse looked for it. Of a relation made from that one EdgesRead is 0, and
	// ReverseAdded is Edges.
	ReverseOf string `json:"reverse_of,omitempty"`

	Columns []string `json:"columns"`      // kept with each edge
	Left    []string `json:"columns_left"` // of the source, and not kept
}

// StreamReport is one stream of events.
type StreamReport struct {
	Name       string            `json:"name"`
	Src        string            `json:"src"`
	Dst        string            `json:"dst"`
	Events     int64             `json:"events"`
	SelfLoops  int64             `json:"self_loops"`
	Skipped    int64             `json:"skipped"` // one of their ends is no node, and that was allowed
	First      float64           `json:"first_time"`
	Last       float64           `json:"last_time"`
	TimeScale  float64           `json:"time_scale"` // factor on differences of times for networks
	Labels     bool              `json:"labels"`
	Classes    int               `json:"classes"`
	ClassNames []string          `json:"class_names,omitempty"`
	Split      store.StreamSplit `json:"split"`
	Negatives  int64             `json:"negatives,omitempty"` // that came with the source, of all events
	NodeLabels int64             `json:"node_labels,omitempty"`
}

// TableReport is one feature table.
type TableReport struct {
	Name     string `json:"name"`
	NodeType string `json:"node_type"`
	Relation string `json:"relation,omitempty"` // instead, for a table of edges
	Stream   string `json:"stream,omitempty"`   // instead, for one of events
	Dim      int    `json:"dim"`
	DType    DType  `json:"dtype"`
	// Aggregates names the last columns, if they are computed from the nodes' edges.
	Aggregates []string `json:"aggregates,omitempty"`
	Made       bool     `json:"made"`       // by Options.Features, not read
	Missing    int64    `json:"missing"`    // nodes without a row in the source, which have zeros
	Overflowed int64    `json:"overflowed"` // values beyond float16, clamped to ±65504
	Rounded    int64    `json:"rounded"`    // whole numbers that float16 rounds, where whole numbers are expected
	Tiny       int64    `json:"tiny"`       // values that float16 changes by more than 1 %, or makes 0
}

// LabelReport is one prediction target.
type LabelReport struct {
	Name     string `json:"name"`
	NodeType string `json:"node_type"`
	Classes  int    `json:"classes"`
	Multi    bool   `json:"multi"`
	Numbers  bool   `json:"numbers,omitempty"`
	Missing  int64  `json:"missing"` // nodes without a label
	// ClassNames are the source's names of the classes, where it does not number them from 0.
	ClassNames []string `json:"class_names,omitempty"`
}

// SplitReport counts the nodes of a split's parts.
type SplitReport struct {
	Name     string `json:"name"`
	NodeType string `json:"node_type"`
	Train    int    `json:"train"`
	Valid    int    `json:"valid"`
	Test     int    `json:"test"`
	NoEdge   int    `json:"no_edge,omitempty"` // nodes of all parts that receive no edge
}

// EdgeSplitReport counts the edges of a relation by part. Its topology has the training edges.
type EdgeSplitReport struct {
	Name     string `json:"name"`
	Relation string `json:"relation"`
	Train    int64  `json:"train"`
	Valid    int64  `json:"valid"`
	Test     int64  `json:"test"`
}

func (b *builder) note(format string, args ...any) {
	b.report.Notes = append(b.report.Notes, b.Text(fmt.Sprintf(format, args...)))
}

func (b *builder) drop(format string, args ...any) {
	b.report.Dropped = append(b.report.Dropped, b.Text(fmt.Sprintf(format, args...)))
}

// provenance returns the options, counts and notes that the dataset records of its making. Counts
// are sums over relations and tables; where there are several relations, each one's own are under
// KEY.edges_read and so on.
func (b *builder) provenance() store.Provenance {
	counts := map[string]int64{}
	count := func(prefix string, r *RelationReport) {
		counts[prefix+"edges_read"] += r.EdgesRead
		counts[prefix+"self_loops"] += r.SelfLoops
		counts[prefix+"duplicates"] += r.Duplicates
		counts[prefix+"duplicates_merged"] += r.DuplicatesMerged
		counts[prefix+"reverse_added"] += r.ReverseAdded
		counts[prefix+"edges"] += r.Edges
		if r.HeldOut > 0 {
			counts[prefix+"held_out"] += r.HeldOut
		}
		if r.Skipped > 0 {
			counts[prefix+"skipped"] += r.Skipped
		}
	}
	for i := range b.report.Relations {
		r := &b.report.Relations[i]
		if r.PairsCompared > 0 {
			counts[store.PairsCompared], counts[store.PairsBothWays] = r.PairsCompared, r.PairsBothWays
		}
		count("", r)
		if len(b.report.Relations) > 1 {
			count(r.Key+".", r)
		}
	}
	for _, s := range b.report.Streams {
		counts["events"] += s.Events
	}
	for _, t := range b.report.Tables {
		counts["values_clamped"] += t.Overflowed
		counts["values_rounded"] += t.Rounded
		counts["values_tiny"] += t.Tiny
	}
	for _, l := range b.report.Labels {
		counts["labels_missing"] += l.Missing
	}
	notes := append([]string{}, b.report.Dropped...)
	options := b.record()
	maps.Copy(options, b.described().Options)
	return store.Provenance{
		Tool:    "gnnstore ingest",
		Source:  b.schema.Name,
		Options: options,
		Counts:  counts,
		Notes:   append(notes, b.report.Notes...),
	}
}
