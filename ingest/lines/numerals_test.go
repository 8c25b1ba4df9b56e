package lines

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestNumerals: numbers are read as people write them, and no mark is read in two ways.
func TestNumerals(t *testing.T) {
	comma, thousands := Numerals{true, '.'}, Numerals{false, ','}
	french, swiss := Numerals{true, ' '}, Numerals{false, '\''}
	for _, c := range []struct {
		n    Numerals
		cell string
		want float64 // NaN: refused
	}{
		{Numerals{}, "0.5", 0.5}, {Numerals{}, "0,5", math.NaN()}, {Numerals{}, "1,234.5", math.NaN()},
		{comma, "0,5", 0.5}, {comma, "-1.234,5", -1234.5}, {comma, "1.234.567", 1234567}, {comma, "12", 12}, {comma, ",5", 0.5}, {comma, "1,5e3", 1500},
		{comma, "+3,25", 3.25}, {comma, "0.5", math.NaN()}, {comma, "12.34", math.NaN()}, {comma, "1234.567", math.NaN()}, {comma, "0.123", math.NaN()},
		{comma, "1.23.456", math.NaN()}, {comma, "1,2,3", math.NaN()}, {comma, "1,234.5", math.NaN()}, {comma, ".5", math.NaN()}, {comma, "1.234.", math.NaN()},
		{comma, "1.", math.NaN()}, {comma, "inf", math.Inf(1)}, {comma, "", math.NaN()}, {comma, ",", math.NaN()}, {comma, "-", math.NaN()}, {comma, "abc", math.NaN()},
		{thousands, "1,234.5", 1234.5}, {thousands, "2,000", 2000}, {thousands, "0,5", math.NaN()}, {thousands, "1,23", math.NaN()}, {thousands, "7.25", 7.25},
		{thousands, "1.5,000", math.NaN()}, {thousands, ",000", math.NaN()},
		{french, "1 234,5", 1234.5}, {french, "1\u202f234\u00a0567,25", 1234567.25}, {french, "1 2", math.NaN()},
		{swiss, "1'234.5", 1234.5}, {swiss, "1’234’567", 1234567},
		{Numerals{Comma: true}, "1.234", math.NaN()}, {Numerals{Comma: true}, "1,234", 1.234},
	} {
		got, err := c.n.Float([]byte(c.cell), 64)
		if c.want != c.want {
			require.Error(t, err, "%v %s", c.n, c.cell)
			continue
		}
		require.NoError(t, err, "%v %s", c.n, c.cell)
		require.Equal(t, c.want, got, "%v %s", c.n, c.cell)
	}
	id, ok := comma.ID([]byte("12,0"))
	require.True(t, ok)
	require.EqualValues(t, 12, id)
	for _, cell := range []string{"12.000", "1.5", "012"} {
		_, ok = comma.ID([]byte(cell))
		require.False(t, ok, cell)
	}
	n, ok := comma.Integer([]byte("1.234,0"))
	require.True(t, ok)
	require.EqualValues(t, 1234, n)
}

// TestNumeralsPrinted: a number that is written with some marks is read back with them.
func TestNumeralsPrinted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64Range(-1e12, 1e12).Draw(t, "v")
		way := rapid.SampledFrom(otherNumerals).Draw(t, "way")
		plain := strconv.FormatFloat(v, 'f', -1, 64)
		whole, fraction, _ := strings.Cut(plain, ".")
		sign := whole[:len(whole)-len(strings.TrimPrefix(whole, "-"))]
		whole = whole[len(sign):]
		for i := len(whole) - 3; i > 0; i -= 3 {
			whole = whole[:i] + string(way.Group) + whole[i:]
		}
		if fraction != "" {
			whole += string(way.mark()) + fraction
		}
		got, err := way.Float([]byte(sign+whole), 64)
		require.NoError(t, err, whole)
		require.Equal(t, v, got, whole)
	})
}

func TestParseNumerals(t *testing.T) {
	for in, want := range map[[2]string]Numerals{
		{"", ""}: {}, {"point", ""}: {}, {"comma", ""}: {true, '.'}, {"comma", "none"}: {true, 0}, {"comma", "blank"}: {true, ' '},
		{"", ","}: {false, ','}, {"point", "comma"}: {false, ','}, {"comma", "'"}: {true, '\''},
	} {
		n, err := ParseNumerals(in[0], in[1])
		require.NoError(t, err)
		require.Equal(t, want, n)
		again, err := ParseNumerals(n.Words())
		require.NoError(t, err)
		require.Equal(t, n, again)
	}
	for in, want := range map[[2]string]string{
		{"dot", ""}: `{decimal} "dot": choose point or comma`, {"", "x"}: `{thousands} "x": choose comma, point, blank, apostrophe or none`,
		{"comma", ","}: "{thousands} ,: that is the decimal mark", {"", "point"}: "{thousands} point: that is the decimal mark",
	} {
		_, err := ParseNumerals(in[0], in[1])
		require.ErrorContains(t, err, want)
	}
}

// TestSpelling: for a column of numbers in another way, Spelling names the option that reads them.
// For text it names none.
func TestSpelling(t *testing.T) {
	for _, c := range []struct {
		n     Numerals
		cells string
		want  string
	}{
		{Numerals{}, "0,5|1,25|3", `numbers with a decimal comma, such as "0,5"; say {decimal} comma`},
		{Numerals{}, "3|1.234,5", `numbers with a decimal comma, such as "1.234,5"; say {decimal} comma`},
		{Numerals{}, "1.234.567", `numbers with a decimal comma, such as "1.234.567"; say {decimal} comma`},
		{Numerals{}, "1,234.5|2,000|12", `numbers with commas between thousands, such as "1,234.5"; say {thousands} comma`},
		{Numerals{}, "2,000|3,500", `numbers with a comma, such as "2,000"; say {decimal} comma if a fraction follows it, or {thousands} comma if not`},
		{Numerals{}, "1 234,5", `numbers with a decimal comma, such as "1 234,5"; say {decimal} comma and {thousands} blank`},
		{Numerals{}, "1 234", `numbers with blanks between thousands, such as "1 234"; say {thousands} blank`},
		{Numerals{}, "1'234.5", `numbers with apostrophes between thousands, such as "1'234.5"; say {thousands} apostrophe`},
		{Numerals{}, "5|12 %|0.5%", `numbers with the sign %, such as "12 %"; write them without it: sed 's/%//g' FILE > PLAIN`},
		{Numerals{}, "$1,000.50", `numbers with the sign $, such as "$1,000.50"; write them without it: sed 's/\$//g' FILE > PLAIN`},
		{Numerals{}, "-€5|3,5 €", `numbers with the sign €, such as "-€5"`},
		{Numerals{}, "12 EUR", "numbers with the sign EUR"},
		{Numerals{}, "−5|3", "write them without it: sed 's/−/-/g' FILE > PLAIN"},
		{Numerals{true, '.'}, "1.5|2", `numbers with a decimal point, such as "1.5"; {decimal} comma is for all columns, so write all numbers in one way`},
		{Numerals{true, '.'}, "1,5|2", ""},
		{Numerals{}, "1.5|2|1e5", ""}, {Numerals{}, "a|b", ""}, {Numerals{}, "0,5|a", ""}, {Numerals{}, "%", ""}, {Numerals{}, "EUR", ""},
		{Numerals{}, "1,2,3", ""}, {Numerals{}, "192.168.1.1", ""}, {Numerals{}, "2020-01-03", ""}, {Numerals{}, "nan|inf", ""}, {Numerals{}, "", ""},
	} {
		s := Spelling{Numerals: c.n}
		for cell := range strings.SplitSeq(c.cells, "|") {
			s.Add([]byte(cell))
		}
		if c.want == "" {
			require.Empty(t, s.Remedy(), c.cells)
		}
		require.Contains(t, s.Remedy(), c.want, c.cells)
	}
	var columns []*Spelling
	for _, cell := range []string{"0,5", "x", "5 %", "1,25", "3"} {
		s := &Spelling{}
		s.Add([]byte(cell))
		columns = append(columns, s)
	}
	require.Equal(t, []string{
		`columns a, d: numbers with a decimal comma, such as "0,5"; say {decimal} comma`,
		`column c: numbers with the sign %, such as "5 %"; write them without it: sed 's/%//g' FILE > PLAIN`,
	}, Remedies([]string{"a", "b", "c", "d", "e"}, columns))
	require.Equal(t, "say {decimal} comma", Numerals{}.Spelled([]byte("0,5")))
	require.Empty(t, Numerals{}.Spelled([]byte("five")))
}

func TestSemicolonsPart(t *testing.T) {
	for line, want := range map[string]bool{
		"1;0,5;1,25": true, "a;1.234,5": true, "7; 0,5": true, "1;2;3": false, "1,0.5;0.7,a": false, "1,2;3,4": false, "a;b,c": false, "1,2": false, "": false,
	} {
		require.Equal(t, want, SemicolonsPart([]byte(line)), line)
	}
}
