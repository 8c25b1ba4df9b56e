package run

import (
	"github.com/gnnstore/gnnstore/train/history"
)

// HistoryOf is what became of hidden rows that were kept for later steps. Its JSON keys are stable.
type HistoryOf struct {
	// TStale, Start and Lag are what the options came to.
	TStale int `json:"t_stale"`
	Start  int `json:"start"`
	Lag    int `json:"lag"`
	// Cold says that the run was resumed without the rows that it had kept: its results are not those of a run that was never cut.
	Cold      bool  `json:"cold,omitempty"`
	Slots     int64 `json:"slots"`
	SlotBytes int64 `json:"slot_bytes"` // of a slot, with its place in the index
	// PrunedRows is how many feature rows steps did not ask for, by what they asked for: each node that was used would have needed as many as one of
	// its layer that was computed. It is an estimate: nodes share rows.
	PrunedRows int64 `json:"pruned_rows"`
	// Reuse is the share of hits in all nodes that steps met; MeanAge is of hits, in steps.
	Reuse   float64 `json:"reuse"`
	MeanAge float64 `json:"mean_age"`
	history.Counts
	Layers []HistoryLayer `json:"layers"`
}

// HistoryLayer is that of one layer and type.
type HistoryLayer struct {
	Layer      int     `json:"layer"` // that makes the rows, from 1
	Type       string  `json:"type"`
	Slots      int     `json:"slots"`
	Live       int64   `json:"live"` // rows that are there
	PrunedRows int64   `json:"pruned_rows"`
	Reuse      float64 `json:"reuse"`
	MeanAge    float64 `json:"mean_age"`
	history.Counts
}

// Add counts a layer.
func (h *HistoryOf) Add(l HistoryLayer) {
	l.Reuse, l.MeanAge = ratio(l.Hits, l.Hits+l.Computed), ratio(l.Ages, l.Hits)
	h.Layers = append(h.Layers, l)
	h.Slots, h.PrunedRows = h.Slots+int64(l.Slots), h.PrunedRows+l.PrunedRows
	h.Counts.Add(l.Counts)
	h.Reuse, h.MeanAge = ratio(h.Hits, h.Hits+h.Computed), ratio(h.Ages, h.Hits)
}

// ratio is a / b, and 0 of nothing.
func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
