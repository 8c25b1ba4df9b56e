package jsonmap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"
)

type pair struct {
	Key    string
	Values []int64
	List   bool
}

func all(s *Scanner) (pairs []pair, err error) {
	for {
		key, err := s.Key()
		if err == io.EOF {
			return pairs, nil
		}
		if err != nil {
			return pairs, err
		}
		p := pair{Key: string(key)}
		p.List, err = s.Values(func(v int64) error { p.Values = append(p.Values, v); return nil })
		if err != nil {
			return pairs, err
		}
		pairs = append(pairs, p)
	}
}

func scan(text string) ([]pair, error) { return all(NewScanner("t.json", strings.NewReader(text))) }

func TestObjects(t *testing.T) {
	f := func(text string, want ...pair) {
		t.Helper()
		for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text))} {
			got, err := all(NewScanner("t.json", r))
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}
	f("{}")
	f(" { } \n")
	f(`{"0": 4, "1": [1, 0,1 ], "2":[]}`, pair{"0", []int64{4}, false}, pair{"1", []int64{1, 0, 1}, true}, pair{"2", nil, true})
	f("\xef\xbb\xbf{\r\n\"a\\u00e9\\\"\" : -7\t}", pair{`aé"`, []int64{-7}, false})
	f(`{"é":1.0,"e":1e3,"z":-0.0}`, pair{"é", []int64{1}, false}, pair{"e", []int64{1000}, false}, pair{"z", []int64{0}, false})
	f(`{"m":[9223372036854775807,-9223372036854775808,999999999999999999,1000000000000000000]}`,
		pair{"m", []int64{math.MaxInt64, math.MinInt64, 999999999999999999, 1000000000000000000}, true})
	f(`{"a":1,"a":2}`, pair{"a", []int64{1}, false}, pair{"a", []int64{2}, false})

	s := NewScanner("t.json", strings.NewReader(`{"a":[1,2],"b":3}`))
	for _, want := range []string{"a", "b"} { // values not asked for are passed over
		key, err := s.Key()
		require.NoError(t, err)
		require.Equal(t, want, string(key))
	}
	_, err := s.Key()
	require.Equal(t, io.EOF, err)
	_, err = s.Key()
	require.Equal(t, io.EOF, err)
}

func TestRefuses(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		s := NewScanner("t.json", strings.NewReader(text))
		_, err := all(s)
		require.EqualError(t, err, "t.json: byte "+want)
		_, again := s.Key()
		require.Equal(t, err, again, "the first error stays")
	}
	f("", "0: the file ends within the object; fetch it again")
	f("[1]", "0: '[' where an object begins with {")
	f(`{"a":1`, "6: the file ends within the object; fetch it again")
	f(`{"a":`, "5: the file ends within the object; fetch it again")
	f(`{"a`, "3: the file ends within the object; fetch it again")
	f(`{"a":[1,`, "8: the file ends within the object; fetch it again")
	f(`{"a":1}x`, "7: 'x' follows the object")
	f(`{"a":1 "b":2}`, "7: '\"' where a comma or the end of the object belongs")
	f(`{"a":1,}`, "7: '}' where a key in quotes belongs")
	f(`{,"a":1}`, "1: ',' where a key in quotes belongs")
	f(`{a:1}`, "1: 'a' where a key in quotes belongs")
	f(`{"a" 1}`, "5: '1' where a colon follows the key")
	f(`{"a":"b"}`, `7: "\"b\"" where an integer belongs`)
	f(`{"a":null}`, `8: "null" where an integer belongs`)
	f(`{"a":true}`, `8: "true" where an integer belongs`)
	f(`{"a":{"b":1}}`, `10: "{\"b\":1" where an integer belongs`)
	f(`{"a":[[1]]}`, `7: "[1" where an integer belongs`)
	f(`{"a":[1 2]}`, "8: '2' where a comma or the end of the list belongs")
	f(`{"a":[1,]}`, `8: "]" where an integer belongs`)
	f(`{"a":[,1]}`, "6: ',' where a number belongs")
	f(`{"a":1.5}`, "7: 1.5 is not an integer of 64 bits")
	f(`{"a":01}`, `6: "01" where an integer belongs`)
	f(`{"a":+1}`, `6: "+1" where an integer belongs`)
	f(`{"a":NaN}`, `7: "NaN" where an integer belongs`)
	f(`{"a":9223372036854775808}`, "23: 9223372036854775808 is not an integer of 64 bits")
	f(`{"a":`+strings.Repeat("1", 100)+`}`, `69: "`+strings.Repeat("1", 64)+`"… is not an integer`)
	f(`{"`+strings.Repeat("k", 2000), "1025: a key is longer than 1024 bytes")
	f("{\"a\nb\":1}", `5: a key is no JSON string: "\"a\nb\""`)

	stop := errors.New("enough")
	s := NewScanner("t.json", strings.NewReader(`{"a":[1,2]}`))
	_, err := s.Key()
	require.NoError(t, err)
	_, err = s.Values(func(int64) error { return stop })
	require.Equal(t, stop, err)
	_, err = s.Key()
	require.Equal(t, stop, err)
	require.Panics(t, func() { _, _ = NewScanner("t", strings.NewReader("{}")).Values(nil) })
}

// TestEndless: what never ends takes no memory.
func TestEndless(t *testing.T) {
	for _, start := range []string{`{"`, `{"a":1`, ` `} {
		_, err := all(NewScanner("t.json", io.MultiReader(strings.NewReader(start), io.LimitReader(endless{}, 1<<24))))
		require.Error(t, err)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '7'
	}
	return len(b), nil
}

func TestOpen(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := io.WriteString(w, `{"1":[2]}`)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	path := filepath.Join(t.TempDir(), "m.json")
	for _, body := range [][]byte{packed.Bytes(), []byte(`{"1":[2]}`)} {
		require.NoError(t, os.WriteFile(path, body, 0o644))
		s, err := Open(path)
		require.NoError(t, err)
		got, err := all(s)
		require.NoError(t, err)
		require.Equal(t, []pair{{"1", []int64{2}, true}}, got)
		require.NoError(t, s.Close())
	}
	require.NoError(t, os.WriteFile(path, packed.Bytes()[:packed.Len()-3], 0o644))
	s, err := Open(path)
	require.NoError(t, err)
	_, err = all(s)
	require.ErrorContains(t, err, path+": truncated or damaged download (")
	_, err = Open(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// FuzzScanner: what the Scanner accepts, encoding/json reads the same.
func FuzzScanner(f *testing.F) {
	for _, text := range []string{`{}`, `{"0":4,"1":[1,0]}`, `{"\u00e9":-1.0e2}`, `{"a":[],"a":[1,2]} `, `{"a":{}}`, `{"a":[1,[2]]}`, "\xef\xbb\xbf{}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := scan(string(text))
		d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))))
		want, wantErr := reference(d)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("not one line: %q", err)
			}
			if wantErr == nil && !strings.Contains(err.Error(), "longer than") && !strings.Contains(err.Error(), "… is not") {
				t.Fatalf("%q is refused: %v", text, err)
			}
			return
		}
		require.NoError(t, wantErr)
		require.Equal(t, want, got)
	})
}

// reference reads the object token by token.
func reference(d *json.Decoder) (pairs []pair, err error) {
	d.UseNumber()
	token := func() json.Token {
		t, e := d.Token()
		err = errors.Join(err, e)
		return t
	}
	integer := func(t json.Token) int64 {
		n, ok := t.(json.Number)
		if !ok {
			err = errors.Join(err, errors.New("no number"))
			return 0
		}
		v, e := n.Int64()
		if e != nil {
			var x float64
			if x, e = n.Float64(); e == nil && (x != math.Trunc(x) || math.Abs(x) > 1<<53) {
				e = errors.New("no integer")
			}
			v = int64(x)
		}
		err = errors.Join(err, e)
		return v
	}
	if token() != json.Delim('{') {
		return nil, errors.New("no object")
	}
	for err == nil && d.More() {
		key, ok := token().(string)
		if !ok {
			return nil, errors.New("no key")
		}
		p := pair{Key: key}
		t := token()
		if p.List = t == json.Delim('['); !p.List {
			p.Values = append(p.Values, integer(t))
		}
		for p.List && err == nil && d.More() {
			p.Values = append(p.Values, integer(token()))
		}
		if p.List {
			token()
		}
		pairs = append(pairs, p)
	}
	token()
	if _, e := d.Token(); err == nil && e != io.EOF {
		err = errors.New("something follows")
	}
	return pairs, err
}

func BenchmarkScanner(b *testing.B) {
	var text bytes.Buffer
	text.WriteByte('{')
	for v := range 2000 {
		if v > 0 {
			text.WriteString(", ")
		}
		fmt.Fprintf(&text, `"%d": [%s1]`, v, strings.Repeat("0, ", 99))
	}
	text.WriteByte('}')
	b.Run("scanner=jsonmap", func(b *testing.B) {
		b.SetBytes(int64(text.Len()))
		for b.Loop() {
			s := NewScanner("t.json", bytes.NewReader(text.Bytes()))
			for {
				if _, err := s.Key(); err == io.EOF {
					break
				}
				_, err := s.Values(func(int64) error { return nil })
				require.NoError(b, err)
			}
		}
	})
	b.Run("scanner=encoding-json", func(b *testing.B) {
		b.SetBytes(int64(text.Len()))
		for b.Loop() {
			d := json.NewDecoder(bytes.NewReader(text.Bytes()))
			for {
				if _, err := d.Token(); err == io.EOF {
					break
				}
			}
		}
	})
}
