package cli

import (
	"encoding/json"

	"github.com/gnnstore/gnnstore/train/run"
)

// Best is the epoch that validation chose, and what its weights reach by the run's metric; 0 where
// that was not measured.
type Best struct {
	Epoch             int
	ValidAcc, TestAcc float64
}

// UnmarshalJSON reads the values of any metric, whose name is in their keys.
func (b *Best) UnmarshalJSON(text []byte) error {
	var read run.Best
	err := json.Unmarshal(text, &read)
	b.Epoch = read.Epoch
	if read.ValidAcc != nil {
		b.ValidAcc = *read.ValidAcc
	}
	if read.TestAcc != nil {
		b.TestAcc = *read.TestAcc
	}
	return err
}

// Trained has the fields of `gnnstore train --json` that the developer programs read. Accuracies
// are fractions.
type Trained struct {
	Epochs []struct {
		Epoch    int     `json:"epoch"`
		Loss     float64 `json:"loss"`
		ValidAcc float64 `json:"valid_acc"`
		Seconds  float64 `json:"seconds"`
	} `json:"epochs"`
	Best       Best   `json:"best"`
	ParamsXXH3 string `json:"params_xxh3"`

	InputRows int64 `json:"input_rows"` // of training
	Tiers     struct {
		Device Tier `json:"device"`
		Host   Tier `json:"host"`
	} `json:"tiers"`
	Disk struct {
		Rows      int64 `json:"rows"`
		BytesRead int64 `json:"bytes_read"`
	} `json:"disk"`
	Join *struct { // nil where there was no horizon
		Spilled   int64 `json:"rows_spilled"`
		Forwarded int64 `json:"rows_forwarded"`
		Reread    int64 `json:"rows_reread"`
	} `json:"join"`
	History struct {
		Reuse float64 `json:"reuse"`
	} `json:"history"` // 0 of runs without
	DiskEngine   string `json:"disk_engine"` // and why
	PeakRSSBytes int64  `json:"peak_rss_bytes"`
}

// Tier has the counters of a tier of the memory.
type Tier struct {
	RowsHit int64 `json:"rows_hit"`
}

// Losses lists the loss of every epoch.
func (t *Trained) Losses() []float64 {
	losses := make([]float64, len(t.Epochs))
	for i, epoch := range t.Epochs {
		losses[i] = epoch.Loss
	}
	return losses
}

// Inspected has the fields of `gnnstore inspect --json` that the developer programs read, for a
// dataset with one type of node.
type Inspected struct {
	Seal      string `json:"seal"`
	NodeTypes []struct {
		Count int64 `json:"count"`
	} `json:"node_types"`
	Relations []struct {
		Edges int64 `json:"edges"`
	} `json:"relations"`
	Labels []struct {
		Classes int64 `json:"classes"`
	} `json:"labels"`
	Splits []struct {
		Train int64 `json:"train"`
		Valid int64 `json:"valid"`
		Test  int64 `json:"test"`
	} `json:"splits"`
}
