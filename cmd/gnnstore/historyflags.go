package main

import (
	"fmt"
	"math"

	"github.com/spf13/pflag"

	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/run"
)

// historyFlags stand for the settings of --history while they are flags.
type historyFlags struct {
	settings   history.Settings
	stale      staleness
	start, lag autoCount
	memory     slotsSize
}

// newHistoryFlags shows the settings of o, or those of a run that asks for no more than history.
func newHistoryFlags(o *run.Options) *historyFlags {
	s := history.Defaults()
	if o.History {
		s = o.Settings
	}
	return &historyFlags{
		settings: s, stale: staleness{autoCount(s.TStale)}, start: autoCount(s.HistoryStart), lag: autoCount(s.HistoryLag), memory: slotsSize{autoSize(s.HistoryBytes)},
	}
}

func (h *historyFlags) flags(f *pflag.FlagSet, o *run.Options) {
	f.BoolVar(&o.History, "history", o.History, "reuse hidden rows of earlier steps whose gradients were small (FreshGNN); what only they need is neither read nor computed")
	f.Float64Var(&h.settings.PGrad, "p-grad", h.settings.PGrad, "history: share of a layer's nodes whose rows are kept: those with the smallest gradients; which ones they are matters with a large --t-stale")
	f.Var(&h.stale, "t-stale", "history: most steps between computing a row and using it; inf: no limit; auto: a fifth of an epoch's steps, 200 at most")
	f.Var(&h.start, "history-start", "history: first step that keeps rows; auto: the first of the second epoch")
	f.Var(&h.lag, "history-lag", "history: steps until the gradients of a step decide on its rows; auto: half of --t-stale, 100 at most")
	f.Var(&h.memory, "history-memory", "history: part of the device region for the kept rows and their index; auto: room for the rows that save more than they take, or up "+
		"to 64MiB if that is more; rest: what other parts of the memory leave")
	f.BoolVar(&o.HistoryCold, "history-cold", o.HistoryCold, "history: let --resume begin without the kept rows")
	f.IntVar(&o.HistoryAudit, "history-audit", o.HistoryAudit, "history: how many reused rows of a step to compare with fresh ones; 0: none")
	f.IntVar(&o.HistoryAuditEvery, "history-audit-every", o.HistoryAuditEvery, fmt.Sprintf("history: steps between two such comparisons; 0: %d", run.DefaultAuditEvery))
}

// resolve has o's settings be those of the flags, or none without --history, where others than the
// defaults are then refused.
func (h *historyFlags) resolve(o *run.Options) {
	o.Settings = h.settings
	o.TStale, o.HistoryStart, o.HistoryLag, o.HistoryBytes = int(h.stale.autoCount), int(h.start), int(h.lag), int64(h.memory.autoSize)
	if !o.History && o.Settings == history.Defaults() {
		o.Settings = history.Settings{}
	}
}

// staleness is an autoCount that may be inf.
type staleness struct{ autoCount }

func (s *staleness) Set(text string) error {
	if text == "inf" {
		s.autoCount = math.MaxInt32
		return nil
	}
	if s.autoCount.Set(text) != nil {
		return fmt.Errorf("%q is neither auto, inf nor a number from 0 on", text)
	}
	return nil
}

func (s *staleness) String() string {
	if s.autoCount == math.MaxInt32 {
		return "inf"
	}
	return s.autoCount.String()
}

// slotsSize is an autoSize that also takes rest.
type slotsSize struct{ autoSize }

func (s *slotsSize) Set(text string) error {
	if text == "rest" {
		s.autoSize = history.Rest
		return nil
	}
	if s.autoSize.Set(text) != nil {
		return fmt.Errorf("%q is neither auto, rest nor a size such as 0, 1MiB or 4GiB", text)
	}
	return nil
}

func (s *slotsSize) String() string {
	if s.autoSize == history.Rest {
		return "rest"
	}
	return s.autoSize.String()
}
