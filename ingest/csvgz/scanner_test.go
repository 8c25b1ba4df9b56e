package csvgz

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest/lines"
)

// zip compresses parts, each to a gzip member of its own.
func zip(t testing.TB, parts ...string) []byte {
	var b bytes.Buffer
	for _, part := range parts {
		w := gzip.NewWriter(&b)
		_, err := w.Write([]byte(part))
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	return b.Bytes()
}

func scan(t testing.TB, parts ...string) *Scanner {
	s, err := NewScanner("t.csv.gz", bytes.NewReader(zip(t, parts...)))
	require.NoError(t, err)
	return s
}

func allInts(s *Scanner, cols int) (rows [][]int64, err error) {
	for {
		row := make([]int64, cols)
		if err := s.Ints(row); err == io.EOF {
			return rows, nil
		} else if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
}

func TestInts(t *testing.T) {
	f := func(want [][]int64, parts ...string) {
		t.Helper()
		cols := 2
		if len(want) > 0 {
			cols = len(want[0])
		}
		got, err := allInts(scan(t, parts...), cols)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	f([][]int64{{0, 1}, {22, 333}}, "0,1\n22,333\n")
	f([][]int64{{0, 1}, {22, 333}}, "0,1\r\n22,333\r\n\r\n")
	f([][]int64{{0, 1}, {22, 333}}, "0,1\n22,333\n\n\n\n")
	f([][]int64{{0, 1}, {22, 333}}, "0,1\n22,333")
	f([][]int64{{0, 1}, {22, 333}}, "0,", "1\n2", "2,333", "\n") // a line over three members
	f([][]int64{{3, -4}, {1000000, 0}}, "3.0,-4\n1e+06,-0.0\n")
	f([][]int64{{3, 4}, {5, 6}}, " 3 ,\t4\n\"5\",\" 6 \"\n")
	f([][]int64{{math.MaxInt64, math.MinInt64}}, "9223372036854775807,-9223372036854775808\n")
	f([][]int64{{999999999999999999, 1000000000000000000}}, "999999999999999999,1000000000000000000\n")
	f([][]int64{{9007199254740991, 7}}, "9007199254740991.00,+7\n")
	f([][]int64{{7}, {8}}, "7\n8\n")
	f(nil, "")
	f(nil, "\n\r\n")
}

func TestIntsRefuses(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		s := scan(t, text)
		_, err := allInts(s, 2)
		require.EqualError(t, err, "t.csv.gz: "+want)
		require.Equal(t, err, s.Ints(make([]int64, 2)), "the first error stays")
	}
	f("0,1\n2,x\n", `line 2: "x" is not an integer`)
	f("0,1\n2,\n", `line 2: "" is not an integer`)
	f("0,1\n2.5,1\n", `line 2: "2.5" is not an integer`)
	f("0,nan\n", `line 1: "nan" is not an integer`)
	f("9223372036854775808,1\n", `line 1: "9223372036854775808" is not an integer`)
	f("1e300,1\n", `line 1: "1e300" is not an integer`)
	f("9007199254740993.00,1\n", `line 1: "9007199254740993.00" is not an integer`) // a float of 64 bits cannot hold it
	f("0,1\n2\n", "line 2: found 1 columns, 2 are expected")
	f("0,1\n2,3,4\n", "line 2: found 3 columns, 2 are expected")
	f("0,1,\n", "line 1: found 3 columns, 2 are expected")
	f("0,1\n\n\n2,3\n", "line 2: the line is blank, and others follow")
	f("src,dst\n0,1\n", `line 1: "src" is not an integer`)
	f("0,"+strings.Repeat("z", 1000)+"\n", `line 1: "`+strings.Repeat("z", 40)+`…" is not an integer`)
	f("0,\x01\xff\n1,1\n", `line 1: "\x01\xff" is not an integer`)
	f("0,\x00\xff\n1,1\n", "line 1: the file is not text: it holds a zero byte, as a file does that a crash cut short; make it again")
	f(strings.Repeat("1", lines.MaxLine+10), "line 1: longer than 16777216 bytes; is this a table?")
}

func TestFloats(t *testing.T) {
	s := scan(t, "1e-05,-2,3.5\r\nnan,,\"\"\n1e99,-inf,0.1\n1,2,three\n")
	n, err := s.Columns()
	require.NoError(t, err)
	require.Equal(t, 3, n)
	row := make([]float32, 3)
	require.NoError(t, s.Floats(row))
	require.Equal(t, []float32{1e-5, -2, 3.5}, row)
	require.NoError(t, s.Floats(row))
	for _, v := range row {
		require.True(t, v != v)
	}
	require.NoError(t, s.Floats(row))
	require.Equal(t, []float32{float32(math.Inf(1)), float32(math.Inf(-1)), 0.1}, row)
	require.Equal(t, int64(3), s.Line())
	require.EqualError(t, s.Floats(row), `t.csv.gz: line 4: "three" is not a number`)

	n, err = scan(t, "").Columns()
	require.NoError(t, err)
	require.Zero(t, n)
	s = scan(t, "\n\r\n1,2\n\n3,4\n\n")
	n, err = s.Columns()
	require.NoError(t, err)
	require.Equal(t, 2, n)
	rest, err := s.Rest()
	require.NoError(t, err)
	require.Equal(t, int64(2), rest)
	rest, err = s.Rest()
	require.NoError(t, err)
	require.Zero(t, rest)
}

func TestLabels(t *testing.T) {
	f := func(cols int, want []int32, text string) {
		t.Helper()
		s := scan(t, text)
		var got []int32
		row := make([]int32, cols)
		for {
			err := s.Labels(row)
			if err == io.EOF {
				require.Equal(t, io.EOF, s.Labels(row))
				break
			}
			require.NoError(t, err)
			got = append(got, row...)
		}
		require.Equal(t, want, got)
	}
	f(1, []int32{4, 0, -1, -1, -1, 7}, "4\n0.0\nnan\n\"\"\n-1\n7\n\n")
	f(1, []int32{4, -1, -1, 7, -1, 2}, "4\n\n\n7\r\n\r\n2\n\n\n")
	f(1, []int32{-1, 3}, "\n3")
	f(1, nil, "\n\n\n")
	f(3, []int32{1, 0, -1, -1, -1, 1}, "1,0,\n,NaN,1.0\n")
	for text, want := range map[string]string{
		"1\n2.5\n":                    `t.csv.gz: line 2: "2.5" is not the number of a class`,
		"1\n\n\nspam\n":               `t.csv.gz: line 4: "spam" is not the number of a class`,
		"3000000000\n":                `t.csv.gz: line 1: "3000000000" is not the number of a class`,
		"1,2\n":                       `t.csv.gz: line 1: found 2 columns, 1 are expected`,
		"1\ninf\n":                    `t.csv.gz: line 2: "inf" is not the number of a class`,
		"99999999999999999999999\n\n": `t.csv.gz: line 1: "99999999999999999999999" is not the number of a class`,
	} {
		s := scan(t, text)
		var err error
		for err == nil {
			err = s.Labels(make([]int32, 1))
		}
		require.EqualError(t, err, want)
	}
}

// Lines over every border of the buffer, from readers that give little at a time.
func TestBorders(t *testing.T) {
	var text strings.Builder
	var want [][]int64
	for i := range int64(30_000) {
		row := []int64{i * i * i, i}
		fmt.Fprintf(&text, "%d,%d\n", row[0], row[1])
		want = append(want, row)
	}
	file := zip(t, text.String())
	for name, r := range map[string]io.Reader{"whole": bytes.NewReader(file), "one byte": iotest.OneByteReader(bytes.NewReader(file)), "data with error": iotest.DataErrReader(bytes.NewReader(file))} {
		s, err := NewScanner(name, r)
		require.NoError(t, err)
		got, err := allInts(s, 2)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, int64(len(want)), s.Line())
	}

	wide := strings.TrimSuffix(strings.Repeat("12345678,", (384<<10)/9), ",")
	s := scan(t, wide+"\n"+wide)
	n, err := s.Columns()
	require.NoError(t, err)
	row := make([]float32, n)
	require.NoError(t, s.Floats(row))
	require.NoError(t, s.Floats(row))
	require.Equal(t, float32(12345678), row[n-1])
	require.Equal(t, io.EOF, s.Floats(row))
}

func TestDamaged(t *testing.T) {
	var text strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&text, "%d,%d\n", i*7919%2000, i)
	}
	whole := zip(t, text.String())
	want, err := allInts(scan(t, text.String()), 2)
	require.NoError(t, err)
	read := func(file []byte) ([][]int64, error) {
		s, err := NewScanner("t.csv.gz", bytes.NewReader(file))
		if err != nil {
			return nil, err
		}
		return allInts(s, 2)
	}
	for n := 2; n < len(whole); n += 1 + n/20 {
		_, err := read(whole[:n])
		require.ErrorContains(t, err, "t.csv.gz: truncated or damaged download (", "%d bytes", n)
	}
	for i := 10; i < len(whole); i += 1 + i/40 {
		bad := bytes.Clone(whole)
		bad[i] ^= 0x24
		got, err := read(bad)
		if err == nil {
			require.Equal(t, want, got)
			continue
		}
		require.ErrorContains(t, err, "t.csv.gz: truncated or damaged download (", "byte %d", i)
	}
	_, err = read(append(whole, "trailing"...))
	require.ErrorContains(t, err, "truncated or damaged download")

	for file, want := range map[string]string{
		"":              "t.csv.gz: the file is empty; fetch it again",
		"0,1\n2,3\n":    `t.csv.gz: not a gzip file: it starts with "0,1"; fetch it again, or compress it`,
		"x":             `t.csv.gz: not a gzip file: it starts with "x"; fetch it again, or compress it`,
		"\x1f\x8b\x07…": "t.csv.gz: truncated or damaged download (gzip: invalid header); fetch it again",
	} {
		_, err := read([]byte(file))
		require.ErrorContains(t, err, want[:len("t.csv.gz: truncated")])
		if !strings.Contains(want, "truncated") {
			require.EqualError(t, err, want)
		}
	}
	broken := errors.New("disk on fire")
	s, err := NewScanner("t.csv.gz", io.MultiReader(bytes.NewReader(whole[:1000]), iotest.ErrReader(broken)))
	require.NoError(t, err)
	_, err = allInts(s, 2)
	require.ErrorIs(t, err, broken)
	require.NotContains(t, err.Error(), "damaged")
}

func FuzzScanner(f *testing.F) {
	for _, text := range []string{"0,1\n22,333\n", "1\r\n\r\n3.0\n\n", "nan,1e-05,\"\"\n", "-9223372036854775808,9223372036854775808\n", "\n\n,\n", "1,,2"} {
		f.Add([]byte(text), uint8(2))
		f.Add([]byte(text), uint8(1))
	}
	f.Fuzz(func(t *testing.T, text []byte, cols uint8) {
		n := int(cols)%4 + 1
		file := zip(t, string(text))
		ints, floats, labels := make([]int64, n), make([]float32, n), make([]int32, n)
		for name, read := range map[string]func(*Scanner) error{
			"ints":   func(s *Scanner) error { return s.Ints(ints) },
			"floats": func(s *Scanner) error { return s.Floats(floats) },
			"labels": func(s *Scanner) error { return s.Labels(labels) },
		} {
			s, err := NewScanner("t.csv.gz", bytes.NewReader(file))
			require.NoError(t, err)
			lines := bytes.Count(text, []byte{'\n'}) + 1
			for {
				if err = read(s); err != nil {
					break
				}
				if lines--; lines < 0 {
					t.Fatalf("%s: more rows than lines", name)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("not one line: %q", err)
			}
		}
		// A table that encoding/csv and strconv read is read the same.
		r := csv.NewReader(bytes.NewReader(text))
		r.FieldsPerRecord = n
		var want [][]int64
		for {
			record, err := r.Read()
			if err == io.EOF {
				break
			}
			if err != nil {
				return
			}
			row := make([]int64, n)
			for i, cell := range record {
				if row[i], err = strconv.ParseInt(cell, 10, 64); err != nil {
					return
				}
			}
			want = append(want, row)
		}
		if bytes.ContainsAny(text, "\"") || bytes.Contains(text, []byte("\n\n")) || bytes.Contains(text, []byte("\n\r\n")) || bytes.HasPrefix(text, []byte("\n")) || bytes.HasPrefix(text, []byte("\r\n")) {
			return // csv skips blank lines anywhere
		}
		got, err := allInts(scan(t, string(text)), n)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func BenchmarkInts(b *testing.B) {
	var text strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&text, "%d,%d\n", i*31%169343, i*7919%169343)
	}
	var stored bytes.Buffer // inflating would drown the difference
	w, err := gzip.NewWriterLevel(&stored, gzip.NoCompression)
	require.NoError(b, err)
	_, err = w.Write([]byte(text.String()))
	require.NoError(b, err)
	require.NoError(b, w.Close())
	file := stored.Bytes()
	b.Run("scanner=csvgz", func(b *testing.B) {
		b.SetBytes(int64(text.Len()))
		for b.Loop() {
			s, err := NewScanner("t.csv.gz", bytes.NewReader(file))
			require.NoError(b, err)
			var row [2]int64
			for err = s.Ints(row[:]); err == nil; err = s.Ints(row[:]) {
			}
			require.Equal(b, io.EOF, err)
		}
	})
	b.Run("scanner=encoding-csv", func(b *testing.B) {
		b.SetBytes(int64(text.Len()))
		for b.Loop() {
			z, err := gzip.NewReader(bytes.NewReader(file))
			require.NoError(b, err)
			r := csv.NewReader(z)
			r.ReuseRecord = true
			for {
				record, err := r.Read()
				if err == io.EOF {
					break
				}
				for _, cell := range record {
					if _, err := strconv.ParseInt(cell, 10, 64); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
	})
}
