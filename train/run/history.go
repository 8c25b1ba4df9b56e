package run

import (
	"math"

	"github.com/gnnstore/gnnstore/train/history"
)

// HistoryOf is what became of hidden rows that were kept for later steps. Its JSON keys are stable.
type HistoryOf struct {
	// TStale, Start and Lag are what the options came to.
	TStale int `json:"t_stale"`
	Start  int `json:"start"`
	Lag    int `json:"lag"`
	// Cold says that the run was resumed without the rows that it had kept: its results are not
	// those of a run that was never cut.
	Cold      bool  `json:"cold,omitempty"`
	Slots     int64 `json:"slots"`
	SlotBytes int64 `json:"slot_bytes"` // of a slot, with its place in the index
	// PrunedRows is how many feature rows steps did not ask for, by what they asked for: each node
	// that was used would have needed as many as one of its layer that was computed. It is an
	// estimate: nodes share rows.
	PrunedRows int64 `json:"pruned_rows"`
	// Reuse is the share of hits in all nodes that steps met; MeanAge is of hits, in steps.
	Reuse   float64 `json:"reuse"`
	MeanAge float64 `json:"mean_age"`
	history.Counts
	// Audit is of runs with HistoryAudit.
	Audit  *AuditOf       `json:"audit,omitempty"`
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
	Audit *AuditOf `json:"audit,omitempty"`
}

// AuditOf compares reused rows with the rows that the weights of the step give, averaged over
// the audited nodes. An error is the norm of the difference divided by the norm of the right
// row. A cosine is the cosine of the angle between both. Its JSON keys are stable.
type AuditOf struct {
	Nodes int64 `json:"nodes"`
	// ErrorDraw and CosineDraw are beside the row that the step would have computed, had there been
	// none: of the neighbours that it would have drawn, with its dropout.
	ErrorDraw  float64 `json:"error_draw"`
	CosineDraw float64 `json:"cosine_draw"`
	// ErrorFull and CosineFull are beside the row over all neighbours, without dropout, of those
	// nodes that were not LeftOut: an audit reads no more neighbours than fit in some MiB, and
	// there are no such rows of a network of random walks.
	ErrorFull  float64 `json:"error_full"`
	CosineFull float64 `json:"cosine_full"`
	LeftOut    int64   `json:"left_out"`
	// ErrorFresh is that of the row that the step would have computed, beside the same: what
	// drawing and dropout make without any age.
	ErrorFresh float64 `json:"error_fresh"`
	MeanAge    float64 `json:"mean_age"` // in steps
	// Rows are those that audits asked for, and Bytes what they read from disk for them. No other
	// count has them.
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"`
}

// AuditSums is what an AuditOf is the means of: over Nodes, and over Whole of them that were
// computed over all neighbours.
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

// Comparison is sums over rows that were compared.
type Comparison struct {
	Error  float64 `json:"error"`
	Cosine float64 `json:"cosine"`
}

// Add compares one row more with the row that is right. Beside a row of zeros the error is 0 of
// such a row, and 1 of any other.
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

// Add adds what more sums up.
func (s *AuditSums) Add(more AuditSums) {
	s.Nodes, s.Whole, s.Ages = s.Nodes+more.Nodes, s.Whole+more.Whole, s.Ages+more.Ages
	s.Rows, s.Bytes = s.Rows+more.Rows, s.Bytes+more.Bytes
	s.Draw.plus(more.Draw)
	s.Full.plus(more.Full)
	s.Fresh.plus(more.Fresh)
}

// Of is the means.
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

// ratio is a / b, and 0 of nothing.
func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
