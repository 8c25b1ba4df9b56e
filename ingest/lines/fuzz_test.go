package lines

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzScanner: whatever the bytes, packed or not, the result is lines or an error of one line, and
// no line holds a zero byte.
func FuzzScanner(f *testing.F) {
	for _, text := range []string{"1,2\n3,4\n", "1\r\n\f\n2", "a\rb\n", "a\x00b\n", "\xef\xbb\xbf1\n", strings.Repeat("7 ", 100_000)} {
		for _, pack := range packings {
			f.Add(pack(f, text))
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		s, err := New("t", bytes.NewReader(file))
		for err == nil {
			var line []byte
			if line, err = s.Next(); err == nil {
				require.NotContains(t, string(line), "\x00")
				require.Equal(t, IsBlank(line), len(bytes.Fields(line)) == 0)
				cells, _ := Cells(nil, line, 0)
				require.LessOrEqual(t, len(cells), MaxCells)
			}
		}
		if err != io.EOF {
			require.NotContains(t, err.Error(), "\n")
		}
	})
}

// FuzzNumber: an integer equals the float of its text, and an exact float prints as it was written.
func FuzzNumber(f *testing.F) {
	for _, cell := range []string{"3", "1e3", "0x1p10", "1_000", "9007199254740993", "nan", "-0.0", "1.000000000000000056e-01"} {
		f.Add([]byte(cell))
	}
	f.Fuzz(func(t *testing.T, cell []byte) {
		n, whole := Integer(cell)
		v, err := Float(cell, 64)
		if whole {
			require.NoError(t, err)
			require.Equal(t, float64(n), v)
			require.True(t, int64(v) == n || !Exact(cell, v), "%s", cell)
		}
		if err == nil {
			require.NotContains(t, strings.ToLower(string(cell)), "x")
			require.NotContains(t, string(cell), "_")
			Exact(cell, v)
		}
	})
}
