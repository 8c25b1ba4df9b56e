package run

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

// TestPeakIsWatched: memory that is taken and given back between two looks counts.
func TestPeakIsWatched(t *testing.T) {
	var p Peak
	p.Look()
	before, _ := p.Bytes()
	require.Positive(t, before)
	stop := p.Watch()
	defer stop()
	const size = 64 << 20
	b, err := kernels.NewHostBuf(size)
	require.NoError(t, err)
	for i := range b.Bytes() {
		b.Bytes()[i] = 1
	}
	require.Eventually(t, func() bool {
		now, _ := p.Bytes()
		return now >= before+size*9/10
	}, time.Minute, time.Millisecond)
	b.Close()
	p.raise(1, 1)
	now, file := p.Bytes()
	require.GreaterOrEqual(t, now, before+size*9/10)
	p.raise(now+5, file+7)
	more, moreFile := p.Bytes()
	require.GreaterOrEqual(t, more, now+5)
	require.GreaterOrEqual(t, moreFile, file+7)
}
