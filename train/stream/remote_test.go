package stream

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestRemote: a backend whose memory the host cannot address, and which goes on after its calls
// have returned, trains to the same bits. A step waits for the changes of the state, and at its
// end. A step that blends memories waits for these as well.
func TestRemote(t *testing.T) {
	ds := drifting(t, 500)
	for _, kind := range model.TemporalKinds {
		for name, c := range map[string]struct {
			waits  int64
			change func(o *run.Options)
		}{
			"plain":   {2, func(*run.Options) {}},
			"clipped": {2, func(o *run.Options) { o.Optim.ClipNorm = 0.1 }},
			"late":    {2, func(o *run.Options) { o.Staleness, o.Publish = 3, run.Late }},
			"mixed":   {2, func(o *run.Options) { o.Staleness, o.Mitigate = 3, 0.5 }},
		} {
			o := options(kind)
			o.Epochs = 1
			c.change(&o)
			want := outcomeOf(run1(t, ds, o, run.Hooks{}))
			be := kerneltest.Remote(kernels.NewCPU(kernels.CPUOptions{}))
			be.Pause = func() { time.Sleep(100 * time.Microsecond) }
			least, last := int64(math.MaxInt64), int64(-1)
			h := run.Hooks{Backend: be, Step: func(int, int, int, float64) {
				now := be.Waits.Load()
				if last >= 0 {
					least = min(least, now-last)
				}
				last = now
			}}
			got := run1(t, ds, o, h)
			require.Equal(t, want, outcomeOf(got), "%s, %s", kind, name)
			require.Positive(t, got.Memory.OnDevice)
			require.Equal(t, c.waits, least, "%s, %s: waits", kind, name)
		}
	}
}
