package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestEnded: a finished run hears that it was too short or too long, whether it chose its number of
// epochs or not. It hears nothing if it was validated only once, or if its schedule fixes the
// number.
func TestEnded(t *testing.T) {
	const short = "the last epoch is the best, so more may be better: gnnstore train --resume --run r --epochs 600\n"
	const long = "200 epochs after the best one brought nothing: --patience 50 would have ended them\n"
	auto := &run.AutoEpochs{Ended: "epochs auto: ended"}
	const ended = "epochs auto: ended\n"
	for _, c := range []struct {
		epochs, best, every, patience int
		auto                          *run.AutoEpochs
		schedule                      optim.ScheduleKind
		status, want                  string
	}{
		{300, 300, 1, 0, nil, "", run.Done, short},
		{300, 300, 1, 0, nil, optim.Cosine, run.Done, ""},
		{300, 300, 300, 0, nil, "", run.Done, ""},
		{300, 300, 1, 0, nil, "", run.Interrupted, ""},
		{300, 250, 1, 0, nil, "", run.Done, ""},
		{300, 100, 1, 0, nil, "", run.Done, long},
		{300, 100, 5, 0, nil, "", run.Done, strings.Replace(long, "50", "10", 1)},
		{300, 100, 1, 200, nil, "", run.StoppedEarly, long},
		{300, 100, 1, 200, nil, "", run.Failed, ""},
		{300, 0, 1, 0, nil, "", run.Done, ""},
		{300, 300, 1, -1, auto, "", run.Done, ended + short},
		{300, 100, 1, -1, auto, "", run.Done, ended},
		{300, 100, 1, 200, auto, "", run.Done, ended + long},
	} {
		r := &run.Result{Run: "r", Status: c.status, Epochs: make([]run.Epoch, c.epochs)}
		r.Best.Epoch, r.Options.EvalEvery, r.Options.Schedule.Kind = c.best, c.every, c.schedule
		r.Options.Patience, r.AutoEpochs = c.patience, c.auto
		var out bytes.Buffer
		printEnded(&out, r)
		require.Equal(t, c.want, out.String(), "%+v", c)
	}
}
