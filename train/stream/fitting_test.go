//go:build !race

// With the race detector, the buffers of a step are on the Go heap: its memory hardly depends on
// the batch.

package stream

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestRefusalNamesWhatFits: a run opens with the batch that the error names, and not with the next
// larger round batch.
func TestRefusalNamesWhatFits(t *testing.T) {
	ds := drifting(t, 8000)
	for _, kind := range model.TemporalKinds {
		o := options(kind)
		o.Batch, o.Hidden, o.MemoryBytes = 2000, 64, 1<<20
		opens := func(o run.Options) error {
			c, err := openCore(t.Context(), ds, o, run.Hooks{}, internal{})
			if err == nil {
				c.Close()
			}
			return err
		}
		var short *plan.NotEnough
		require.ErrorAs(t, opens(o), &short)
		o.MemoryBytes = (short.MiB() - 3) << 20
		_, err := MakePlan(t.Context(), ds, o, run.Hooks{})
		require.ErrorAs(t, err, &short)
		m := regexp.MustCompile(`; \{batch\} ((\d)(0*)) fits$`).FindStringSubmatch(err.Error())
		require.NotNil(t, m, err)
		_, err = fmt.Sscan(m[1], &o.Batch)
		require.NoError(t, err)
		require.NoError(t, opens(o), kind)
		notch := 0
		_, err = fmt.Sscan("1"+m[3], &notch)
		require.NoError(t, err)
		o.Batch += notch
		require.ErrorAs(t, opens(o), &short, kind)
	}
}
