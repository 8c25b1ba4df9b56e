package edgelist

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// times returns the times of the events that were read.
func times(g sourcetest.Graph) (times []float64) {
	for _, bits := range g.Edges[0].Values[0] {
		times = append(times, math.Float64frombits(bits))
	}
	return times
}

func TestEvents(t *testing.T) {
	of := func(text string, o Options) sourcetest.Graph {
		t.Helper()
		o.Events = true
		g, err := read(files{"edges.csv": text}.write(t), o)
		require.NoError(t, err, "%q", text)
		return g
	}
	for text, o := range map[string]Options{
		"0 1 1.5\n2 0 -3\n1 1 1700000000.25":                                 {},
		"0,1,1.5\n2,0,-3\n1,1,1700000000.25\n":                               {},
		"src\tdst\tts\n0\t1\t1.5\n2\t0\t-3\n1\t1\t1.70000000025e9\n":         {},
		"timestamp,source,target\n1.5,0,1\n-3,2,0\n1700000000.25,1,1\n":      {},
		"0,1,7,1.5\n2,0,7,-3\n1,1,8,1700000000.25\n":                         {Time: "4"},
		"a,when,t,b\n0,1.5,x,1\n2,-3,x,0\n1,1700000000.25,y,1\n":             {Src: "a", Dst: "b", Time: "when"},
		zipped("# SNAP's\n# Nodes: 3\n0 1 1.5\n2 0 -3\n1 1 1700000000.25\n"): {Count: 3},
	} {
		g := of(text, o)
		require.Equal(t, []int64{0, 2, 1}, g.Edges[0].Src, text)
		require.Equal(t, []int64{1, 0, 1}, g.Edges[0].Dst, text)
		require.Equal(t, []float64{1.5, -3, 1700000000.25}, times(g), text)
		r := g.Schema.Relations[0]
		require.Equal(t, ingest.Relation{Src: "node", Name: "events", Dst: "node", Edges: r.Edges, Left: r.Left,
			Columns: []ingest.EdgeColumn{{Name: "time", Elem: store.F64}}, Stream: &ingest.Stream{Time: "time"}}, r)
	}

	// Labels are classes by number, or by name; parts of a split; features; two kinds of nodes.
	g := of("u,i,t,state,x,y,roll\n5,5,1,1,0.5,2,0\n5,6,2,,1,3,1\n7,5,3,0,2,4,2\n", Options{
		Src: "u", Dst: "i", EventLabel: "state", EdgeFeatures: []string{"5-6"}, Part: "roll", Bipartite: true,
	})
	require.Equal(t, []ingest.NodeType{{Name: "user", IDs: ingest.IntIDs, Gathered: true}, {Name: "item", IDs: ingest.IntIDs, Gathered: true}}, g.Schema.NodeTypes)
	require.Equal(t, []uint64{1, math.MaxUint32, 0}, g.Edges[0].Values[1])
	require.Equal(t, []ingest.Table{{Name: "feat", Relation: "user__events__item", Dim: 2}}, g.Schema.Tables)
	require.Equal(t, []float32{0.5, 2, 1, 3, 2, 4}, g.Rows[0])
	g = of("a,b,1,bad\nb,a,2,good\n", Options{Header: "no", Time: "3", EventLabel: "4"})
	require.Equal(t, []string{"a>b", "b>a"}, g.Edges[0].Lines())
	require.Equal(t, []uint64{0, 1}, g.Edges[0].Values[1])
	require.Equal(t, []string{"bad", "good"}, g.Schema.Relations[0].Stream.ClassNames)
}

// TestGivenParts: a column of parts is a split, and no value of the events.
func TestGivenParts(t *testing.T) {
	s, err := Open(filepath.Join(files{"edges.csv": "0 1 1 0 0\n1 2 2 1 1\n2 2 3 0 2\n"}.write(t), "edges.csv"), Options{Events: true, Time: "3", EventLabel: "4", Part: "5"})
	require.NoError(t, err)
	schema, err := s.Schema(t.Context())
	require.NoError(t, err)
	require.True(t, schema.Relations[0].Parted)
	for range 2 {
		require.NoError(t, s.Edges(t.Context(), 0, func(c ingest.EdgeChunk) error {
			require.Equal(t, []ingest.Part{ingest.Train, ingest.Valid, ingest.Test}, c.Parts)
			require.Len(t, c.Values, 2)
			return nil
		}))
	}
}

// TestJODIE: the header has fewer cells than the rows, both columns of ids count from 0, and times
// may have fractions.
func TestJODIE(t *testing.T) {
	const header = "user_id,item_id,timestamp,state_label,comma_separated_list_of_features\n"
	o := Options{Events: true, Header: "short", Src: "1", Dst: "2", Time: "3", EventLabel: "4", EdgeFeatures: []string{"5-"}, Bipartite: true}
	for text, dim := range map[string]int{
		header + "0,0,0.0,0,0.1,0.2,0.3\n1,0,36.5,0,0,0,1\n0,1,77.0,1,0,0,2\n": 3,
		header + "0,0,0.0,0,0\n1,0,36.5,0,0\n0,1,77.0,1,0\n":                   1,
	} {
		g, err := read(files{"edges.csv": text}.write(t), o)
		require.NoError(t, err)
		require.Equal(t, []int64{0, 1, 0}, g.Edges[0].Src)
		require.Equal(t, []int64{0, 0, 1}, g.Edges[0].Dst)
		require.Equal(t, []float64{0, 36.5, 77}, times(g))
		require.Equal(t, []uint64{0, 0, 1}, g.Edges[0].Values[1])
		require.Equal(t, dim, g.Schema.Tables[0].Dim)
	}
	_, err := read(files{"edges.csv": header + "0,0,0.0,0,0.1,0.2\n1,0,36,0,0.1\n"}.write(t), o)
	require.ErrorContains(t, err, "edges.csv: line 3: found 5 columns, and the first row has 6")
}

// TestParquetEvents: a Parquet file is the table that it would be as text, whatever is in its
// cells.
func TestParquetEvents(t *testing.T) {
	type row struct {
		Note string    `parquet:"note"`
		Src  string    `parquet:"src"`
		Dst  string    `parquet:"dst"`
		Time float64   `parquet:"ts"`
		Vec  []float64 `parquet:"vec,list"`
		X    *int32    `parquet:"x,optional"`
	}
	seven := int32(7)
	var b bytes.Buffer
	require.NoError(t, pq.Write(&b, []row{{`a "quoted", one`, "é", "b,c", 1700000000.123456, []float64{1}, &seven}, {"two\nlines", "b,c", `"`, -1e-300, nil, &seven}}))
	dir := files{"e.parquet": b.String()}.write(t)
	s, err := Open(filepath.Join(dir, "e.parquet"), Options{Events: true, EdgeFeatures: []string{"x"}})
	require.NoError(t, err)
	defer s.Close()
	g, err := sourcetest.Read(s)
	require.NoError(t, err)
	require.Equal(t, []string{"é", "b,c"}, g.Edges[0].SrcTexts)
	require.Equal(t, []string{"b,c", `"`}, g.Edges[0].DstTexts)
	require.Equal(t, []float64{1700000000.123456, -1e-300}, times(g))
	require.Equal(t, []float32{7, 7}, g.Rows[0])
	require.Equal(t, "e", g.Schema.Name)

	broken := files{"e.parquet": b.String()[:b.Len()/2]}.write(t)
	_, err = Open(filepath.Join(broken, "e.parquet"), Options{Events: true})
	require.ErrorContains(t, err, "e.parquet: ")
	require.NotContains(t, err.Error(), "\n")
}

func TestEventsRefuse(t *testing.T) {
	for _, c := range []struct {
		text string
		o    Options
		want string
	}{
		{"0,1\n", Options{}, "which of its 2 columns is the time of an event? No header tells, so say {time} with the number of the column"},
		{"src,dst,x\n0,1,1\n", Options{}, "which of the columns src, dst, x is the time of an event?"},
		{"src,dst,ts,time\n0,1,1,1\n", Options{}, "Several names could be, so say {time} COLUMN"},
		{"0 1 x\n1 2 3\n", Options{Header: "no"}, `line 1, column 3: "x" is not a number, as times are, or a date with the year first, as in 2020-01-03 10:00:00; choose another {time}`},
		{"0 1 2\n1 2 nan\n", Options{}, "line 2, column 3: an event's time is missing"},
		{"0,1,2\n1,2,\n", Options{}, "line 2, column 3: an event's time is missing"},
		{"0 1 2\n1 2 -inf\n", Options{}, "line 2, column 3: \"-inf\" is not a finite number of 64 bits"},
		{"0 1 2\n1 2 1e400\n", Options{}, "line 2, column 3: \"1e400\" is not a finite number"},
		{"0 1 2\n1 2 2020-01-01\n", Options{}, `line 2, column 3: "2020-01-01" is a date without a time zone, and the first in the column is a number; write all in one way`},
		{"0 1 2020-01-01 10:00\n", Options{Time: "3"}, `line 1, column 3: the time of day of "2020-01-01" is in the next column, since blanks part cells`},
		{"a,b,time\n0,1,2\n", Options{}, `which of the columns a, b, time are the ends of edges? Their names do not tell, so say {src} SRC and {dst} DST`},
		{"0 1 2\n", Options{TimeUnit: "min"}, `{time_unit} "min": choose s, ms, us or ns`},
		{"0 1 2 0\n1 2 3 3\n", Options{Time: "3", Part: "4"}, `line 2, column 4: "3" is no part of a split: 0 is to train, 1 to validate, 2 to test`},
		{"0 1 2\n1 2 3\n", Options{Time: "2"}, "column 2 holds both ids and times; choose another {time}"},
		{"0 1 2\n1 2 3 4\n", Options{}, "line 2: found 4 columns"},
		{"0 1 2 0\n1 2 3 65535\n1 2 3 65536\n", Options{Time: "3", EventLabel: "4"}, "line 3: label 65536; labels of events are classes, numbers from 0 to 65535: number them anew, or choose another {label}"},
		{"0 1 2\n", Options{Bipartite: true, Count: 3}, "{bipartite}: sources and destinations are numbered apart"},
		{"0 1 2\n", Options{Weight: "3"}, "events have a time, a label and features"},
		{"user_id,item_id,ts\n0,0,1\n1,0,2\n", Options{}, "two kinds of nodes, and the ids in both (1, the first is 0) would make one node of two; say {one_id_space} if they are one kind, or {bipartite} if they are two"},
	} {
		c.o.Events = true
		_, err := read(files{"edges.csv": c.text}.write(t), c.o)
		require.ErrorContains(t, err, c.want, "%q", c.text)
	}
	_, err := read(files{"edges.csv": "0 1 2\n"}.write(t), Options{Time: "3"})
	require.ErrorContains(t, err, "{time}, {time_unit} and {bipartite} are for events")

	// Rows that are bad may be passed over, and their labels are no classes.
	g, err := read(files{"edges.csv": "0 1 2 7\n1 2 x 8\n2 3 3 9\n3 x 4 10\n"}.write(t), Options{Events: true, Time: "3", EventLabel: "4", EdgeFeatures: []string{"3"}, SkipBad: 2})
	require.NoError(t, err)
	require.Equal(t, []float64{2, 3}, times(g))
	require.Equal(t, []string{"7", "9"}, g.Schema.Relations[0].Stream.ClassNames)
	require.Equal(t, []float32{2, 3}, g.Rows[0])
}

func TestEventsConform(t *testing.T) {
	storetest.Long(t)
	var text strings.Builder
	for i := range ingest.ChunkRows + 9 {
		fmt.Fprintf(&text, "%d %d %d.5 %d %d %d\n", i%4001, i%977, i*7%5000, i%3, i*3/(ingest.ChunkRows+9), i%11)
	}
	path := filepath.Join(files{"edges.csv": text.String()}.write(t), "edges.csv")
	sourcetest.Conform(t, func() (ingest.Source, error) {
		return Open(path, Options{Events: true, Time: "3", EventLabel: "4", Part: "5", EdgeFeatures: []string{"6"}, Bipartite: true})
	})
}

// TestTimesAreExact: a time is refused if a 64-bit float would lose some of its digits, or if it is
// not a decimal number.
func TestTimesAreExact(t *testing.T) {
	for cell, want := range map[string]string{
		"9007199254740992": "", "1700000000000000000": "", "1e3": "", "0.30000000000000004": "", "1.000000000000000056e-01": "",
		"1700000000000000101":  "has more digits than a time keeps",
		"-9007199254740993":    "has more digits than a time keeps",
		"1700000000.123456789": "has more digits than a time keeps",
		"0x1p10":               "is not a number, as times are",
		"1_000":                "is not a number, as times are",
		"inf":                  "is not a finite number of 64 bits, as times are",
		"-Infinity":            "is not a finite number",
		"1e999":                "is not a finite number",
		"NaN":                  "an event's time is missing",
	} {
		for _, o := range []Options{{Events: true, Header: "yes", Time: "time"}, {Events: true, Header: "short", Src: "1", Dst: "2", Time: "3", Bipartite: true}} {
			_, err := read(files{"edges.csv": "src,dst,time\n0,1,0\n1,2," + cell + "\n"}.write(t), o)
			if want == "" {
				require.NoError(t, err, cell)
				continue
			}
			require.ErrorContains(t, err, "edges.csv: line 3, column 3: ")
			require.ErrorContains(t, err, want, cell)
		}
	}
}

// TestShortHeader: a first row that has a time is an event, not a header.
func TestShortHeader(t *testing.T) {
	o := Options{Events: true, Header: "short", Src: "1", Dst: "2", Time: "3", EventLabel: "4", EdgeFeatures: []string{"5-"}, Bipartite: true}
	for header, rows := range map[string]int{"": 3, "user_id,item_id,timestamp,state_label,comma_separated_list_of_features\n": 3, "u,i,t,l,f0,f1\n": 3, "9,8,7,0,0.5,0.25\n": 4} {
		g, err := read(files{"edges.csv": header + "0,0,0.0,0,0.1,0.2\n1,0,36,1,3,4\n2,1,77.0,0,5,6\n"}.write(t), o)
		require.NoError(t, err, header)
		require.Len(t, times(g), rows, header)
		require.Len(t, g.Rows[0], 2*rows, header)
	}
	for _, header := range []string{"u,i,t,l,f", "u,i,t,l,f,g,h,4"} { // names of columns that no row has
		g, err := read(files{"edges.csv": header + "\n0,0,0.0,0\n1,0,36,1\n"}.write(t), o)
		require.NoError(t, err)
		require.Empty(t, g.Schema.Tables)
		require.Equal(t, []float64{0, 36}, times(g))
	}
}

// TestBlanks: all readers agree on what is blank. A blank line is skipped, first or later, and
// blanks around a cell are not part of it. A zero byte and line ends of CR alone are refused.
func TestBlanks(t *testing.T) {
	events := Options{Events: true, Header: "no", Src: "1", Dst: "2", Time: "3"}
	jodie := Options{Events: true, Header: "short", Src: "1", Dst: "2", Time: "3", EventLabel: "4", EdgeFeatures: []string{"5-"}, Bipartite: true}
	for _, blank := range []string{" ", "\t", "\v", "\f", "\u0085", "\u00a0", "\u2003", " \f\v "} {
		for _, by := range []string{",", " "} {
			row := func(cells ...string) string { return blank + strings.Join(cells, blank+by+blank) + blank + "\n" }
			if strings.Contains(blank, "\t") {
				// a tab separates cells here
				row = func(cells ...string) string { return strings.Join(cells, by) + "\n" }
			}
			for _, text := range []string{
				blank + "\n" + row("1", "2", "3", "0", "5") + row("2", "3", "4", "0", "6"),
				row("1", "2", "3", "0", "5") + blank + "\n" + row("2", "3", "4", "0", "6"),
				row("1", "2", "3", "0", "5") + row("2", "3", "4", "0", "6") + blank,
			} {
				for _, o := range []Options{events, jodie} {
					g, err := read(files{"edges.csv": text}.write(t), o)
					require.NoError(t, err, "%q", text)
					require.Equal(t, []float64{3, 4}, times(g), "%q", text)
				}
			}
		}
		for _, o := range []Options{{}, events, jodie} {
			_, err := read(files{"edges.csv": blank + "\n"}.write(t), o)
			require.ErrorContains(t, err, "edges.csv", "%q", blank)
			require.NotContains(t, strings.TrimSpace(err.Error()), "\n")
		}
	}
	for text, want := range map[string]string{
		"# x\n1 2 3\r2 3 4\r3 4 5\n":             "edges.csv: line 2: its lines end in CR alone",
		"1 2 3\n2 3 \x00\n":                      "edges.csv: line 2: the file is not text: it holds a zero byte",
		"1 2 3\n" + strings.Repeat("\x00", 4096): "edges.csv: line 2: the file is not text: it holds a zero byte",
	} {
		_, err := read(files{"edges.csv": text}.write(t), events)
		require.ErrorContains(t, err, want, "%q", text)
	}
}

// TestManyCells: a line of very many cells is refused in one line, without memory for all of them.
func TestManyCells(t *testing.T) {
	for _, by := range []string{",", " "} {
		wide := "1" + by + "2" + by + "3" + strings.Repeat(by+"4", 3<<20) + "\n"
		header := "u" + by + "i" + by + "t" + by + "l" + by + "f\n"
		jodie := Options{Events: true, Header: "short", Src: "1", Dst: "2", Time: "3", EventLabel: "4", EdgeFeatures: []string{"5-"}, Bipartite: true}
		for text, all := range map[string][]Options{wide: {{}, {Events: true, Header: "no", Src: "1", Dst: "2", Time: "3"}, jodie}, header + wide: {jodie}} {
			path := files{"edges.csv": text}.write(t)
			for _, o := range all {
				_, err := read(path, o)
				require.ErrorContains(t, err, "found more than 65536 cells, which is the most")
			}
		}
	}
}

// FuzzEvents: whatever is in a list of events, what is wrong is said in a line, and times are
// finite.
func FuzzEvents(f *testing.F) {
	f.Add("0 1 1.5 0\n2 0 -3 1\n")
	f.Add("user_id,item_id,timestamp,state_label,f\n0,0,0.0,0,0.1,0.2\n1,0,36,0,1e39,nan\n")
	f.Add("a,\"b\nc\",1e400,x\n")
	dir := f.TempDir() // of this process
	f.Fuzz(func(t *testing.T, text string) {
		files{"edges.csv": text}.writeTo(t, dir)
		for _, o := range []Options{
			{Events: true}, {Events: true, Header: "short", Src: "1", Dst: "2", Time: "3", EventLabel: "4", EdgeFeatures: []string{"5-"}, Bipartite: true},
		} {
			g, err := read(dir, o)
			if err != nil {
				require.NotContains(t, strings.TrimSpace(err.Error()), "\n")
				continue
			}
			for _, x := range times(g) {
				require.Zero(t, x-x)
			}
		}
	})
}

// TestTimesInAnyForm: the same events have the same times, whatever unit or form they are written
// in, as text and in Parquet.
func TestTimesInAnyForm(t *testing.T) {
	want := []float64{1583020740, 1583020740.5, -1}
	texts := func(times ...string) files {
		text := "src,dst,when_utc\n"
		for _, cell := range times {
			text += "0,1," + cell + "\n"
		}
		return files{"edges.csv": text}
	}
	for unit, f := range map[string]files{
		"":    texts("1583020740", "1583020740.5", "-1"),
		"s":   texts("1583020740", "1583020740.5", "-1"),
		"ms":  texts("1583020740000", "1583020740500", "-1000"),
		"us":  texts("1583020740000000", "1583020740500000", "-1000000"),
		"ns":  texts("1583020740000000000", "1583020740500000000", "-1000000000"),
		" ":   texts("2020-02-29 23:59", "2020-02-29T23:59:00.5", "1969-12-31 23:59:59"),
		"  ":  texts("2020-02-29 23:59Z", "2020-03-01T01:59:00.5+02:00", "1969-12-31 18:59:59 -05"),
		"   ": texts(`"2020/02/29 23:59"`, `"2020/02/29 23:59:00,5"`, "1969/12/31 23:59:59"),
	} {
		g, err := read(f.write(t), Options{Events: true, Time: "when_utc", TimeUnit: strings.TrimSpace(unit)})
		require.NoError(t, err, unit)
		require.Equal(t, want, times(g), unit)
	}

	type row[T any] struct {
		Src int64 `parquet:"src"`
		Dst int64 `parquet:"dst"`
		TS  T     `parquet:"ts"`
	}
	for unit, file := range map[string]func(b *bytes.Buffer) error{
		"ms": func(b *bytes.Buffer) error {
			type row struct {
				Src int64 `parquet:"src"`
				Dst int64 `parquet:"dst"`
				TS  int64 `parquet:"ts,timestamp(millisecond)"`
			}
			return pq.Write(b, []row{{0, 1, 1583020740000}, {0, 1, 1583020740500}, {0, 1, -1000}})
		},
		"us": func(b *bytes.Buffer) error {
			type row struct {
				Src int64 `parquet:"src"`
				Dst int64 `parquet:"dst"`
				TS  int64 `parquet:"ts,timestamp(microsecond)"`
			}
			return pq.Write(b, []row{{0, 1, 1583020740000000}, {0, 1, 1583020740500000}, {0, 1, -1000000}})
		},
		"ns": func(b *bytes.Buffer) error {
			type row struct {
				Src int64 `parquet:"src"`
				Dst int64 `parquet:"dst"`
				TS  int64 `parquet:"ts,timestamp(nanosecond)"`
			}
			return pq.Write(b, []row{{0, 1, 1583020740000000000}, {0, 1, 1583020740500000000}, {0, 1, -1000000000}})
		},
		"none": func(b *bytes.Buffer) error {
			return pq.Write(b, []row[float64]{{0, 1, 1583020740}, {0, 1, 1583020740.5}, {0, 1, -1}})
		},
		"text": func(b *bytes.Buffer) error {
			return pq.Write(b, []row[string]{{0, 1, "2020-02-29 23:59"}, {0, 1, "2020-02-29 23:59:00.5"}, {0, 1, "1969-12-31 23:59:59"}})
		},
	} {
		var b bytes.Buffer
		require.NoError(t, file(&b))
		s, err := Open(filepath.Join(files{"e.parquet": b.String()}.write(t), "e.parquet"), Options{Events: true})
		require.NoError(t, err, unit)
		defer s.Close()
		g, err := sourcetest.Read(s)
		require.NoError(t, err, unit)
		require.Equal(t, want, times(g), unit)
	}
}

// TestDatesOfEdges: columns of edges keep dates as integers of a unit, and refuse what would be
// lost.
func TestDatesOfEdges(t *testing.T) {
	list := "a,b,on\n0,1,2020-02-29 23:59\n1,2,1970-01-02\n"
	for column, want := range map[string][]uint64{
		"on": {1583020740, 86400}, "on=3:i64": {1583020740, 86400}, "on=3:s": {1583020740, 86400}, "on=3:ms": {1583020740000, 86400000}, "on=3:ns": {1583020740000000000, 86400000000000},
	} {
		g, err := read(files{"edges.csv": list}.write(t), Options{Src: "1", Dst: "2", EdgeColumns: []string{column}})
		require.NoError(t, err, column)
		require.Equal(t, want, g.Edges[0].Values[0], column)
	}
	for _, c := range [][3]string{
		{list, "on=3:f32", `line 2, column 3: "2020-02-29 23:59" is a date, which 32 bits do not hold`},
		{list, "on=3:i32", `line 2, column 3: "2020-02-29 23:59" is a date, which i32 does not hold; to keep seconds since 1970, say {edge_columns} on=3:i64`},
		{list + "2,0,1970-01-01 00:00:00.25\n", "on", `line 4, column 3: "1970-01-01 00:00:00.25" is between two counts of the column's unit since 1970; choose the type ms, us or ns`},
		{list + "2,0,12\n", "on=3:i64", `line 4, column 3: "12" is a number, and the first in the column is a date without a time zone; write all in one way`},
		{list + "2,0,12\n", "on=3:ms", `line 4, column 3: "12" is no date with the year first`},
		{list + "2,0,9999-12-31\n", "on=3:ns", `line 4, column 3: "9999-12-31" is beyond the nanoseconds that 64 bits hold; choose the type us`},
	} {
		_, err := read(files{"edges.csv": c[0]}.write(t), Options{Src: "1", Dst: "2", EdgeColumns: []string{c[1]}})
		require.ErrorContains(t, err, c[2])
	}
}
