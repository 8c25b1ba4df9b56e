package lines

import (
	"math"
	"math/big"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestParseInstant: dates with the year first are read, others are refused.
func TestParseInstant(t *testing.T) {
	for cell, want := range map[string]Instant{
		"1970-01-01":                          {},
		"2021-02-28":                          {1614470400, 0},
		"2020/02/29 23:59":                    {1583020740, 0},
		"2015-06-07 08:09:10":                 {1433664550, 0},
		"2015-06-07T08:09:10Z":                {1433664550, 0},
		"2015-06-07 08:09:10 UTC":             {1433664550, 0},
		"2015-06-07T10:09:10+02:00":           {1433664550, 0},
		"2015-06-07T02:39:10.25-0530":         {1433664550, 250_000_000},
		"2015-06-07 09:09:10,000000001+01":    {1433664550, 1},
		"2015-06-07 08:09:10.1234567890000Z":  {1433664550, 123456789},
		"1969-12-31T23:59:59.9":               {-1, 900_000_000},
		"0001-01-01":                          {-62135596800, 0},
		"9999-12-31 23:59:59.999999999+00:00": {253402300799, 999999999},
	} {
		got, _, ok := ParseInstant([]byte(cell))
		require.True(t, ok, cell)
		require.Equal(t, want, got, cell)
	}
	for _, cell := range []string{
		"", "2020", "2020-1-1", "01-02-2020", "2021-02-29", "1900-02-29", "2020-13-01", "2020-00-01", "2020-01-32", "0000-01-01", "2020-01/02", "2020-01-02x",
		"2020-01-02 1", "2020-01-02 24:00", "2020-01-02 10:60", "2020-01-02 10:00:60", "2020-01-02 10:00:00.", "2020-01-02 10:00:00.0000000001",
		"2020-01-02 10:00:00 CET", "2020-01-02 10:00:00+2", "2020-01-02 10:00:00+02:0", "2020-01-02 10:00:00+24:00", "2020-01-02 10:00:00+02:60", "20200102T100000",
		"2020-01-02 ", "1700000000",
	} {
		_, _, ok := ParseInstant([]byte(cell))
		require.False(t, ok, cell)
	}
}

// TestInstantIsTime: dates are as package time has them, seconds are the nearest floats, and counts
// lead back.
func TestInstantIsTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := Instant{rapid.Int64Range(firstDay*86400, lastDay*86400+86399).Draw(t, "sec"), rapid.Int32Range(0, 999_999_999).Draw(t, "nanos")}
		if rapid.Bool().Draw(t, "coarse") {
			at.Nanos -= at.Nanos % rapid.SampledFrom([]int32{1000, 1_000_000, 1_000_000_000}).Draw(t, "by")
		}
		text, ok := at.AppendTo(nil)
		require.True(t, ok)
		require.Equal(t, time.Unix(at.Sec, int64(at.Nanos)).UTC().Format(time.RFC3339Nano), string(text))
		back, zone, ok := ParseInstant(text)
		require.True(t, ok)
		require.Equal(t, Zoned, zone)
		require.Equal(t, at, back)

		exact := new(big.Rat).Add(new(big.Rat).SetInt64(at.Sec), big.NewRat(int64(at.Nanos), 1e9))
		nearest, _ := exact.Float64()
		require.Equal(t, math.Float64bits(nearest), math.Float64bits(at.Seconds()))
		for _, unit := range Units {
			if n, ok := at.Count(unit); ok {
				again, ok := At(n, unit)
				require.True(t, ok)
				require.Equal(t, at, again)
			}
		}
		next := Instant{at.Sec, at.Nanos + 1000}
		if at.Nanos%1000 == 0 && next.Nanos < 1e9 && at.distinct() && next.distinct() {
			require.Less(t, at.Seconds(), next.Seconds())
		}
	})
}

// TestCountEnds: counts of nanoseconds end in the years 1677 and 2262, to the nanosecond.
func TestCountEnds(t *testing.T) {
	for _, c := range []struct {
		at   Instant
		want int64
		ok   bool
	}{
		{Instant{9223372036, 854775807}, 1<<63 - 1, true},
		{Instant{9223372036, 854775808}, 0, false},
		{Instant{9223372037, 0}, 0, false},
		{Instant{-9223372037, 145224192}, -1 << 63, true},
		{Instant{-9223372037, 145224191}, 0, false},
		{Instant{-9223372038, 0}, 0, false},
	} {
		n, ok := c.at.Count(Nanosecond)
		require.Equal(t, c.ok, ok, c.at)
		if ok {
			require.Equal(t, c.want, n)
		}
	}
	_, _, err := (&Dates{Unit: Nanosecond}).Count([]byte("2262-04-11 23:47:16.854775808"))
	require.ErrorContains(t, err, "is beyond the nanoseconds that 64 bits hold; choose the type us")
}

// TestClock: the same times give the same seconds however they are written; what would be lost is
// refused.
func TestClock(t *testing.T) {
	for _, same := range []struct {
		unit  Unit
		cells []string
	}{
		{0, []string{"1600000000.125", "1600000000.125001", "1600000001"}},
		{Second, []string{"1600000000.125", "1600000000.125001", "1600000001"}},
		{Millisecond, []string{"1600000000125", "1600000000125.001", "1600000001000"}},
		{Microsecond, []string{"1600000000125000", "1600000000125001", "1600000001000000"}},
		{Nanosecond, []string{"1600000000125000000", "1600000000125001000", "1600000001000000000"}},
		{0, []string{"2020-09-13 12:26:40.125", "2020-09-13 12:26:40.125001", "2020-09-13T12:26:41"}},
		{0, []string{"2020-09-13T14:26:40.125+02:00", "2020-09-13T12:26:40.125001Z", "2020-09-13 12:26:41+00"}},
	} {
		c := NewClock(same.unit)
		for i, want := range []float64{1600000000.125, 1600000000.125001, 1600000001} {
			got, err := c.Seconds([]byte(same.cells[i]))
			require.NoError(t, err)
			require.Equal(t, want, got, same.cells[i])
		}
	}
	for _, c := range []struct {
		unit  Unit
		cells []string
		want  string
	}{
		{0, []string{"1500000000000000013"}, "name the unit: {time_unit} ns, us or ms"},
		{0, []string{"5", "2020-01-01"}, `"2020-01-01" is a date without a time zone, and the first in the column is a number; write all in one way`},
		{0, []string{"2020-01-01", "5"}, `"5" is a number, and the first in the column is a date without a time zone`},
		{0, []string{"2020-01-01T00:00:00Z", "2020-01-01T00:00:00"}, "write all in one way"},
		{Millisecond, []string{"2020-01-01"}, "leave {time_unit} out"},
		{0, []string{"01/02/2020"}, "a date with the year first"},
		{Nanosecond, []string{"1500000000000000013", "1500000000000000014"}, "the time before it are one in seconds of 64 bits"},
		{0, []string{"2020-01-01 00:00:00.000000001", "2020-01-01 00:00:00.000000002"}, "the time before it are one in seconds of 64 bits"},
		{0, []string{"2020-01-01 00:00:00.000000001", "2019-01-01 00:00:00"}, "rows are not in the order of time"},
		{0, []string{"2020-01-01 00:00:00", "2019-01-01 00:00:00", "2020-01-01 00:00:00.000000001"}, "rows are not in the order of time"},
		{Second, []string{"9007199254740993", "9007199254740992"}, "the time before it are one"},
		{Millisecond, []string{"0.1234567890123456789"}, "has more digits than a time keeps"},
		{0, []string{"1e400"}, "is not a finite number"},
	} {
		clock, err := NewClock(c.unit), error(nil)
		for i, cell := range c.cells {
			_, err = clock.Seconds([]byte(cell))
			require.Equal(t, i == len(c.cells)-1, err != nil, "%s: %v", cell, err)
		}
		require.ErrorContains(t, err, c.want)
	}
	// Nanoseconds in the order of time are rounded, as long as none becomes another.
	c, last := NewClock(0), -1.0
	for i := range 1000 {
		x, err := c.Seconds([]byte("2020-01-01 00:00:00." + strconv.Itoa(100_000_007 + 500*i*i)[:9]))
		require.NoError(t, err)
		require.Greater(t, x, last)
		last = x
	}
	require.NoError(t, second(c.Seconds([]byte("2021-01-01"))))
}

func second[T any](_ T, err error) error { return err }

// FuzzInstant: whatever the cell, what is read prints and reads again.
func FuzzInstant(f *testing.F) {
	for _, cell := range []string{"2020-01-03", "2020/01/03 10:00", "2020-01-03T10:00:00.5+02:00", "0001-01-01 00:00:00+23:59", "9999-12-31 23:59:59-01"} {
		f.Add([]byte(cell))
	}
	f.Fuzz(func(t *testing.T, cell []byte) {
		at, _, ok := ParseInstant(cell)
		if !ok {
			return
		}
		if text, ok := at.AppendTo(nil); ok {
			again, zone, ok := ParseInstant(text)
			require.True(t, ok)
			require.Equal(t, Zoned, zone)
			require.Equal(t, at, again)
		}
		_, err := NewClock(0).Seconds(cell)
		require.NoError(t, err)
		_, _, err = (&Dates{Unit: Microsecond, Alone: true}).Count(cell)
		_ = err // a fraction
	})
}
