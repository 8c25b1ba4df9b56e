package stream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// The label of an event is a class of its source; labels of nodes have times of their own. A small
// classifier predicts them from the embeddings of the nodes, with the state that the batches before
// left: right before the event, as TGL does (arXiv 2203.14883), or right after it, when it is among
// the neighbours. Only the classifier is learnt.

const (
	probeSteps = 1000 // of the classifier
	probeEvery = 100  // steps between weights that validation chooses from
	probeRows  = 200  // of a step
	probeRate  = 1e-3
	mostKept   = 50_000 // embeddings of a deck: a quarter of what all steps see, or more
	labelTag   = 25     // for hashes
)

// LabelsOf measures how well classes can be told from embeddings. Its JSON keys are stable.
type LabelsOf struct {
	Classes int `json:"classes"`
	// Train, Valid and Test count the events with a label. Learnt of Train were learnt from.
	Train  int64 `json:"train"`
	Valid  int64 `json:"valid"`
	Test   int64 `json:"test"`
	Learnt int64 `json:"learnt"`
	// Positives counts the events of the second of two classes, in train, valid and test.
	Positives [3]int64 `json:"positives"`
	After     bool     `json:"after"`              // the event is seen
	OfNodes   bool     `json:"of_nodes,omitempty"` // at times of their own, and not of events
	Steps     int      `json:"steps"`              // after which the weights were the best on valid
	// ValidScore and TestScore are null where they have no value.
	ValidScore *LabelScore `json:"valid_score"`
	TestScore  *LabelScore `json:"test_score"`
}

// LabelScore has pooled AP and AUC of the second of two classes, or accuracy and macro-F1 of more
// classes.
type LabelScore struct {
	AP       float64 `json:"ap,omitempty"`
	AUC      float64 `json:"auc,omitempty"`
	Accuracy float64 `json:"accuracy,omitempty"`
	MacroF1  float64 `json:"macro_f1,omitempty"`
}

// better reports whether s is chosen before o.
func (s *LabelScore) better(o *LabelScore) bool {
	return s != nil && (o == nil || s.AP > o.AP || s.MacroF1 > o.MacroF1)
}

// labelled is the state of one MeasureLabels.
type labelled struct {
	*LabelsOf
	timedLabels
	n       *Network
	columns int
	events  []uint32 // the labels that are learnt from or measured, ascending: numbers of events, or of labels of nodes
	counts  []int64  // of training events, by class
	decks   []deck
	probe   *temporal.Probe
	weights [][][]float32 // that validation chooses from
	scores  []labelScores // of valid, by weights
	chosen  int           // the best ones, -1 before they are known
	test    labelScores
}

// LabelBytes returns the most memory that MeasureLabels takes, for embeddings with this many
// columns.
func LabelBytes(e *store.Events, columns int) int64 {
	l := timedLabelsOf(e)
	split := l.split
	// lists may have twice the room while they grow
	lists := 8*int64(columns)*min(split.Train, 2*mostKept) + 16*l.count + 80*split.Valid + 8*split.Test
	classes := int64(min(l.classes, mostClasses))
	weights := temporal.ProbeWeights(columns, int(classes))
	const kept = probeSteps / probeEvery // weights, with the scores of each
	// Weights have gradients and two moments. The rows of a step have logits on the backend, their
	// gradients, and copies.
	return lists + 4*weights*(4+kept+1) + 4*6*probeRows*classes + 64*classes*(kept+1)
}

// mostClasses bounds the classes of a classifier, which has a hundred weights for each. Ingest has
// the same bound.
const mostClasses = 1 << 16

// MeasureLabels learns classes of sources from the labelled events of the training part, and
// measures them on the other parts. Every probeEvery steps it keeps the weights, and the ones that
// are best on the validation part count. Sources are embedded right before the event, or right
// after it, which is more telling for a network that reads neighbours. It takes LabelBytes of
// memory.
func (n *Network) MeasureLabels(ctx context.Context, after bool) (_ *LabelsOf, err error) {
	defer kernels.RecoverMemory(&err)
	e := n.c.events
	l := n.labelled(after)
	if after && !n.c.Kind.ReadsNeighbors() {
		return nil, fmt.Errorf("run %s: {model} %s reads no neighbours, so that it sees an event once it is in the state; take {labels} before", n.c.Dir.Path(), n.c.Kind)
	}
	if l.Classes < 2 {
		return nil, fmt.Errorf("%s: {labels}: stream %s has labels of %d classes, and at least 2 are to be told apart; ingest it with labels of events", n.c.set.Path(),
			e.Stream.Name, l.Classes)
	}
	if l.Classes > mostClasses {
		return nil, fmt.Errorf("%s: {labels}: stream %s has labels of %d classes, and at most %d are told apart; ingest it again with labels that are classes", n.c.set.Path(),
			e.Stream.Name, l.Classes, mostClasses)
	}
	if err := store.Guard(l.list); err != nil {
		return nil, err
	}
	several := 0
	for _, count := range l.counts {
		if count > 0 {
			several++
		}
	}
	if several < 2 {
		return nil, fmt.Errorf("%s: stream %s: its training part has %d events with a label, of %d classes; there is nothing to tell apart", n.c.set.Path(),
			e.Stream.Name, l.Train, several)
	}
	l.probe = temporal.NewProbe(n.c.Backend, l.columns, l.Classes, sample.Hash(n.c.Seed, labelTag))
	defer l.probe.Close()
	l.test = l.newScores()
	ask := func(lo, hi int) (asks []temporal.Ask) {
		for _, number := range l.events[lo:hi] {
			place, at, _ := l.at(int64(number))
			if after {
				at = math.Nextafter(at, math.Inf(1))
			}
			asks = append(asks, temporal.Ask{Src: place, Dst: place, Time: at})
		}
		return asks
	}
	next := 0
	stops := n.stops(e.Len(), len(l.events), func(i int) int64 {
		if l.ofNodes {
			return int64(l.seen[i])
		}
		return int64(l.events[i])
	})
	err = n.replay(ctx, stops, ask, func(in temporal.Input) error {
		z, err := n.c.step.Embed(in)
		if err != nil || len(in.Src) == 0 {
			return err
		}
		some := l.events[next:][:len(in.Src)]
		next += len(some)
		return l.take(ctx, some, in.Src, z)
	})
	if err == nil {
		err = l.end(ctx)
	}
	return l.LabelsOf, err
}

// labelled returns the empty state of a MeasureLabels.
func (n *Network) labelled(after bool) *labelled {
	of := timedLabelsOf(n.c.events)
	return &labelled{LabelsOf: &LabelsOf{Classes: of.classes, After: after, OfNodes: of.ofNodes}, timedLabels: of, n: n, columns: n.Columns(), chosen: -1}
}

// list finds the events to learn from and to measure. If training has more than mostKept events, of
// a class where there are two, it draws some of them by hashes.
func (l *labelled) list() error {
	split := l.split
	l.counts, l.decks = make([]int64, l.Classes), make([]deck, 1)
	l.each(func(event int64, class int32) {
		part := 0
		switch {
		case event < split.Train:
			l.counts[class]++
			l.Train++
		case event < split.Train+split.Valid:
			l.Valid++
			part = 1
		default:
			l.Test++
			part = 2
		}
		if class == 1 && l.Classes == 2 {
			l.Positives[part]++
		}
	})
	if l.Classes == 2 {
		l.decks = make([]deck, 2)
	}
	l.each(func(event int64, class int32) {
		if event < split.Train {
			of := l.Train
			if l.Classes == 2 {
				of = l.counts[class]
			}
			if share := float64(mostKept) / float64(of); float64(sample.Hash(l.n.c.Seed, labelTag, uint64(event))>>11)/(1<<53) >= share {
				return
			}
			l.Learnt++
		}
		l.events = append(l.events, uint32(event))
		if l.ofNodes {
			_, at, _ := l.at(event)
			known := int64(0)
			if n := len(l.seen); n > 0 {
				known = int64(l.seen[n-1])
			}
			l.seen = append(l.seen, uint32(l.n.before(at, known)))
		}
	})
	return nil
}

// class returns the class of an event.
func (l *labelled) class(event uint32) uint32 {
	_, _, class := l.at(int64(event))
	return uint32(class)
}

// take takes embeddings of events, each at its row of z: to learn from, or to be measured.
func (l *labelled) take(ctx context.Context, events, rows []uint32, z []float32) error {
	split := l.split
	var classes []uint32
	var of []float32
	measured := 0 // the part that classes and of are of
	flush := func() error {
		if len(classes) == 0 {
			return nil
		}
		err := l.measure(ctx, measured, classes, of)
		classes, of = classes[:0], of[:0]
		return err
	}
	for i, event := range events {
		row, class := z[int(rows[i])*l.columns:][:l.columns], l.class(event)
		if int64(event) < split.Train {
			d := &l.decks[int(class)%len(l.decks)]
			d.rows, d.classes = append(d.rows, row...), append(d.classes, class)
			continue
		}
		part := validation
		if int64(event) >= split.Train+split.Valid {
			part = test
		}
		if part != measured {
			if err := flush(); err != nil {
				return err
			}
			measured = part
		}
		classes, of = append(classes, class), append(of, row...)
	}
	return flush()
}

// measure adds the embeddings of a part to its scores. The validation part is measured with all
// kept weights, and the test part with the weights that validation chose.
func (l *labelled) measure(ctx context.Context, part int, classes []uint32, z []float32) error {
	if err := l.learn(ctx); err != nil {
		return err
	}
	if part == test {
		l.choose()
		l.addTo(&l.test, classes, z)
		return nil
	}
	for i, w := range l.weights {
		l.probe.SetWeights(w)
		l.addTo(&l.scores[i], classes, z)
	}
	return nil
}

// addTo adds predictions to scores, a few rows at a time, since each row has a number for every
// class.
func (l *labelled) addTo(scores *labelScores, classes []uint32, z []float32) {
	for at := 0; at < len(classes); at += probeRows {
		end := min(at+probeRows, len(classes))
		scores.add(l.probe.Logits(z[at*l.columns:end*l.columns]), classes[at:end])
	}
}

// learn takes all steps of the classifier, the first time it is called.
func (l *labelled) learn(ctx context.Context) error {
	if l.weights != nil {
		return nil
	}
	rng := rand.New(rand.NewPCG(l.n.c.Seed, labelTag))
	var z []float32
	var classes []uint32
	for step := 1; step <= probeSteps; step++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		z, classes = z[:0], classes[:0]
		each := probeRows / len(l.decks)
		for i := range l.decks { // as many of each class, where there are two
			each = min(each, len(l.decks[i].classes))
		}
		for i := range l.decks {
			z, classes = l.decks[i].deal(rng, each, l.columns, z, classes)
		}
		l.probe.Step(z, classes, probeRate)
		if step%probeEvery == 0 {
			l.weights, l.scores = append(l.weights, l.probe.Weights()), append(l.scores, l.newScores())
		}
	}
	l.decks = nil
	return nil
}

// choose sets the probe to the weights that are best on the validation part, or to the last ones if
// that has no score.
func (l *labelled) choose() {
	if l.chosen >= 0 {
		return
	}
	l.chosen = len(l.weights) - 1
	for i := range l.scores {
		if s := l.scores[i].value(); s.better(l.ValidScore) {
			l.chosen, l.ValidScore = i, s
		}
	}
	l.Steps = (l.chosen + 1) * probeEvery
	l.scores = nil
	l.probe.SetWeights(l.weights[l.chosen])
}

// end sets TestScore, after all embeddings were taken.
func (l *labelled) end(ctx context.Context) error {
	if err := l.learn(ctx); err != nil {
		return err
	}
	l.choose()
	l.TestScore = l.test.value()
	return nil
}

// deck has embeddings with their classes. It deals them in an order that is shuffled anew whenever
// all were dealt.
type deck struct {
	rows    []float32
	classes []uint32
	order   []int
	next    int
}

// deal appends the next count embeddings to z, and their classes to classes.
func (d *deck) deal(rng *rand.Rand, count, columns int, z []float32, classes []uint32) ([]float32, []uint32) {
	for range count {
		if d.next == len(d.order) {
			d.order, d.next = rng.Perm(len(d.classes)), 0
		}
		i := d.order[d.next]
		d.next++
		z, classes = append(z, d.rows[i*columns:][:columns]...), append(classes, d.classes[i])
	}
	return z, classes
}

// labelScores collects the predictions of one part.
type labelScores struct {
	positives, negatives []float32     // of two classes: log-odds of the second one
	accuracy, f1         metric.Single // of more
}

func (l *labelled) newScores() (s labelScores) {
	if l.Classes == 2 {
		return s
	}
	s.accuracy, _ = metric.NewSingle(metric.Accuracy, l.Classes) // of kinds that it knows
	s.f1, _ = metric.NewSingle(metric.MacroF1, l.Classes)
	return s
}

func (s *labelScores) add(logits []float32, classes []uint32) {
	if s.accuracy != nil {
		s.accuracy.Add(logits, classes)
		s.f1.Add(logits, classes)
		return
	}
	for i, class := range classes {
		odds := logits[2*i+1] - logits[2*i]
		if class == 1 {
			s.positives = append(s.positives, odds)
		} else {
			s.negatives = append(s.negatives, odds)
		}
	}
}

// value returns the score, or nil if it is not defined.
func (s *labelScores) value() *LabelScore {
	if s.accuracy != nil {
		accuracy, err := s.accuracy.Value()
		f1, ferr := s.f1.Value()
		if errors.Join(err, ferr) != nil {
			return nil
		}
		return &LabelScore{Accuracy: accuracy, MacroF1: f1}
	}
	var all metric.Batches[float32]
	all.Add(s.positives, s.negatives)
	v, err := all.Value()
	if err != nil {
		return nil
	}
	return &LabelScore{AP: v.PooledAP, AUC: v.PooledAUC}
}
