package table

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDates: columns of edges keep dates as counts of their type's unit, from text and from
// Parquet.
func TestDates(t *testing.T) {
	type row struct {
		A  int64 `parquet:"a"`
		B  int64 `parquet:"b"`
		On int64 `parquet:"on,timestamp(millisecond)"`
	}
	text := "a,b,on\n0,1,2020-02-29T23:59:00Z\n1,0,1970-01-02T00:00:00.5Z\n"
	packed := inParquet(t, row{0, 1, 1583020740000}, row{1, 0, 86400500})
	for kind, want := range map[string][]string{"ms": {"0>1 1583020740000", "1>0 86400500"}, "us": {"0>1 1583020740000000", "1>0 86400500000"}} {
		for file, body := range map[string]string{"e.csv": text, "e.parquet": packed} {
			schema := "edges: [{type: \"n:to:n\", files: " + file + ", src: a, dst: b, columns: [{name: on, type: " + kind + "}]}]\n"
			g, err := read(files{"s.yaml": schema, file: body}.write(t), Options{})
			require.NoError(t, err)
			require.Equal(t, want, g.edges["n__to__n"], file)
			for kind, want := range map[string]string{
				"i64": "is between two counts of the column's unit since 1970; choose the type ms, us or ns",
				"i32": "is a date, which the type i32 does not hold; say type: i64, for seconds since 1970",
				"f32": "is a date, which 32 bits do not hold; write a number of it, such as its year",
				"min": "column on: its type is f32, i64, i32 or u8, or of dates their unit, s, ms, us or ns",
			} {
				schema := "edges: [{type: \"n:to:n\", files: " + file + ", src: a, dst: b, columns: [{name: on, type: " + kind + "}]}]\n"
				_, err := read(files{"s.yaml": schema, file: body}.write(t), Options{})
				require.ErrorContains(t, err, want)
			}
		}
	}
}

// TestMixedDates: a column of edges keeps dates or numbers, over all of its files and formats.
func TestMixedDates(t *testing.T) {
	type row struct {
		A  int64 `parquet:"a"`
		B  int64 `parquet:"b"`
		On int64 `parquet:"on"`
	}
	number := inParquet(t, row{1, 0, 1583020740})
	for kind, want := range map[string]string{
		"i64": `column on: "1583020740" is a number, and the first in the column is a date without a time zone; write all in one way`,
		"s":   `column on: "1583020740" is no date with the year first`,
	} {
		for file, body := range map[string]string{"f.csv": "a,b,on\n1,0,1583020740\n", "f.parquet": number} {
			schema := "edges: [{type: \"n:to:n\", files: [e.csv, " + file + "], src: a, dst: b, columns: [{name: on, type: " + kind + "}]}]\n"
			_, err := read(files{"s.yaml": schema, "e.csv": "a,b,on\n0,1,2020-02-29\n", file: body}.write(t), Options{})
			require.ErrorContains(t, err, want, file)
		}
	}
}
