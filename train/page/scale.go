package page

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/kernels"
)

// Unit is the unit of numbers on an axis.
type Unit int

// The units.
const (
	Number  Unit = iota // with four digits
	Integer             // whole, with separators of thousands
	Share               // from 0 to 1, in percent
	Bytes               // with a binary unit
	Seconds
)

// Text writes a number with its unit.
func (u Unit) Text(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case u == Integer:
		return count(v)
	case u == Share:
		return strconv.FormatFloat(100*v, 'f', 2, 64) + " %"
	case u == Bytes:
		return kernels.FormatBytes(int64(min(max(v, -1<<62), 1<<62)))
	case u == Seconds && v != 0 && math.Abs(v) < 1:
		return strconv.FormatFloat(1000*v, 'g', 3, 64) + " ms"
	case u == Seconds:
		return fmt.Sprintf("%.*f s", decimals(v), v)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

func decimals(v float64) int {
	if math.Abs(v) < 100 && v != math.Trunc(v) {
		return 1
	}
	return 0
}

// count writes a whole number with separators of thousands.
func count(v float64) string {
	s := strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Axis is a direction of a chart.
type Axis struct {
	Name string
	Unit Unit
	Log  bool // logarithmic; only positive numbers have a place then
	// Zero makes the axis begin at 0 or below, and a logarithmic axis below its lowest number. Full
	// makes it end at 1 or above.
	Zero, Full bool
	// Ticks are the marks of the axis; nil: round numbers.
	Ticks []Tick
}

// Tick is a mark of an axis with a text of its own. Tables and the cursor show Long; empty: Text.
type Tick struct {
	At         float64
	Text, Long string
}

// text returns a number of the axis as text: the text of its tick, or the number with its unit.
func (a Axis) text(v float64) string {
	for _, t := range a.Ticks {
		if t.At == v {
			return cmp.Or(t.Long, t.Text)
		}
	}
	return a.Unit.Text(v)
}

// tick is a Tick at its place on the axis, from 0 to 1.
type tick struct {
	at   float64
	text string
}

// scale is an axis with its range.
type scale struct {
	Axis
	low, high float64
	ticks     []tick
}

// of returns the place of v on the axis: 0 at the low end, and 1 at the high end.
func (s *scale) of(v float64) float64 {
	low, high := s.low, s.high
	if s.Log {
		low, high, v = math.Log(low), math.Log(high), math.Log(v)
	}
	if high == low {
		return 0.5
	}
	return (v - low) / (high - low)
}

// largest is the largest number that has a place on an axis. Differences of larger numbers
// overflow.
const largest = 1e300

// shows reports whether v has a place on the axis.
func (a Axis) shows(v float64) bool {
	return !math.IsNaN(v) && math.Abs(v) <= largest && (!a.Log || v >= 1/largest)
}

// finite returns v, or 0 if v is NaN.
func finite(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// fit returns the scale of an axis for numbers from low to high, with about most ticks. If widen is
// set, it begins and ends at a tick.
func (a Axis) fit(low, high float64, most int, widen bool) *scale {
	switch {
	case a.Zero && a.Log:
		low /= 2 // so that the lowest number is not at the bottom
	case a.Zero:
		low, high = min(low, 0), max(high, 0)
	}
	if a.Full {
		high = max(high, 1)
	}
	s := &scale{Axis: a, low: low, high: high}
	if low == high {
		switch {
		case a.Log:
			s.low, s.high = low/2, high*2
		case low == 0:
			s.high = 1
		case a.Zero:
		case a.Unit == Integer:
			s.low, s.high = low-1, high+1
		default:
			s.low, s.high = low-math.Abs(low)/10, high+math.Abs(high)/10
		}
	}
	if a.Ticks != nil {
		for _, t := range a.Ticks {
			if at := s.of(t.At); at > -1e-9 && at < 1+1e-9 {
				s.ticks = append(s.ticks, tick{at, t.Text})
			}
		}
		return s
	}
	values, text := s.linear(most), s.tickText
	if a.Log {
		values = s.decades(most)
	}
	if widen && len(values) > 1 {
		s.low, s.high = min(s.low, values[0]), max(s.high, values[len(values)-1])
	}
	if a.Unit == Share && low >= 0 && high <= 1 { // a share has no other values
		s.low, s.high = max(s.low, 0), min(s.high, 1)
	}
	step := s.high - s.low
	if len(values) > 1 {
		step = values[1] - values[0]
	}
	for _, v := range values {
		if at := s.of(v); at > -1e-9 && at < 1+1e-9 {
			s.ticks = append(s.ticks, tick{at, text(v, step)})
		}
	}
	return s
}

// linear returns multiples of a round step that cover the range, with at most most steps within it.
func (s *scale) linear(most int) (values []float64) {
	base := 1.0
	if s.Unit == Bytes {
		for base*1024 <= s.high {
			base *= 1024
		}
	}
	raw := (s.high - s.low) / base / float64(most)
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*step >= raw*(1-1e-9) {
			step *= m
			break
		}
	}
	if s.Unit == Integer || s.Unit == Bytes && base == 1 {
		step = max(1, step)
	}
	step *= base
	first := math.Floor(s.low/step + 1e-9)
	for i := first; len(values) <= 2*most; i++ {
		values = append(values, i*step)
		if i*step >= s.high-step*1e-9 {
			break
		}
	}
	return values
}

// decades returns numbers that cover the range and begin with 1, 2 or 5. In longer ranges they
// begin with 1 or 3, or with 1 alone.
func (s *scale) decades(most int) []float64 {
	for _, marks := range [][]float64{{1, 2, 5}, {1, 3}, {1}} {
		for every := 1; every < 400; every++ {
			var values []float64
			from, to := math.Floor(math.Log10(s.low)), math.Ceil(math.Log10(s.high))
			for e := from; e <= to; e++ {
				if math.Mod(e-from, float64(every)) != 0 {
					continue
				}
				for _, m := range marks {
					values = append(values, m*math.Pow(10, e))
				}
			}
			for len(values) > 1 && values[1] <= s.low {
				values = values[1:]
			}
			for len(values) > 1 && values[len(values)-2] >= s.high {
				values = values[:len(values)-1]
			}
			if len(values) <= most+2 {
				return values
			}
			if len(marks) > 1 {
				break // try fewer numbers a decade before leaving decades out
			}
		}
	}
	return []float64{s.low, s.high}
}

// tickText returns the text of a tick at v, with no more digits than the step between ticks needs.
func (s *scale) tickText(v, step float64) string {
	if s.Log {
		step = v
	}
	if math.Abs(v) < math.Abs(step)*1e-9 {
		v = 0
	}
	digits := func(step float64) int { return int(min(max(math.Ceil(-math.Log10(math.Abs(step))-1e-9), 0), 6)) }
	switch s.Unit {
	case Integer:
		return short(v)
	case Share:
		return strconv.FormatFloat(100*v, 'f', digits(100*step), 64) + " %"
	case Bytes:
		return strings.Replace(kernels.FormatBytes(int64(min(v, 1<<62))), ".0 ", " ", 1)
	case Seconds:
		if v == 0 {
			return "0 s"
		}
		if math.Abs(s.high) < 1 {
			return strconv.FormatFloat(1000*v, 'f', digits(1000*step), 64) + " ms"
		}
		return strconv.FormatFloat(v, 'f', digits(step), 64) + " s"
	}
	if a := math.Abs(v); a >= 1e5 || a > 0 && a < 1e-4 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return strconv.FormatFloat(v, 'f', digits(step), 64)
}

// short returns a whole number as text, from 10,000 on with a decimal unit: 20 k.
func short(v float64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{" G", 1e9}, {" M", 1e6}, {" k", 1e3}} {
		if math.Abs(v) >= 10*u.size || u.size > 1e3 && math.Abs(v) >= u.size {
			return strconv.FormatFloat(v/u.size, 'g', 4, 64) + u.name
		}
	}
	return count(v)
}
