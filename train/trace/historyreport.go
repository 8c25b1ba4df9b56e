package trace

import (
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/sample"
)

// HistoryReport has the results of runs that use hidden rows again. Steps up to WarmupSteps fill
// the slots and are not counted.
type HistoryReport struct {
	Verdicts  string  `json:"verdicts"` // source of the verdicts on gradients: "by a hash"
	PGrad     float64 `json:"p_grad"`
	Start     int     `json:"start"` // the first step that keeps rows
	Hidden    int     `json:"hidden"`
	SlotBytes int64   `json:"slot_bytes"` // of a slot, with its place in the index

	WindowBytes int64       `json:"window_bytes,omitempty"`
	Window      int         `json:"window,omitempty"` // steps of a window at most; 0: as many as fit
	EqualBytes  bool        `json:"equal_bytes,omitempty"`
	DiskCosts   *disk.Costs `json:"disk_costs,omitempty"`
	Disk        string      `json:"disk,omitempty"` // source of DiskCosts

	WarmupSteps   int            `json:"warmup_steps"`
	MeasuredSteps int            `json:"measured_steps"`
	Draws         []HistoryDraws `json:"draws"` // by sampler, then by κ
}

// HistoryDraws has the results of one sampler and κ.
type HistoryDraws struct {
	Sampler  sample.Kind      `json:"sampler"`
	Kappa    int              `json:"kappa"` // -1: all batches share their draws
	Without  StepReads        `json:"without"`
	Variants []HistoryVariant `json:"variants"` // by t_stale, then by K, then by slots, as they were asked for
}

// StepReads counts the rows, lists and nodes that a step reads and computes, on average.
type StepReads struct {
	Rows float64 `json:"rows"` // of features
	// Lists is the neighbour lists that are drawn from, one for each node, relation and layer,
	// where there are neighbours. It is 0 under rw, whose walks read lists that no batch shows.
	Lists float64 `json:"lists"`
	// ComputedNodes counts the nodes that each layer makes, from the first layer on. The last layer
	// makes the seeds.
	ComputedNodes []float64 `json:"computed_nodes"`
	// Windows is set if WindowBytes is. Without history it is for the larger slab, which has the
	// bytes of slots as well.
	Windows *Windows `json:"windows,omitempty"`
}

// HistoryVariant is a run that uses hidden rows again. Counts are of all measured steps.
type HistoryVariant struct {
	TStale     int     `json:"t_stale"`
	Lag        int     `json:"lag"`
	Asked      string  `json:"asked"` // of {history_bytes}
	Slots      int64   `json:"slots"`
	SlotsBytes int64   `json:"slots_bytes"`
	InputRows  float64 `json:"input_rows"` // rows of a step that uses nothing again
	StepReads
	Reuse   float64 `json:"reuse"`    // share of hits in all nodes that steps met
	MeanAge float64 `json:"mean_age"` // of hits, in steps
	history.Counts
	Layers []HistoryLayer `json:"layers"`
	// Prefix, with EqualBytes, is for a run without history that has a static prefix in place of
	// the slots.
	Prefix *Windows `json:"prefix,omitempty"`
}

// HistoryLayer has the results of one layer and type.
type HistoryLayer struct {
	Layer   int     `json:"layer"` // the layer that makes the rows, from 1
	Type    string  `json:"type,omitempty"`
	Slots   int     `json:"slots"`
	Bytes   int64   `json:"bytes"`
	Live    int64   `json:"live"` // rows that are kept at the end
	Reuse   float64 `json:"reuse"`
	MeanAge float64 `json:"mean_age"`
	history.Counts
}

// Windows counts the reads from disk of windows: steps that are read together, as many as fit the
// slab. All fields from ColdRows on are means of a step.
type Windows struct {
	SlabBytes   int64   `json:"slab_bytes"` // of rows, with their bookkeeping
	PrefixBytes int64   `json:"prefix_bytes,omitempty"`
	Windows     int     `json:"windows"` // windows that were counted
	Steps       float64 `json:"steps_per_window"`
	ColdRows    float64 `json:"cold_rows"`
	RowReads    float64 `json:"row_reads"`
	RowBytes    float64 `json:"row_bytes"`
	RowMS       float64 `json:"row_ms"` // time of the device, by DiskCosts
	ListReads   float64 `json:"list_reads"`
	ListBytes   float64 `json:"list_bytes"`
	ListMS      float64 `json:"list_ms"`
	DeviceMS    float64 `json:"device_ms"` // of both
}

// add counts a layer.
func (v *HistoryVariant) add(l HistoryLayer) {
	l.Reuse, l.MeanAge = ratio(l.Hits, l.Hits+l.Computed), ratio(l.Ages, l.Hits)
	v.Layers = append(v.Layers, l)
	v.Slots += int64(l.Slots)
	v.Counts.Add(l.Counts)
	v.Reuse, v.MeanAge = ratio(v.Hits, v.Hits+v.Computed), ratio(v.Ages, v.Hits)
}

// ratio returns a / b, or 0 if both are 0.
func ratio(a, b int64) float64 { return float64(a) / float64(max(b, 1)) }
