package task

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/kernels"
)

// Words of Options.ClassWeights.
const (
	NoWeights       = "none"
	BalancedWeights = "balanced"
)

// ParseWeights reads numbers with commas between them.
func ParseWeights(s string) (w []float32, err error) {
	for _, field := range strings.Split(s, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(field), 32)
		if err != nil || !(x >= 0) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("%q is no weight; give none, balanced, or a number from 0 on for each class", field)
		}
		w = append(w, float32(x))
	}
	if slices.Max(w) == 0 {
		return nil, errors.New("nothing is learnt where all weigh 0")
	}
	return w, nil
}

// parseClassWeights is classWeights of the classes of nodes.
func (k *Nodes) parseClassWeights(s string) ([]float32, error) {
	if k.multi && s != "" && s != NoWeights {
		return nil, errors.New("the label has several classes a node; weights are for one")
	}
	classes := k.data.Labels.Classes()
	return classWeights(s, classes, func() (count []int64, err error) {
		if k.labels, err = k.data.Classes(k.labels[:0], k.data.Train); err != nil {
			return nil, err
		}
		count = make([]int64, classes)
		for _, c := range k.labels {
			count[c]++
		}
		return count, nil
	})
}

// classWeights reads a number a class, or makes them: under balanced, seeds ÷ (classes × seeds of
// the class), so that every class weighs the same in an epoch. count counts the seeds of each.
func classWeights(s string, classes int, count func() ([]int64, error)) ([]float32, error) {
	switch s {
	case "", NoWeights:
		return nil, nil
	case BalancedWeights:
		counts, err := count()
		if err != nil {
			return nil, err
		}
		all := int64(0)
		for _, n := range counts {
			all += n
		}
		w := make([]float32, classes)
		for c, n := range counts {
			if n > 0 {
				w[c] = float32(float64(all) / (float64(classes) * float64(n)))
			}
		}
		return w, nil
	}
	w, err := ParseWeights(s)
	if err == nil && len(w) != classes {
		err = fmt.Errorf("%d numbers for %d classes", len(w), classes)
	}
	return w, err
}

// rowWeights appends to dst the weight of each row's class, 0 for kernels.NoLabel, and adds them up
// in order: what tape.WeightedCrossEntropy takes, and what its mean divides by. class has a weight
// for every class.
func rowWeights(dst []float32, labels []uint32, class []float32) (_ []float32, sum float64) {
	for _, label := range labels {
		w := float32(0)
		if label != kernels.NoLabel {
			w = class[label]
		}
		dst = append(dst, w)
		sum += float64(w)
	}
	return dst, sum
}
