package disk

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChoose(t *testing.T) {
	f := func(size, available int64, err error, want Kind, why string) {
		t.Helper()
		kind, got := choose(size, available, err)
		require.Equal(t, want, kind)
		require.Contains(t, got, why)
	}
	f(1<<30, 2<<30, nil, Mmap, "files of 1 GiB fit in half of the 2 GiB")
	f(1<<30+1, 2<<30, nil, Uring, "do not fit")
	f(3<<20, 23<<30, nil, Mmap, "files of 3 MiB")
	f(0, 0, nil, Mmap, "fit")
	f(1<<40, 0, errors.New("no figure"), Mmap, "(no figure)")
}
