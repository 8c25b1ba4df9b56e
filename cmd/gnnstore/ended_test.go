package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestEnded: a finished run hears that it was too short or too long. It does not if it was not
// validated twice, or if its schedule fixes the number of epochs.
func TestEnded(t *testing.T) {
	const short = "the last epoch is the best, so more may be better: gnnstore train --resume --run r --epochs 600\n"
	for _, c := range []struct {
		epochs, best, every int
		schedule            optim.ScheduleKind
		status, want        string
	}{
		{300, 300, 1, "", run.Done, short},
		{300, 300, 1, optim.Cosine, run.Done, ""},
		{300, 300, 300, "", run.Done, ""},
		{300, 300, 1, "", run.Interrupted, ""},
		{300, 250, 1, "", run.Done, ""},
		{300, 100, 1, "", run.Done, "200 epochs after the best one brought nothing: --patience 50 would have ended them\n"},
		{300, 100, 5, "", run.Done, "200 epochs after the best one brought nothing: --patience 10 would have ended them\n"},
		{300, 0, 1, "", run.Done, ""},
	} {
		r := &run.Result{Run: "r", Status: c.status, Epochs: make([]run.Epoch, c.epochs)}
		r.Best.Epoch, r.Options.EvalEvery, r.Options.Schedule.Kind = c.best, c.every, c.schedule
		var out bytes.Buffer
		printEnded(&out, r)
		require.Equal(t, c.want, out.String(), "%+v", c)
	}
}
