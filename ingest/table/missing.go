package table

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/parquet"
)

// missing selects the numbers of a feature in rows that have none.
type missing string

const (
	refuse   missing = "refuse"    // nothing: such a row is bad
	zero     missing = "0"         // zeros
	mean     missing = "mean"      // the mean of the rows that have some
	indicate missing = "indicator" // zeros, and 1 in a column behind them, which is 0 in other rows
)

// missing reads what stands for missing numbers: one word for all features of numbers, or one for
// each.
func (d *document) missing(o *object, taken map[string]*feature) {
	policy := func(w word) missing {
		switch m := missing(w.text); m {
		case refuse, zero, mean, indicate:
			return m
		}
		d.errorf(w.line, "missing %q: choose refuse, 0, mean or indicator", lines.ClipText(w.text))
		return refuse
	}
	n := o.keys["missing"]
	if n == nil {
		return
	}
	if n.Kind != yaml.MappingNode {
		m := policy(o.word("missing"))
		for _, f := range taken {
			if f.numeric() || f.dates != nil && m != mean { // dates have no mean
				f.missing = m
			}
		}
		return
	}
	d.object(n, "missing") // keys are unique
	for i := 0; i+1 < len(n.Content); i += 2 {
		column := d.word(n.Content[i], "a column")
		f := taken[column.text]
		switch m := policy(d.word(n.Content[i+1], "refuse, 0, mean or indicator")); {
		case f == nil:
			d.errorf(column.line, "missing %s: it is not among the features; list it there as well", lines.ClipText(column.text))
		case f.category != nil || f.hashed > 0:
			d.errorf(column.line, "missing %s: it is categorical, where a missing value is none of the categories; leave it out here", lines.ClipText(column.text))
		case f.dates != nil && m == mean:
			d.errorf(column.line, "missing %s: dates have no mean; choose refuse, 0 or indicator", lines.ClipText(column.text))
		default:
			f.missing = m
		}
	}
}

// unknownRule selects what becomes of a category that is not known.
type unknownRule string

const (
	unknownDefault unknownRule = ""       // the bucket if there is one, else refuse
	unknownRefuse  unknownRule = "refuse" // such a row is bad
	unknownMissing unknownRule = "0"      // as a missing one
	unknownBucket  unknownRule = "bucket" // a number for all of them, which is there from the first dataset on
)

// maxRare bounds the N of "bucket:N".
const maxRare = 1 << 30

// unknown reads the rule for unknown categories: one word for all features, or one for each. A
// category is unknown if the dataset to follow lacks it, or if bucket:N leaves it out as rare.
func (d *document) unknown(o *object, taken map[string]*feature) {
	set := func(f *feature, w word) {
		rule, least, rare := strings.Cut(w.text, ":")
		n, err := strconv.Atoi(least)
		if f.rule = unknownRule(rule); rare && (f.rule != unknownBucket || err != nil || n < 1 || n > maxRare) {
			f.rule = "?"
		}
		switch f.rule {
		case unknownRefuse, unknownMissing:
		case unknownBucket:
			f.bucket, f.rare = true, n
		default:
			d.errorf(w.line, "unknown %q: choose refuse; 0, which takes the category for a missing one; or bucket, a number for all of them, "+
				"or bucket:N, which has the categories of fewer than N rows in it", lines.ClipText(w.text))
		}
	}
	n := o.keys["unknown"]
	if n == nil {
		return
	}
	if n.Kind != yaml.MappingNode {
		for _, f := range taken {
			set(f, o.word("unknown"))
		}
		return
	}
	d.object(n, "unknown") // keys are unique
	for i := 0; i+1 < len(n.Content); i += 2 {
		column, rule := d.word(n.Content[i], "a column"), d.word(n.Content[i+1], "refuse, 0 or bucket")
		if f := taken[column.text]; f != nil {
			set(f, rule)
			f.named = true
		} else {
			d.errorf(column.line, "unknown %s: it is not among the features; list it there as well", lines.ClipText(column.text))
		}
	}
}

// isMissing reports whether a cell has no number.
func isMissing(v *value) bool {
	switch v.Kind {
	case parquet.Null:
		return true
	case parquet.Float:
		return v.Float != v.Float
	case parquet.Text:
		return len(ingest.LabelText(v.Text)) == 0
	}
	return false
}

// stand appends the numbers that stand for missing ones. A mean, or a 0 in place of a number, is
// scaled as other numbers are. A 0 beside an indicator is not scaled, and neither is a 0 in place
// of a date.
func (f *feature) stand(row []float32) ([]float32, error) {
	scaled := f.scaler != nil && f.dates == nil
	switch {
	case f.missing == mean:
		for i, x := range f.means {
			if scaled {
				x = float32(f.scaler.scale(i, float64(x)))
			}
			row = append(row, x)
		}
		return row, nil
	case f.missing == zero && scaled:
		for i := range f.dim {
			row = append(row, float32(f.scaler.scale(i, 0)))
		}
		return row, nil
	case f.missing == zero || f.missing == indicate:
		row = append(row, make([]float32, f.dim)...)
		if f.missing == indicate {
			row = append(row, 1)
		}
		return row, nil
	}
	if f.dates != nil {
		return row, fmt.Errorf("a date is missing; fill it in, leave the column out, or say in the schema what stands for it, as in missing: {%s: indicator}", lines.ClipText(f.text))
	}
	return row, fmt.Errorf("a number is missing; fill it in, leave the column out, or say in the schema what stands for it, as in missing: {%s: mean}", lines.ClipText(f.text))
}

// average is the mean of a feature's cells, which are added up in float64 in the order of the rows.
type average struct {
	sums          []float64
	cells, absent int64
	means         []float32 // nil until known
}

// learn adds the numbers of a cell, none when they are missing.
func (a *average) learn(numbers []float32) {
	if len(numbers) == 0 {
		a.absent++
		return
	}
	if a.sums == nil {
		a.sums = make([]float64, len(numbers))
	}
	for i, x := range numbers {
		a.sums[i] += float64(x)
	}
	a.cells++
}

// settle divides, and reports whether there is anything to divide.
func (a *average) settle() bool {
	for _, sum := range a.sums {
		a.means = append(a.means, float32(sum/float64(a.cells)))
	}
	return a.cells > 0
}

// filled lists the features whose missing cells have a mean.
func filled(tables []matrix) (notes []string) {
	for _, t := range tables {
		for _, f := range t.features {
			if f.missing != mean || f.absent == 0 {
				continue
			}
			var means []string
			for _, m := range f.means[:min(len(f.means), 3)] {
				means = append(means, strconv.FormatFloat(float64(m), 'g', 6, 32))
			}
			if len(f.means) > 3 {
				means = append(means, "…")
			}
			notes = append(notes, fmt.Sprintf("column %s: %d cells without a number have the mean of the %d others, %s",
				lines.ClipText(f.text), f.absent, f.cells, strings.Join(means, ";")))
		}
	}
	return notes
}
