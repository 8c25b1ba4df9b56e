package kernels

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemoryLimits(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux's /proc")
	}
	machine, cgroup, err := MemoryLimits()
	require.NoError(t, err)
	system, err := SystemMemory()
	require.NoError(t, err)
	if cgroup == 0 {
		require.Equal(t, machine, system)
	} else {
		require.Less(t, cgroup, machine)
		require.Equal(t, cgroup, system)
	}
}

func TestChosenIn(t *testing.T) {
	for text, want := range map[string]string{"always [madvise] never\n": "madvise", "[always] madvise never\n": "always", "": "", "always\n": ""} {
		require.Equal(t, want, chosenIn([]byte(text)), text)
	}
}
