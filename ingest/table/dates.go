package table

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/parquet"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/setting"
)

// dates turns a column of dates into numbers.
type dates struct {
	parts     []string      // some of store.DateParts, in order
	unit      lines.Unit    // of integers, as counts since 1970; 0: there are none
	reference lines.Instant // ages are counted to it
	given     bool          // the reference is given, or from another dataset
	any       bool          // some date was learnt
}

// width returns the number of columns.
func (d *dates) width() (n int) {
	for _, part := range d.parts {
		n += store.DateWidth(part)
	}
	return n
}

// numbers returns the number of parts that are numbers, which may be scaled.
func (d *dates) numbers() (n int) {
	for _, part := range d.parts {
		if store.DateNumber(part) {
			n++
		}
	}
	return n
}

func (d *dates) hasAge() bool { return slices.Contains(d.parts, store.DateAge) }

// begin forgets what was learnt from this source.
func (d *dates) begin() {
	d.any = false
	if !d.given {
		d.reference = lines.Instant{}
	}
}

// learn notes a date. The newest one is the reference for ages, if none is given.
func (d *dates) learn(t lines.Instant) {
	newer := t.Sec > d.reference.Sec || t.Sec == d.reference.Sec && t.Nanos > d.reference.Nanos
	if !d.given && (!d.any || newer) {
		d.reference = t
	}
	d.any = true
}

const yearSeconds = 365.25 * 86400

// age returns the years from t to the reference.
func (d *dates) age(t lines.Instant) float64 {
	seconds := float64(d.reference.Sec-t.Sec) + float64(float64(d.reference.Nanos-t.Nanos)/1e9)
	return seconds / yearSeconds
}

// scalable appends the parts that may be scaled, for a rule to learn. As long as the reference is
// not known, an age is in seconds, and counted to 1970: see settle.
func (d *dates) scalable(dst []float64, t lines.Instant) []float64 {
	for _, part := range d.parts {
		switch part {
		case store.DateYear:
			dst = append(dst, float64(utc(t).Year()-2000))
		case store.DateAge:
			dst = append(dst, float64(-t.Sec)-float64(float64(t.Nanos)/1e9))
		}
	}
	return dst
}

// settle turns the ages that a scaler has learnt into years until the reference.
func (d *dates) settle(s *scaler) {
	if !s.learns() {
		return
	}
	i := 0
	for _, part := range d.parts {
		if part == store.DateAge {
			s.affine(i, float64(d.reference.Sec)+float64(float64(d.reference.Nanos)/1e9), yearSeconds)
		}
		if store.DateNumber(part) {
			i++
		}
	}
}

func utc(t lines.Instant) time.Time { return time.Unix(t.Sec, int64(t.Nanos)).UTC() }

// angle rounds a sine or cosine to float32. A quarter of a circle has exact zeros.
func angle(x float64) float32 {
	if math.Abs(x) < 1e-12 {
		return 0
	}
	return float32(x)
}

// append appends the numbers of a date. scaler may be nil.
func (d *dates) append(row []float32, t lines.Instant, scaler *scaler) []float32 {
	on := utc(t)
	circle := func(part, whole float64) {
		sin, cos := math.Sincos(2 * math.Pi * part / whole)
		row = append(row, angle(sin), angle(cos))
	}
	scaled := 0
	number := func(x float64) {
		if scaler != nil {
			x = scaler.scale(scaled, x)
		}
		scaled++
		row = append(row, float32(x))
	}
	for _, part := range d.parts {
		switch part {
		case store.DateYear:
			number(float64(on.Year() - 2000))
		case store.DateMonth:
			circle(float64(on.Month()-time.January), 12)
		case store.DateDay:
			circle(float64(on.Day()-1), 31)
		case store.DateWeekday:
			circle(float64((on.Weekday()+6)%7), 7)
		case store.DateHour:
			circle(float64(on.Hour()*3600+on.Minute()*60+on.Second()), 86400)
		case store.DateAge:
			number(d.age(t))
		}
	}
	return row
}

// read reads the time of a cell. All dates of a column are written in one way, which kept knows.
func (d *dates) read(v *value, kept *lines.Dates) (t lines.Instant, err error) {
	var buf [24]byte
	text := textOf(v, buf[:0])
	t, dated, err := kept.Instant(text)
	if err != nil {
		return t, err
	}
	fits := true
	if !dated {
		n, ok := v.Int, v.Kind == parquet.Int
		switch v.Kind {
		case parquet.Float:
			n, ok = lines.Whole(v.Float)
		case parquet.Text:
			n, ok = lines.Integer(v.Text)
		}
		switch {
		case !ok:
			return t, fmt.Errorf("%q is no date with the year first, as in 2020-01-03 10:00:00; write dates so, or leave the column out of dates",
				lines.ClipText(string(text)))
		case d.unit == 0:
			return t, fmt.Errorf("%q is an integer, and a date is expected; if it counts from 1970, name the unit, as in units: {COLUMN: s}",
				lines.ClipText(string(text)))
		}
		t, fits = lines.At(n, d.unit)
	}
	if year := utc(t).Year(); !fits || t.Sec < -1<<40 || t.Sec > 1<<40 || year < 1 || year > 9999 {
		return t, fmt.Errorf("%q is beyond the years 1 to 9999; is the unit another?", lines.ClipText(string(text)))
	}
	return t, nil
}

// dates reads the columns that are dates, their parts, and the times to which ages are counted.
func (d *document) dates(o *object, taken map[string]*feature) {
	if n := o.keys["dates"]; n != nil {
		if n.Kind != yaml.MappingNode {
			d.errorf(n.Line, "dates: want the parts of each column, as in {signup: [year, month, age]}; there are %s", setting.OneOf(store.DateParts))
			return
		}
		d.object(n, "dates") // keys are unique
		for i := 0; i+1 < len(n.Content); i += 2 {
			column := d.word(n.Content[i], "a column")
			f := taken[column.text]
			if f == nil {
				d.errorf(column.line, "dates %s: it is not among the features; list it there as well", lines.ClipText(column.text))
				return
			}
			f.dates = &dates{parts: d.dateParts(column, n.Content[i+1])}
			f.dim = f.dates.width()
		}
	}
	if n := o.keys["reference"]; n != nil {
		d.references(n, taken)
	}
}

// dateParts reads the parts of a column.
func (d *document) dateParts(column word, n *yaml.Node) (parts []string) {
	for _, w := range d.words(n, "a part of a date") {
		switch {
		case !slices.Contains(store.DateParts, w.text):
			d.errorf(w.line, "dates %s: %q is no part of a date; %schoose some of %s", lines.ClipText(column.text),
				lines.ClipText(w.text), nearest(w.text, store.DateParts), strings.Join(store.DateParts, ", "))
		case slices.Contains(parts, w.text):
			d.errorf(w.line, "dates %s: %s is there twice", lines.ClipText(column.text), w.text)
		}
		parts = append(parts, w.text)
	}
	if len(parts) == 0 {
		d.errorf(column.line, "dates %s: an empty list; choose some of %s", lines.ClipText(column.text), strings.Join(store.DateParts, ", "))
	}
	return parts
}

// references reads the time to which the ages of each column are counted.
func (d *document) references(n *yaml.Node, taken map[string]*feature) {
	if n.Kind != yaml.MappingNode {
		d.errorf(n.Line, "reference: want the date that the ages of each column are counted to, as in {signup: 2024-12-31}")
		return
	}
	d.object(n, "reference") // keys are unique
	for i := 0; i+1 < len(n.Content); i += 2 {
		column, w := d.word(n.Content[i], "a column"), d.word(n.Content[i+1], "a date")
		f := taken[column.text]
		if f == nil || f.dates == nil || !f.dates.hasAge() {
			d.errorf(column.line, "reference %s: it is for the age of a date; list the column under dates, as in dates: {%s: [age]}",
				lines.ClipText(column.text), lines.ClipText(column.text))
			return
		}
		t, _, ok := lines.ParseInstant([]byte(w.text))
		if !ok {
			d.errorf(w.line, "reference %s: %q is no date with the year first, as in 2024-12-31", lines.ClipText(column.text), lines.ClipText(w.text))
		}
		f.dates.reference, f.dates.given = t, true
	}
}
