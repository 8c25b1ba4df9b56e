package lines

import (
	"errors"
	"fmt"
	"strconv"
)

// Clock reads the times in one column, in the order of its rows, as float64 seconds: since 1970
// where they are dates, or counts of a [Unit]. Plain numbers without a unit stay as they are. It
// refuses a column that mixes these. It also refuses two different times that would become the same
// float. Microseconds stay distinct. Nanoseconds are rounded: Clock then compares each time with
// the one before, so the rows must be in the order of time.
type Clock struct {
	unit    Unit
	kind    timeKind // of the first
	any     bool
	follows bool    // one was read before
	last    Instant // that one
	float   float64 // its seconds
	falls   bool    // a time was earlier than the one before
	rounded bool    // some were
	text    []byte
}

type timeKind uint8

const (
	numberTime timeKind = iota
	zonedTime
	localTime
)

func (k timeKind) String() string {
	return [...]string{"a number", "a date with a time zone", "a date without a time zone"}[k]
}

// NewClock reads plain numbers as counts of unit; 0: as they are.
func NewClock(unit Unit) *Clock { return &Clock{unit: unit} }

// Seconds reads a cell. Errors have no place.
func (c *Clock) Seconds(cell []byte) (float64, error) {
	t, zone, dated := ParseInstant(cell)
	kind := numberTime
	if dated {
		if kind = localTime; zone == Zoned {
			kind = zonedTime
		}
	}
	if !dated {
		if x, done, err := c.number(cell, &t); err != nil || done {
			return x, err
		}
	}
	if err := c.check(cell, kind); err != nil {
		return 0, err
	}
	if dated && c.unit != 0 {
		return 0, fmt.Errorf("%q is a date, which needs no unit; leave {time_unit} out", Clip(cell))
	}
	return c.follow(cell, t)
}

// check refuses a time of another kind than the first.
func (c *Clock) check(cell []byte, kind timeKind) error {
	if !c.any {
		c.any, c.kind = true, kind
	}
	if c.kind != kind {
		return fmt.Errorf("%q is %v, and the first time in the column is %v; write all in one way", Clip(cell), kind, c.kind)
	}
	return nil
}

// number reads a cell that is no date. A whole count of the unit goes into t. Any other number is
// returned as x, and done is true.
func (c *Clock) number(cell []byte, t *Instant) (x float64, done bool, err error) {
	if c.unit != 0 {
		if n, ok := Integer(cell); ok {
			*t, _ = At(n, c.unit)
			return 0, false, nil
		}
	}
	x, err = Float(cell, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return 0, false, fmt.Errorf("%q is not a number, as times are, or a date with the year first, "+
			"as in 2020-01-03 10:00:00; choose another {time}", Clip(cell))
	case err != nil || x-x != 0:
		return 0, false, fmt.Errorf("%q is not a finite number of 64 bits, as times are", Clip(cell))
	}
	if err := c.check(cell, numberTime); err != nil {
		return 0, false, err
	}
	if !Exact(cell, x) {
		remedy := "subtract the first time from all, or write a coarser unit"
		if _, ok := Integer(cell); ok {
			remedy = "where they count from 1970, name the unit: {time_unit} ns, us or ms"
		}
		return 0, false, fmt.Errorf("%q has more digits than a time keeps, which is a float of 64 bits (integers "+
			"up to 2⁵³), so that times that differ would be one; %s", Clip(cell), remedy)
	}
	switch c.unit { // a fraction of a unit
	case Millisecond:
		x, err = c.scaled(cell, x, "e-3", 1e3)
	case Microsecond:
		x, err = c.scaled(cell, x, "e-6", 1e6)
	case Nanosecond:
		x, err = c.scaled(cell, x, "e-9", 1e9)
	}
	return x, true, err
}

// scaled returns the float nearest to a number that is divided by a power of ten. A number with an
// exponent is divided once it is a float.
func (c *Clock) scaled(cell []byte, x float64, exponent string, by float64) (float64, error) {
	c.text = append(append(c.text[:0], cell...), exponent...)
	y, err := strconv.ParseFloat(string(c.text), 64)
	if err != nil {
		y = x / by
	}
	if !Exact(cell, y) {
		return 0, fmt.Errorf("%q has more digits than a time keeps in seconds, which are a float of 64 bits; "+
			"write it as an integer", Clip(cell))
	}
	return y, nil
}

// follow returns the seconds of the time behind the last.
func (c *Clock) follow(cell []byte, t Instant) (float64, error) {
	x := t.Seconds()
	switch before := c.last; {
	case !c.follows || before == t:
	case x == c.float:
		return 0, fmt.Errorf("%q and the time before it are one in seconds of 64 bits, which are 0.24 µs apart today; "+
			"subtract the first time from all, or write microseconds", Clip(cell))
	default:
		c.falls = c.falls || t.before(before)
	}
	c.rounded = c.rounded || !t.distinct()
	c.follows, c.last, c.float = true, t, x
	if c.rounded && c.falls {
		return 0, fmt.Errorf("%q: times are finer than a microsecond, or large, and rows are not in the order of "+
			"time, so that two times could become one unseen; sort the rows by time, or round the times", Clip(cell))
	}
	return x, nil
}

// Dates reads a column of integers that may be dates: as counts of a unit since 1970. It refuses a
// column that mixes these.
type Dates struct {
	Unit  Unit
	Alone bool // plain integers are refused
	kind  timeKind
	any   bool
}

// Count reads a cell. It returns false for a cell that is no date. Errors have no place.
func (d *Dates) Count(cell []byte) (n int64, dated bool, err error) {
	t, zone, ok := ParseInstant(cell)
	kind := numberTime
	if ok {
		if kind = localTime; zone == Zoned {
			kind = zonedTime
		}
	}
	if kind == numberTime && d.Alone {
		return 0, false, fmt.Errorf("%q is no date with the year first, as in 2020-01-03 10:00:00; "+
			"to keep numbers choose the type i64 or f32", Clip(cell))
	}
	if !d.any {
		d.any, d.kind = true, kind
	}
	switch {
	case d.kind != kind:
		return 0, ok, fmt.Errorf("%q is %v, and the first in the column is %v; write all in one way", Clip(cell), kind, d.kind)
	case kind == numberTime:
		return 0, false, nil
	}
	if n, ok = t.Count(d.Unit); !ok {
		finer := map[Unit]string{Second: "ms, us or ns", Millisecond: "us or ns", Microsecond: "ns"}[d.Unit]
		if finer == "" {
			return 0, true, fmt.Errorf("%q is beyond the nanoseconds that 64 bits hold; choose the type us", Clip(cell))
		}
		const between = "%q is between two counts of the column's unit since 1970; choose the type %s"
		return 0, true, fmt.Errorf(between, Clip(cell), finer)
	}
	return n, true, nil
}
