package lines

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"pgregory.net/rapid"
)

// decodedText reads byte by byte, so that reads share characters.
func decodedText(path string, e Encoding) (string, error) {
	in, err := OpenDecoded(path, e)
	if err != nil {
		return "", err
	}
	defer in.Close()
	text, err := io.ReadAll(iotest.OneByteReader(in))
	return string(text), err
}

// TestEncoding: a text is the same in every encoding, packed or not.
func TestEncoding(t *testing.T) {
	const text = "id,name\n1,Zoë Müller\n2,\"50 – 60\"\n3,plain\n"
	latin := strings.ReplaceAll(text, "–", "-") // Latin-1 has no dash
	for name, want := range map[string]string{
		"": text, "utf-8": text, "UTF8": text, "latin1": latin, "ISO-8859-1": latin, "cp1252": text, "windows-1252": text, "iso-8859-15": latin, "latin9": latin, "utf-16": text, "UTF16": text,
	} {
		e, err := ParseEncoding(name)
		require.NoError(t, err, name)
		written := want
		if e.of != nil {
			encoder := e.of.NewEncoder()
			if e.name == utf16Name {
				encoder = unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewEncoder()
			}
			written, err = encoder.String(want)
			require.NoError(t, err, name)
		}
		for packing, pack := range packings {
			path := filepath.Join(t.TempDir(), "t.csv")
			require.NoError(t, os.WriteFile(path, pack(t, written), 0o644))
			s, err := OpenText(path, e)
			require.NoError(t, err, name)
			got, err := all(s)
			require.NoError(t, err, name)
			require.Equal(t, split(want), got, "%s %s", name, packing)
			whole, err := decodedText(path, e)
			require.NoError(t, err, name)
			require.Equal(t, want, whole, "%s %s", name, packing)
			if written == want {
				continue
			}
			s, err = OpenText(path, Encoding{})
			if err == nil {
				_, err = all(s)
			}
			require.ErrorIs(t, err, ErrEncoding, "%s %s %q", name, packing, written)
			require.ErrorContains(t, err, path+": ")
			if e.name == utf16Name {
				require.ErrorContains(t, err, "the text is not UTF-8 but UTF-16; say {encoding} utf-16")
			} else {
				require.ErrorContains(t, err, path+": line 2: the text is not UTF-8: it has the byte 0xEB; if it is Latin-1")
				begin, err := decodedText(path, Encoding{})
				require.Equal(t, "id,name\n1,Zo", begin)
				require.ErrorContains(t, err, path+": line 2: the text is not UTF-8; if it is Latin-1")
				require.ErrorIs(t, err, ErrEncoding)
			}
		}
	}
	for _, name := range []string{"latin", "utf-32", "cp9999", "ü"} {
		_, err := ParseEncoding(name)
		require.ErrorContains(t, err, "{encoding} \""+name+"\": choose utf-8, latin1, cp1252, utf-16")
	}
}

// TestEncodingRefused: text in another encoding than the option names is refused where its bytes
// show it.
func TestEncodingRefused(t *testing.T) {
	for _, c := range []struct{ encoding, text, want string }{
		{"latin1", "\xef\xbb\xbfa\n", "it begins with the mark of UTF-8; leave {encoding} latin1 out"},
		{"utf-16", "\xef\xbb\xbfa\n", "it begins with the mark of UTF-8; leave {encoding} utf-16 out"},
		{"cp1252", "\xff\xfea\x00", "text in UTF-16; say {encoding} utf-16 in place of cp1252"},
		{"utf-16", "a\x00\n\x00", "it does not begin with the byte order mark of UTF-16"},
		{"utf-16", "\xff\xfea\x00\n\x00b", "line 2: it has bytes that are no characters in the encoding"},
		{"utf-16", "\xff\xfea\x00\n\x00\x00\xd8a\x00", "line 2: it has bytes that are no characters in the encoding"},
		{"", "a\nb\nc\xe9", "line 3: the text is not UTF-8: it has the byte 0xE9"},
		{"", "a\nb\n\xc3", "line 3: the text is not UTF-8: it has the byte 0xC3"},
		{"", "\xed\xa0\x80\n", "line 1: the text is not UTF-8: it has the byte 0xED"},
		{"", "\xfe\xff\x00a", "the text is not UTF-8 but UTF-16"},
		{"latin1", "PK\x03\x04", "a zip archive"},
	} {
		path := filepath.Join(t.TempDir(), "t")
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o644))
		e, err := ParseEncoding(c.encoding)
		require.NoError(t, err)
		s, err := OpenText(path, e)
		if err == nil {
			_, err = all(s)
			require.NoError(t, s.Close())
		}
		_, errDecoded := decodedText(path, e)
		require.ErrorContains(t, err, c.want)
		want, _, _ := strings.Cut(c.want, ": it has the byte")
		require.ErrorContains(t, errDecoded, want)
		for _, err := range []error{err, errDecoded} {
			require.ErrorContains(t, err, path+": ")
			require.NotContains(t, err.Error(), "\n")
		}
	}
}

// TestEncodingCuts: a character that two reads share is read whole. A byte that is not UTF-8 is
// found in its line.
func TestEncodingCuts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t")
	rapid.Check(t, func(t *rapid.T) {
		line := strings.Repeat(rapid.SampledFrom([]string{"é", "a€", "𝄞", "ab𝄞"}).Draw(t, "rune"), rapid.IntRange(1, 300).Draw(t, "runes")) + "\n"
		n := rapid.IntRange(1, 3*firstBuffer/len(line)).Draw(t, "lines")
		text := strings.Repeat("x", rapid.IntRange(0, 5).Draw(t, "shift")) + strings.Repeat(line, n)
		bad := rapid.Bool().Draw(t, "bad")
		if bad {
			text += "caf\xe9\n"
		}
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		s, err := OpenText(path, Encoding{})
		require.NoError(t, err)
		defer s.Close()
		got, err := all(s)
		require.Len(t, got, n)
		if !bad {
			require.NoError(t, err)
			require.False(t, s.odd)
			return
		}
		require.ErrorIs(t, err, ErrEncoding)
		require.ErrorContains(t, err, "it has the byte 0xE9")
	})
}

// TestBytesWithoutMark: text that does not come in lines begins behind its byte order mark.
func TestBytesWithoutMark(t *testing.T) {
	for name, pack := range packings {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, pack(t, "\xef\xbb\xbfa"), 0o644))
		in, err := OpenBytes(path)
		require.NoError(t, err)
		buf := make([]byte, 8)
		n, _ := in.Read(buf)
		require.Equal(t, "a", string(buf[:n]))
		require.NoError(t, in.Close())
	}
}

func FuzzEncoding(f *testing.F) {
	utf16, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String("id\n1\nü\n")
	require.NoError(f, err)
	latin, err := charmap.ISO8859_1.NewEncoder().String("é\nü\n")
	require.NoError(f, err)
	for i, text := range []string{utf16, latin, "é\n", "\xff\xfea\x00\x00\xd8"} {
		f.Add([]byte(text), uint8(i))
	}
	path := filepath.Join(f.TempDir(), "t")
	f.Fuzz(func(t *testing.T, text []byte, which uint8) {
		e, err := ParseEncoding([]string{"", "latin1", "cp1252", "utf-16"}[which%4])
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, text, 0o644))
		s, err := OpenText(path, e)
		if err == nil {
			defer s.Close()
			var got []string
			got, err = all(s)
			for _, line := range got {
				require.Equal(t, strings.ToValidUTF8(line, ""), line)
			}
		}
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
		}
	})
}
