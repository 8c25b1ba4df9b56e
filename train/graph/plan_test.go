package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/train/pipeline"
)

// TestPace: the disk has rows and lists to read, the processors batches to draw and steps to
// compute, and whoever has more to do sets the pace.
func TestPace(t *testing.T) {
	for _, c := range []struct {
		p       Plan
		share   float64
		inTurns bool
		stage   string
		seconds float64
	}{
		{Plan{StepSeconds: 2, SampleSeconds: 1}, 1, false, pipeline.Step, 3},
		{Plan{StepSeconds: 2, SampleSeconds: 1}, 0.25, false, pipeline.Step, 2.25},
		{Plan{StepSeconds: 2, SampleSeconds: 4}, 0.25, false, pipeline.Sample, 4},
		{Plan{StepSeconds: 2, SampleSeconds: 1, ListSeconds: 1, LoadSeconds: 4}, 1, false, pipeline.Load, 5},
		{Plan{StepSeconds: 2, SampleSeconds: 1, ListSeconds: 1, LoadSeconds: 4}, 1, true, pipeline.Load, 6},
		{Plan{StepSeconds: 2, SampleSeconds: 5, ListSeconds: 5, LoadSeconds: 4}, 1, false, pipeline.Sample, 9},
		{Plan{StepSeconds: 3, SampleSeconds: 2, ListSeconds: 1.5, LoadSeconds: 2.5}, 1, false, pipeline.Load, 4}, // less than a step each
	} {
		stage, seconds := c.p.pace(c.share, c.inTurns)
		require.Equal(t, c.stage, stage, c)
		require.InDelta(t, c.seconds, seconds, 1e-9, c)
	}
}
