package trace

import (
	"errors"
	"strconv"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/sample"
)

// History chooses the runs with historical embeddings to trace: one for each combination of TStale,
// HistoryLag and Slots, under each sampler and κ. DefaultHistory has the defaults. Auto means the
// same as in training.
type History struct {
	PGrad        float64 `json:"p_grad"`
	TStale       []int   `json:"t_stale"`
	HistoryLag   []int   `json:"history_lag"`
	HistoryStart int     `json:"history_start"`
	Slots        []Slots `json:"history_bytes"`
	// Hidden is the number of columns of a hidden row. A slot takes 2 bytes a column.
	Hidden int `json:"hidden"`

	// WindowBytes is the memory for feature rows and their bookkeeping. If it is set, the trace
	// also plans windows of steps and counts their reads: see Windows. Default 0: no windows.
	WindowBytes int64 `json:"window_bytes"`
	// Window is the largest number of steps in a window. Default 0: as many as fit, up to 256. With
	// historical embeddings a window has at most K/2 steps, or 1, as in training.
	Window int `json:"window"`
	// EqualBytes takes the bytes of slots from WindowBytes. Beside each run that keeps rows, it
	// plans a run with a static prefix of as many bytes.
	EqualBytes bool `json:"equal_bytes"`
	// DiskCosts are the costs of disk reads. Default: they are measured under the largest table.
	DiskCosts disk.Costs `json:"disk_costs"`
}

// DefaultHistory returns the settings of training with {history}, but for the start: here no epoch
// has to train first.
func DefaultHistory() History {
	s := history.Defaults()
	return History{
		PGrad: s.PGrad, TStale: []int{s.TStale}, HistoryLag: []int{s.HistoryLag}, Slots: []Slots{{Bytes: s.HistoryBytes}}, Hidden: 128,
	}
}

// Slots is a number of kept rows. With a share, each layer and type keeps the rows of its
// hottest nodes, up to that share. Without a share, as many rows are kept as fit Bytes;
// history.Auto means the same as in training.
type Slots struct {
	Share float64
	Bytes int64
}

// String returns "all", a share such as "0.5%", "auto", or a size.
func (s Slots) String() string {
	switch {
	case s.Share == 1:
		return "all"
	case s.Share != 0:
		return strconv.FormatFloat(100*s.Share, 'g', 12, 64) + "%"
	case s.Bytes == history.Auto:
		return "auto"
	}
	return kernels.FormatBytes(s.Bytes)
}

// MarshalText returns String, for JSON.
func (s Slots) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// variant is one of the runs, with Auto replaced by numbers, except in HistoryBytes.
type variant struct {
	history.Settings
	slots Slots
}

// variants returns the runs, if an epoch has so many steps.
func (h *History) variants(epoch int) (all []variant) {
	for _, stale := range h.TStale {
		for _, lag := range h.HistoryLag {
			for _, slots := range h.Slots {
				s := history.Settings{PGrad: h.PGrad, TStale: stale, HistoryLag: lag, HistoryStart: h.HistoryStart, HistoryBytes: slots.Bytes}
				all = append(all, variant{s.Resolve(epoch), slots})
			}
		}
	}
	return all
}

// settled returns the number of steps after which rings are as full, and rows as old, as they get.
// It is 0 if rows never grow too old.
func (h *History) settled(epoch int) (steps int) {
	for _, v := range h.variants(epoch) {
		if stale := v.TStale; v.Reuses() && stale < maxSettled {
			steps = max(steps, v.HistoryStart+stale)
		}
	}
	return steps
}

// maxSettled is the longest t_stale that a trace is made longer for.
const maxSettled = 1 << 16

// validate reports every problem that does not lie in the dataset, for traces of so many layers.
func (h *History) validate(layers int) error {
	var errs sample.Problems
	fail := errs.If
	fail(layers < 2, "{history}: it keeps the rows between layers, and {layers} is %d; take 2 or more", layers)
	fail(len(h.TStale) == 0, "{t_stale}: at least one number, inf or auto")
	fail(len(h.HistoryLag) == 0, "{history_lag}: at least one number, or auto")
	fail(len(h.Slots) == 0, "{history_bytes}: at least one size, share of the nodes, all or auto")
	twice(&errs, "{t_stale}", h.TStale)
	twice(&errs, "{history_lag}", h.HistoryLag)
	twice(&errs, "{history_bytes}", h.Slots)
	seen := map[string]bool{}
	for _, v := range h.variantsAsAsked() {
		err := v.Validate()
		if err != nil && !seen[err.Error()] {
			errs, seen[err.Error()] = append(errs, err), true
		}
	}
	for _, s := range h.Slots {
		fail(!(s.Share >= 0 && s.Share <= 1), "{history_bytes} %v: a share is above 0 and at most 100%%", s)
	}
	fail(h.Hidden < 1, "{hidden} %d: at least 1", h.Hidden)
	fail(h.WindowBytes < 0, "{window_bytes} %d: at least 0, which plans no windows", h.WindowBytes)
	fail(h.Window < 0 || h.Window > mostWindow, "{window} %d: from 1 to %d, or 0 for as many as fit", h.Window, mostWindow)
	fail(h.Window > 0 && h.WindowBytes == 0, "{window}: it bounds windows, so give {window_bytes} too")
	fail(h.EqualBytes && h.WindowBytes == 0, "{equal_bytes}: it takes the bytes of slots from {window_bytes}, so give that too")
	fail(h.DiskCosts != (disk.Costs{}) && h.WindowBytes == 0, "{disk_costs}: they are those of windows, so give {window_bytes} too")
	err := disk.Options{Costs: h.DiskCosts}.Validate()
	fail(err != nil, "{disk_costs}: %w", err)
	return errors.Join(errs...)
}

// variantsAsAsked returns a variant for each value of each setting, with Auto as it is.
func (h *History) variantsAsAsked() (all []history.Settings) {
	s := history.Settings{PGrad: h.PGrad, TStale: 1, HistoryLag: 1, HistoryStart: h.HistoryStart}
	all = append(all, s)
	for _, s.TStale = range h.TStale {
		all = append(all, s)
	}
	s.TStale = 1
	for _, s.HistoryLag = range h.HistoryLag {
		all = append(all, s)
	}
	s.HistoryLag = 1
	for _, slots := range h.Slots {
		s.HistoryBytes = slots.Bytes
		all = append(all, s)
	}
	return all
}
