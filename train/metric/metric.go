// Package metric measures predictions: accuracy, F1, ROC-AUC, average precision, MRR, Hits@K, RMSE
// and MAE, added up a chunk at a time.
//
// Four shapes of problem: [Single], where a node or an edge has one class, [Multi], where a node
// has any number of them, each known or not, [Links], where pairs of nodes are linked or not, and
// [Numbers]. [NewSingle], [NewMulti], [NewLinks] and [NewNumbers] make an accumulator; Add takes
// the logits of some nodes or edges, the scores of some pairs, or numbers. Value does not depend on
// the chunks in which they came, and but for numbers not on their order, since counts are integers.
//
// A stream of links comes in batches: [Batches] measures each alone, and all together.
//
// Memory: accuracy and F1 take 24 bytes a class at most, however many nodes there are. ROC-AUC has
// to rank all scores, so it keeps them: 4 bytes for each known label, up to twice that while its
// lists grow. So do the metrics of links. Logits and labels are read and not kept. One goroutine
// uses an accumulator.
//
// Start reading at [Kind].
package metric

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gnnstore/gnnstore/kernels"
)

// Kind names a metric.
type Kind string

const (
	// Accuracy is the share of labelled nodes whose largest logit is their class; of equal logits
	// the first counts, and NaN as largest. For single labels only.
	Accuracy Kind = "accuracy"
	// MicroF1 is 2·tp/(2·tp+fp+fn) of the counts of all classes together. With several labels a
	// node, a class is predicted where its logit is above 0; with one, MicroF1 equals Accuracy.
	MicroF1 Kind = "micro-f1"
	// MacroF1 is the mean of the classes' F1. A class that no known label and no prediction names
	// has none and is left out, as scikit-learn does with zero_division=nan.
	MacroF1 Kind = "macro-f1"
	// ROCAUC is the probability that a positive is ranked above a negative, half of it where they
	// tie. With several labels a node it is the mean over the classes that have both, as in OGB's
	// evaluators; with one, there must be two classes, and the score is the difference of their
	// logits.
	ROCAUC Kind = "roc-auc"
)

// Kinds are the metrics of nodes.
var Kinds = []Kind{Accuracy, MicroF1, MacroF1, ROCAUC}

// Key returns k's name in the columns of results, after the part of the split: acc in train_acc.
func (k Kind) Key() string {
	switch k {
	case "", Accuracy:
		return "acc"
	case ROCAUC:
		return "auc"
	}
	return strings.NewReplacer("-", "_", "@", "_").Replace(string(k))
}

// KindOf returns the Kind with a key.
func KindOf(key string) (k Kind, ok bool) {
	if n, isHits := strings.CutPrefix(key, Kind(hits).Key()); isHits {
		k = Kind(hits + n)
		_, ok = k.Best()
		return k, ok
	}
	for _, k := range append([]Kind{AP, MRR, RMSE, MAE}, Kinds...) {
		if k.Key() == key {
			return k, true
		}
	}
	return "", false
}

// ErrUndefined is wrapped by Value's error: there were no rows, or the metric has no value for
// them.
var ErrUndefined = errors.New("is undefined")

// Single measures predictions of one class a node.
type Single interface {
	// Add takes the logits, as many to a row as there are classes, and the class of each row;
	// kernels.NoLabel is not counted.
	Add(logits []float32, labels []uint32)
	// Value is the metric of all rows since the last Reset.
	Value() (float64, error)
	Reset()
}

// Multi measures predictions of any number of classes a node.
type Multi interface {
	// Add takes logits and targets of the same rows: 0 or 1 for each class, NaN where it is not
	// known and not counted.
	Add(logits, targets []float32)
	// Value is the metric of all rows since the last Reset.
	Value() (float64, error)
	Reset()
}

// NewSingle makes the accumulator of k for nodes with one of so many classes.
func NewSingle(k Kind, classes int) (Single, error) {
	switch k {
	case Accuracy:
		return &accuracy{classes: classes}, nil
	case MicroF1, MacroF1:
		return &singleF1{newF1(k, classes)}, nil
	case ROCAUC:
		if classes != 2 {
			return nil, fmt.Errorf("{metric} %s: the label has %d classes; with one class a node it wants two: use accuracy or macro-f1", k, classes)
		}
		return &binaryAUC{}, nil
	}
	return nil, fmt.Errorf("{metric} %s: there are accuracy, micro-f1, macro-f1 and roc-auc", k)
}

// NewMulti makes the accumulator of k for nodes with any of so many classes.
func NewMulti(k Kind, classes int) (Multi, error) {
	switch k {
	case Accuracy:
		return nil, fmt.Errorf("{metric} %s: the label has several classes a node; use roc-auc, micro-f1 or macro-f1", k)
	case MicroF1, MacroF1:
		return &multiF1{newF1(k, classes)}, nil
	case ROCAUC:
		return &multiAUC{make([]scores[float32], classes)}, nil
	}
	return nil, fmt.Errorf("{metric} %s: there are micro-f1, macro-f1 and roc-auc", k)
}

func undefined(k Kind, why string) error { return fmt.Errorf("%s %w: %s", k, ErrUndefined, why) }

// eachRow calls do with every row that has a label.
func eachRow(logits []float32, labels []uint32, classes int, do func(row []float32, label uint32)) {
	if len(logits) != len(labels)*classes {
		panic(fmt.Sprintf("metric: %d logits for %d rows of %d classes", len(logits), len(labels), classes))
	}
	for r, label := range labels {
		if label == kernels.NoLabel {
			continue
		}
		if int64(label) >= int64(classes) {
			panic(fmt.Sprintf("metric: row %d has label %d, of %d classes", r, label, classes))
		}
		do(logits[r*classes:(r+1)*classes], label)
	}
}

// Predicted returns the column of a row's largest logit.
func Predicted(row []float32) uint32 {
	var best [1]uint32
	kernels.ArgMax(best[:], row, len(row))
	return best[0]
}

// eachCell calls do with every logit whose target is known.
func eachCell(logits, targets []float32, classes int, do func(class int, logit float32, positive bool)) {
	if len(logits) != len(targets) || classes > 0 && len(logits)%classes != 0 {
		panic(fmt.Sprintf("metric: %d logits and %d targets, in rows of %d classes", len(logits), len(targets), classes))
	}
	for i, target := range targets {
		switch target {
		case 0, 1:
			do(i%classes, logits[i], target == 1)
		default:
			if target == target {
				panic(fmt.Sprintf("metric: row %d has target %v; want 0, 1, or NaN where it is not known", i/classes, target))
			}
		}
	}
}

// accuracy counts rows.
type accuracy struct {
	classes     int
	right, rows int64
}

func (a *accuracy) Add(logits []float32, labels []uint32) {
	eachRow(logits, labels, a.classes, func(row []float32, label uint32) {
		a.rows++
		if Predicted(row) == label {
			a.right++
		}
	})
}

func (a *accuracy) Value() (float64, error) {
	if a.rows == 0 {
		return 0, undefined(Accuracy, "no row has a label")
	}
	return float64(a.right) / float64(a.rows), nil
}

func (a *accuracy) Reset() { a.right, a.rows = 0, 0 }
