package run

import (
	"math"

	"github.com/gnnstore/gnnstore/train/history"
)

// HistoryOf counts the hidden rows that were kept for later steps, and their reuse. Its JSON keys
// are stable.
type HistoryOf struct {
	// TStale, Start and Lag are the effective values of the options.
	TStale int `json:"t_stale"`
	Start  int `json:"start"`
	Lag    int `json:"lag"`
	// Cold is true if the run was resumed without the rows that it had kept. It then has other
	// results than a run that was never cut.
	Cold      bool  `json:"cold,omitempty"`
	Slots     int64 `json:"slots"`
	SlotBytes int64 `json:"slot_bytes"` // of a slot, with its place in the index
	// PrunedRows estimates the feature rows that steps did not have to read. A reused node counts
	// as many rows as a computed node of its layer needs on average. Nodes share rows, so this is
	// an estimate.
	PrunedRows int64 `json:"pruned_rows"`
	// Reuse is the share of hits in all nodes that steps met; MeanAge is of hits, in steps.
	Reuse   float64 `json:"reuse"`
	MeanAge float64 `json:"mean_age"`
	history.Counts
	// Audit is of runs with HistoryAudit.
	Audit  *AuditOf       `json:"audit,omitempty"`
	Layers []HistoryLayer `json:"layers"`
}

// HistoryLayer has the counters of HistoryOf for one layer and node type.
type HistoryLayer struct {
	Layer      int     `json:"layer"` // the layer that makes the rows, from 1
	Type       string  `json:"type"`
	Slots      int     `json:"slots"`
	Live       int64   `json:"live"` // rows that are there
	PrunedRows int64   `json:"pruned_rows"`
	Reuse      float64 `json:"reuse"`
	MeanAge    float64 `json:"mean_age"`
	history.Counts
	Audit *AuditOf `json:"audit,omitempty"`
}

// AuditOf compares reused rows with the rows that the weights of the step give, averaged over
// the audited nodes. An error is the norm of the difference divided by the norm of the right
// row. A cosine is the cosine of the angle between both. Its JSON keys are stable.
type AuditOf struct {
	Nodes int64 `json:"nodes"`
	// ErrorDraw and CosineDraw compare with the row that the step would have computed without a
	// kept row: from the neighbours that it would have drawn, with its dropout.
	ErrorDraw  float64 `json:"error_draw"`
	CosineDraw float64 `json:"cosine_draw"`
	// ErrorFull and CosineFull compare with the row over all neighbours, without dropout, for nodes
	// that are not LeftOut. An audit reads no more neighbours than fit in some MiB, and a network
	// of random walks has no such rows.
	ErrorFull  float64 `json:"error_full"`
	CosineFull float64 `json:"cosine_full"`
	LeftOut    int64   `json:"left_out"`
	// ErrorFresh compares the row that the step would have computed with the row over all
	// neighbours: the error that sampling and dropout make without any age.
	ErrorFresh float64 `json:"error_fresh"`
	MeanAge    float64 `json:"mean_age"` // in steps
	// Rows counts the feature rows that audits asked for, and Bytes the bytes that they read from
	// disk for them. No other count includes these.
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"`
}

// AuditSums has the sums behind the means of an AuditOf: over Nodes, and over the Whole nodes that
// were computed over all neighbours.
type AuditSums struct {
	Nodes int64      `json:"nodes"`
	Draw  Comparison `json:"draw"`
	Whole int64      `json:"whole"`
	Full  Comparison `json:"full"`
	Fresh Comparison `json:"fresh"`
	Ages  int64      `json:"ages"`
	Rows  int64      `json:"rows"`
	Bytes int64      `json:"bytes"`
}

// Comparison has sums over the compared rows.
type Comparison struct {
	Error  float64 `json:"error"`
	Cosine float64 `json:"cosine"`
}

// Add compares one more row with the right row. If both are all zeros, the error is 0 and the
// cosine 1. If one of them is, the error is 1 and the cosine 0.
func (c *Comparison) Add(row, right []float32) {
	var of, to, dot, apart float64
	for i, x := range row {
		x, y := float64(x), float64(right[i])
		of, to, dot, apart = of+x*x, to+y*y, dot+x*y, apart+(x-y)*(x-y)
	}
	switch {
	case of == 0 && to == 0:
		c.Cosine++
	case of == 0 || to == 0:
		c.Error++
	default:
		c.Error += math.Sqrt(apart / to)
		c.Cosine += dot / math.Sqrt(of*to)
	}
}

func (c *Comparison) plus(more Comparison) {
	c.Error, c.Cosine = c.Error+more.Error, c.Cosine+more.Cosine
}

// Add adds the sums of more.
func (s *AuditSums) Add(more AuditSums) {
	s.Nodes, s.Whole, s.Ages = s.Nodes+more.Nodes, s.Whole+more.Whole, s.Ages+more.Ages
	s.Rows, s.Bytes = s.Rows+more.Rows, s.Bytes+more.Bytes
	s.Draw.plus(more.Draw)
	s.Full.plus(more.Full)
	s.Fresh.plus(more.Fresh)
}

// Of returns the means.
func (s AuditSums) Of() *AuditOf {
	nodes, whole := float64(max(s.Nodes, 1)), float64(max(s.Whole, 1))
	return &AuditOf{
		Nodes: s.Nodes, ErrorDraw: s.Draw.Error / nodes, CosineDraw: s.Draw.Cosine / nodes, LeftOut: s.Nodes - s.Whole,
		ErrorFull: s.Full.Error / whole, CosineFull: s.Full.Cosine / whole, ErrorFresh: s.Fresh.Error / whole,
		MeanAge: float64(s.Ages) / nodes, Rows: s.Rows, Bytes: s.Bytes,
	}
}

// Add counts a layer.
func (h *HistoryOf) Add(l HistoryLayer) {
	l.Reuse, l.MeanAge = ratio(l.Hits, l.Hits+l.Computed), ratio(l.Ages, l.Hits)
	h.Layers = append(h.Layers, l)
	h.Slots, h.PrunedRows = h.Slots+int64(l.Slots), h.PrunedRows+l.PrunedRows
	h.Counts.Add(l.Counts)
	h.Reuse, h.MeanAge = ratio(h.Hits, h.Hits+h.Computed), ratio(h.Ages, h.Hits)
}

// ratio returns a / b, or 0 if b is 0.
func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
