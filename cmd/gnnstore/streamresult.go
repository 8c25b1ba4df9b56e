package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/live"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/run"
)

// describeStream is describe for a run on a stream.
func describeStream(o run.Options, rec *run.Record) string {
	words := []string{fmt.Sprintf("%s of %d", o.Kind, o.Hidden)}
	add := func(when bool, format string, args ...any) {
		if when {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(o.Stream != "", "stream %s", o.Stream)
	add(o.State == run.NoState, "no state")
	add(o.Fanouts[0] > 0, "fanout %s %s", setting.FormatInts(o.Fanouts), o.Sampler)
	add(o.Mails > 0, "%d mails", o.Mails)
	add(o.PairFeatures, "pair features")
	add(o.Identity > 0, "%d identity columns", o.Identity)
	add(o.Times != "", "%s times", o.Times)
	lag := cmp.Or(o.Staleness, 1)
	add(true, "staleness %s", run.StepsOrAuto(&lag))
	add(o.Mitigate > 0, "mitigate %g", o.Mitigate)
	add(true, "negatives of %s", cmp.Or(o.NegativePopulation, run.Destinations))
	add(o.EvalNegatives != "", "ranked among %s", o.EvalNegatives)
	add(o.WarmEvents > 0, "%s warm events", count(o.WarmEvents))
	add(true, "batch %d", o.Batch)
	add(true, "lr %g", o.LR)
	add(true, "seed %d", o.Seed)
	return fmt.Sprintf("%s   %s, disk %s, evaluation %s", strings.Join(words, ", "), recorded(rec), rec.DiskEngine, rec.Evaluation)
}

// heuristicNames has the names of scores without a network, for people.
var heuristicNames = map[string]string{
	"pair_seen": "pair seen", "pair_time": "pair's last time", "destination_time": "destination's last time", "destination_count": "destination's count",
}

// printStreamResult prints the result of a run on a stream, and nothing for other runs.
func printStreamResult(w io.Writer, r *run.Result) {
	s := r.Stream
	if s == nil {
		return
	}
	weights := run.BestWeights
	if r.Best.Epoch == 0 {
		weights = run.LastWeights
	}
	printReplay(w, s, weights, r.Metric)
	fmt.Fprintln(w, clean(stalenessText(s.Staleness)))
	if text := waitsText(r); text != "" {
		fmt.Fprintln(w, text)
	}
	if m := s.Mitigation; m.Keep > 0 {
		printf(w, "mitigation: %s of %s roots in training, %s, had memories out of date; they kept %g of them, and the rest is of similar nodes\n", count(m.Blended), count(m.Roots),
			percent(m.Share()), m.Keep)
		printMitigationAudit(w, m.Audit)
	}
	if t := s.State; t != nil {
		printf(w, "state: %s records of %s, of %s nodes that had events; %s written\n", count(t.Nodes), size(int64(t.RecordBytes)), count(t.Touched), size(t.BytesWritten))
	}
	fmt.Fprintln(w)
}

// printMitigationAudit prints how far blended memories were from fresh ones. It prints nothing if
// there was no audit.
func printMitigationAudit(w io.Writer, a *run.MitigationAudit) {
	if a == nil {
		return
	}
	printf(w, "audit of %s blended memories: %s were out of date; beside fresh ones their error is %.3f blended and %.3f without, their cosine %.3f and %.3f; "+
		"blending brought %s closer\n", count(a.Nodes), percent(float64(a.OutOfDate)/float64(a.Nodes)), a.ErrorBlended, a.ErrorWithout, a.CosineBlended,
		a.CosineWithout, percent(float64(a.Closer)/float64(a.Nodes)))
	if a.OutOfDate > 0 {
		printf(w, "  of those out of date the error is %.3f blended and %.3f without\n", a.StaleBlended, a.StaleWithout)
	}
}

// printReplay prints the figures of the network on the stream, and of scores without a network. by
// is the metric that compares them.
func printReplay(w io.Writer, s *run.StreamOf, weights string, by metric.Kind) {
	head, ranked := []string{"", "events", "AP", "AUC", "pooled AP", "pooled AUC"}, s.RankedAmong != ""
	if ranked {
		head = append(head, "MRR")
	}
	rows := [][]string{head}
	add := func(name string, e *metric.Batched) {
		row := []string{name, "-", "-", "-", "-", "-"}
		if e != nil && e.Positives > 0 {
			row = []string{name, count(int64(e.Positives))}
			for _, v := range []float64{e.AP, e.AUC, e.PooledAP, e.PooledAUC} {
				row = append(row, fmt.Sprintf("%.2f %%", 100*v))
			}
		}
		if ranked {
			row = append(row, "-")
			if e != nil && e.MRR > 0 {
				row[len(row)-1] = fmt.Sprintf("%.4f", e.MRR)
			}
		}
		rows = append(rows, row)
	}
	if p := s.Live; p != nil {
		add("valid, live", p.Valid)
		add("test, live", p.Test)
	}
	if p := s.Replay; p != nil {
		printf(w, "replay of the stream by the %s weights, in %s; AP and AUC are means over batches, or of all of them pooled:\n", weights, seconds(p.Seconds))
		add("valid", p.Valid)
		add("test", p.Test)
		if p.New != nil && p.New.Positives > 0 {
			add("test, new nodes", p.New)
		}
	}
	if len(s.Heuristics) > 0 {
		rows = append(rows, append([]string{"what needs no network"}, make([]string, len(head)-1)...))
		for _, h := range s.Heuristics {
			add(cmp.Or(heuristicNames[h.Name], h.Name), &h.Batched)
		}
	}
	if len(rows) > 1 {
		tabulate(w, rows)
	}
	if text := aboveText(s, by); text != "" {
		fmt.Fprintln(w, text)
	}
	printf(w, "stream %s: %s events, of which %s to train, %s valid, %s test; negatives of %s, %s in training, %s in evaluation\n", s.Name, count(s.Events), count(s.Train),
		count(s.Valid), count(s.Test), s.Negatives, count(int64(s.TrainNegatives)), count(int64(s.EvalNegatives)))
	if ranked {
		among := "the nodes that came with the dataset for it"
		if n, drawn := strings.CutPrefix(s.RankedAmong, "uniform:"); drawn {
			among = n + " that are drawn for it"
		}
		printf(w, "MRR is of each event's destination among %s; those that score the same count half\n", among)
	}
}

// aboveText names the scores without a network that beat it on test events. It is empty if there
// are none.
func aboveText(s *run.StreamOf, by metric.Kind) string {
	if len(s.AboveNetwork) == 0 {
		return ""
	}
	text := func(v metric.Batched) string {
		if by == metric.MRR {
			return fmt.Sprintf("%.4f", v.MRR)
		}
		return fmt.Sprintf("%.2f %%", 100*run.OfBatched(by, v))
	}
	var above []string
	for _, name := range s.AboveNetwork {
		for _, h := range s.Heuristics {
			if h.Name == name {
				above = append(above, fmt.Sprintf("%s alone %s", cmp.Or(heuristicNames[name], name), text(h.Batched)))
			}
		}
	}
	by = cmp.Or(by, metric.AP)
	return fmt.Sprintf("better than the network, without one: %s; the network has %s, by %s", strings.Join(above, ", "), text(*s.Replay.Test), strings.ToUpper(by.Key()))
}

// stalenessText describes how old the state was that steps read.
func stalenessText(s run.StalenessOf) string {
	text := fmt.Sprintf("staleness %d", s.K)
	switch {
	case s.Auto && s.Best == 1:
		text += ": auto finds that training waits for no state at 1, so that the plain loop is free"
	case s.Auto:
		text += fmt.Sprintf(": auto finds that training waits for no state from %d on, and that up to %d at most half of the nodes read are out of date; "+
			"--staleness %d repeats the run", s.Best, s.Most, s.K)
	case s.K == 1:
		text += ", the plain loop"
	}
	if p := s.Predicted; p != nil {
		text += fmt.Sprintf("; the rehearsal foretold %s a step, and %s with the stages in turn", seconds(p.Seconds), seconds(p.Serial))
	}
	text += fmt.Sprintf("; state published %s, %d steps in flight", s.Publish, s.Inflight)
	if s.K > 1 {
		text += fmt.Sprintf(", %s of the nodes read were out of date", percent(s.Realised))
	}
	return text
}

// free is the share of the time below which waiting does not matter.
const free = 0.05

// waitsText describes the waiting of training, and whether a larger staleness could help. It
// returns "" if nothing was trained, or without state.
func waitsText(r *run.Result) string {
	s := r.Stages
	all := s.Step + s.Wait
	if all <= 0 || r.Stream.State == nil {
		return ""
	}
	text := fmt.Sprintf("training waited %s of the time for rows, and these %s for the state of earlier steps", percent(s.Wait/all), percent(min(1, s.StateWait/all)))
	switch {
	case r.Stream.Staleness.K > 1:
		return text
	case s.Wait < free*all:
		return text + ": staleness 1 is free"
	case s.StateWait < free*all:
		return text + ": staleness 1 is free, since it is not state that is waited for"
	}
	return text + "; --staleness auto finds what a larger staleness gains"
}

// stateLine prints the state of a stream's nodes as a line of a view.
func stateLine(w io.Writer, s *run.StreamOf) {
	if t := s.State; t != nil {
		printf(w, "state: %s × %s, %s written   ", number(float64(t.Nodes)), size(int64(t.RecordBytes)), size(t.BytesWritten))
	}
	printf(w, "%d in flight, %s, %s out of date\n", s.Staleness.Inflight, s.Staleness.Publish, percent(s.Staleness.Realised))
}

// streamRates is rates for a run on a stream: events, and the reads of rows if there are any.
func streamRates(r *run.Result, l live.Load) string {
	events := examples(r, r.Stream.Train)
	if v := r.Live; v != nil && v.Recent.Stages.Step > 0 {
		events = int64(v.Recent.Updates) * int64(r.Options.Batch)
	}
	text := fmt.Sprintf("events %s/s", number(float64(events)/l.Seconds))
	if l.Stats.InputRows > 0 {
		text += fmt.Sprintf("   disk %s/s   hit %s", size(int64(float64(l.Stats.Disk.BytesRead)/l.Seconds)), percent(l.Hits()))
	}
	return text
}

// examples counts the links or events that a run learnt from, over all its epochs. A whole epoch
// has train of them.
func examples(r *run.Result, train int64) (n int64) {
	for _, e := range r.Epochs {
		n += min(int64(e.Steps)*int64(r.Options.Batch), train) // the last step of an epoch has what is left
	}
	return n
}
