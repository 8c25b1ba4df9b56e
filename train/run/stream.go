package run

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/task"
)

// StreamOptions are the options of runs on a stream of events, with a network of
// model.TemporalKinds. Of the other options these runs have Hidden, Heads, Dropout, AttnDropout,
// one of Fanouts, and the options of time, memory and record.
type StreamOptions struct {
	// Stream names the stream; empty where there is just one.
	Stream string `json:"stream,omitempty"`
	// NegativePopulation is the set that negatives are drawn from: Destinations, the default, or
	// AllNodes.
	NegativePopulation string `json:"negative_population,omitempty"`
	// Staleness is k: a step sees the state that the k-th step before it left, and none of a later
	// step. Default 1, the plain loop. Auto is the least k with which training hardly waits in a
	// rehearsal, or less if more than half of the nodes read would be out of date: see
	// AutoStaleness.
	Staleness int `json:"staleness,omitempty"`
	// Mitigate, above 0 and up to 1, makes training steps blend a memory that is out of date with
	// the mean memory of similar nodes. It is the part of itself that the memory keeps (MSPipe-S,
	// arXiv 2402.15113, section 4; there it is 0.95). 1 reads as much and changes no result; 0 is
	// off. Evaluation sees fresh state, and blends nothing.
	Mitigate float64 `json:"mitigate,omitempty"`
	// MitigateAudit counts the blended memories of a step that are compared with fresh ones, as if
	// the step had seen all steps before it. 0 compares none. It changes no result.
	MitigateAudit int `json:"mitigate_audit,omitempty"`
	// Identity is the number of columns of random numbers, made from the node id, that stand in for
	// missing node features; 0 is none. They are computed when read, and take no memory. Auto is
	// Hidden with TGN on a stream of one node type without features; else 0. JODIE learns better
	// without them (validation AP on CollegeMsg 87.8 %, and 86.0 with them), and APAN does not read
	// them.
	Identity int `json:"identity,omitempty"`
	// PairFeatures gives the network, for each scored pair, the inputs of the scores without a
	// network: whether the pair had an event before the batch, how long ago, how many, and the same
	// for its destination. The published networks do not have this.
	PairFeatures bool `json:"pair_features,omitempty"`
	// Publish is when other steps may read a step's new state: Early, the default, as soon as it is
	// computed; or Late, after the step. It changes no result.
	Publish string `json:"publish,omitempty"`
	// Inflight is the number of steps whose rows are in memory at a time; 0 is Staleness + 2. It
	// changes no result.
	Inflight int `json:"inflight,omitempty"`
	// WarmEvents is the number of events at the start of an epoch that only update the state;
	// nothing is learnt from them.
	WarmEvents int64 `json:"warm_events,omitempty"`
	// Times is Fixed or Learnt: the rates by which a network encodes times. Empty is Fixed below
	// 10 million events, else Learnt.
	Times string `json:"times,omitempty"`
	// State is NoState for a network without memory, else empty.
	State string `json:"state,omitempty"`
	// Mails is the number of mails that an APAN keeps of a node; 0 is 10. TimeColumns is the number
	// of columns that encode a time; 0 is as many as Hidden.
	Mails       int `json:"mails,omitempty"`
	TimeColumns int `json:"time_columns,omitempty"`
}

// Values of StreamOptions.
const (
	Destinations = "destinations" // nodes that events of the part lead to
	AllNodes     = "nodes"
	Early        = "early"
	Late         = "late"
	Fixed        = "fixed"
	Learnt       = "learnt"
	NoState      = "none"
)

// Values of Options.Sampler on streams. RecentNeighbors draws a node's last neighbours before a
// time, UniformNeighbors any neighbours before it.
const (
	RecentNeighbors  sample.Kind = "recent"
	UniformNeighbors sample.Kind = "uniform"
)

// Values of Options.Eval on streams. Replay, the default, judges an epoch by running its weights
// over the whole stream from the first event on, as every later use of the weights does. LiveState
// starts from the state that training left, made by weights that were still changing, as in most
// papers: that is cheaper, and its figures are higher, by up to 20 points on a stream of 20,000
// events.
const (
	Replay       = "replay"
	LiveState    = "live"
	NoEvaluation = "none"
)

// fixedBelow is the number of events from which on a stream's rates of times are learnt.
const fixedBelow = 10_000_000

// Streams reports whether the network is for streams of events.
func (o Options) Streams() bool { return slices.Contains(model.TemporalKinds, o.Kind) }

// DefaultStreamOptions returns the defaults of a network for streams.
func DefaultStreamOptions(kind model.Kind) Options {
	o := DefaultOptions()
	o.Kind, o.Layers, o.Fanouts, o.Sampler = kind, 1, []int{10}, RecentNeighbors
	if !drawsNeighbors(kind) {
		o.Fanouts = []int{0}
	}
	o.Hidden, o.Heads, o.Dropout, o.AttnDropout, o.LR, o.Batch, o.Metric = 100, 2, 0.1, 0.1, 1e-3, Auto, metric.AP
	o.Identity = Auto
	return o
}

// drawsNeighbors reports whether a network for streams reads neighbours, or sends them mail.
func drawsNeighbors(kind model.Kind) bool { return kind.ReadsNeighbors() || kind.DeliversMail() }

// FilledStream returns o with its stream options filled in, for a stream of this many events.
func (o Options) FilledStream(events int64) Options {
	o.NegativePopulation, o.Publish = cmp.Or(o.NegativePopulation, Destinations), cmp.Or(o.Publish, Early)
	o.Staleness, o.TimeColumns = cmp.Or(o.Staleness, 1), cmp.Or(o.TimeColumns, o.Hidden)
	if usual, several := o.Kind.KeepsMails(); several {
		o.Mails = cmp.Or(o.Mails, usual)
	}
	if o.Times == "" {
		o.Times = Fixed
		if events >= fixedBelow {
			o.Times = Learnt
		}
	}
	return o
}

// Temporal returns the configuration of the network. o comes from FilledStream.
func (o Options) Temporal() model.TemporalConfig {
	return model.TemporalConfig{
		Kind: o.Kind, Hidden: o.Hidden, Time: o.TimeColumns, Heads: o.Heads, Mails: cmp.Or(o.Mails, 1), Dropout: o.Dropout,
		AttnDropout: o.AttnDropout, FixedTime: o.Times == Fixed, Stateless: o.State == NoState,
	}
}

// validateStream checks the options of a network for streams, and refuses options of other
// networks.
func (o Options) validateStream() error {
	var errs sample.Problems
	fail := errs.If
	errs = append(errs, o.FilledStream(0).Temporal().Validate())
	fail(o.Task != "" && o.Task != LinkTask, "{task} %s: {model} %s learns which events come next, which is {task} link", o.Task, o.Kind)
	fail(o.Layers != 1, "{layers} %d: networks for streams have one layer, since a second one would want neighbours at times in the past", o.Layers)
	switch {
	case len(o.Fanouts) != 1:
		fail(true, "{fanout}: %d numbers, and networks for streams have one layer", len(o.Fanouts))
	case !drawsNeighbors(o.Kind):
		fail(o.Fanouts[0] != 0, "{fanout} %d: {model} %s reads no neighbours; leave it out", o.Fanouts[0], o.Kind)
	default:
		fail(o.Fanouts[0] < 1 || o.Fanouts[0] > math.MaxUint16, "{fanout} %d: from 1 to %d", o.Fanouts[0], math.MaxUint16)
	}
	fail(len(o.RelationFanouts) > 0, "{fanout} %s: only networks for graphs have fanouts of relations; leave it out with {model} %s",
		FanoutText(nil, o.RelationFanouts), o.Kind)
	fail(o.Sampler != "" && o.Sampler != RecentNeighbors && o.Sampler != UniformNeighbors, "{sampler} %s: of streams there are recent and uniform", o.Sampler)
	fail(o.Identity > 0 && !o.Kind.ReadsNodes(), "{identity} %d: {model} %s reads no features of nodes; leave it out", o.Identity, o.Kind)
	fail(o.Metric != "" && o.Metric != metric.AP && o.Metric != metric.ROCAUC && o.Metric != metric.MRR, "{metric} %s: of streams there are ap, roc-auc and mrr", o.Metric)
	_, err := o.parseRanking()
	errs = append(errs, err)
	fail(o.Mitigate > 0 && o.State == NoState, "{mitigate} %v: with {state} none there is no memory to blend; leave it out", o.Mitigate)
	fail(o.MitigateAudit > 0 && (o.Mitigate == 0 || o.Mitigate == 1), "{mitigate_audit} %d: it goes with {mitigate} above 0 and below 1, or nothing is blended", o.MitigateAudit)
	fail(o.Inflight != 0 && (o.Inflight < max(o.Staleness, 1) || o.Inflight > maxStaleness+2), "{inflight} %d: from {staleness}, %d, to %d", o.Inflight,
		max(o.Staleness, 1), maxStaleness+2)
	lag := strings.Replace(fmt.Sprint(o.Staleness), fmt.Sprint(Auto), "auto", 1)
	fail(o.State == NoState && o.Staleness != 0 && o.Staleness != 1, "{staleness} %s: with {state} none there is no state to see; leave it out", lag)
	return errors.Join(errs...)
}

// Ranking chooses the candidates among which evaluation ranks an event's destination, for MRR:
// negatives that came with the stream, or Each nodes drawn for the event. The zero value ranks
// nothing.
type Ranking struct {
	Given bool
	Each  int
}

// Ranks reports whether anything is ranked.
func (r Ranking) Ranks() bool { return r.Given || r.Each > 0 }

// String returns r as a value of EvalNegatives, or "" if nothing is ranked.
func (r Ranking) String() string {
	switch {
	case r.Given:
		return task.Given
	case r.Each > 0:
		return fmt.Sprint(task.Uniform, ":", r.Each)
	}
	return ""
}

// parseRanking parses EvalNegatives.
func (o Options) parseRanking() (r Ranking, err error) {
	if o.EvalNegatives == "" {
		return r, nil
	}
	n, err := task.ParseNegatives(o.EvalNegatives, task.Given, task.Uniform)
	if err != nil {
		return r, fmt.Errorf("{eval_negatives} %w", err)
	}
	return Ranking{Given: n.Way == task.Given, Each: n.Of}, nil
}

// Ranking returns the candidates to rank events among. given reports whether negatives came with
// the stream; they are taken unless EvalNegatives names others. One drawn candidate an event is
// a ranking for MRR only. If MRR has no candidates, the error says what to do.
func (o Options) Ranking(given bool) (Ranking, error) {
	r, err := o.parseRanking()
	switch {
	case err != nil:
		return r, err
	case r.Given && !given:
		return r, errors.New("{eval_negatives} given: no negatives came with it; ingest it with some, as format tgb has them, or take {eval_negatives} uniform:100")
	case !r.Ranks() && given:
		return Ranking{Given: true}, nil
	case r.Each == 1 && o.Metric != metric.MRR:
		return Ranking{}, nil
	case !r.Ranks() && o.Metric == metric.MRR:
		return r, errors.New("{metric} mrr: no negatives came with it to rank events among; take some that are drawn, {eval_negatives} uniform:100, or {metric} ap")
	}
	return r, nil
}

// maxStaleness is far beyond what is of use.
const maxStaleness = 256

// StreamOf describes a run's stream, its evaluation and its state. Its JSON keys are stable.
type StreamOf struct {
	Name   string `json:"name"`
	Src    string `json:"src,omitempty"` // types of nodes
	Dst    string `json:"dst,omitempty"`
	Events int64  `json:"events"`
	Train  int64  `json:"train"`
	Valid  int64  `json:"valid"`
	Test   int64  `json:"test"`
	// Negatives names the population of negatives, one drawn an event. TrainNegatives and
	// EvalNegatives are its number of nodes in training and in evaluation.
	Negatives      string `json:"negatives"`
	TrainNegatives int    `json:"train_negatives"`
	EvalNegatives  int    `json:"eval_negatives"`
	// RankedAmong is Ranking.String, given or uniform:N; empty where nothing is ranked.
	RankedAmong string  `json:"ranked_among,omitempty"`
	TimeScale   float64 `json:"time_scale"`
	NodeColumns int     `json:"node_columns,omitempty"` // node features read, or Options.Identity
	// Live has the best epoch's figures from the state that its training left, if Options.Eval is
	// LiveState. Its Seconds add up over the epochs that were the best when they were judged.
	Live *ReplayOf `json:"live,omitempty"`
	// Replay has the figures of the best weights, or of the last if nothing was validated, over the
	// whole stream from its first event on; nil before the end.
	Replay *ReplayOf `json:"replay,omitempty"`
	// Heuristics has the figures of scores that need no network, on the same events and negatives.
	// AboveNetwork names the scores that beat the network on test events by the run's metric, best
	// first.
	Heuristics   []HeuristicOf `json:"heuristics,omitempty"`
	AboveNetwork []string      `json:"above_network,omitempty"`
	Staleness    StalenessOf   `json:"staleness"`
	Mitigation   MitigationOf  `json:"mitigation,omitzero"`
	State        *StateOf      `json:"state,omitempty"`
}

// ReplayOf measures how well a network tells events from negatives.
type ReplayOf struct {
	Valid *metric.Batched `json:"valid,omitempty"`
	Test  *metric.Batched `json:"test,omitempty"`
	// New covers the test events with a node at an end that is in no training event.
	New     *metric.Batched `json:"new,omitempty"`
	Seconds float64         `json:"seconds"`
}

// HeuristicOf is a score without a network.
type HeuristicOf struct {
	Name string `json:"name"` // pair_seen, pair_time, destination_time, destination_count
	metric.Batched
}

// Compare sets AboveNetwork by Replay and Heuristics.
func (s *StreamOf) Compare(by metric.Kind) {
	s.AboveNetwork = nil
	if s.Replay == nil || s.Replay.Test == nil {
		return
	}
	own, scores := OfBatched(by, *s.Replay.Test), map[string]float64{}
	for _, h := range s.Heuristics {
		if scores[h.Name] = OfBatched(by, h.Batched); scores[h.Name] > own {
			s.AboveNetwork = append(s.AboveNetwork, h.Name)
		}
	}
	slices.SortStableFunc(s.AboveNetwork, func(a, b string) int { return cmp.Compare(scores[b], scores[a]) })
}

// OfBatched returns one metric of a stream: roc-auc, mrr, or else ap.
func OfBatched(by metric.Kind, v metric.Batched) float64 {
	switch by {
	case metric.ROCAUC:
		return v.AUC
	case metric.MRR:
		return v.MRR
	}
	return v.AP
}

// StalenessOf describes how old the state was that steps read.
type StalenessOf struct {
	K        int    `json:"k"`
	Auto     bool   `json:"auto"`
	Publish  string `json:"publish"`
	Inflight int    `json:"inflight"`
	// If Auto: Best is the least k with which training never waits, and Most the largest with at
	// most half of the nodes read out of date.
	Best int `json:"k_star,omitempty"`
	Most int `json:"k_max,omitempty"`
	// Realised is the share of the nodes read whose state later steps had changed already: MSPipe's
	// f(k).
	Realised float64 `json:"realised"`
	// Predicted is the rehearsal before the run; nil if k was given as a number.
	Predicted *Rehearsal `json:"predicted,omitempty"`
}

// MitigationOf counts the memories that training blended with the memories of similar nodes.
type MitigationOf struct {
	Keep    float64 `json:"keep"`    // the part of them that stayed
	Roots   int64   `json:"roots"`   // nodes at a time that were embedded
	Blended int64   `json:"blended"` // of these
	// Audit is of runs with MitigateAudit.
	Audit *MitigationAudit `json:"audit,omitempty"`
}

// MitigationAudit compares memories with fresh ones, which have seen all steps before: as blended,
// and as they were before blending. Its figures are means over the nodes looked at. An error is
// |memory-fresh| over |fresh|; a cosine is of the angle between the two. Its JSON keys are stable.
type MitigationAudit struct {
	Nodes     int64 `json:"nodes"`
	OutOfDate int64 `json:"out_of_date"` // of Nodes: steps not seen had changed them
	Closer    int64 `json:"closer"`      // of Nodes: the blended memory was closer to the fresh one
	// Over all Nodes. Without blending, nodes that are not OutOfDate have no error.
	ErrorBlended  float64 `json:"error_blended"`
	CosineBlended float64 `json:"cosine_blended"`
	ErrorWithout  float64 `json:"error_without"`
	CosineWithout float64 `json:"cosine_without"`
	StaleBlended  float64 `json:"error_blended_out_of_date"` // over OutOfDate alone
	StaleWithout  float64 `json:"error_without_out_of_date"`
}

// MitigationSums adds up the figures of a MitigationAudit.
type MitigationSums struct {
	Nodes        int64      `json:"nodes"`
	OutOfDate    int64      `json:"out_of_date"`
	Closer       int64      `json:"closer"`
	Blended      Comparison `json:"blended"`
	Without      Comparison `json:"without"`
	StaleBlended Comparison `json:"stale_blended"`
	StaleWithout Comparison `json:"stale_without"`
}

// Add compares a blended memory, and the memory before blending, with a fresh one.
func (s *MitigationSums) Add(blended, was, fresh []float32, outOfDate bool) {
	var a, b Comparison
	a.Add(blended, fresh)
	b.Add(was, fresh)
	s.Nodes++
	s.Blended.plus(a)
	s.Without.plus(b)
	if a.Error < b.Error {
		s.Closer++
	}
	if outOfDate {
		s.OutOfDate++
		s.StaleBlended.plus(a)
		s.StaleWithout.plus(b)
	}
}

// Of returns the means, or nil if nothing was added.
func (s *MitigationSums) Of() *MitigationAudit {
	if s.Nodes == 0 {
		return nil
	}
	nodes, stale := float64(s.Nodes), float64(max(s.OutOfDate, 1))
	return &MitigationAudit{
		Nodes: s.Nodes, OutOfDate: s.OutOfDate, Closer: s.Closer,
		ErrorBlended: s.Blended.Error / nodes, CosineBlended: s.Blended.Cosine / nodes,
		ErrorWithout: s.Without.Error / nodes, CosineWithout: s.Without.Cosine / nodes,
		StaleBlended: s.StaleBlended.Error / stale, StaleWithout: s.StaleWithout.Error / stale,
	}
}

// Share returns the share of the roots that were blended.
func (m MitigationOf) Share() float64 { return float64(m.Blended) / float64(max(m.Roots, 1)) }

// StateOf counts the state of nodes.
type StateOf struct {
	Nodes        int64 `json:"records"`
	RecordBytes  int   `json:"record_bytes"`
	Touched      int64 `json:"touched"` // nodes with state after the last epoch
	BytesWritten int64 `json:"bytes_written"`
}
