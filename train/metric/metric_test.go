package metric

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/kernels"
)

var nan = float32(math.NaN())

func single(t require.TestingT, k Kind, classes int, logits []float32, labels []uint32) (float64, error) {
	m, err := NewSingle(k, classes)
	require.NoError(t, err)
	m.Add(logits, labels)
	return m.Value()
}

func multi(t require.TestingT, k Kind, classes int, logits, targets []float32) (float64, error) {
	m, err := NewMulti(k, classes)
	require.NoError(t, err)
	m.Add(logits, targets)
	return m.Value()
}

// oneHot makes logits that predict the classes.
func oneHot(classes int, predictions ...uint32) []float32 {
	logits := make([]float32, classes*len(predictions))
	for r, c := range predictions {
		logits[r*classes+int(c)] = 1
	}
	return logits
}

// TestKnownExamples are the small inputs of scikit-learn's documentation of f1_score and
// roc_auc_score, worked out by hand.
func TestKnownExamples(t *testing.T) {
	is := func(want float64) func(got float64, err error) {
		return func(got float64, err error) {
			t.Helper()
			require.NoError(t, err)
			require.InDelta(t, want, got, 1e-15)
		}
	}
	truth, guess := []uint32{0, 1, 2, 0, 1, 2}, oneHot(3, 0, 2, 1, 0, 0, 1)
	is(2.0 / 6)(single(t, Accuracy, 3, guess, truth))
	is(2.0 / 6)(single(t, MicroF1, 3, guess, truth))
	is(0.8 / 3)(single(t, MacroF1, 3, guess, truth)) // 2·2/(2·2+1) for class 0, none right of the others
	is(0.8 / 3)(single(t, MacroF1, 9, oneHot(9, 0, 2, 1, 0, 0, 1), truth))

	targets, logits := []float32{0, 0, 0, 1, 1, 1, 0, 1, 1}, []float32{-1, -1, -1, 1, 1, 1, 1, 1, -1}
	is(0.8)(multi(t, MicroF1, 3, logits, targets)) // 4 right, 1 too many, 1 too few
	is((2.0/3*2 + 1) / 3)(multi(t, MacroF1, 3, logits, targets))

	scores := []float32{0.1, 0.4, 0.35, 0.8}
	is(0.75)(multi(t, ROCAUC, 1, scores, []float32{0, 0, 1, 1}))
	is(0.75)(single(t, ROCAUC, 2, []float32{0, 0.1, 1, 1.4, 0, 0.35, -2, -1.2}, []uint32{0, 0, 1, 1}))
	is(0.5)(multi(t, ROCAUC, 1, make([]float32, 4), []float32{0, 0, 1, 1}))
	// The second of three classes has no negative, the third none that is known.
	is(1)(multi(t, ROCAUC, 3, []float32{1, 1, 1, 0, 2, 2}, []float32{1, 1, 1, 0, 1, nan}))
}

func TestUndefined(t *testing.T) {
	none := []uint32{kernels.NoLabel, kernels.NoLabel}
	unknown := []float32{nan, nan, nan, nan}
	for want, value := range map[string]func() (float64, error){
		"accuracy is undefined: no row has a label":                             func() (float64, error) { return single(t, Accuracy, 2, make([]float32, 4), none) },
		"micro-f1 is undefined: no known label and no prediction names a class": func() (float64, error) { return single(t, MicroF1, 2, make([]float32, 4), none) },
		"macro-f1 is undefined: no known label and no prediction names a class": func() (float64, error) { return multi(t, MacroF1, 2, make([]float32, 4), unknown) },
		"roc-auc is undefined: no class has both a positive and a negative":     func() (float64, error) { return multi(t, ROCAUC, 2, make([]float32, 4), []float32{0, 1, 0, nan}) },
		"roc-auc is undefined: 2 scores are NaN":                                func() (float64, error) { return multi(t, ROCAUC, 2, []float32{nan, 0, 1, nan}, []float32{0, 0, 1, 1}) },
		"roc-auc is undefined: 1 scores are NaN":                                func() (float64, error) { return single(t, ROCAUC, 2, []float32{0, 1, 0, nan}, []uint32{0, 1}) },
	} {
		got, err := value()
		require.ErrorIs(t, err, ErrUndefined)
		require.EqualError(t, err, want)
		require.Zero(t, got)
	}
}

func TestNaNLogits(t *testing.T) {
	got, err := single(t, Accuracy, 3, []float32{5, nan, 9, 5, 7, 6}, []uint32{1, 1})
	require.NoError(t, err)
	require.Equal(t, 1.0, got)
	_, err = multi(t, MicroF1, 1, []float32{nan}, []float32{0})
	require.ErrorIs(t, err, ErrUndefined, "a logit of NaN predicts nothing")
}

func TestRefusals(t *testing.T) {
	for _, k := range []Kind{"", "mse"} {
		_, err := NewSingle(k, 3)
		require.ErrorContains(t, err, fmt.Sprintf("{metric} %s: there are accuracy, micro-f1, macro-f1 and roc-auc", k))
		_, err = NewMulti(k, 3)
		require.ErrorContains(t, err, fmt.Sprintf("{metric} %s: there are micro-f1, macro-f1 and roc-auc", k))
	}
	_, err := NewSingle(ROCAUC, 3)
	require.ErrorContains(t, err, "the label has 3 classes")
	_, err = NewMulti(Accuracy, 3)
	require.ErrorContains(t, err, "several classes a node")

	s, err := NewSingle(Accuracy, 2)
	require.NoError(t, err)
	require.Panics(t, func() { s.Add(make([]float32, 3), make([]uint32, 2)) })
	require.Panics(t, func() { s.Add(make([]float32, 2), []uint32{2}) })
	m, err := NewMulti(ROCAUC, 2)
	require.NoError(t, err)
	require.Panics(t, func() { m.Add(make([]float32, 4), make([]float32, 2)) })
	require.Panics(t, func() { m.Add(make([]float32, 3), make([]float32, 3)) })
	require.Panics(t, func() { m.Add(make([]float32, 2), []float32{0, 0.5}) })
}

// compare checks value and err of an accumulator against a plain loop whose NaN is undefined.
func compare(t *rapid.T, want, got float64, err error) {
	if math.IsNaN(want) {
		require.ErrorIs(t, err, ErrUndefined)
		return
	}
	require.NoError(t, err)
	require.InDelta(t, want, got, 1e-12)
}

// slowAUC compares every positive with every negative.
func slowAUC(score []float32, positive []float32) float64 {
	var wins, pairs float64
	for i, p := range positive {
		for j, n := range positive {
			if p == 1 && n == 0 {
				pairs++
				if score[i] > score[j] {
					wins++
				} else if score[i] == score[j] {
					wins += 0.5
				}
			}
		}
	}
	return wins / pairs
}

// slowF1 computes precision and recall of each class from the list of what was said and what is so;
// known may leave out.
func slowF1(classes int, said, is func(row, class int) bool, known func(row, class int) bool, rows int) (micro, macro float64) {
	f := func(right, said, is float64) float64 {
		if said+is == 0 {
			return math.NaN()
		}
		if right == 0 {
			return 0
		}
		precision, recall := right/said, right/is
		return 2 * precision * recall / (precision + recall)
	}
	var allRight, allSaid, allIs, sum, named float64
	for c := range classes {
		var right, saidSo, isSo float64
		for r := range rows {
			if !known(r, c) {
				continue
			}
			if said(r, c) {
				saidSo++
			}
			if is(r, c) {
				isSo++
			}
			if said(r, c) && is(r, c) {
				right++
			}
		}
		allRight, allSaid, allIs = allRight+right, allSaid+saidSo, allIs+isSo
		if v := f(right, saidSo, isSo); !math.IsNaN(v) {
			sum += v
			named++
		}
	}
	return f(allRight, allSaid, allIs), sum / named
}

// chunks calls add with [lo, hi) that cover n in any portions.
func chunks(t *rapid.T, n int, add func(lo, hi int)) {
	for lo := 0; lo < n; {
		hi := rapid.IntRange(lo, n).Draw(t, "to")
		add(lo, hi)
		if hi == lo {
			hi = n
			add(lo, hi)
		}
		lo = hi
	}
}

// coarse draws n logits with many ties.
func coarse(t *rapid.T, n int) []float32 {
	return rapid.SliceOfN(rapid.SampledFrom([]float32{-2, -1, -0.5, 0, 0.25, 1, 3, float32(math.Inf(1))}), n, n).Draw(t, "logits")
}

func TestSingleAgreesWithTheWhiteboard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes, rows := rapid.IntRange(1, 4).Draw(t, "classes"), rapid.IntRange(0, 20).Draw(t, "rows")
		logits := coarse(t, rows*classes)
		labels := rapid.SliceOfN(rapid.Uint32Range(0, uint32(classes)), rows, rows).Draw(t, "labels")
		guess := make([]int, rows)
		var right, labelled float64
		for r := range rows {
			for c := range classes {
				if logits[r*classes+c] > logits[r*classes+guess[r]] {
					guess[r] = c
				}
			}
			if labels[r] == uint32(classes) {
				labels[r] = kernels.NoLabel
				continue
			}
			labelled++
			if guess[r] == int(labels[r]) {
				right++
			}
		}
		known := func(r, _ int) bool { return labels[r] != kernels.NoLabel }
		micro, macro := slowF1(classes, func(r, c int) bool { return guess[r] == c }, func(r, c int) bool { return int(labels[r]) == c }, known, rows)
		for k, want := range map[Kind]float64{Accuracy: right / labelled, MicroF1: micro, MacroF1: macro} {
			m, err := NewSingle(k, classes)
			require.NoError(t, err)
			for range 2 { // the second time after a Reset
				chunks(t, rows, func(lo, hi int) { m.Add(logits[lo*classes:hi*classes], labels[lo:hi]) })
				got, err := m.Value()
				compare(t, want, got, err)
				m.Reset()
			}
		}
		if classes == 2 {
			var score, positive []float32
			for r, label := range labels {
				if label != kernels.NoLabel && !math.IsNaN(float64(logits[2*r+1]-logits[2*r])) {
					score, positive = append(score, logits[2*r+1]-logits[2*r]), append(positive, float32(label))
				}
			}
			got, err := single(t, ROCAUC, 2, logits, labels)
			if int(labelled) == len(score) {
				compare(t, slowAUC(score, positive), got, err)
			} else {
				require.ErrorIs(t, err, ErrUndefined, "Inf less Inf")
			}
		}
	})
}

func TestMultiAgreesWithTheWhiteboard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes, rows := rapid.IntRange(1, 4).Draw(t, "classes"), rapid.IntRange(0, 30).Draw(t, "rows")
		logits := coarse(t, rows*classes)
		targets := rapid.SliceOfN(rapid.SampledFrom([]float32{0, 1, nan}), rows*classes, rows*classes).Draw(t, "targets")
		micro, macro := slowF1(classes, func(r, c int) bool { return logits[r*classes+c] > 0 }, func(r, c int) bool { return targets[r*classes+c] == 1 },
			func(r, c int) bool { return targets[r*classes+c] == targets[r*classes+c] }, rows)
		var sum, defined float64
		for c := range classes {
			var score, positive []float32
			for r := range rows {
				score, positive = append(score, logits[r*classes+c]), append(positive, targets[r*classes+c])
			}
			if v := slowAUC(score, positive); !math.IsNaN(v) {
				sum += v
				defined++
			}
		}
		for k, want := range map[Kind]float64{MicroF1: micro, MacroF1: macro, ROCAUC: sum / defined} {
			m, err := NewMulti(k, classes)
			require.NoError(t, err)
			for range 2 {
				chunks(t, rows, func(lo, hi int) { m.Add(logits[lo*classes:hi*classes], targets[lo*classes:hi*classes]) })
				got, err := m.Value()
				compare(t, want, got, err)
				again, _ := m.Value()
				require.Equal(t, got, again)
				m.Reset()
			}
		}
	})
}

func BenchmarkROCAUC(b *testing.B) {
	const n = 100_000
	logits, targets := make([]float32, n), make([]float32, n)
	for i := range logits {
		logits[i], targets[i] = float32((i*7919)%n), float32(i%3/2)
	}
	b.Run("scores=100000", func(b *testing.B) {
		m := &multiAUC{make([]scores[float32], 1)}
		for b.Loop() {
			m.Reset()
			m.Add(logits, targets)
			if _, err := m.Value(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
