package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/train/pipeline"
)

// TestView: what is recent leaves out what was done before others could look; a step that follows
// soon is not shown, and the last of an epoch is.
func TestView(t *testing.T) {
	var v View
	v.Step(1, 1, 0.5) // nobody looks
	v.refresh()

	r := &Result{Status: Running, Epochs: []Epoch{{Epoch: 1}}, Losses: []float64{3}}
	updates := 10
	look := func() Point {
		rows := int64(100 * updates)
		return Point{Result: *r, Steps: 10, Updates: updates, Total: 30, Count: func(r *Result) (pipeline.Stats, int) {
			r.Stats = cachetier.Stats{InputRows: 7000 + rows} // in a process before
			return pipeline.Stats{Step: float64(rows) / 1000}, 3
		}}
	}
	var now func() *Result
	stopped := false
	stop := v.Serve(func(f func() *Result) func() {
		now = f
		return func() { stopped = true }
	}, look)
	l := now().Live
	require.Equal(t, 10, l.Updates)
	require.Nil(t, l.Loss)
	require.Nil(t, l.ETASeconds)

	updates++
	v.Step(2, 1, 0.5)
	require.Equal(t, 10, now().Live.Updates)
	updates = 20
	v.Step(2, 10, 0.25)
	got := now()
	l = got.Live
	require.Equal(t, [5]int{20, 10, 2, 10, 10}, [5]int{l.Updates, l.Step, l.Epoch, l.Steps, l.Recent.Updates})
	require.Equal(t, 0.25, *l.Loss)
	require.Equal(t, 3, *l.ReadsUnderWay)
	require.NotNil(t, l.ETASeconds)
	require.Equal(t, [2]int64{9000, 1000}, [2]int64{got.InputRows, l.Recent.InputRows})
	require.InDelta(t, 1000, l.RowsPerSecond, 1e-6)
	require.Equal(t, pipeline.Step, l.Recent.LimitingStage)

	r.Epochs, r.Losses = append(r.Epochs, Epoch{Epoch: 2}), append(r.Losses, 2)
	v.refresh()
	before := now()
	require.Equal(t, []float64{3, 2}, before.Losses)
	r.Status, r.Losses[1] = Done, 1
	stop()
	require.True(t, stopped)
	require.Equal(t, []float64{3, 2}, before.Losses)
	require.Equal(t, r, now())
}
