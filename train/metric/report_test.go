package metric

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/kernels"
)

// ample is more memory than any report takes.
const ample = math.MaxInt64

// reportOf makes the report of rows that come in two chunks.
func reportOf(logits []float32, labels []uint32, classes, cut int) *Report {
	r := NewReporter(classes, false, ample)
	r.Add(logits[:cut*classes], labels[:cut])
	r.Add(logits[cut*classes:], labels[cut:])
	return r.Report(nil)
}

// TestReportOfTwoClasses has four rows whose measures are worked out by hand.
func TestReportOfTwoClasses(t *testing.T) {
	ln3 := float32(math.Log(3))
	r := NewReporter(2, false, ample)
	// The probabilities of class 1 are 3/4, 1/4, 3/4 and 1/2, and the last is predicted as class 0.
	r.Add([]float32{0, ln3, ln3, 0, 0, ln3, 0, 0, 5, 5}, []uint32{1, 0, 0, 1, kernels.NoLabel})
	got := r.Report([]string{"no", "yes"})
	require.EqualValues(t, 4, got.Count)
	require.Equal(t, 0.5, *got.Accuracy)
	require.Equal(t, 0.5, *got.BalancedAccuracy)
	require.Equal(t, 0.5, *got.MacroF1)
	// Of the four pairs, 3/4 > 1/4 and 1/2 > 1/4 count whole, 3/4 = 3/4 half, and 1/2 < 3/4 not.
	require.Equal(t, 0.625, *got.ROCAUC)
	// The recall grows by 1/2 at 3/4, where the precision is 1/2, and at 1/2, where it is 2/3.
	require.InDelta(t, 7./12, *got.PRAUC, 1e-12)
	// Three rows have 3/4, two of them right. The wrong row has 1/2.
	require.InDelta(t, 0.1875, *got.CalibrationError, 1e-6)
	require.Equal(t, [][]int64{{1, 1}, {1, 1}}, got.Confusion)
	require.Equal(t, "yes", got.Classes[1].Name)
	require.Equal(t, *got.ROCAUC, *got.Classes[1].ROCAUC)
	require.Nil(t, got.Classes[0].ROCAUC)
}

// TestReportAgrees: a report has what the accumulators of single metrics measure, in any chunks.
func TestReportAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes, rows := rapid.IntRange(1, 5).Draw(t, "classes"), rapid.IntRange(1, 40).Draw(t, "rows")
		logits := rapid.SliceOfN(rapid.Float32Range(-3, 3), rows*classes, rows*classes).Draw(t, "logits")
		labels := rapid.SliceOfN(rapid.Uint32Range(0, uint32(classes-1)), rows, rows).Draw(t, "labels")
		got := reportOf(logits, labels, classes, rapid.IntRange(0, rows).Draw(t, "cut"))
		require.Equal(t, got, reportOf(logits, labels, classes, 0))
		for kind, value := range map[Kind]*float64{Accuracy: got.Accuracy, MacroF1: got.MacroF1, ROCAUC: got.ROCAUC} {
			one, err := NewSingle(kind, classes)
			if err != nil {
				continue // ROC-AUC of more than two classes
			}
			one.Add(logits, labels)
			want, err := one.Value()
			require.Equal(t, err == nil, value != nil, kind)
			if err == nil {
				require.InDelta(t, want, *value, 1e-12, kind)
			}
		}
		recall, named := 0.0, 0.0
		for c := range got.Classes {
			right, all := 0.0, 0.0
			for i, label := range labels {
				if label == uint32(c) {
					all++
					if Predicted(logits[i*classes:(i+1)*classes]) == label {
						right++
					}
				}
			}
			if all > 0 {
				recall, named = recall+right/all, named+1
			}
		}
		require.InDelta(t, recall/named, *got.BalancedAccuracy, 1e-12)
		binned := int64(0)
		for _, b := range got.Calibration {
			binned += b.Count
		}
		require.EqualValues(t, rows, binned)
	})
}

// TestCalibrationError compares the error with its definition, a loop over the rows for each bin:
// Guo et al. 2017, section 2, where bin m of 15 has the confidences in ((m-1)/15, m/15].
func TestCalibrationError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		classes, rows := rapid.IntRange(1, 5).Draw(t, "classes"), rapid.IntRange(1, 60).Draw(t, "rows")
		logits := rapid.SliceOfN(rapid.Float32Range(-6, 6), rows*classes, rows*classes).Draw(t, "logits")
		labels := rapid.SliceOfN(rapid.Uint32Range(0, uint32(classes-1)), rows, rows).Draw(t, "labels")
		confidenceOf := func(row []float32) float64 {
			sum := 0.0
			for _, x := range row {
				sum += math.Exp(float64(x))
			}
			return min(math.Exp(float64(row[Predicted(row)]))/sum, 1)
		}
		for i := range rows { // at the edge of two bins rounding would decide
			row := logits[i*classes : (i+1)*classes]
			for p := 15 * confidenceOf(row); math.Abs(p-math.Round(p)) < 1e-9 && p < 14.9; p = 15 * confidenceOf(row) {
				row[0] += 0.01
			}
		}
		want := 0.0
		for bin := range 15 {
			n, right, confidence := 0.0, 0.0, 0.0
			for i, label := range labels {
				row := logits[i*classes : (i+1)*classes]
				guess, p := Predicted(row), confidenceOf(row)
				if math.Min(math.Ceil(p*15-1e-9), 15) != float64(bin+1) {
					continue
				}
				n, confidence = n+1, confidence+p
				if guess == label {
					right++
				}
			}
			if n > 0 {
				want += n / float64(rows) * math.Abs(right/n-confidence/n)
			}
		}
		got := reportOf(logits, labels, classes, 0)
		require.InDelta(t, want, *got.CalibrationError, 1e-9)
		require.Len(t, got.Calibration, 15)
	})
}

// TestReportOfManyClasses: several classes a node have no accuracy, confusion or calibration; NaN
// ranks nowhere; nothing has no measures.
func TestReportOfManyClasses(t *testing.T) {
	r := NewReporter(2, true, ample)
	r.AddMulti([]float32{1, -1, -1, 1, 2, 2}, []float32{1, 0, 0, 0, float32(math.NaN()), 1})
	got := r.Report(nil)
	require.Nil(t, got.Accuracy)
	require.Nil(t, got.CalibrationError)
	require.Nil(t, got.Confusion)
	require.Equal(t, 1.0, *got.Classes[0].Recall)
	require.Equal(t, 1.0, *got.ROCAUC)
	require.Equal(t, 0.5, *got.Classes[1].Precision)

	nan := float32(math.NaN())
	none := reportOf([]float32{nan, nan, 0, 1}, []uint32{0, 1}, 2, 1)
	require.Nil(t, none.ROCAUC)
	require.EqualValues(t, 2, none.Count)
	empty := NewReporter(3, false, ample).Report(nil)
	require.Nil(t, empty.Accuracy)
	require.Nil(t, empty.MacroF1)
	require.Nil(t, (*Reporter)(nil).Report(nil))
}

// TestReportStaysWithinItsBytes: the scores of a report take no more than ReportBytes, and beyond
// their share of the memory a report has no areas.
func TestReportStaysWithinItsBytes(t *testing.T) {
	for _, memory := range []int64{ample, 8 << 20, 1 << 16} {
		for _, multi := range []bool{false, true} {
			const classes, rows = 3, 4000
			r := NewReporter(classes, multi, memory)
			logits, labels, targets := make([]float32, classes), make([]uint32, 1), make([]float32, classes)
			for i := range rows {
				logits[i%classes], labels[0], targets[0] = float32(i), uint32(i%classes), float32(i%2)
				if multi {
					r.AddMulti(logits, targets)
				} else {
					r.Add(logits, labels)
				}
			}
			held := 0
			for _, s := range r.ranked {
				held += 4 * (cap(s.positive) + cap(s.negative))
			}
			require.LessOrEqual(t, int64(held), ReportBytes(rows, classes, multi, memory))
			fits := memory != 1<<16
			require.Equal(t, fits, r.Report(nil).ROCAUC != nil)
			require.LessOrEqual(t, ReportBytes(1<<40, classes, multi, memory), memory/memoryShare+1000)
		}
	}
}

// TestMetricStaysWithinItsBytes: the scores that a metric keeps take no more than Kind.Bytes, which
// is 0 for metrics without scores.
func TestMetricStaysWithinItsBytes(t *testing.T) {
	const classes, rows = 3, 4000
	for _, k := range Kinds {
		m, err := NewMulti(k, classes)
		if err != nil {
			continue
		}
		for i := range rows {
			m.Add(make([]float32, classes), []float32{float32(i % 2), 0, 1})
		}
		held := 0
		if a, ok := m.(*multiAUC); ok {
			for _, s := range a.classes {
				held += 4 * (cap(s.positive) + cap(s.negative))
			}
			require.Positive(t, held)
		} else {
			require.Zero(t, k.Bytes(rows, classes, true), k)
		}
		require.LessOrEqual(t, int64(held), k.Bytes(rows, classes, true), k)
	}
	require.Equal(t, ROCAUC.Bytes(rows, 1, true), ROCAUC.Bytes(rows, 2, false))
}
