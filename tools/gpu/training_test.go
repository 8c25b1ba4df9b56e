package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// trainer is a script in place of gnnstore-cuda. Its runs have losses of 1/step, and weights that
// the last words of the command lines decide; other commands make an empty dataset.
const trainer = `
[ "$1" = generate ] && { mkdir "$3"; exit; }
device=cpu run= epochs=3 steps=20
while [ $# -gt 0 ]; do
	case $1 in
	--run) run=$2 ;; --device) device=$2 ;; --epochs) epochs=$2 ;; --epoch-steps) steps=$2 ;;
	esac
	shift
done
mkdir -p "$run"
total=$((epochs * steps)) at=0
[ -f "$run/at" ] && at=$(cat "$run/at")
[ "$run" = cut-cpu ] && echo "the run began on --device cuda and goes on on cpu" >&2
status=done
trap 'status=interrupted' INT
while [ $at -lt $total ] && [ $status = done ]; do
	at=$((at + 1))
	echo "{\"step\":{\"updates\":$at,\"loss\":1.0$at$(LOSS)}}" >>"$run/metrics.jsonl"
	[ "$run" = cut ] && sleep 0.01
done
echo $at >"$run/at"
echo "{\"status\":\"$status\",\"params_xxh3\":\"PARAMS\",\"epochs\":[{\"steps\":$total}]}"
[ $status = done ]
`

// trainerWith returns the script with a shell expression that adds digits to a loss, and one of the
// weights.
func trainerWith(loss, params string) map[string]string {
	words := strings.NewReplacer("$(LOSS)", loss, "PARAMS", params)
	return map[string]string{"gnnstore-cuda": words.Replace(trainer)}
}

func TestRepeat(t *testing.T) {
	s := stage{name: "repeat", limit: time.Minute, run: (*turn).repeat}
	o := newVisit(t, trainerWith("", "abc")).one(s)
	require.Equal(t, passed, o.Result, o.Error)
	require.Equal(t, []string{"SAGE equal", "GAT equal", "HGT equal", "TGN equal"}, o.Figures)
	o = newVisit(t, trainerWith("", "$run")).one(s)
	require.Equal(t, failed, o.Result)
	require.Contains(t, o.Error, `SAGE: params_xxh3 "repeat-SAGE-1" and "repeat-SAGE-2"`)
	require.Contains(t, o.Error, "TGN: ")
}

func TestLosses(t *testing.T) {
	s := stage{name: "losses", limit: time.Minute, run: (*turn).losses}
	o := newVisit(t, trainerWith("", "abc")).one(s)
	require.Equal(t, passed, o.Result, o.Error)
	require.Equal(t, []string{"SAGE 0", "GCN 0", "GAT 0", "HGT 0", "TGN 0", "history 0"}, o.Figures)
	o = newVisit(t, trainerWith(`$([ $at$device$run = 7cudalosses-GAT-cuda ] && echo 1)`, "abc")).one(s)
	require.Equal(t, failed, o.Result)
	require.Equal(t, "GAT: step 7 is the first to differ: losses 1.07 and 1.071", o.Error)
	require.Len(t, o.Figures, 6)

	// TGN drifts: a GPU may be as far from the CPU as another kernel set of the CPU is, and
	// somewhat further.
	o = newVisit(t, trainerWith(`$(case $at$run in 7losses-TGN-cuda) echo 1;; esac)`, "abc")).one(s)
	require.Equal(t, "TGN: the GPU is more than 10 times as far from the CPU as another kernel set", o.Error)
	o = newVisit(t, trainerWith(`$(case $at$run in 7losses-TGN-cuda|7*portable) echo 1;; esac)`, "abc")).one(s)
	require.Equal(t, passed, o.Result, o.Error)
	require.Contains(t, o.Figures, "TGN 0.0009 (another set of the CPU 0.0009)")
}

func TestResume(t *testing.T) {
	s := stage{name: "resume", limit: time.Minute, run: (*turn).resume}
	o := newVisit(t, trainerWith("", "abc")).one(s)
	require.Equal(t, passed, o.Result, o.Error)
	require.Regexp(t, "^interrupted after [0-9]+ steps; on cuda: equal weights; on cpu: noted, losses within 0$",
		strings.Join(o.Figures, "; "))
	o = newVisit(t, trainerWith("", "$run")).one(s)
	require.Equal(t, failed, o.Result)
	require.Equal(t, `resumed on cuda: params_xxh3 "cut", and "whole" without an interruption`, o.Error)
}

// A program that prints no result, as where there is no driver, ends the stage at once.
func TestNoResult(t *testing.T) {
	v := newVisit(t, map[string]string{
		"gnnstore-cuda": "[ $1 = generate ] && exit\necho no NVIDIA driver >&2\nexit 1",
	})
	for _, run := range []func(*turn) error{(*turn).repeat, (*turn).losses, (*turn).training, (*turn).resume} {
		o := v.one(stage{name: "fails", limit: 20 * time.Second, run: run})
		require.Equal(t, failed, o.Result)
		require.Contains(t, o.Error, "gnnstore-cuda: exit status 1: no NVIDIA driver")
		require.Less(t, o.Seconds, 10.0)
	}
}
