package cachetier_test

import (
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

func TestCloseGivesTheMemoryBack(t *testing.T) {
	f := table(t, 2000, 100)
	start := kernels.HostBytes()
	for range 3 {
		s, err := cachetier.Open(bg, f, cachetier.Options{DeviceBytes: 100_000, HostBytes: 200_000, Lookahead: 5})
		require.NoError(t, err)
		require.NoError(t, s.Gather(bg, make([]byte, 3*f.RowBytes()), []uint32{7, 1999, 700}))
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
		require.Equal(t, start, kernels.HostBytes())
	}
	require.NoError(t, os.Truncate(f.Shards()[0].Path, 0))
	_, err := cachetier.Open(bg, f, cachetier.Options{DeviceBytes: 100_000, HostBytes: 200_000, Lookahead: 5})
	require.Error(t, err)
	require.Equal(t, start, kernels.HostBytes())
}

// vast is a table larger than any memory.
type vast struct{}

func (vast) Rows() int             { return math.MaxUint32 }
func (vast) RowBytes() int         { return 1 << 18 }
func (vast) Row(uint32) []byte     { panic("not read") }
func (vast) Shards() []store.Shard { return nil }

func TestTiersThatDoNotFitAreAnError(t *testing.T) {
	start := kernels.HostBytes()
	for want, o := range map[string]cachetier.Options{
		"cachetier: the device region of 4294967295 rows: no memory for a buffer of 1125899906580480 bytes: ": {DeviceBytes: math.MaxInt64},
		"cachetier: the static region of 4294967295 rows: no memory for a buffer of 1125899906580480 bytes: ": {HostBytes: math.MaxInt64},
		"cachetier: the host cache of 2147364869 rows: no memory for a buffer of 562918816219136 bytes: ":     {HostBytes: 1 << 49},
	} {
		_, err := cachetier.Open(bg, vast{}, o)
		require.ErrorContains(t, err, want)
		var refused *kernels.MemoryError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, start, kernels.HostBytes())
	}
}
