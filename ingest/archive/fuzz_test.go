package archive

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzOpen: whatever the directory of a zip says, a member is read within its bounds, or refused in
// one line.
func FuzzOpen(f *testing.F) {
	for _, method := range []uint16{0, 8} {
		f.Add(pack(f, method, map[string]string{"a": "0123456789", "b": ""}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := Open("t.zip", bytes.NewReader(b), int64(len(b)), "a zip archive")
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		for _, m := range a.Members {
			require.NotContains(t, m.Name, "\n")
			n, err := io.Copy(io.Discard, io.LimitReader(m.Stream(0, m.Size), 1<<20))
			if err != nil {
				require.NotContains(t, err.Error(), "\n")
			} else {
				require.Equal(t, min(m.Size, 1<<20), n)
			}
		}
	})
}
