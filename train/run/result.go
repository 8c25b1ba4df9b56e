package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/spill"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/pipeline"
)

// Status of a run.
const (
	Running      = "running"
	Done         = "done"
	StoppedEarly = "stopped early"
	Interrupted  = "interrupted"
	Failed       = "failed"
	Died         = "died" // what Read says of a run that says Running and is not
)

// Result is the result of a run. Its JSON keys are stable; others may be added. JSON also has the
// keys valid and test, with the figures of Best by Metric.
type Result struct {
	Run     string  `json:"run"` // directory
	Dataset string  `json:"dataset"`
	Seal    string  `json:"seal"` // of the dataset
	Options Options `json:"options"`
	// Device and DeviceName are as in Record.
	Device     string `json:"device,omitempty"`
	DeviceName string `json:"device_name,omitempty"`
	Kernels    string `json:"kernels"`
	Seed       uint64 `json:"seed"`
	// Status is "running", "done", "stopped early" (validation did not improve), "interrupted",
	// "failed" (see Error) or "died".
	Status string  `json:"status"`
	Error  string  `json:"error,omitempty"`
	Epochs []Epoch `json:"epochs"`
	// Losses repeats the loss of each epoch.
	Losses []float64 `json:"losses"`
	Best   Best      `json:"best"`
	// Tiers, Disk and InputRows count the rows that training steps read; evaluation is apart, in
	// Evaluation.
	cachetier.Stats
	// Tables has each table alone, for a graph of several types or with tables of edges. Relations
	// has the fanouts of its relations.
	Tables    []TableOf    `json:"tables,omitempty"`
	Relations []RelationOf `json:"relations,omitempty"`
	// Embeddings has each table of learnt rows.
	Embeddings []EmbeddingOf `json:"embeddings,omitempty"`
	DiskEngine string        `json:"disk_engine"`
	// Metric is the metric in Epochs and Best, whose keys name it.
	Metric     metric.Kind `json:"metric"`
	Evaluation Evaluation  `json:"evaluation"`
	// Baseline is the metric of an answer without a network on the same parts. Constant is the
	// network's answer to the whole test part, if it gave the same answer everywhere.
	Baseline *BaselineOf `json:"baseline,omitempty"`
	Constant string      `json:"constant_prediction,omitempty"`
	// Report has other measures of the test part, and each class, where one worker learns classes
	// and the best weights are tested at the end.
	Report *metric.Report `json:"report,omitempty"`
	// History is of runs that use hidden rows again.
	History *HistoryOf `json:"history,omitempty"`
	// Links is of runs that learn links.
	Links *LinksOf `json:"links,omitempty"`
	// Edges is of runs that learn classes of edges, or numbers.
	Edges *EdgesOf `json:"edges,omitempty"`
	// Workers is of runs by several workers. The counters of tiers and stages are one worker's.
	Workers *WorkersOf `json:"workers,omitempty"`
	// Stream is of runs on a stream of events.
	Stream *StreamOf `json:"stream,omitempty"`
	// Stages has the time of each stage of training. LimitingStage is the stage that the others
	// wait for: "sample", "load", "gather", "state", "step" or "write".
	Stages        pipeline.Stats `json:"stage_seconds"`
	LimitingStage string         `json:"limiting_stage"`
	// Bus counts the waits, copies and launches of training steps, where the backend counts them.
	// Work counts their arithmetic, on the CPU.
	Bus  *Bus      `json:"bus,omitempty"`
	Work *StepWork `json:"step_work,omitempty"`
	// Locked is of backends that page-lock memory of the host.
	Locked *LockedMemory `json:"locked_memory,omitempty"`
	// PeakRSSBytes is the largest RssAnon + RssShmem seen, PeakFileBytes the largest RssFile:
	// mapped file pages.
	PeakRSSBytes  int64 `json:"peak_rss_bytes"`
	PeakFileBytes int64 `json:"peak_file_bytes"`
	// ParamsXXH3 is XXH3-64 over the final weights, parameter after parameter, little-endian
	// float32; and where rows are learnt, over each that was changed, type after type in ascending
	// order: its number, a little-endian uint32, and its record.
	ParamsXXH3 string `json:"params_xxh3"`

	// What not every run has is left out. Topology counts for evaluation, too, as does Latency.
	// Live is of a run that goes on; Advice says what limits it, and what to change.
	AutoEpochs *AutoEpochs  `json:"auto_epochs,omitempty"`
	Topology   *Topology    `json:"topology,omitempty"`
	Latency    *Latency     `json:"latency_seconds,omitempty"`
	Window     *Window      `json:"window,omitempty"`
	Spill      *spill.Stats `json:"spill,omitempty"`
	Memory     *Memory      `json:"memory,omitempty"`
	Live       *Live        `json:"live,omitempty"`
	Advice     string       `json:"advice,omitempty"`
}

// setEpochs sets Epochs and Losses.
func (r *Result) setEpochs(epochs []Epoch) {
	r.Epochs, r.Losses = epochs, []float64{}
	for _, e := range epochs {
		r.Losses = append(r.Losses, e.Loss)
	}
}

// EpochSeconds returns the time of training of all epochs, without evaluation.
func (r *Result) EpochSeconds() (total float64) {
	for _, e := range r.Epochs {
		total += e.Seconds
	}
	return total
}

// Epoch is one pass over the training seeds. TrainAcc, ValidAcc and TestAcc have two keys each:
// train, valid and test, and the same with Metric.Key at their end, such as train_acc, valid_acc
// and test_acc where Metric is accuracy, and train_auc, valid_auc and test_auc where it is ROC-AUC.
type Epoch struct {
	Metric metric.Kind `json:"-"`
	Epoch  int         `json:"epoch"` // from 1
	Loss   float64     `json:"loss"`  // mean cross-entropy of the seeds, or of their known targets, weighted by class; of links see task.BCE, CE
	// TrainAcc is of the batches as they were trained: sampled, with dropout. Macro-F1 and ROC-AUC
	// are the mean over the batches that have one, weighted by their rows; NaN, in JSON null, where
	// none has. Accuracy and micro-F1 are of all rows. Of links it is the mean over batches, each
	// of 16,384 negatives at most, as they were drawn to train.
	TrainAcc float64 `json:"train_acc"`
	// ValidAcc and TestAcc are null where they were not measured.
	ValidAcc  *float64 `json:"valid_acc"`
	TestAcc   *float64 `json:"test_acc"`
	Seconds   float64  `json:"seconds"` // of training, without evaluation
	Steps     int      `json:"steps"`
	InputRows int64    `json:"input_rows"`
	DiskBytes int64    `json:"disk_bytes"`
	HitRate   float64  `json:"hit_rate"` // rows that no disk read was needed for
	// DeviceRows and HostRows count the input rows that these tiers served; the disk served the
	// others. Both are absent in runs of earlier versions.
	DeviceRows int64 `json:"device_rows,omitempty"`
	HostRows   int64 `json:"host_rows,omitempty"`
	// LimitingStage is the stage that the epoch waited for.
	LimitingStage string `json:"limiting_stage"`
}

// Best is the epoch that validation chose; Epoch is 0 when nothing was validated. It has the same
// keys as an Epoch.
type Best struct {
	Metric   metric.Kind `json:"-"`
	Epoch    int         `json:"epoch"`
	ValidAcc *float64    `json:"valid_acc"`
	TestAcc  *float64    `json:"test_acc"`
}

// TooLarge returns a note if the loss is over a thousand times scale, which is about the loss of a
// network that has learnt nothing. Else it returns "".
func (e *Epoch) TooLarge(scale float64) (note string) {
	if !(e.Loss > 1e3*scale) {
		return ""
	}
	return fmt.Sprintf("the loss of epoch %d is %.3g, and that of a network that has learnt nothing about %.2g: the steps are too large, or the "+
		"features or numbers to learn are; lower {lr}, or scale these down", e.Epoch, e.Loss, scale)
}

// BaselineOf is the metric of an answer without a network.
type BaselineOf struct {
	What  string   `json:"what"` // "the largest class"
	Valid *float64 `json:"valid"`
	Test  *float64 `json:"test"`
}

// LinksOf describes the learnt links, and the negatives that they were measured among.
type LinksOf struct {
	Relation      string `json:"relation"` // its key
	Train         int64  `json:"train"`    // edges
	Valid         int    `json:"valid"`
	Test          int    `json:"test"`
	Decoder       string `json:"decoder"`
	Negatives     string `json:"negatives"`
	EvalNegatives string `json:"eval_negatives"`
	// RankedWithin has the share of test links that rank first, among the first 3 and among the
	// first 10 of their candidates, under the keys 1, 3 and 10. It is absent if the metric does not
	// use ranks.
	RankedWithin map[string]float64 `json:"ranked_within,omitempty"`
}

// WorkersOf has what each worker did until the newest checkpoint, by worker.
type WorkersOf struct {
	Rank      int     `json:"rank"` // of the worker whose result this is
	InputRows []int64 `json:"input_rows"`
	DiskBytes []int64 `json:"disk_bytes"`
	SentBytes []int64 `json:"sent_bytes"` // to other workers; absent in older runs
	// WaitSeconds is the time in exchanges: waiting for other workers, and sending.
	WaitSeconds []float64 `json:"wait_seconds"`
}

// EdgesOf describes the learnt edges and their label.
type EdgesOf struct {
	Relation string   `json:"relation"` // its key
	Label    string   `json:"label"`    // as Options.EdgeLabel
	Classes  []string `json:"classes"`  // null where numbers are learnt
	Train    int64    `json:"train"`    // edges
	Valid    int      `json:"valid"`
	Test     int      `json:"test"`
	Decoder  string   `json:"decoder"`
}

// Evaluation describes how evaluation measured, how long it took and what it read.
type Evaluation struct {
	Method  string         `json:"method"` // "full" or "sampled"
	Seconds float64        `json:"seconds"`
	Disk    cachetier.Disk `json:"disk"`
}

// SoFar returns r without its epochs and losses, which are already in metrics.jsonl.
func (r *Result) SoFar() Result {
	short := *r
	short.Epochs, short.Losses = nil, nil
	return short
}

// Result, Epoch and Best as plain JSON, before keys are added and NaN is replaced.
type (
	plainResult Result

	plainEpoch Epoch
	plainBest  Best
)

// MarshalJSON adds the keys valid and test.
func (r Result) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		plainResult
		Valid *float64 `json:"valid"`
		Test  *float64 `json:"test"`
	}{plainResult(r), r.Best.ValidAcc, r.Best.TestAcc})
}

// MarshalJSON adds keys that name the metric.
func (e Epoch) MarshalJSON() ([]byte, error) {
	train := &e.TrainAcc
	undefined := math.IsNaN(e.TrainAcc)
	if undefined {
		e.TrainAcc, train = 0, nil
	}
	b, err := json.Marshal(struct {
		plainEpoch
		Train *float64 `json:"train"`
		Valid *float64 `json:"valid"`
		Test  *float64 `json:"test"`
	}{plainEpoch(e), train, e.ValidAcc, e.TestAcc})
	if undefined {
		b = bytes.Replace(b, []byte(`"train_acc":0`), []byte(`"train_acc":null`), 1)
	}
	return renameKeys(b, metric.Accuracy, e.Metric), err
}

// UnmarshalJSON reads an epoch under the keys of any metric. Earlier versions wrote the keys of
// accuracy whatever was measured, and under train_acc the accuracy, or micro-F1 where nodes have
// several classes.
func (e *Epoch) UnmarshalJSON(text []byte) error {
	k, text := plainKeys(text)
	read := plainEpoch{TrainAcc: math.NaN()}
	err := json.Unmarshal(text, &read)
	*e = Epoch(read)
	e.Metric = k
	return err
}

// MarshalJSON adds keys that name the metric.
func (b Best) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(struct {
		plainBest
		Valid *float64 `json:"valid"`
		Test  *float64 `json:"test"`
	}{plainBest(b), b.ValidAcc, b.TestAcc})
	return renameKeys(text, metric.Accuracy, b.Metric), err
}

// UnmarshalJSON reads the best epoch under the keys of any metric.
func (b *Best) UnmarshalJSON(text []byte) error {
	k, text := plainKeys(text)
	var read plainBest
	err := json.Unmarshal(text, &read)
	*b = Best(read)
	b.Metric = k
	return err
}

// renameKeys renames the keys of one metric to the keys of another.
func renameKeys(text []byte, from, to metric.Kind) []byte {
	if from.Key() == to.Key() {
		return text
	}
	for _, part := range []string{"train", "valid", "test"} {
		text = bytes.Replace(text, fmt.Appendf(nil, `"%s_%s"`, part, from.Key()), fmt.Appendf(nil, `"%s_%s"`, part, to.Key()), 1)
	}
	return text
}

// plainKeys finds the metric that names the keys of text, and renames them to the keys of accuracy.
func plainKeys(text []byte) (metric.Kind, []byte) {
	if _, after, ok := bytes.Cut(text, []byte(`"valid_`)); ok {
		key, _, _ := bytes.Cut(after, []byte(`"`))
		if k, ok := metric.KindOf(string(key)); ok {
			return k, renameKeys(text, k, metric.Accuracy)
		}
	}
	return metric.Accuracy, text
}
