package disk

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRateIsOfAllTransfersTogether(t *testing.T) {
	r, err := ParseRate("200MB/s,500")
	require.NoError(t, err)
	busy := time.Now().Add(time.Hour) // so that no pause of the test lets the device be idle
	r.free = busy
	for range 100 {
		require.Greater(t, r.Delay(1e6), time.Minute)
	}
	require.InDelta(t, 0.7, r.free.Sub(busy).Seconds(), 1e-6, "a hundred times 2 ms and 5 ms")
	f := r.Faults(func(int, int64, int) Fault { return Fault{Short: 3} })(0, 0, 1)
	require.Equal(t, 3, f.Short)
	require.Positive(t, f.Delay)
}

func TestParseRate(t *testing.T) {
	for text, bytes := range map[string]float64{"1000,1": 1000, "1.5GB,70000": 1.5e9, " 2 MiB , 3": 2 << 20, "4kB/s,5": 4000} {
		r, err := ParseRate(text)
		require.NoError(t, err, text)
		require.InDelta(t, bytes, r.bytes, 1e-6, text)
	}
	for _, text := range []string{"", "200MB", "0,1", "1,0", "-1,1", "x,1", "1,NaN", "Inf,1"} {
		_, err := ParseRate(text)
		require.Error(t, err, text)
	}
}
