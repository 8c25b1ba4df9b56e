package lines

import (
	"bytes"
	"strconv"
)

// Instant is a time to the nanosecond: Sec seconds since 1970 in UTC, and Nanos nanoseconds from 0
// to 999,999,999.
type Instant struct {
	Sec   int64
	Nanos int32
}

// Unit is the length of one count of time in nanoseconds; 0 is none.
type Unit int64

const (
	Nanosecond  Unit = 1
	Microsecond Unit = 1e3
	Millisecond Unit = 1e6
	Second      Unit = 1e9
	Day         Unit = 86400 * Second
)

// Units are the units of counts by their names in options.
var Units = map[string]Unit{"s": Second, "ms": Millisecond, "us": Microsecond, "ns": Nanosecond}

// At returns the instant n units after the beginning of 1970.
func At(n int64, unit Unit) (t Instant, ok bool) {
	if unit >= Second {
		per := int64(unit / Second)
		t.Sec = n * per
		return t, t.Sec/per == n
	}
	per := int64(Second / unit)
	t.Sec = n / per
	rest := n % per
	if rest < 0 {
		t.Sec, rest = t.Sec-1, rest+per
	}
	t.Nanos = int32(rest * int64(unit))
	return t, true
}

// Count returns the instant in units since 1970. It returns false if the instant is between two
// counts, or beyond 64 bits.
func (t Instant) Count(unit Unit) (int64, bool) {
	per := int64(Second / unit)
	sec, rest := t.Sec, int64(t.Nanos)/int64(unit)
	if sec < 0 && rest > 0 { // else the product could overflow where the sum does not
		sec, rest = sec+1, rest-per
	}
	n := sec * per
	sum := n + rest
	return sum, n/per == sec && (sum >= n) == (rest >= 0) && int64(t.Nanos)%int64(unit) == 0
}

// Seconds returns the float nearest to the instant, in seconds since 1970.
func (t Instant) Seconds() float64 {
	switch {
	case t.Nanos == 0:
		return float64(t.Sec)
	case t.Nanos%1000 == 0 && t.Sec < 1<<33 && t.Sec >= -1<<33: // both numbers are exact then
		return float64(t.Sec*1e6+int64(t.Nanos/1000)) / 1e6
	}
	sec, nanos, sign := t.Sec, int64(t.Nanos), byte('+')
	if sec < 0 {
		sec, nanos, sign = -sec-1, 1e9-nanos, '-'
	}
	text := append(make([]byte, 0, 32), sign)
	text = strconv.AppendInt(text, sec, 10)
	text = strconv.AppendInt(append(text, '.'), 1e9+nanos, 10)
	text = append(text[:len(text)-10], text[len(text)-9:]...) // without the 1, which kept the zeros
	x, _ := strconv.ParseFloat(string(text), 64)
	return x
}

// distinct reports whether Seconds gives different floats for the instant and for all others of its
// precision: seconds, milliseconds or microseconds. Floats are at most 2⁻²⁰ seconds apart below 2³³
// seconds, and 2⁻¹⁰ below 2⁴³.
func (t Instant) distinct() bool {
	sec := t.Sec
	if sec < 0 {
		sec = -sec
	}
	switch {
	case t.Nanos == 0:
		return sec >= 0 && sec <= 1<<53
	case t.Nanos%1e6 == 0:
		return sec >= 0 && sec < 1<<43
	}
	return t.Nanos%1e3 == 0 && sec >= 0 && sec < 1<<33
}

func (t Instant) before(o Instant) bool {
	return t.Sec < o.Sec || t.Sec == o.Sec && t.Nanos < o.Nanos
}

// AppendTo appends the instant as ParseInstant reads it, as in 2020-01-03T10:00:00.5Z. Years are
// 0001 to 9999; outside, it returns false.
func (t Instant) AppendTo(dst []byte) ([]byte, bool) {
	day, sec := t.Sec/86400, t.Sec%86400
	if sec < 0 {
		day, sec = day-1, sec+86400
	}
	if day < firstDay || day > lastDay {
		return dst, false
	}
	// civil_from_days of Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
	z := day + 719468
	era := z / 146097
	if z < 0 {
		era = (z - 146096) / 146097
	}
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	d, m, y := doy-(153*mp+2)/5+1, mp+3, yoe+era*400
	if m > 12 {
		m, y = m-12, y+1
	}
	two := func(n int64, after byte) { dst = append(dst, byte('0'+n/10), byte('0'+n%10), after) }
	dst = append(dst, byte('0'+y/1000), byte('0'+y/100%10), byte('0'+y/10%10), byte('0'+y%10), '-')
	two(m, '-')
	two(d, 'T')
	two(sec/3600, ':')
	two(sec/60%60, ':')
	two(sec%60, '.')
	if t.Nanos == 0 {
		return append(dst[:len(dst)-1], 'Z'), true
	}
	dst = strconv.AppendInt(dst, 1e9+int64(t.Nanos), 10)
	dst = append(dst[:len(dst)-10], dst[len(dst)-9:]...)
	return append(bytes.TrimRight(dst, "0"), 'Z'), true
}

const (
	firstDay = -719162 // 0001-01-01
	lastDay  = 2932896 // 9999-12-31
)

// dayOf returns the day since 1970 of a date, by days_from_civil of Howard Hinnant, see AppendTo.
func dayOf(y, m, d int64) int64 {
	if m <= 2 {
		y--
	}
	era := y / 400
	yoe := y - era*400
	doy := (153*((m+9)%12)+2)/5 + d - 1
	return era*146097 + yoe*365 + yoe/4 - yoe/100 + doy - 719468
}

// Zone is NoZone for a date without a time zone.
type Zone uint8

const (
	NoZone Zone = iota // it is taken for UTC
	Zoned
)

// ParseInstant reads a date, or a date with a time, as ISO 8601 and most programs write them:
// 2020-01-03, 2020-01-03 10:00, 2020-01-03T10:00:00.5Z, 2020/01/03 10:00:00+02:00. The year comes
// first, since other orders can be confused. A time may have up to nine digits behind the point.
func ParseInstant(cell []byte) (t Instant, zone Zone, ok bool) {
	if len(cell) < 10 || cell[4] != '-' && cell[4] != '/' || cell[7] != cell[4] {
		return t, NoZone, false
	}
	y, m, d := decimal(cell[:4]), decimal(cell[5:7]), decimal(cell[8:10])
	if y < 1 || m < 1 || m > 12 || d < 1 || d > daysIn(y, m) {
		return t, NoZone, false
	}
	t.Sec = dayOf(y, m, d) * 86400
	rest := cell[10:]
	if len(rest) == 0 {
		return t, NoZone, true
	}
	if rest[0] != 'T' && rest[0] != ' ' && rest[0] != 't' || len(rest) < 6 || rest[3] != ':' {
		return t, NoZone, false
	}
	h, min, s := decimal(rest[1:3]), decimal(rest[4:6]), int64(0)
	if rest = rest[6:]; len(rest) >= 3 && rest[0] == ':' {
		s = decimal(rest[1:3])
		if rest = rest[3:]; len(rest) > 1 && (rest[0] == '.' || rest[0] == ',') {
			digits := 1
			for digits < len(rest) && rest[digits]-'0' <= 9 {
				digits++
			}
			fraction := bytes.TrimRight(rest[1:digits], "0")
			if digits == 1 || len(fraction) > 9 {
				return t, NoZone, false
			}
			t.Nanos = int32(max(decimal(fraction), 0) * pow10[9-len(fraction)])
			rest = rest[digits:]
		}
	}
	if h < 0 || h > 23 || min < 0 || min > 59 || s < 0 || s > 59 {
		return t, NoZone, false
	}
	offset, zone, ok := parseZone(rest)
	t.Sec += h*3600 + min*60 + s - offset
	return t, zone, ok
}

var pow10 = [...]int64{1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}

// decimal reads digits, up to nine; -1 if there are others or none.
func decimal(digits []byte) int64 {
	n := int64(0)
	for _, c := range digits {
		if c-'0' > 9 {
			return -1
		}
		n = n*10 + int64(c-'0')
	}
	if len(digits) == 0 {
		return -1
	}
	return n
}

func daysIn(y, m int64) int64 {
	switch {
	case m == 2 && y%4 == 0 && (y%100 != 0 || y%400 == 0):
		return 29
	case m == 2:
		return 28
	case m == 4 || m == 6 || m == 9 || m == 11:
		return 30
	}
	return 31
}

// parseZone reads what follows the time of a day: nothing, Z, UTC, +02, +0200 or +02:00.
func parseZone(text []byte) (offset int64, zone Zone, ok bool) {
	if len(text) == 0 {
		return 0, NoZone, true
	}
	if text[0] == ' ' {
		text = text[1:]
	}
	switch string(bytes.ToUpper(text)) {
	case "Z", "UTC", "GMT":
		return 0, Zoned, true
	}
	if len(text) < 3 || text[0] != '+' && text[0] != '-' {
		return 0, NoZone, false
	}
	h, min, rest := decimal(text[1:3]), int64(0), text[3:]
	if len(rest) > 0 && rest[0] == ':' {
		rest = rest[1:]
	}
	if len(rest) > 0 || len(text) == 4 {
		if min = decimal(rest); len(rest) != 2 {
			return 0, NoZone, false
		}
	}
	if h < 0 || h > 23 || min < 0 || min > 59 {
		return 0, NoZone, false
	}
	if offset = h*3600 + min*60; text[0] == '-' {
		offset = -offset
	}
	return offset, Zoned, true
}
