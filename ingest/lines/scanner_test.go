package lines

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// packings are the ways a file may hold text.
var packings = map[string]func(t require.TestingT, text string) []byte{
	"plain": func(_ require.TestingT, text string) []byte { return []byte(text) },
	"gzip": func(t require.TestingT, text string) []byte {
		var b bytes.Buffer
		half := min(len(text), firstBuffer)
		for _, part := range []string{text[:half], text[half:]} { // two members, where there is enough
			if part == "" && b.Len() > 0 {
				break
			}
			w := gzip.NewWriter(&b)
			_, err := io.WriteString(w, part)
			require.NoError(t, err)
			require.NoError(t, w.Close())
		}
		return b.Bytes()
	},
	"zstd": func(t require.TestingT, text string) []byte {
		w, err := zstd.NewWriter(nil, zstd.WithZeroFrames(true))
		require.NoError(t, err)
		return w.EncodeAll([]byte(text), nil)
	},
}

func all(s *Scanner) (got []string, err error) {
	for {
		text, err := s.Next()
		if err == io.EOF {
			return got, s.Close()
		}
		if err != nil {
			return got, err
		}
		got = append(got, string(text))
	}
}

// split returns the lines of a text, without their ends.
func split(text string) []string {
	var want []string
	for line := range strings.Lines(text) {
		want = append(want, strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"))
	}
	return want
}

func TestLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"\n", "\r\n", "1,2", "x", "\r", "é", strings.Repeat("w", firstBuffer/2)}), 1, 30).Draw(t, "text"), "")
		little := rapid.Bool().Draw(t, "little")
		for name, pack := range packings {
			var r io.Reader = bytes.NewReader(pack(t, text))
			if little {
				r = iotest.DataErrReader(iotest.HalfReader(r))
			}
			s, err := New(name, r)
			require.NoError(t, err)
			got, err := all(s)
			if first := split(text)[0]; strings.Contains(strings.TrimRight(first, "\r"), "\r") {
				require.ErrorIs(t, err, errCR)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, split(text), got, name)
			require.EqualValues(t, len(got), s.Line())
		}
	})
}

// pointer is the text that Git LFS leaves in place of a file.
const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"

func TestPointer(t *testing.T) {
	dir := t.TempDir()
	for name, body := range map[string]string{"a.npz": pointer, "b.npz": "PK\x03\x04", "c.csv": "version https\n", "d.csv": ""} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(body), 0o666))
		if err := RefusePointer(path); body == pointer {
			require.EqualError(t, err, path+": a Git LFS pointer in place of the file; run git lfs pull in its repository, which fetches the file")
		} else {
			require.NoError(t, err)
		}
	}
	require.NoError(t, RefusePointer(dir))
	require.NoError(t, RefusePointer(filepath.Join(dir, "none")))
}

// TestMark: a byte order mark is dropped before the first line, packed or not, and refused before
// another line.
func TestMark(t *testing.T) {
	for name, pack := range packings {
		s, err := New(name, bytes.NewReader(pack(t, "\xef\xbb\xbf1,2\n\xef\xbb\xbf3,4\n")))
		require.NoError(t, err)
		got, err := all(s)
		require.EqualError(t, err, name+": line 2: it begins with a byte order mark, as where files were joined; take the mark away, and the header behind it")
		require.Equal(t, []string{"1,2"}, got, name)
	}
}

// TestOldMac: lines that end in CR alone would be one line.
func TestOldMac(t *testing.T) {
	for text, refused := range map[string]bool{
		"1,2\r2,3\r3,4\r": true, "1,2\r2,3\r\n": true, strings.Repeat("1,2\r", MaxLine/4+1): true,
		"1,2\r": false, "1,2\r\r\n3,4": false, "\"a\rb\",c\n": false, "1,2\r\n3,4\r\n": false,
	} {
		s, err := New("t", strings.NewReader(text))
		require.NoError(t, err)
		if _, err = all(s); refused {
			require.EqualError(t, err, `t: line 1: its lines end in CR alone, as old Macs wrote them; convert them: tr '\r' '\n'`)
		} else {
			require.NoError(t, err, "%q", text)
		}
	}
}

func TestDamaged(t *testing.T) {
	text := strings.Repeat("12345,67890\n", 400) + strings.Repeat("a quick fox\n", 30)
	for _, name := range []string{"gzip", "zstd"} {
		whole := packings[name](t, text)
		read := func(file []byte) ([]string, error) {
			s, err := New("t", bytes.NewReader(file))
			if err != nil {
				return nil, err
			}
			return all(s)
		}
		got, err := read(whole)
		require.NoError(t, err)
		require.Equal(t, split(text), got)
		for n := 6; n < len(whole); n++ {
			_, err := read(whole[:n])
			require.ErrorContains(t, err, "t: truncated or damaged download (", "%s of %d bytes", name, n)
		}
		for i := 6; i < len(whole); i++ {
			bad := bytes.Clone(whole)
			bad[i] ^= 0x24
			got, err := read(bad)
			if err == nil {
				require.Equal(t, split(text), got, "%s: byte %d", name, i) // of gzip's header
				continue
			}
			require.ErrorContains(t, err, "t: ")
			require.NotContains(t, err.Error(), "\n")
		}
	}
}

func TestRefuses(t *testing.T) {
	for file, want := range map[string]string{
		"":                   "t: the file is empty; fetch it again",
		"PK\x03\x04rest":     "t: a zip archive; unpack it first and name the file inside",
		"BZh91AY":            "t: packed by bzip2 or xz; unpack it, or pack it by gzip or zstd",
		"\xfd7zXZ\x00\x00":   "t: packed by bzip2 or xz; unpack it, or pack it by gzip or zstd",
		"\xff\xfe1\x00,\x00": "t: text in UTF-16; convert it to UTF-8",
		pointer:              "t: a Git LFS pointer in place of the file; run git lfs pull in its repository, which fetches the file",
		"%%MatrixMarket matrix coordinate real general\n3 3 1\n1 2 1\n": "t: a matrix in the Matrix Market format; format mtx reads it: gnnstore ingest mtx t OUT",
		"MATLAB 5.0 MAT-file, Platform: GLNXA64\n":                      "t: a MATLAB file, which is not read; write its matrices as .npz, all of them: python3 -c \"import numpy as np, scipy.io",
		"MATLAB 7.3 MAT-file, Platform: GLNXA64\n":                      "t: a MATLAB file of version 7.3",
		"\x89HDF\r\n\x1a\n":                                           "t: an HDF5 file, which is not read",
		"\x3f\xa1\xb4\x46\xf0\x4f\x2e\xdd\x02":                        "t: a graph of DGL, which is not read",
		"*Vertices 34\n*Arcs\n":                                       "t: a graph in Pajek's format, which is not read; write it as node-link JSON",
		"% x\n*vertices 2\n1 \"a\"\n":                                 "t: a graph in Pajek's format",
		"*Network a\n*Vertices 2\n":                                   "t: a graph in Pajek's format",
		"\n graph [\n  node [\n":                                      "t: a graph in GML, which is not read; write it as node-link JSON, with its labels and features: python3 -c \"import json, networkx as nx; json.dump(nx.node_link_data(nx.read_gml('t')), open('graph.json', 'w'))\"; then gnnstore ingest nodelink graph.json OUT",
		"# made\nCreator \"x\"\nVersion 1\ngraph\n[\n":                "t: a graph in GML",
		"<?xml version='1.0'?>\n<gexf>":                               "t: a graph in GEXF",
		"\ufeff<gexf version='1.2'>":                                  "t: a graph in GEXF",
		"<?xml version='1.0'?><!-- a -->\n<graphml xmlns='x'>":        "t: a graph in GraphML; format graphml reads it: gnnstore ingest graphml t OUT",
		strings.Repeat("x", 257) + "ustar" + strings.Repeat("x", 250): "t: a tar archive; unpack it first and name the file inside, or, if that is a matrix (.mtx), say gnnstore ingest mtx t OUT",
	} {
		_, err := New("t", strings.NewReader(file))
		require.ErrorContains(t, err, want)
	}
	_, err := NewGzip("t", strings.NewReader(pointer))
	require.ErrorContains(t, err, "t: a Git LFS pointer in place of the file; run git lfs pull")
	_, err = NewGzip("t", strings.NewReader("1,2\n"))
	require.EqualError(t, err, `t: not a gzip file: it starts with "1,2"; fetch it again, or compress it`)

	// A line without an end takes no more memory than the longest line may.
	s, err := New("t", io.MultiReader(strings.NewReader("1\n"), endless{}))
	require.NoError(t, err)
	_, err = all(s)
	require.EqualError(t, err, "t: line 2: longer than 16777216 bytes; is this a table?")
	require.LessOrEqual(t, len(s.buf), 2*MaxLine)

	broken := errors.New("disk on fire")
	s, err = New("t", io.MultiReader(strings.NewReader("1\n"+strings.Repeat("2", 100)), iotest.ErrReader(broken)))
	require.NoError(t, err)
	_, err = all(s)
	require.ErrorIs(t, err, broken)
	require.EqualError(t, err, "t: disk on fire")
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '7'
	}
	return len(b), nil
}

func TestErrors(t *testing.T) {
	s, err := New("t", strings.NewReader("1\n2\n3\n"))
	require.NoError(t, err)
	_, err = s.Next()
	require.NoError(t, err)
	require.EqualError(t, s.Errorf("%q is odd", Clip(bytes.Repeat([]byte("é"), 40))), `t: line 1: "`+strings.Repeat("é", 20)+`…" is odd`)
	_, err = s.Next()
	require.EqualError(t, err, s.Errorf("something else").Error(), "the first error stays")

	s, err = New("t", strings.NewReader("1,2\n"))
	require.NoError(t, err)
	_, err = s.Next()
	require.NoError(t, err)
	require.EqualError(t, s.ErrorIn(2, "odd"), "t: line 1, column 2: odd")

	// Nonsense in a damaged file is the damage's.
	file := packings["gzip"](t, strings.Repeat("1\n", firstBuffer))
	s, err = New("t", bytes.NewReader(file[:len(file)-1]))
	require.NoError(t, err)
	_, err = s.Next()
	require.NoError(t, err)
	require.ErrorContains(t, s.ErrorAt(1, "odd"), "t: truncated or damaged download (")
}

func TestOpen(t *testing.T) {
	for name, pack := range packings {
		path := filepath.Join(t.TempDir(), "any name")
		require.NoError(t, os.WriteFile(path, pack(t, "1\n2"), 0o644))
		s, err := Open(path)
		require.NoError(t, err)
		got, err := all(s)
		require.NoError(t, err)
		require.Equal(t, []string{"1", "2"}, got)
		require.Equal(t, path, s.Name())
		body, err := OpenBytes(path)
		require.NoError(t, err)
		whole, err := io.ReadAll(body)
		require.NoError(t, err)
		require.Equal(t, "1\n2", string(whole))
		require.NoError(t, body.Close())
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
		if _, err = NewGzip(path, bytes.NewReader(pack(t, "1\n2"))); name != "gzip" {
			require.ErrorContains(t, err, "not a gzip file")
			continue
		}
		require.NoError(t, err)
	}
	path := filepath.Join(t.TempDir(), "cut")
	require.NoError(t, os.WriteFile(path, packings["gzip"](t, "1\n2")[:12], 0o644))
	cut, err := OpenBytes(path)
	require.NoError(t, err)
	_, err = io.ReadAll(cut)
	require.ErrorContains(t, err, path+": truncated or damaged download (")
	require.NoError(t, cut.Close())
	_, err = OpenBytes(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Open(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestNewChecked(t *testing.T) {
	s, err := NewChecked("t", strings.NewReader("\x1f\x8b\n2")) // text that happens to start as gzip does
	require.NoError(t, err)
	got, err := all(s)
	require.NoError(t, err)
	require.Equal(t, []string{"\x1f\x8b", "2"}, got)
	// A member that fails its checksum says so, also where nonsense shows first.
	broken := io.MultiReader(strings.NewReader("1\nodd\n"+strings.Repeat("1\n", firstBuffer)), iotest.ErrReader(zip.ErrChecksum))
	s, err = NewChecked("a.zip: t", broken)
	require.NoError(t, err)
	_, err = s.Next()
	require.NoError(t, err)
	require.EqualError(t, s.Errorf("odd"), "a.zip: t: truncated or damaged download (zip: checksum error); fetch it again")
	_, err = NewChecked("t", strings.NewReader(""))
	require.EqualError(t, err, "t: the file is empty; fetch it again")
}
