package run

import (
	"fmt"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/step"
)

// Progress is where a run stands between two steps, as its checkpoints have it.
type Progress struct {
	Updates int     `json:"updates"`
	Partial Partial `json:"partial"`
	Worse   int     `json:"worse"` // as Ending.Worse
	HasBest bool    `json:"has_best"`
	// MetricsBytes of metrics.jsonl were written by then; what follows belongs to steps that
	// resuming runs again.
	MetricsBytes int64  `json:"metrics_bytes"`
	MetricsXXH3  string `json:"metrics_xxh3"` // of these; empty in checkpoints of earlier versions
	Epochs       int    `json:"epochs"`       // whole ones, which metrics.jsonl has
	SoFar        Result `json:"so_far"`
}

// Partial is the epoch under way.
type Partial struct {
	step.Tally
	Steps     int     `json:"steps"`
	Seconds   float64 `json:"seconds"`
	InputRows int64   `json:"input_rows"`
	DiskRows  int64   `json:"disk_rows"`
	DiskBytes int64   `json:"disk_bytes"`
	// DeviceRows and HostRows are as in Epoch.
	DeviceRows int64 `json:"device_rows,omitempty"`
	HostRows   int64 `json:"host_rows,omitempty"`
}

// Count adds a step that read what the tiers did since before.
func (p *Partial) Count(a step.Tally, read cachetier.Stats) {
	p.Steps++
	p.Add(a)
	p.InputRows += read.InputRows
	p.DiskRows += read.Disk.Rows
	p.DiskBytes += read.Disk.BytesRead
	p.DeviceRows += read.Tiers.Device.RowsHit
	p.HostRows += read.Tiers.Host.RowsHit
}

// Rest returns the step before which the run pauses next: the end of an epoch of this many steps,
// or the next checkpoint if one comes every so many updates (0: none). The last step of an epoch is
// followed by a checkpoint anyway.
func (p *Partial) Rest(steps, updates, every int) int {
	if every == 0 {
		return steps
	}
	return min(steps, p.Steps+every-updates%every)
}

// checkpointDue reports whether it is time for a checkpoint within an epoch of this many steps.
func (p *Partial) checkpointDue(steps, updates, every int) bool {
	return every > 0 && updates%every == 0 && p.Steps < steps
}

// Epoch returns the figures of epoch n, now that all its steps are taken.
func (p *Partial) Epoch(n int, kind metric.Kind, trained float64, limiting string) Epoch {
	e := Epoch{
		Metric: kind, Epoch: n, Steps: p.Steps, Seconds: p.Seconds, Loss: p.Mean(), TrainAcc: trained,
		InputRows: p.InputRows, DiskBytes: p.DiskBytes, LimitingStage: limiting,
		DeviceRows: p.DeviceRows, HostRows: p.HostRows,
	}
	if p.InputRows > 0 {
		e.HitRate = 1 - float64(p.DiskRows)/float64(p.InputRows)
	}
	return e
}

// syncProgress syncs metrics.jsonl to disk, since the checkpoint of these updates counts on it, and
// returns the progress for that checkpoint.
func (d *Dir) syncProgress(updates int, under Partial, worse int, hasBest bool, r *Result) (Progress, error) {
	metrics, sum, err := d.syncMetrics()
	return Progress{
		Updates: updates, Partial: under, Worse: worse, HasBest: hasBest, MetricsBytes: metrics, MetricsXXH3: sum,
		Epochs: len(r.Epochs), SoFar: r.SoFar(),
	}, err
}

// Valid refuses counts that are impossible in a run with this many steps an epoch. Earlier versions
// had no checksum on them, so they may be anything.
func (p *Progress) Valid(steps int) error {
	if p.Epochs < 0 || p.Epochs > p.Updates || p.Partial.Steps < 0 || p.Partial.Steps > steps ||
		p.Updates != p.Epochs*steps+p.Partial.Steps {
		return fmt.Errorf("%d updates cannot be %d epochs of %d and %d more", p.Updates, p.Epochs, steps, p.Partial.Steps)
	}
	if p.Worse < 0 || p.MetricsBytes < 0 {
		return fmt.Errorf("%d evaluations since the best, and %d bytes of metrics", p.Worse, p.MetricsBytes)
	}
	if best := p.SoFar.Best.Epoch; best < 0 || best > p.Epochs || p.HasBest != (best > 0) {
		return fmt.Errorf("the best epoch is %d of %d", best, p.Epochs)
	}
	return nil
}

// resultSoFar cuts metrics.jsonl to its length in p, and returns the result so far of a run that
// goes on from there. now is the empty result of this process.
func (d *Dir) resultSoFar(p *Progress, now *Result) (*Result, error) {
	epochs, err := d.cutMetrics(p.MetricsBytes, p.MetricsXXH3)
	if err != nil {
		return nil, err
	}
	if len(epochs) != p.Epochs {
		return nil, fmt.Errorf("%s has %d epochs where the checkpoint has %d; restore it, or begin another run with {run}",
			d.File(MetricsFile), len(epochs), p.Epochs)
	}
	return p.result(now, epochs), nil
}

// result returns the result so far of a run that goes on from p with these epochs. now is the empty
// result of this process.
func (p *Progress) result(now *Result, epochs []Epoch) *Result {
	r := &p.SoFar
	r.Run, r.Dataset, r.Options = now.Run, now.Dataset, now.Options
	r.Device, r.DeviceName, r.Kernels, r.Locked = now.Device, now.DeviceName, now.Kernels, now.Locked
	r.DiskEngine, r.Memory = now.DiskEngine, now.Memory
	r.Relations, r.Links, r.Edges = now.Relations, now.Links, now.Edges
	if r.Stream != nil && now.Stream != nil {
		r.Stream.Staleness = now.Stream.Staleness
	}
	r.Status, r.Error = Running, ""
	r.Best.Metric = now.Best.Metric // an earlier version called it accuracy
	r.setEpochs(epochs)
	return r
}
