package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
)

// streamFlags stand for the options of runs on streams that flags write in another way.
type streamFlags struct {
	lag      stateLag
	warm     eventCount
	identity autoCount
}

func newStreamFlags(o *run.Options) *streamFlags {
	return &streamFlags{stateLag{autoCount(o.Staleness)}, eventCount{countFlag(o.WarmEvents)}, autoCount(o.Identity)}
}

func (s *streamFlags) flags(f *pflag.FlagSet, o *run.Options) {
	f.StringVar(&o.Stream, "stream", o.Stream, "streams: the stream to learn from, if the dataset has several")
	f.StringVar(&o.NegativePopulation, "negative-population", o.NegativePopulation, "streams: where negatives come from: destinations, those of the part's events, or nodes, all of them (default destinations)")
	f.Var(&s.lag, "staleness", "streams: a step sees the state after the K-th step before it; auto: the least K with which training never waits for state (default "+
		"1, the plain loop)")
	f.Float64Var(&o.Mitigate, "mitigate", o.Mitigate, "streams: in training blend memories that are out of date with those of nodes with the same partners; a memory keeps this share of "+
		"itself, such as 0.95; 1 changes no result (default off)")
	f.IntVar(&o.MitigateAudit, "mitigate-audit", o.MitigateAudit, "streams: how many blended memories of a step to compare with those at --staleness 1; 0: none")
	f.Var(&s.identity, "identity", "tgn and jodie: columns of random numbers, computed from ids, that tell nodes without features apart; 0: none (default auto: for "+
		"tgn --hidden columns if nodes are of one type)")
	f.BoolVar(&o.PairFeatures, "pair-features", o.PairFeatures, "streams: when a pair is scored, also read whether it had an event before the batch, how long ago and how many, and the same of its "+
		"destination; the heuristics know this too, so figures are not those of the network alone")
	f.StringVar(&o.Publish, "publish", o.Publish, "streams: when other steps may read the state of a step: early, once it is computed, or late, after the step; changes no result "+
		"(default early)")
	f.IntVar(&o.Inflight, "inflight", o.Inflight, "streams: steps whose rows are in memory at a time; changes no result (default --staleness + 2)")
	f.Var(&s.warm, "warm-events", "streams: events of an epoch, such as 20M, before the first that is learnt; they only make state")
	f.StringVar(&o.Times, "times", o.Times, "streams: whether the frequencies of the time encoding are fixed or learnt (default fixed below 10 million events)")
	f.BoolFunc("fixed-time", "streams: --times fixed", func(text string) error {
		if text != "" && text != "true" { // empty where a resumed run sets it again
			return errors.New("it takes no value; there is --times learnt")
		}
		o.Times = run.Fixed
		return nil
	})
	f.StringVar(&o.State, "state", o.State, "tgn: none trains without memory and mailbox")
	f.IntVar(&o.Mails, "mails", o.Mails, "apan: mails kept for a node (default 10)")
	f.IntVar(&o.TimeColumns, "time-columns", o.TimeColumns, "streams: columns of the time encoding (default --hidden)")
}

// resolve fills o with what the flags say. Options that were not given, and that graphs have other
// defaults of, are those of streams.
func (s *streamFlags) resolve(o *run.Options, given func(flag string) bool) {
	o.Staleness, o.WarmEvents, o.Identity = int(s.lag.autoCount), int64(s.warm.countFlag), int(s.identity)
	if !o.Streams() {
		return
	}
	d := run.DefaultStreamOptions(o.Kind)
	unless(given("layers"), &o.Layers, d.Layers)
	unless(given("fanout"), &o.Fanouts, d.Fanouts)
	unless(given("sampler"), &o.Sampler, d.Sampler)
	unless(given("hidden"), &o.Hidden, d.Hidden)
	unless(given("heads"), &o.Heads, d.Heads)
	unless(given("dropout"), &o.Dropout, d.Dropout)
	unless(given("attn-dropout"), &o.AttnDropout, d.AttnDropout)
	unless(given("batch"), &o.Batch, d.Batch)
	unless(given("lr"), &o.LR, d.LR)
	unless(given("identity"), &o.Identity, d.Identity)
	unless(given("metric"), &o.Metric, d.Metric)
}

// unless sets what was not given.
func unless[T any](given bool, option *T, value T) {
	if !given {
		*option = value
	}
}

// usualTask is what a network learns where nobody says.
func usualTask(o *run.Options) string {
	if o.Streams() {
		return run.LinkTask
	}
	return run.NodeTask
}

// streamKinds lists the networks for streams.
func streamKinds() string { return texts(model.TemporalKinds) }

// stateLag is an autoCount from 1 on; 0 is what was not given.
type stateLag struct{ autoCount }

func (l *stateLag) Set(text string) error {
	var n autoCount
	if n.Set(text) != nil || n == 0 {
		return fmt.Errorf("%q is neither auto nor a number from 1 on, which is the plain loop", text)
	}
	l.autoCount = n
	return nil
}

// eventCount is a countFlag that may be 0.
type eventCount struct{ countFlag }

func (c *eventCount) String() string { return cmp.Or(c.countFlag.String(), "0") }

func (c *eventCount) Set(text string) error {
	if strings.TrimLeft(text, "0") == "" && text != "" {
		c.countFlag = 0
		return nil
	}
	return c.countFlag.Set(text)
}
