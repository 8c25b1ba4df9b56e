package archive

import (
	"archive/zip"
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNames: a member that has another name where it lies than in the directory is refused.
func TestNames(t *testing.T) {
	members := map[string]string{"first.npy": "1", "second.npy": "22", "third.npy": "333"}
	for _, before := range []string{"", "#!/bin/sh\n"} { // a program in front, as self-extracting archives have it
		b := append([]byte(before), pack(t, zip.Deflate, members)...)
		_, err := NewReader(bytes.NewReader(b), int64(len(b)))
		require.NoError(t, err)
		i := bytes.Index(b, []byte("second.npy")) // its header's
		b[i] = 'S'
		_, err = NewReader(bytes.NewReader(b), int64(len(b)))
		require.ErrorIs(t, err, ErrDamaged)
		const want = `damaged or truncated download (member "second.npy" of the directory is called "Second.npy" where it lies); fetch it again`
		require.EqualError(t, err, want)
		_, err = open(b)
		require.EqualError(t, err, "t.zip: "+want)
	}
	b := pack(t, zip.Store, members)
	b[bytes.Index(b, []byte("third.npy"))-4] = 5 // the length of its name
	_, err := NewReader(bytes.NewReader(b), int64(len(b)))
	require.ErrorContains(t, err, `member "third.npy" of the directory is called "third" where it lies`)
}
