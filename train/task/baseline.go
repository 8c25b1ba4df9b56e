package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/metric"
)

// A Baseline is the metric of an answer that needs no network: one answer for all, or the
// popularity of the ends of links.
type Baseline struct {
	What  string  // "the largest class", for messages
	Value float64 // of all nodes, edges or links of a part
}

// baselineValues bounds the numbers, of a constant answer or of scores, that are held at once.
const baselineValues = 1 << 16

// rowsAtOnce returns how many rows of cols numbers are measured at once.
func rowsAtOnce(cols int) int { return max(1, baselineValues/max(cols, 1)) }

// Baseline measures the largest class of the training nodes as the answer for nodes of the target
// type. Where nodes have several classes, it takes the classes that together have the best micro-F1
// on the training nodes. Of numbers it takes their mean. It returns nil where there is none.
func (k *Nodes) Baseline(_ context.Context, nodes [][]uint32) (b *Baseline, err error) {
	if len(k.data.Train) == 0 || k.data.Target >= len(nodes) || len(nodes[k.data.Target]) == 0 {
		return nil, nil
	}
	_, _ = k.Value() // an evaluation that was cut short may have left some
	err = store.Guard(func() error {
		what, answer, err := k.constantAnswer()
		if err != nil || answer == nil {
			return err
		}
		n := rowsAtOnce(len(answer))
		rows := slices.Repeat(answer, min(n, len(nodes[k.data.Target])))
		for some := range slices.Chunk(nodes[k.data.Target], n) {
			if err := k.count(rows[:len(some)*len(answer)], some); err != nil {
				return err
			}
		}
		v, err := k.Value()
		if b = (&Baseline{what, v}); errors.Is(err, metric.ErrUndefined) {
			b, err = nil, nil
		}
		return err
	})
	return b, err
}

// constantAnswer returns the logits of the answer to all nodes that does best on the training
// nodes.
func (k *Nodes) constantAnswer() (what string, row []float32, err error) {
	train := k.data.Train
	if k.numbers != nil {
		sum := 0.0
		for some := range slices.Chunk(train, rowsAtOnce(1)) {
			if k.targets, err = k.data.Numbers(k.targets[:0], some); err != nil {
				return "", nil, err
			}
			for _, y := range k.targets {
				sum += float64(y)
			}
		}
		return "the mean of training nodes", []float32{float32(sum / float64(len(train)))}, nil
	}
	classes := k.data.Labels.Classes()
	counts, known, row := make([]int64, classes), make([]int64, classes), make([]float32, classes)
	for some := range slices.Chunk(train, rowsAtOnce(classes)) {
		if k.multi {
			if k.targets, _, err = k.data.Targets(k.targets[:0], some); err != nil {
				return "", nil, err
			}
			for i, y := range k.targets {
				switch y {
				case 1:
					counts[i%classes]++
					known[i%classes]++
				case 0:
					known[i%classes]++
				}
			}
			continue
		}
		if k.labels, err = k.data.Classes(k.labels[:0], some); err != nil {
			return "", nil, err
		}
		for _, c := range k.labels {
			if c != kernels.NoLabel {
				counts[c]++
			}
		}
	}
	if !k.multi {
		row[largest(counts)] = 1
		return "the largest class", row, nil
	}
	order, all := make([]int, classes), int64(0)
	for c := range order {
		order[c], row[c], all = c, -1, all+counts[c]
	}
	share := func(c int) float64 { return float64(counts[c]) / float64(max(known[c], 1)) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(share(b), share(a)) })
	best, most, hits, taken := 0.0, 0, int64(0), all // taken counts positives and predicted positives
	for n, c := range order {
		hits, taken = hits+counts[c], taken+known[c]
		// Macro-F1 is the mean over classes, so the answer has every class that some node has.
		if f1 := 2 * float64(hits) / float64(max(taken, 1)); f1 > best || k.kind == metric.MacroF1 && counts[c] > 0 {
			best, most = f1, n+1
		}
	}
	for _, c := range order[:most] {
		row[c] = 1
	}
	return "the same classes for all", row, nil
}

// largest returns the number of the largest class.
func largest(counts []int64) (at int) {
	for c, n := range counts {
		if n > counts[at] {
			at = c
		}
	}
	return at
}

// Baseline measures the largest class of the training edges, or of numbers their mean, as the
// answer for the edges of the part that Part began last. It returns nil where there is none.
func (k *Edges) Baseline(context.Context, [][]uint32) (b *Baseline, err error) {
	if len(k.used) == 0 || k.part == Train || k.label.Column == nil {
		return nil, nil
	}
	_, _ = k.value()
	err = store.Guard(func() error {
		what, row := "the largest class", make([]float32, len(k.label.Classes))
		if k.numbers != nil {
			what, row = "the mean of training edges", []float32{float32(k.label.Mean)}
		} else {
			row[largest(k.label.Train)] = 1
		}
		h := k.held[k.part]
		values, err := k.data.HeldValues(h, store.HeldPart(k.part), k.label.Column)
		if err != nil {
			return err
		}
		n := rowsAtOnce(len(row))
		rows, x := slices.Repeat(row, min(n, len(k.used))), new(edges)
		for some := range slices.Chunk(k.used, n) {
			x.reset()
			for _, i := range some {
				if y := k.label.Column.Number(values, i); k.numbers != nil {
					x.targets = append(x.targets, float32(y))
				} else {
					x.classes = append(x.classes, k.label.Class(y))
				}
			}
			k.measure(rows[:len(some)*len(row)], x)
		}
		v, err := k.value()
		if b = (&Baseline{what, v}); errors.Is(err, metric.ErrUndefined) {
			b, err = nil, nil
		}
		return err
	})
	return b, err
}

// A part with more than mostPopular negatives gets no baseline, to save time.
const mostPopular = 1 << 24

// Baseline ranks the links of the part that Part began last by the popularity of their ends: one
// more than the number of edges that end at the destination. If the relation is symmetric, or is
// the learnt one and has a reverse, that number is multiplied by one more than the number of edges
// that begin at the source. It returns nil where links are ranked among all nodes.
func (k *Links) Baseline(ctx context.Context, nodes [][]uint32) (b *Baseline, err error) {
	e := &k.evaluation
	if e.of.Way == All || len(e.used) == 0 || k.negativesOf(e.part, e.of) > mostPopular || e.part == Train {
		return nil, nil
	}
	defer e.metric.Reset()
	e.metric.Reset()
	err = store.Guard(func() error {
		pairs, err := k.pairs(ctx) // Part has drawn them
		if err != nil {
			return err
		}
		degree, err := k.degrees(ctx, nodes)
		if err != nil {
			return err
		}
		var positive, byDst, bySrc []float32
		flush := func() {
			k.addScores(positive, byDst, bySrc)
			positive, byDst, bySrc = positive[:0], byDst[:0], bySrc[:0]
		}
		for _, i := range e.used {
			of := 0
			if len(e.which) > 0 {
				of = int(e.which[i])
			}
			src, dst := e.ends[0][i], e.ends[1][i]
			positive = append(positive, k.popularity(degree, of, src, dst))
			instead := k.replacing(i)
			for _, v := range instead.dst {
				byDst = append(byDst, k.popularity(degree, of, src, v))
			}
			for _, u := range instead.src {
				bySrc = append(bySrc, k.popularity(degree, of, u, dst))
			}
			if len(positive)+len(byDst)+len(bySrc) >= baselineValues {
				flush()
			}
		}
		flush()
		for some := range slices.Chunk(pairs, baselineValues) {
			byDst = byDst[:0]
			for _, p := range some {
				byDst = append(byDst, k.popularity(degree, 0, p[0], p[1]))
			}
			e.metric.Add(nil, byDst)
		}
		v, err := e.metric.Value()
		if b = (&Baseline{"the popularity of ends", v}); errors.Is(err, metric.ErrUndefined) {
			b, err = nil, nil
		}
		return err
	})
	return b, err
}

// degreeOf returns the number of v's in-neighbours in a learnt relation, or in the mirror of one.
type degreeOf func(r *data.Relation, v uint32) int

// degrees returns a function for the degrees of nodes, which Part has returned, by type.
func (k *Links) degrees(ctx context.Context, nodes [][]uint32) (degreeOf, error) {
	if k.options.Workers == nil {
		return func(r *data.Relation, v uint32) int { return r.Degree(v) }, nil
	}
	all := map[*data.Relation][]uint32{}
	relations := make([]*data.Relation, 0, len(k.relations)+1)
	for i := range k.relations {
		relations = append(relations, &k.relations[i])
	}
	if m := k.data.Links.Mirror; m >= 0 {
		relations = append(relations, &k.data.Relations[m])
	}
	for _, r := range relations {
		var err error
		if all[r], err = degreesOf(ctx, k.options.Workers.Gather, r, nodes[r.Dst]); err != nil {
			return nil, err
		}
	}
	return func(r *data.Relation, v uint32) int { return int(all[r][k.rows[r.Dst].number(v)]) }, nil
}

// popularity returns the score of a link by the training edges of its ends.
func (k *Links) popularity(degree degreeOf, of int, src, dst uint32) float32 {
	r := &k.relations[of]
	score := float64(1 + degree(r, dst))
	switch m := k.data.Links.Mirror; {
	case r.Relation.Symmetric:
		score *= float64(1 + degree(r, src))
	case len(k.relations) == 1 && m >= 0:
		score *= float64(1 + degree(&k.data.Relations[m], src))
	}
	return float32(score)
}

// sameness finds out whether a network gives the same answer to all examples of a measurement.
type sameness struct {
	rows  int64
	first []float32
	same  bool
}

// An answerKind is a way to turn a row of logits into an answer. Each metric uses one of them.
type answerKind int

const (
	byLargest answerKind = iota // the class of the largest logit
	bySign                      // each class whose logit is above 0
	byMargin                    // how far the second of two logits is above the first: ROC-AUC ranks by it
	byScores                    // all logits: ROC-AUC ranks by each class, and metrics of links by their score
	byNumber                    // the number that is learnt
)

// closeTo reports whether two numbers of this magnitude differ by no more than rounding.
func closeTo(a, b, magnitude float32) bool {
	return math.Abs(float64(a)-float64(b)) <= 1e-6*math.Abs(float64(magnitude))
}

// add takes rows of cols logits.
func (s *sameness) add(logits []float32, cols int, by answerKind) {
	if cols == 0 {
		return
	}
	for row := range slices.Chunk(logits, cols) {
		if s.rows++; s.rows == 1 {
			s.first, s.same = append(s.first[:0], row...), true
		}
		if !s.same {
			return
		}
		switch first := s.first; by {
		case byLargest:
			s.same = metric.Predicted(row) == metric.Predicted(first)
		case byMargin:
			s.same = closeTo(row[1]-row[0], first[1]-first[0], max(first[0], -first[0])+max(first[1], -first[1]))
		default:
			for c, x := range row {
				if by == bySign {
					s.same = s.same && (x > 0) == (first[c] > 0)
				} else {
					s.same = s.same && closeTo(x, first[c], first[c])
				}
			}
		}
	}
}

// take ends a measurement. It returns the answer that all rows share, or "" if they differ.
func (s *sameness) take(names []string, by answerKind) (said string) {
	if s.same && s.rows > 1 {
		switch by {
		case byLargest:
			at := int(metric.Predicted(s.first))
			if said = fmt.Sprintf("class %d", at); at < len(names) {
				said = "class " + names[at]
			}
		case bySign:
			said = "the same classes"
		case byNumber:
			said = fmt.Sprintf("%.6g", s.first[0])
		default:
			said = "the same score"
		}
	}
	s.rows, s.same = 0, false
	return said
}

// Scale returns about the loss of a network that has learnt nothing. For numbers that is the mean
// of their squares, the loss of predicting 0 everywhere.
func (k *Nodes) Scale() (scale float64, err error) {
	if k.numbers == nil {
		return 1, nil
	}
	err = store.Guard(func() error {
		for some := range slices.Chunk(k.data.Train, rowsAtOnce(1)) {
			if k.targets, err = k.data.Numbers(k.targets[:0], some); err != nil {
				return err
			}
			for _, y := range k.targets {
				scale += float64(y) * float64(y) / float64(len(k.data.Train))
			}
		}
		return nil
	})
	return scale, err
}

// Scale is described at Nodes. For numbers it is the square of the largest.
func (k *Edges) Scale() (float64, error) {
	if k.numbers == nil {
		return 1, nil
	}
	return k.label.Most * k.label.Most, nil
}

// Scale is described at Nodes.
func (k *Links) Scale() (float64, error) { return 1, nil }

// Constant returns the score that all links and negatives of the last measurement share. It returns
// "" if scores differ, or if links are ranked among all nodes.
func (k *Links) Constant() string { return k.constant }
