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
	kind    timeKind // of the first time
	follows bool     // last is set
	last    Instant  // the time before
	float   float64  // last in seconds
	falls   bool     // some time was earlier than the one before it
	rounded bool     // some time was rounded
	text    []byte   // a buffer
}

// timeKind is a way to write a time. A column keeps the kind of its first time.
type timeKind uint8

const (
	noTime timeKind = iota // no time was read yet
	numberTime
	zonedTime
	localTime
)

func (k timeKind) String() string {
	return [...]string{"nothing", "a number", "a date with a time zone", "a date without a time zone"}[k]
}

// parseTime reads a cell as a date. A cell that is no date has numberTime, number or not.
func parseTime(cell []byte) (Instant, timeKind) {
	t, zone, dated := ParseInstant(cell)
	switch {
	case !dated:
		return t, numberTime
	case zone == Zoned:
		return t, zonedTime
	}
	return t, localTime
}

// check refuses a cell that is written in another way than the first of its column, which k keeps.
func (k *timeKind) check(cell []byte, kind timeKind) error {
	if *k == noTime {
		*k = kind
	}
	if *k != kind {
		return fmt.Errorf("%q is %v, and the first in the column is %v; write all in one way", Clip(cell), kind, *k)
	}
	return nil
}

// NewClock returns a Clock that reads plain numbers as counts of unit. Unit 0 keeps them as they
// are.
func NewClock(unit Unit) *Clock { return &Clock{unit: unit} }

// Seconds reads a cell. Its errors name no place.
func (c *Clock) Seconds(cell []byte) (float64, error) {
	t, kind := parseTime(cell)
	if kind == numberTime {
		n, whole := Integer(cell)
		if c.unit == 0 || !whole {
			return c.number(cell)
		}
		t, _ = At(n, c.unit)
	}
	if err := c.kind.check(cell, kind); err != nil {
		return 0, err
	}
	if kind != numberTime && c.unit != 0 {
		return 0, fmt.Errorf("%q is a date, which needs no unit; leave {time_unit} out", Clip(cell))
	}
	return c.distinct(cell, t)
}

// number reads a number that is no whole count of the unit.
func (c *Clock) number(cell []byte) (float64, error) {
	x, err := Float(cell, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%q is not a number, as times are, or a date with the year first, "+
			"as in 2020-01-03 10:00:00; choose another {time}", Clip(cell))
	case err != nil || x-x != 0:
		return 0, fmt.Errorf("%q is not a finite number of 64 bits, as times are", Clip(cell))
	}
	if err := c.kind.check(cell, numberTime); err != nil {
		return 0, err
	}
	if !Exact(cell, x) {
		remedy := "subtract the first time from all, or write a coarser unit"
		if _, ok := Integer(cell); ok {
			remedy = "where they count from 1970, name the unit: {time_unit} ns, us or ms"
		}
		return 0, fmt.Errorf("%q has more digits than a time keeps, which is a float of 64 bits (integers "+
			"up to 2⁵³), so that times that differ would be one; %s", Clip(cell), remedy)
	}
	switch c.unit {
	case Millisecond:
		return c.scaled(cell, x, "e-3", 1e3)
	case Microsecond:
		return c.scaled(cell, x, "e-6", 1e6)
	case Nanosecond:
		return c.scaled(cell, x, "e-9", 1e9)
	}
	return x, nil
}

// scaled divides a number by a power of ten and returns the nearest float. It appends the exponent
// to the digits. If the number has an exponent already, it divides the float x instead.
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

// distinct returns the seconds of a time. It refuses a time whose float another time may have too.
func (c *Clock) distinct(cell []byte, t Instant) (float64, error) {
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
// column that mixes integers and dates.
type Dates struct {
	Unit  Unit
	Alone bool     // plain integers are refused
	kind  timeKind // of the first cell
}

// Instant reads a cell as a time. It returns false for a cell that is no date. Its errors name no
// place.
func (d *Dates) Instant(cell []byte) (t Instant, dated bool, err error) {
	t, kind := parseTime(cell)
	return t, kind != numberTime, d.kind.check(cell, kind)
}

// Count reads a cell as a count of units. It returns false for a cell that is no date. Its errors
// name no place.
func (d *Dates) Count(cell []byte) (n int64, dated bool, err error) {
	t, kind := parseTime(cell)
	if dated = kind != numberTime; !dated && d.Alone {
		return 0, false, fmt.Errorf("%q is no date with the year first, as in 2020-01-03 10:00:00; "+
			"to keep numbers choose the type i64 or f32", Clip(cell))
	}
	if err := d.kind.check(cell, kind); err != nil || !dated {
		return 0, dated, err
	}
	n, exact := t.Count(d.Unit)
	if exact {
		return n, true, nil
	}
	finer := map[Unit]string{Second: "ms, us or ns", Millisecond: "us or ns", Microsecond: "ns"}[d.Unit]
	if finer == "" {
		return 0, true, fmt.Errorf("%q is beyond the nanoseconds that 64 bits hold; choose the type us", Clip(cell))
	}
	return 0, true, fmt.Errorf("%q is between two counts of the column's unit since 1970; choose the type %s", Clip(cell), finer)
}
