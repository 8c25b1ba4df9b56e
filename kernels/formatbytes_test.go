package kernels

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFormatBytes(t *testing.T) {
	f := func(n int64, want string) {
		t.Helper()
		require.Equal(t, want, FormatBytes(n))
		if n > 0 {
			require.Equal(t, "-"+want, FormatBytes(-n))
		}
	}
	f(0, "0 B")
	f(1, "1 B")
	f(1023, "1023 B")
	f(1<<10, "1 KiB")
	f(1<<10+1, "1.0 KiB")
	f(1536, "1.5 KiB")
	f(10<<10-1, "10.0 KiB")
	f(99<<20+900<<10, "99.9 MiB")
	f(100<<20-1, "100 MiB")
	f(100<<20+900<<10, "101 MiB")
	f(1<<20-513, "1023 KiB")
	f(1<<20-512, "1.0 MiB") // and not 1024 KiB
	f(1<<20-1, "1.0 MiB")
	f(10<<30+300<<20, "10.3 GiB")
	f(8<<30, "8 GiB")
	f(1<<40, "1 TiB")
	f(3<<49, "1.5 PiB")
	f(math.MaxInt64, "8 EiB")
	f(math.MinInt64, "-8 EiB")
}
