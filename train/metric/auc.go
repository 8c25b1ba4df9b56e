package metric

import (
	"cmp"
	"fmt"
	"slices"
)

// scores holds the scores of one class: of its positives, and of its negatives.
type scores[S cmp.Ordered] struct {
	positive, negative []S
	nan                int // scores that rank nowhere
}

func (s *scores[S]) add(score S, positive bool) {
	switch {
	case score != score:
		s.nan++
	case positive:
		s.positive = append(s.positive, score)
	default:
		s.negative = append(s.negative, score)
	}
}

// addAll adds the scores of positives and of negatives.
func (s *scores[S]) addAll(positive, negative []S) {
	for _, x := range positive {
		s.add(x, true)
	}
	for _, x := range negative {
		s.add(x, false)
	}
}

func (s *scores[S]) reset() { s.positive, s.negative, s.nan = s.positive[:0], s.negative[:0], 0 }

// defined reports whether there is a pair to compare.
func (s *scores[S]) defined() bool { return len(s.positive) > 0 && len(s.negative) > 0 }

// auc returns the share of the pairs of a positive and a negative in which the positive scores
// higher, half of the ties included: the Mann-Whitney statistic with midranks. It counts halves of
// a pair, exactly, and sorts the scores.
func (s *scores[S]) auc() float64 {
	slices.Sort(s.positive)
	slices.Sort(s.negative)
	var halves uint64
	below, upTo := 0, 0 // number of negatives that score less than p, and that score at most p
	for _, p := range s.positive {
		for below < len(s.negative) && s.negative[below] < p {
			below++
		}
		for upTo < len(s.negative) && s.negative[upTo] <= p {
			upTo++
		}
		halves += uint64(below) + uint64(upTo)
	}
	return float64(halves) / 2 / (float64(len(s.positive)) * float64(len(s.negative)))
}

// multiAUC keeps the scores of each class.
type multiAUC struct{ classes []scores[float32] }

func (a *multiAUC) Add(logits, targets []float32) {
	eachCell(logits, targets, len(a.classes), func(class int, logit float32, positive bool) {
		a.classes[class].add(logit, positive)
	})
}

func (a *multiAUC) Value() (float64, error) { return meanAUC(a.classes) }

func (a *multiAUC) Reset() {
	for i := range a.classes {
		a.classes[i].reset()
	}
}

// meanAUC returns the mean over the classes that have an AUC, in their order.
func meanAUC(classes []scores[float32]) (float64, error) {
	var sum float64
	var defined, nan int
	for i := range classes {
		nan += classes[i].nan
		if classes[i].defined() {
			sum += classes[i].auc()
			defined++
		}
	}
	switch {
	case nan > 0:
		return 0, undefined(ROCAUC, fmt.Sprintf("%d scores are NaN", nan))
	case defined == 0:
		return 0, undefined(ROCAUC, "no class has both a positive and a negative")
	}
	return sum / float64(defined), nil
}

// binaryAUC ranks by the log-odds of the second of two classes.
type binaryAUC struct{ s scores[float32] }

func (a *binaryAUC) Add(logits []float32, labels []uint32) {
	eachRow(logits, labels, 2, func(row []float32, label uint32) { a.s.add(row[1]-row[0], label == 1) })
}

func (a *binaryAUC) Value() (float64, error) { return meanAUC([]scores[float32]{a.s}) }

func (a *binaryAUC) Reset() { a.s.reset() }
