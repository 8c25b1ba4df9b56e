package table

import (
	"fmt"
	"math"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/setting"
)

// scaler scales the numbers of a feature in float64, before they become numbers of a table. So a
// column may hold numbers that a table of 16 bits cannot.
type scaler struct {
	word    // one of store.Scales
	learnt  []store.Scaling
	known   bool      // learnt is from another dataset
	moments []moments // of each number, while the rule is learnt
	ranks   []sketch  // of each number, for ranks and quantiles
	cells   int64     // that were learnt
	same    bool      // a number was the same in all of them
}

// moments learn the mean, the deviation and the extremes of numbers by the recurrence of Welford,
// "Note on a Method for Calculating Corrected Sums of Squares and Products".
type moments struct {
	count       float64
	mean        float64
	squares     float64 // the sum of squared differences from the mean
	least, most float64
}

func (m *moments) add(x float64) {
	if m.count == 0 {
		m.least, m.most = x, x
	}
	m.count++
	m.least, m.most = min(m.least, x), max(m.most, x)
	delta := x - m.mean
	m.mean += float64(delta / m.count)
	m.squares += float64(delta * (x - m.mean)) // without float64, some machines would fuse and round otherwise
}

// ranked reports whether the rule learns a distribution.
func (s *scaler) ranked() bool { return s.text == store.ScaleRank || s.text == store.ScaleQuantile }

// learns reports whether the rule has to see all rows.
func (s *scaler) learns() bool { return s != nil && !s.known && s.text != store.ScaleLog }

// begin forgets what was learnt from this source.
func (s *scaler) begin() {
	if !s.known {
		*s = scaler{word: s.word}
	}
}

// learn adds the numbers of a cell.
func (s *scaler) learn(numbers []float64) {
	if !s.learns() {
		return
	}
	if s.cells++; s.cells == 1 {
		s.moments, s.ranks = make([]moments, len(numbers)), make([]sketch, len(numbers))
	}
	for i, x := range numbers {
		if s.ranked() {
			s.ranks[i].add(x)
		} else {
			s.moments[i].add(x)
		}
	}
}

// settle computes the rule from the learnt numbers. It reports whether any were learnt. Standard
// and minmax turn a number that is the same in all rows into 0: they divide it by 1, as
// scikit-learn does.
func (s *scaler) settle() bool {
	if !s.learns() {
		return true
	}
	for i := range s.moments {
		m := &s.moments[i] // empty for ranks
		var of store.Scaling
		switch s.text {
		case store.ScaleStandard:
			of = store.Scaling{Offset: m.mean, Divisor: math.Sqrt(m.squares / m.count)}
		case store.ScaleMinMax:
			of = store.Scaling{Offset: m.least, Divisor: m.most - m.least}
		default:
			of = s.ranks[i].scaling()
		}
		if m.least == m.most && !s.ranked() || len(of.Knots) == 1 {
			s.same = true
		}
		if !s.ranked() && (m.least == m.most || of.Divisor == 0) {
			of.Divisor = 1
		}
		s.learnt = append(s.learnt, of)
	}
	s.moments, s.ranks = nil, nil
	return s.cells > 0
}

// extremeQuantile is the largest quantile of the normal distribution that a number can become. A
// share of 10^-7 lies beyond it, as in scikit-learn.
const extremeQuantile = 5.199337582605575

// scale returns the i-th number of a cell as it is stored.
func (s *scaler) scale(i int, x float64) float64 {
	switch s.text {
	case store.ScaleLog:
		return math.Copysign(math.Log1p(math.Abs(x)), x)
	case store.ScaleRank:
		return s.learnt[i].Share(x)
	case store.ScaleQuantile:
		quantile := math.Sqrt2 * math.Erfinv(2*s.learnt[i].Share(x)-1)
		return max(-extremeQuantile, min(quantile, extremeQuantile))
	}
	return (x - s.learnt[i].Offset) / s.learnt[i].Divisor
}

// affine applies (x+plus)/per to the values that were learnt for the i-th number.
func (s *scaler) affine(i int, plus, per float64) {
	of := &s.learnt[i]
	for k := range of.Knots {
		of.Knots[k] = (of.Knots[k] + plus) / per
	}
	if !s.ranked() {
		of.Offset = (of.Offset + plus) / per
		if of.Divisor != 1 || !s.same {
			of.Divisor /= per
		}
	}
}

// maxRanked bounds the numbers of an entry's rows that have ranks or quantiles. Each takes 100
// KiB in the encodings of a dataset, which have room for 32 MiB, and 256 KiB while it is learnt.
const maxRanked = 200

// checkRanked returns an error if a dataset cannot keep so many ranks and quantiles.
func (e *entry) checkRanked(tables []matrix) error {
	n := 0
	for _, t := range tables {
		for _, f := range t.features {
			if f.scaler != nil && f.scaler.ranked() {
				n += f.scaledNumbers()
			}
			if n > maxRanked {
				return fmt.Errorf("%s: line %d: scale: column %s: %s and %s are for %d numbers of a row at most; choose %s, %s or %s",
					e.schema, f.scaler.line, lines.ClipText(f.text), store.ScaleRank, store.ScaleQuantile, maxRanked,
					store.ScaleStandard, store.ScaleMinMax, store.ScaleLog)
			}
		}
	}
	return nil
}

// scaledNumbers returns the number of a cell's numbers that are scaled.
func (f *feature) scaledNumbers() int {
	if f.dates == nil {
		return f.dim
	}
	return f.dates.numbers()
}

// scale reads the rules by which columns are scaled: one word for all numbers, or one for each
// column.
func (d *document) scale(o *object, taken map[string]*feature) {
	n := o.keys["scale"]
	if n == nil {
		return
	}
	rule := func(w word) *scaler {
		if !slices.Contains(store.Scales, w.text) {
			d.errorf(w.line, "scale %q: %schoose %s", lines.ClipText(w.text), nearest(w.text, store.Scales), setting.OneOf(store.Scales))
		}
		return &scaler{word: w}
	}
	if n.Kind != yaml.MappingNode {
		w := o.word("scale")
		for _, f := range taken {
			if f.numeric() || f.dates != nil && f.dates.numbers() > 0 {
				f.scaler = rule(w)
			}
		}
		return
	}
	d.object(n, "scale") // keys are unique
	for i := 0; i+1 < len(n.Content); i += 2 {
		column, w := d.word(n.Content[i], "a column"), d.word(n.Content[i+1], setting.OneOf(store.Scales))
		f := taken[column.text]
		switch {
		case f == nil:
			d.errorf(column.line, "scale %s: it is not among the features; list it there as well", lines.ClipText(column.text))
		case f.dates != nil && f.dates.numbers() == 0:
			d.errorf(column.line, "scale %s: of a date, only %s and %s are numbers to scale; list one of them under dates, or leave it out here",
				lines.ClipText(column.text), store.DateYear, store.DateAge)
		case f.dates == nil && !f.numeric():
			d.errorf(column.line, "scale %s: it is categorical, and categories are no numbers to scale; leave it out here, or out of %s",
				lines.ClipText(column.text), f.categoryKey())
		default:
			f.scaler = rule(w)
		}
	}
}

// learnFrom reads which rows means, scales and newest dates are learnt from.
func (d *document) learnFrom(o *object, e *nodes) {
	w := o.word("learn_from")
	switch w.text {
	case "", "all":
	case "train":
		e.trainOnly = true
		if !e.split.set() && !e.masks[0].set() {
			d.errorf(w.line, "learn_from: train: the rows do not say which of them train; name their column with split, or with masks")
		}
	default:
		d.errorf(w.line, "learn_from %q: %schoose all or train", lines.ClipText(w.text), nearest(w.text, []string{"all", "train"}))
	}
}

// nearest returns "did you mean X? " for the word of words that is nearest to text, or "" if none
// is near.
func nearest(text string, words []string) string {
	if near := setting.Nearest(text, words); near != "" {
		return fmt.Sprintf("did you mean %s? ", near)
	}
	return ""
}

// constants returns a note for each column with a scaled number that is the same in all rows.
func constants(tables []matrix) (notes []string) {
	for _, t := range tables {
		for _, f := range t.features {
			if f.scaler == nil || !f.scaler.same {
				continue
			}
			notes = append(notes, fmt.Sprintf("column %s: a number of it is the same in all rows, so that scale: %s tells nothing; leave the column out",
				lines.ClipText(f.text), f.scaler.text))
		}
	}
	return notes
}
