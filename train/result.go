package train

import (
	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/pipeline"
)

// Result is what a run came to. Its JSON keys are stable; others may be added.
type Result struct {
	Run     string  `json:"run"` // directory
	Dataset string  `json:"dataset"`
	Seal    string  `json:"seal"` // of the dataset
	Options Options `json:"options"`
	Kernels string  `json:"kernels"`
	Seed    uint64  `json:"seed"`
	// Status is "running", "done", "stopped early" (validation did not improve), "interrupted", "failed" (see Error) or
	// "died".
	Status string  `json:"status"`
	Error  string  `json:"error,omitempty"`
	Epochs []Epoch `json:"epochs"`
	// Losses repeats the loss of each epoch.
	Losses []float64 `json:"losses"`
	Best   Best      `json:"best"`
	// Tiers, Disk and InputRows count the rows that training steps read; evaluation is apart, in Evaluation.
	cachetier.Stats
	DiskEngine string `json:"disk_engine"`
	// Metric is what valid_acc and test_acc are; train_acc is the accuracy, or with several classes a node the micro-F1.
	Metric     metric.Kind `json:"metric"`
	Evaluation Evaluation  `json:"evaluation"`
	// Stages is where training's time went, LimitingStage the one that the others wait for: "sample",
	// "load", "gather" or "step".
	Stages        pipeline.Stats `json:"stage_seconds"`
	LimitingStage string         `json:"limiting_stage"`
	// PeakRSSBytes is the largest RssAnon + RssShmem seen, PeakFileBytes the largest RssFile: mapped file pages.
	PeakRSSBytes  int64 `json:"peak_rss_bytes"`
	PeakFileBytes int64 `json:"peak_file_bytes"`
	// ParamsXXH3 is XXH3-64 over the final weights, parameter after parameter, little-endian float32.
	ParamsXXH3 string `json:"params_xxh3"`

	// What not every run has is left out. Topology counts for evaluation, too, as does Latency. Live is of a run that goes on; Advice says what limits it, and what to change.
	AutoEpochs *AutoEpochs `json:"auto_epochs,omitempty"`
	Topology   *Topology   `json:"topology,omitempty"`
	Latency    *Latency    `json:"latency_seconds,omitempty"`
	Window     *Window     `json:"window,omitempty"`
	Memory     *Memory     `json:"memory,omitempty"`
	Live       *Live       `json:"live,omitempty"`
	Advice     string      `json:"advice,omitempty"`
}

// Epoch is one pass over the training seeds.
type Epoch struct {
	Epoch    int     `json:"epoch"`     // from 1
	Loss     float64 `json:"loss"`      // mean cross-entropy of the seeds, or of their known targets, weighted by class
	TrainAcc float64 `json:"train_acc"` // of the batches as they were trained: sampled, with dropout
	// ValidAcc and TestAcc are null where they were not measured.
	ValidAcc  *float64 `json:"valid_acc"`
	TestAcc   *float64 `json:"test_acc"`
	Seconds   float64  `json:"seconds"` // of training, without evaluation
	Steps     int      `json:"steps"`
	InputRows int64    `json:"input_rows"`
	DiskBytes int64    `json:"disk_bytes"`
	HitRate   float64  `json:"hit_rate"` // rows that no disk read was needed for
	// LimitingStage is what the epoch waited for.
	LimitingStage string `json:"limiting_stage"`
}

// Best is the epoch that validation chose; Epoch is 0 when nothing was validated.
type Best struct {
	Epoch    int      `json:"epoch"`
	ValidAcc *float64 `json:"valid_acc"`
	TestAcc  *float64 `json:"test_acc"`
}

// Evaluation says how accuracy was measured and what it read.
type Evaluation struct {
	Method  string         `json:"method"` // "full" or "sampled"
	Seconds float64        `json:"seconds"`
	Disk    cachetier.Disk `json:"disk"`
}

// soFar is r without its epochs, which stand in the metrics already.
func (r *Result) soFar() Result {
	short := *r
	short.Epochs, short.Losses = nil, nil
	return short
}
