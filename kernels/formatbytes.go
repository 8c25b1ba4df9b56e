package kernels

import (
	"fmt"
	"math"
)

// FormatBytes formats n bytes in the largest binary unit that n reaches. A number that is not whole
// has one decimal if it is below 100: 512 B, 8 GiB, 7.9 GiB, 24.2 MiB, 353 MiB.
func FormatBytes(n int64) string {
	v, unit := float64(n), "B"
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"} {
		if math.Abs(v) < 1023.5 { // not 1024, or there were 1024 KiB
			break
		}
		v, unit = v/1024, u
	}
	digits := 0
	if math.Abs(v) < 99.95 && v != math.Trunc(v) {
		digits = 1
	}
	return fmt.Sprintf("%.*f %s", digits, v, unit)
}
