package table

import (
	"math"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
)

// datedRows reads a column of dates by a schema with this line.
func datedRows(t testing.TB, spec, file, body string) ([]float32, error) {
	t.Helper()
	dir := files{"s.yaml": "nodes: [{type: a, files: " + file + ", features: [on], " + spec + "}]\n" + pairs, file: body, "e.csv": "x,y\n0,0\n"}.write(t)
	g, err := read(dir, Options{})
	return g.rows["a/feat"], err
}

// circle returns the sine and cosine of a part of a circle.
func circle(part, whole float64) []float32 {
	a := 2 * math.Pi * part / whole
	return []float32{float32(math.Sin(a)), float32(math.Cos(a))}
}

// TestDateFeatures: each part of a date is as the calendar of the Go library has it, from text,
// from Parquet, and from integers.
func TestDateFeatures(t *testing.T) {
	on := []time.Time{
		time.Date(2020, 2, 29, 23, 59, 30, 0, time.UTC), time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(1899, 12, 31, 6, 0, 0, 0, time.UTC), time.Date(2048, 7, 4, 12, 30, 0, 0, time.UTC),
	}
	type row struct {
		On int64 `parquet:"on,timestamp(millisecond)"`
	}
	text, counts, packed := "on\n", "on\n", []row{}
	var want []float32
	for _, d := range on {
		text += d.Format(time.RFC3339) + "\n"
		counts += strconv.FormatInt(d.Unix(), 10) + "\n"
		packed = append(packed, row{d.UnixMilli()})
		want = append(want, float32(d.Year()-2000))
		want = append(want, circle(float64(d.Month()-1), 12)...)
		want = append(want, circle(float64(d.Day()-1), 31)...)
		want = append(want, circle(float64((d.Weekday()+6)%7), 7)...)
		want = append(want, circle(float64(d.Hour()*3600+d.Minute()*60+d.Second()), 86400)...)
		want = append(want, float32(on[3].Sub(d).Seconds()/86400/365.25))
	}
	const parts = "dates: {on: [year, month, day, weekday, hour, age]}"
	for file, body := range map[string]string{"n.csv": text, "n.parquet": inParquet(t, packed...), "s.csv": counts} {
		spec := parts
		if file == "s.csv" {
			spec += ", units: {on: s}"
		}
		rows, err := datedRows(t, spec, file, body)
		require.NoError(t, err)
		require.InDeltaSlice(t, want, rows, 1e-6, file)
	}
	rows, err := datedRows(t, "dates: {on: age}, reference: {on: 2021-02-28T18:00:00}", "n.csv", "on\n2020-02-29\n2022-03-01\n")
	require.NoError(t, err)
	require.InDeltaSlice(t, []float32{365.75 / 365.25, -365.25 / 365.25}, rows, 1e-6, "a date after the reference has a negative age")
}

// TestScaledDates: years and ages are scaled, and a missing date is zeros.
func TestScaledDates(t *testing.T) {
	const body = "id,on\n1,2020-01-01\n2,2021-01-01\n3,2023-01-01\n4,\n"
	for spec, want := range map[string][]float32{
		"scale: minmax, missing: 0":               {0, 1, 1. / 3, 730. / 1096, 1, 0, 0, 0},
		"scale: minmax, missing: indicator":       {0, 1, 0, 1. / 3, 730. / 1096, 0, 1, 0, 0, 0, 0, 1},
		"scale: {on: rank}, missing: {on: 0}":     {1. / 6, 5. / 6, 0.5, 0.5, 5. / 6, 1. / 6, 0, 0},
		"scale: {on: quantile}, missing: 0":       {-0.9674216, 0.9674216, 0, 0, 0.9674216, -0.9674216, 0, 0},
		"scale: {on: log}, missing: 0":            {3.04452244, 1.38646546, 3.09104245, 1.09815588, 3.17805383, 0, 0, 0},
		"reference: {on: 2023-01-01}, missing: 0": {20, 1096 / 365.25, 21, 730 / 365.25, 23, 0, 0, 0},
	} {
		rows, err := datedRows(t, "dates: {on: [year, age]}, "+spec, "n.csv", body)
		require.NoError(t, err, spec)
		require.InDeltaSlice(t, want, rows, 1e-5, spec)
	}
	rows, err := datedRows(t, "dates: {on: [year, age]}, scale: standard", "n.csv", "on\n2020-01-01\n")
	require.NoError(t, err)
	require.Equal(t, []float32{0, 0}, rows, "one row")
}

// TestDatesLike: dates that follow a dataset have its parts, reference and scale.
func TestDatesLike(t *testing.T) {
	spec := "features: [on, x], dates: {on: [age, month]}, scale: {on: standard}, missing: {on: indicator}, units: {on: ms}"
	dir := files{"s.yaml": "nodes: [{type: a, files: n.csv, " + spec + "}]\n" + pairs,
		"n.csv": "on,x\n2020-01-01,0\n2021-06-01,1\n2022-06-01T12:00:00.25,2\n", "e.csv": "x,y\n0,0\n"}.write(t)
	want, err := read(dir, Options{})
	require.NoError(t, err)
	l := learnt(t, dir)
	c := l.Encodings.Tables[0].Columns[0]
	require.Equal(t, "2022-06-01T12:00:00.25Z", c.Reference)
	text, err := l.Encodings.Encode()
	require.NoError(t, err)
	l.Encodings, err = store.DecodeEncodings(text)
	require.NoError(t, err)
	g, err := follows(t, l, "features: [x, on]", "x,on\n7,2021-06-01\n1,\n")
	require.NoError(t, err)
	require.Equal(t, want.rows["a/feat"][5:9], g.rows["a/feat"][:4])
	require.Equal(t, []float32{0, 0, 0, 1, 1}, g.rows["a/feat"][5:])
	g, err = follows(t, l, "features: [x, on]", "x,on\n7,1622505600000\n")
	require.NoError(t, err, "the unit is kept")
	require.Equal(t, want.rows["a/feat"][5:9], g.rows["a/feat"][:4])
	for spec, want := range map[string]string{
		"dates: {on: [age]}": "column on is a date of other parts there; write dates: {on: [age, month]}, or leave it out of dates",
		"dates: {on: [age, month]}, reference: {on: 2024-01-01}": "column on has ages until 2022-06-01T12:00:00.25Z there; write reference",
		"scale: {on: log}":  "column on is scaled by standard there",
		"categorical: [on]": "column on is a date there; leave it out of categorical",
	} {
		_, err := follows(t, l, "features: [x, on], "+spec, "x,on\n7,2021-06-01\n")
		require.ErrorContains(t, err, want, spec)
	}
}

// TestDateSchema: what is no date is refused with its line, and wrong words with the nearest one.
func TestDateSchema(t *testing.T) {
	for spec, want := range map[string]string{
		"dates: [on]":                                      "dates: want the parts of each column, as in {signup: [year, month, age]}; there are year, month, day, weekday, hour or age",
		"dates: {on: []}":                                  "dates on: an empty list; choose some of year, month",
		"dates: {on: [weekdy]}":                            `dates on: "weekdy" is no part of a date; did you mean weekday? choose some of year`,
		"dates: {on: [year, year]}":                        "year is there twice",
		"dates: {off: [year]}":                             "dates off: it is not among the features",
		"dates: {on: [year]}, categorical: [on]":           "column on is a date and categorical; list it under dates or categorical alone",
		"dates: {on: [year]}, hash: {on: 4}":               "list it under dates or hash alone",
		"dates: {on: [year]}, missing: {on: mean}":         "missing on: dates have no mean; choose refuse, 0 or indicator",
		"dates: {on: [year]}, units: {on: days}":           `units on: "days" is no unit of counts since 1970; choose s, ms, us or ns`,
		"dates: {on: [year]}, reference: {on: 2020-01-01}": "reference on: it is for the age of a date",
		"dates: {on: [age]}, reference: {on: 1.1.2020}":    `reference on: "1.1.2020" is no date with the year first`,
		"dates: {on: [age]}, reference: 2020-01-01":        "reference: want the date that the ages of each column are counted to",
	} {
		_, err := datedRows(t, spec, "n.csv", "on\n2020-01-01\n")
		require.ErrorContains(t, err, want, spec)
		require.NotContains(t, err.Error(), "\n")
	}
	for body, want := range map[string]string{
		"on\n2020-01-01\n01.02.2020\n":           `line 3: column on: "01.02.2020" is a number`,
		"on\nlast week\n":                        `line 2: column on: "last week" is no date with the year first, as in 2020-01-03 10:00:00; write dates so, or leave the column out of dates`,
		"on\n2020-01-01\n2020-01-01T00:00:00Z\n": "line 3: column on: \"2020-01-01T00:00:00Z\" is a date with a time zone, and the first in the column is a date without a time zone",
		"on\n1600000000\n":                       `line 2: column on: "1600000000" is an integer, and a date is expected; if it counts from 1970, name the unit, as in units: {COLUMN: s}`,
		"on,x\n2020-01-01,1\n,2\n":               "line 3: column on: a date is missing; fill it in, leave the column out, or say in the schema what stands for it, as in missing: {on: indicator}",
	} {
		_, err := datedRows(t, "dates: {on: [age]}", "n.csv", body)
		require.ErrorContains(t, err, want, body)
	}
	_, err := datedRows(t, "dates: {on: [year]}, units: {on: s}", "n.csv", "on\n9223372036854775807\n")
	require.ErrorContains(t, err, "is beyond the years 1 to 9999; is the unit another?")
	_, err = datedRows(t, "dates: {on: [age]}, missing: 0", "n.csv", "on,x\n,1\n")
	require.ErrorContains(t, err, "dates: column on has no date, and ages are counted to the newest; name another day, as in reference: {on: 2024-12-31}")
	_, err = Open(filepath.Join(t.TempDir(), "none.yaml"), Options{})
	require.Error(t, err)
}
