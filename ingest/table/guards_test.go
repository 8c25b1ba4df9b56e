package table

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest/lines"
)

// TestSchemaStaysInside: a schema reads no file outside its folder, unless the user allows it.
func TestSchemaStaysInside(t *testing.T) {
	outside := files{"e.csv": "x,y\n1,2\n"}.write(t)
	dir := files{"in/sub/e.csv": "x,y\n1,2\n", "e.csv": "x,y\n1,2\n"}.write(t)
	open := func(file string, o Options) error {
		path := filepath.Join(dir, "in", "s.yaml")
		require.NoError(t, os.WriteFile(path, []byte("edges:\n  - {type: a:to:a, files: \""+file+"\", src: x, dst: y}\n"), 0o644))
		s, err := Open(path, o)
		if err == nil {
			err = s.Close()
		}
		return err
	}
	for _, file := range []string{filepath.Join(outside, "e.csv"), "../e.csv", "sub/../../e.csv", "../*.csv", filepath.Join(dir, "in/sub/e.csv")} {
		require.ErrorContains(t, open(file, Options{}), "leads out of the schema's folder; move the schema or the file, or say {follow_links} to read it", file)
		require.NoError(t, open(file, Options{FollowLinks: true}), file)
	}
	for _, file := range []string{"sub/e.csv", "sub/*.csv", "./sub/e.csv", "sub/../sub/e.csv"} {
		require.NoError(t, open(file, Options{}), file)
	}
	require.NoError(t, os.Symlink(filepath.Join(outside, "e.csv"), filepath.Join(dir, "in", "link.csv")))
	require.ErrorContains(t, open("link.csv", Options{}), "it is a symbolic link out of its folder")
	require.ErrorContains(t, open("sub", Options{}), "is a folder; name the files in it, as in sub/*.csv")
}

// TestTextOfJSON: a text that a decoder would change is refused, and so is a line of too many
// values.
func TestTextOfJSON(t *testing.T) {
	for line, want := range map[string]string{
		`{"x":"\ud83d\ude00","y":"\u0041\\u"}`: "",
		`{"x":"\ud800","y":"b"}`:               "half of a surrogate pair, and no character",
		`{"x":"\ud800\ud800","y":"b"}`:         "half of a surrogate pair",
		`{"x":"\udc00","y":"b"}`:               "half of a surrogate pair",
		"{\"x\":\"\xff\",\"y\":\"b\"}":         "the text is not UTF-8: it has the byte 0xFF",
		`{"x":"\uZZZZ","y":"b"}`:               "not an object of JSON",
		`{"x":"a","y":"b","z":[0` + strings.Repeat(",1", lines.MaxCells) + "]}": "commas in the object, and 65536 are the most; write long lists as Parquet",
	} {
		dir := files{"s.yaml": "edges:\n  - {type: a:to:a, files: e.jsonl, src: x, dst: y}\n", "e.jsonl": `{"x":"a","y":"b"}` + "\n" + line + "\n"}.write(t)
		_, err := read(dir, Options{})
		if want == "" {
			require.NoError(t, err, line)
			continue
		}
		require.ErrorContains(t, err, "e.jsonl: line 2: ")
		require.ErrorContains(t, err, want)
	}
}

// FuzzJSON: if a line passes the checks, decoding it replaces no text.
func FuzzJSON(f *testing.F) {
	f.Add(`{"x":"a","y":1,"z":[1,2.5]}`, `{"x":"b","y":null}`)
	f.Add(`{"x":"\ud83d\ude00"}`, `{"x":"\ud800"}`)
	f.Add(`{"x":{"y":1}}`, `{"x":true} {}`)
	f.Add("{\"x\":\"\xf0\"}", `{}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, line := range []string{a, b} {
			if !utf8.ValidString(line) { // the scanner refuses it before these checks
				return
			}
			if checkCommas([]byte(line)) != nil || checkText([]byte(line)) != nil {
				return
			}
			var row map[string]any
			if json.Unmarshal([]byte(line), &row) != nil {
				return
			}
			text, _ := row["x"].(string)
			said := strings.Contains(strings.ToLower(line), `\ufffd`) || strings.Contains(line, "\ufffd")
			require.True(t, said || !strings.Contains(text, "\ufffd"), "%q", line)
		}
	})
}
