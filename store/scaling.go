package store

import (
	"errors"
	"fmt"
	"slices"
)

// Scales of numbers. A table stores the scaled numbers.
const (
	ScaleStandard = "standard" // less the mean, divided by the standard deviation
	ScaleMinMax   = "minmax"   // less the least, divided by the range
	ScaleLog      = "log"      // sign(x)·ln(1+|x|); nothing is learnt
	ScaleRank     = "rank"     // the share of the learnt numbers that are smaller, with half of the equal ones
	ScaleQuantile = "quantile" // the quantile of the normal distribution at this share
)

// Scales lists the scales of numbers.
var Scales = []string{ScaleStandard, ScaleMinMax, ScaleLog, ScaleRank, ScaleQuantile}

// MaxKnots bounds the knots of a [Scaling].
const MaxKnots = 1024

// Scaling holds the values that a scale learnt about one number of a column. ScaleStandard and
// ScaleMinMax give (x-Offset)/Divisor. ScaleRank and ScaleQuantile have Knots, in ascending order,
// and for each the share of learnt numbers that are smaller, Below, and smaller or equal, Through.
// Its own share is the middle of both.
type Scaling struct {
	Offset  float64   `json:"offset,omitempty"`
	Divisor float64   `json:"divisor,omitempty"`
	Knots   []float64 `json:"knots,omitempty"`
	Below   []float64 `json:"below,omitempty"`
	Through []float64 `json:"through,omitempty"`
}

// Share returns the share of the learnt numbers below x. Between two knots it is linear, from
// Through of the lower knot to Below of the higher one. Beyond the outermost knots, it is the share
// at the nearest knot.
func (s *Scaling) Share(x float64) float64 {
	i, found := slices.BinarySearch(s.Knots, x)
	if last := len(s.Knots) - 1; i > last {
		i, found = last, true
	}
	if found || i == 0 {
		return (s.Below[i] + s.Through[i]) / 2
	}
	part := (x - s.Knots[i-1]) / (s.Knots[i] - s.Knots[i-1])
	return s.Through[i-1] + float64(part*(s.Below[i]-s.Through[i-1])) // not fused, so that all machines round alike
}

// Equal reports whether both scale numbers in the same way.
func (s *Scaling) Equal(o *Scaling) bool {
	return s.Offset == o.Offset && s.Divisor == o.Divisor &&
		slices.Equal(s.Knots, o.Knots) && slices.Equal(s.Below, o.Below) && slices.Equal(s.Through, o.Through)
}

func (s *Scaling) size() int64 { return int64(128 + 36*3*len(s.Knots)) }

// validate checks the values that a rule learnt.
func (s *Scaling) validate(rule string) error {
	finite := func(x float64) bool { return x-x == 0 }
	ranked, n := rule == ScaleRank || rule == ScaleQuantile, len(s.Knots)
	divides := s.Divisor > 0 && finite(s.Divisor) && finite(s.Offset)
	switch {
	case ranked != (n > 0) || n != len(s.Below) || n != len(s.Through) || n > MaxKnots:
		return fmt.Errorf("%d knots with %d and %d shares of the scale %s", len(s.Knots), len(s.Below), len(s.Through), rule)
	case ranked && (s.Offset != 0 || s.Divisor != 0), !ranked && !divides:
		return fmt.Errorf("the scale %s subtracts %v and divides by %v", rule, s.Offset, s.Divisor)
	}
	for i, x := range s.Knots {
		least, most := s.Below[i], s.Through[i]
		shares := least >= 0 && least <= most && most <= 1
		if !finite(x) || !shares || i > 0 && (s.Knots[i-1] >= x || s.Through[i-1] > least) {
			return fmt.Errorf("knot %d of the scale %s is out of order", i, rule)
		}
	}
	return nil
}

// Parts of dates, each with the number of columns that it takes. The day of a week or month, the
// month and the hour are angles of a circle: a sine and a cosine.
const (
	DateYear    = "year"    // years since 2000
	DateMonth   = "month"   // of the year
	DateDay     = "day"     // of the month
	DateWeekday = "weekday" // from Monday on
	DateHour    = "hour"    // of the day, with the minutes and seconds
	DateAge     = "age"     // years of 365.25 days until the reference
)

// DateParts lists the parts of dates.
var DateParts = []string{DateYear, DateMonth, DateDay, DateWeekday, DateHour, DateAge}

// DateWidth returns the number of columns that a part of dates takes.
func DateWidth(part string) int {
	if DateNumber(part) {
		return 1
	}
	return 2
}

// DateNumber reports whether a part of dates is one number, which may be scaled.
func DateNumber(part string) bool { return part == DateYear || part == DateAge }

// validateScale checks the parts and the scale of a column that has so many numbers.
func (c *Encoding) validateScale(numbers int64) error {
	scaled, dates := numbers, c.Kind == DateColumn
	if dates {
		width := int64(0)
		scaled = 0
		for i, part := range c.Parts {
			if !slices.Contains(DateParts, part) || slices.Contains(c.Parts[:i], part) {
				return fmt.Errorf("part %q of a date, or it is there twice", part)
			}
			if width += int64(DateWidth(part)); DateNumber(part) {
				scaled++
			}
		}
		if width != numbers || (c.Reference != "") != slices.Contains(c.Parts, DateAge) {
			return fmt.Errorf("%d columns for the parts %q of a date, with the reference %q", numbers, c.Parts, c.Reference)
		}
	}
	switch {
	case !dates && (len(c.Parts) > 0 || c.Reference != ""):
		return fmt.Errorf("a %s with parts of a date", c.Kind)
	case c.Scale == "" && len(c.Scalings) == 0:
		return nil
	case !slices.Contains(Scales, c.Scale) || c.Kind == CategoryColumn || c.Kind == FoldedColumns:
		return fmt.Errorf("a %s with the scale %q", c.Kind, c.Scale)
	case scaled == 0, c.Scale != ScaleLog && int64(len(c.Scalings)) != scaled, c.Scale == ScaleLog && len(c.Scalings) > 0:
		return fmt.Errorf("%d numbers of %d have the scale %s", len(c.Scalings), scaled, c.Scale)
	}
	var errs []error
	for i := range c.Scalings {
		errs = append(errs, c.Scalings[i].validate(c.Scale))
	}
	return errors.Join(errs...)
}

// SameScale reports whether both columns have the same parts of dates, and are scaled alike.
func (c *Encoding) SameScale(o *Encoding) bool {
	return c.Scale == o.Scale && c.Reference == o.Reference && slices.Equal(c.Parts, o.Parts) &&
		slices.EqualFunc(c.Scalings, o.Scalings, func(a, b Scaling) bool { return a.Equal(&b) })
}

// ScaleText describes the scale in a few words, as in "standard (mean 3.2, deviation 1.1)". It
// returns "" where numbers are not scaled.
func (c *Encoding) ScaleText() string {
	if c.Scale == "" || len(c.Scalings) != 1 {
		return c.Scale
	}
	s := &c.Scalings[0]
	short := func(x float64) string { return fmt.Sprintf("%.5g", x) }
	switch c.Scale {
	case ScaleStandard:
		return fmt.Sprintf("%s (mean %s, deviation %s)", c.Scale, short(s.Offset), short(s.Divisor))
	case ScaleMinMax:
		return fmt.Sprintf("%s (from %s to %s)", c.Scale, short(s.Offset), short(s.Offset+s.Divisor))
	case ScaleRank, ScaleQuantile:
		last := len(s.Knots) - 1
		return fmt.Sprintf("%s (from %s to %s, median %s)", c.Scale, short(s.Knots[0]), short(s.Knots[last]), short(s.median()))
	}
	return c.Scale
}

// median returns the first knot with half of the numbers below it or equal.
func (s *Scaling) median() float64 {
	i, _ := slices.BinarySearch(s.Through, 0.5)
	return s.Knots[min(i, len(s.Knots)-1)]
}
