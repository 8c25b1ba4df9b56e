package main

import (
	"bytes"
	"encoding/json"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/train/live"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/run"
)

// flagsOf returns the options of train with the flags of a command line, which are not complete.
func flagsOf(t *testing.T, args string) *trainOptions {
	o := &trainOptions{Options: run.DefaultOptions()}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.flags(f)
	require.NoError(t, f.Parse(strings.Fields(args)), args)
	return o
}

// parsed is the options that a command line of train comes to.
func parsed(t *testing.T, args string) run.Options {
	o := flagsOf(t, args)
	require.NoError(t, o.complete(), args)
	return o.Options
}

// TestStreamOptions: a network for streams has the defaults of streams where nothing is given, and
// a run that is resumed has its own.
func TestStreamOptions(t *testing.T) {
	for args, want := range map[string]func(o *run.Options){
		"--model tgn":              func(o *run.Options) {},
		"--model jodie --layers 1": func(o *run.Options) { o.Kind, o.Fanouts = model.JODIE, []int{0} },
		"--model apan --mails 5 --fanout 7 --heads 5 --hidden 50 --attn-dropout 0": func(o *run.Options) {
			o.Kind, o.Mails, o.Fanouts, o.Heads, o.Hidden, o.AttnDropout = model.APAN, 5, []int{7}, 5, 50, 0
		},
		"--model tgn --lr 0.5 --batch 4000 --dropout 0.25 --metric auc --sampler uniform --task link --eval none --time-columns 8": func(o *run.Options) {
			o.LR, o.Batch, o.Dropout, o.Metric, o.Sampler, o.Eval, o.TimeColumns = 0.5, 4000, 0.25, metric.ROCAUC, run.UniformNeighbors, run.NoEvaluation, 8
		},
		"--model tgn --stream talk --negative-population nodes --staleness auto --mitigate 0.95 --mitigate-audit 9 --publish late --inflight 4 --warm-events 20M --times learnt --eval auto": func(o *run.Options) {
			o.StreamOptions = run.StreamOptions{
				Stream: "talk", NegativePopulation: run.AllNodes, Staleness: run.Auto, Mitigate: 0.95, MitigateAudit: 9, Publish: run.Late, Inflight: 4, WarmEvents: 20e6,
				Times: run.Learnt, Identity: run.Auto,
			}
		},
		"--model tgn --staleness 3 --times learnt --fixed-time --warm-events 0": func(o *run.Options) { o.Staleness, o.Times = 3, run.Fixed },
		"--model tgn --identity 0":                             func(o *run.Options) { o.Identity = 0 },
		"--model tgn --state none --staleness 1":               func(o *run.Options) { o.Staleness, o.State = 1, run.NoState },
		"--model tgn --metric mrr --eval-negatives uniform:50": func(o *run.Options) { o.Metric, o.EvalNegatives = metric.MRR, "uniform:50" },
	} {
		o := run.DefaultStreamOptions(model.TGN)
		want(&o)
		got := parsed(t, args)
		// these are the same for any network
		o.Cache, o.Optim, o.Schedule, o.Kernels, o.Left = got.Cache, got.Optim, got.Schedule, got.Kernels, got.Left
		require.Empty(t, cmp.Diff(o, got), args)

		got.Task = run.LinkTask // as a run may have it on record
		for _, o := range []run.Options{got, got.FilledStream(1e9)} {
			o.Left = nil // a run leaves no option open
			record := &run.Record{Options: o, Kernels: o.Kernels}
			again, err := run.ResumeOptions(record, flagsOf(t, "").given)
			require.NoError(t, err, args)
			o.Task = ""
			require.Empty(t, cmp.Diff(o, again), args)
		}
	}
	require.Equal(t, run.StreamOptions{}, parsed(t, "").StreamOptions)
}

// TestResumedStreamFlags: what is given to a run that is resumed counts, and what would change its
// results is refused in words.
func TestResumedStreamFlags(t *testing.T) {
	record := &run.Record{Options: parsed(t, "--model tgn --identity 0 --staleness auto --warm-events 5")}
	again, err := run.ResumeOptions(record, flagsOf(t, "--staleness 2 --fixed-time --warm-events 0 --publish late --inflight 9").given)
	require.NoError(t, err)
	require.Equal(t, run.StreamOptions{Staleness: 2, Times: run.Fixed, Publish: run.Late, Inflight: 9}, again.StreamOptions)
	require.EqualError(t, again.Resumes(record.Options), "{staleness} is 2 and the run's is auto\n{times} is fixed and the run's is not given\n{warm_events} is 0 and the run's is 5")
}

// onStream is a run on a stream that has ended.
func onStream() *run.Result {
	ap := 0.9512
	scores := func(events int64, x float64) metric.Batched {
		return metric.Batched{Positives: int(events), AP: x, AUC: x + 0.01, PooledAP: x - 0.01, PooledAUC: x + 0.02}
	}
	valid, test, fresh := scores(23621, 0.95), scores(23621, 0.94), scores(5732, 0.9)
	r := &run.Result{
		Run: "runs/wiki-1", Dataset: "wiki.gnn", Status: run.Done, Metric: metric.AP, Best: run.Best{Metric: metric.AP, Epoch: 3, ValidAcc: &ap, TestAcc: &ap},
		Epochs: []run.Epoch{{Metric: metric.AP, Steps: 184}, {Metric: metric.AP, Steps: 184}}, ParamsXXH3: "00ff",
		Stages: pipeline.Stats{Sample: 1, Gather: 4, State: 3, Step: 95, Write: 2, Wait: 5, Run: 100, Samplers: 2}, LimitingStage: pipeline.Step,
		Stream: &run.StreamOf{
			Name: "events", Src: "user", Dst: "item", Events: 157474, Train: 110232, Valid: 23621, Test: 23621, Negatives: run.Destinations, TrainNegatives: 998, EvalNegatives: 1000, TimeScale: 1,
			Replay: &run.ReplayOf{Valid: &valid, Test: &test, New: &fresh, Seconds: 12},
			Heuristics: []run.HeuristicOf{
				{Name: "pair_seen", Batched: scores(23621, 0.937)}, {Name: "pair_time", Batched: scores(23621, 0.944)},
				{Name: "destination_time", Batched: scores(23621, 0.882)}, {Name: "destination_count", Batched: scores(23621, 0.594)},
			},
			Staleness: run.StalenessOf{K: 1, Publish: run.Early, Inflight: 3},
			State:     &run.StateOf{Nodes: 9227, RecordBytes: 872, Touched: 9100, BytesWritten: 3 << 20},
		},
	}
	r.Options = run.DefaultStreamOptions(model.TGN)
	r.Options.Batch = 600
	return r
}

func TestPrintStream(t *testing.T) {
	print := func(r *run.Result) string {
		var b bytes.Buffer
		require.NoError(t, (&trainOptions{}).print(&b, r))
		return b.String()
	}
	r := onStream()
	require.Equal(t, `
done after 2 epochs; best epoch 3: valid_ap 95.12 %, test_ap 95.12 %
weights 00ff   run runs/wiki-1

replay of the stream by the best weights, in 12 s; AP and AUC are means over batches, or of all of them pooled:
                             events        AP       AUC   pooled AP   pooled AUC
                     valid   23,621   95.00 %   96.00 %     94.00 %      97.00 %
                      test   23,621   94.00 %   95.00 %     93.00 %      96.00 %
           test, new nodes    5,732   90.00 %   91.00 %     89.00 %      92.00 %
     what needs no network                                                      
                 pair seen   23,621   93.70 %   94.70 %     92.70 %      95.70 %
          pair's last time   23,621   94.40 %   95.40 %     93.40 %      96.40 %
   destination's last time   23,621   88.20 %   89.20 %     87.20 %      90.20 %
       destination's count   23,621   59.40 %   60.40 %     58.40 %      61.40 %
stream events: 157,474 events, of which 110,232 to train, 23,621 valid, 23,621 test; negatives of destinations, 998 in training, 1,000 in evaluation
staleness 1, the plain loop; state published early, 3 steps in flight
training waited 5.0 % of the time for rows, and these 0.0 % for the state of earlier steps: staleness 1 is free, since it is not state that is waited for
state: 9,227 records of 872 B, of 9,100 nodes that had events; 3 MiB written

time: of 100 s, drawing took 1 s (2 at once), planning 0 s, loading 0 s, gathering 4 s (state 3 s), writing state 2 s, steps 95 s, and they waited 5 s; step limits
events: 220,464 learnt, 2.2 k/s
evaluation (none): 0 s, 0 B read
memory: peak 0 B, and 0 B of mapped files

predict: gnnstore predict runs/wiki-1 wiki-1.parquet --type user
`, print(r), "no tiers, since there are no rows")

	r.Stream.Compare(metric.AP)
	require.Contains(t, print(r), "\nbetter than the network, without one: pair's last time alone 94.40 %; the network has 94.00 %, by AP\nstream events:")
	r.Stream.Heuristics[0].AUC, r.Metric = 0.99, metric.ROCAUC
	r.Stream.Compare(r.Metric)
	require.Contains(t, print(r), "\nbetter than the network, without one: pair seen alone 99.00 %, pair's last time alone 95.40 %; the network has 95.00 %, by AUC\n")
	r = onStream()
	r.Stream.Compare(metric.MRR)
	require.NotContains(t, print(r), "above the network", "nothing is ranked")
	r.Stream.RankedAmong, r.Stream.Dst = "given", "user"
	r.Stream.Replay.Valid.MRR, r.Stream.Heuristics[1].MRR = 0.71234, 0.5
	ranked := print(r)
	require.Contains(t, ranked, "\n                             events        AP       AUC   pooled AP   pooled AUC      MRR\n"+
		"                     valid   23,621   95.00 %   96.00 %     94.00 %      97.00 %   0.7123\n"+
		"                      test   23,621   94.00 %   95.00 %     93.00 %      96.00 %        -\n")
	require.Contains(t, ranked, "\n          pair's last time   23,621   94.40 %   95.40 %     93.40 %      96.40 %   0.5000\n")
	require.Contains(t, ranked, "\nMRR is of each event's destination among the nodes that came with the dataset for it; those that score the same count half\n")
	require.Contains(t, ranked, "\npredict: gnnstore predict runs/wiki-1 wiki-1.parquet\n")
	r.Stream.RankedAmong = "uniform:100"
	require.Contains(t, print(r), "\nMRR is of each event's destination among 100 that are drawn for it; ")
	r = onStream()

	r.Stats = crowded().Stats
	require.Contains(t, print(r), "\n     tier ")
	r.Best.Epoch, r.Stream.Replay.Valid, r.Stream.Replay.New = 0, nil, nil
	r.Stream.Staleness = run.StalenessOf{K: 3, Auto: true, Publish: run.Late, Inflight: 5, Best: 3, Most: 10, Realised: 0.221}
	r.Stream.Mitigation = run.MitigationOf{Keep: 0.95, Roots: 300_000, Blended: 2_100}
	text := print(r)
	require.NotContains(t, text, "audit")
	require.Contains(t, text, "\nmitigation: 2,100 of 300,000 roots in training, 0.7 %, had memories out of date; they kept 0.95 of them, and the rest is of similar nodes\n")
	r.Stream.Mitigation.Audit = &run.MitigationAudit{
		Nodes: 2_000, OutOfDate: 100, Closer: 60, ErrorBlended: 0.25, ErrorWithout: 0.0625, CosineBlended: 0.5, CosineWithout: 0.75, StaleBlended: 1.5, StaleWithout: 2.5,
	}
	require.Contains(t, print(r), "\naudit of 2,000 blended memories: 5.0 % were out of date; beside fresh ones their error is 0.250 blended and 0.062 without, "+
		"their cosine 0.500 and 0.750; blending brought 3.0 % closer\n  of those out of date the error is 1.500 blended and 2.500 without\n")
	require.Contains(t, text, "by the last weights")
	require.Contains(t, text, "\n                     valid        -         -         -           -            -\n")
	require.NotContains(t, text, "new nodes")
	require.Contains(t, text, "\nstaleness 3: auto finds that training waits for no state from 3 on, and that up to 10 at most half of the nodes read are out of date; "+
		"--staleness 3 repeats the run; state published late, 5 steps in flight, 22.1 % of the nodes read were out of date\n")
	require.Equal(t, "staleness 1: auto finds that training waits for no state at 1, so that the plain loop is free; state published early, 3 steps in flight",
		stalenessText(run.StalenessOf{K: 1, Auto: true, Publish: run.Early, Inflight: 3, Best: 1, Most: 4}))

	predicted := run.StalenessOf{K: 2, Auto: true, Publish: run.Early, Inflight: 4, Best: 2, Most: 4, Predicted: &run.Rehearsal{Seconds: 0.08, Serial: 0.2}}
	require.Contains(t, stalenessText(predicted), "; the rehearsal foretold 80 ms a step, and 200 ms with the stages in turn;")
	for _, c := range []struct {
		k               int
		wait, stateWait float64
		want            string
	}{
		{1, 2, 80, ": staleness 1 is free"}, {1, 40, 1, ": staleness 1 is free, since it is not state that is waited for"},
		{1, 40, 60, "; --staleness auto finds what a larger staleness gains"}, {3, 40, 60, "60.0 % for the state of earlier steps"},
	} {
		r.Stages, r.Stream.Staleness.K = pipeline.Stats{Step: 100 - c.wait, Wait: c.wait, StateWait: c.stateWait}, c.k
		require.Regexp(t, regexp.QuoteMeta(c.want)+"$", waitsText(r))
	}

	r.Stream = &run.StreamOf{} // of a run that ended before it knew more
	r.Stages = pipeline.Stats{}
	require.NotContains(t, print(r), "NaN")

	var b bytes.Buffer
	again := new(run.Result)
	require.NoError(t, (&trainOptions{json: true}).print(&b, onStream()))
	require.NoError(t, json.Unmarshal(b.Bytes(), again))
	require.Equal(t, onStream().Stream, again.Stream)
}

func TestDescribeStream(t *testing.T) {
	rec := &run.Record{Kernels: "avx2", DiskEngine: "pread", Evaluation: "replay"}
	for args, want := range map[string]string{
		"--model tgn": "tgn of 100, fanout 10 recent, staleness 1, negatives of destinations, batch 600, lr 0.001, seed 1   kernels avx2, disk pread, evaluation replay",
		"--model jodie --staleness auto --warm-events 20M": "jodie of 100, staleness auto, negatives of destinations, 20,000,000 warm events, batch 600, lr 0.001, " +
			"seed 1   kernels avx2, disk pread, evaluation replay",
		"--model tgn --state none --negative-population nodes --fixed-time --stream a": "tgn of 100, stream a, no state, fanout 10 recent, fixed times, staleness 1, " +
			"negatives of nodes, batch 600, lr 0.001, seed 1   kernels avx2, disk pread, evaluation replay",
		"--model jodie --staleness 2 --mitigate 0.9": "jodie of 100, staleness 2, mitigate 0.9, negatives of destinations, batch 600, lr 0.001, seed 1   kernels avx2, " +
			"disk pread, evaluation replay",
		"--model apan --mails 4": "apan of 100, fanout 10 recent, 4 mails, staleness 1, negatives of destinations, batch 600, lr 0.001, seed 1   kernels avx2, " +
			"disk pread, evaluation replay",
	} {
		require.Equal(t, want, describe(parsed(t, args+" --batch 600"), rec), args)
	}
	valid := 0.95
	e := run.Epoch{Metric: metric.AP, Epoch: 2, Loss: 0.5, TrainAcc: math.NaN(), ValidAcc: &valid, Seconds: 2}
	require.Equal(t, "epoch 2/5   loss 0.5000   train_ap -        valid_ap 0.9500      2 s", epochLine(e, "5", true))
	e.InputRows, e.DiskBytes, e.HitRate = 2000, 2<<20, 0.5
	require.Equal(t, "epoch 2/5   loss 0.5000   train_ap -        valid_ap 0.9500      2 s   rows 1 k/s   disk 1 MiB/s   hit 50.0 %", epochLine(e, "5", true))
}

// TestViewOfStream: it says the staleness, what state takes, and which stage limits; and it fits,
// whether events have rows or not.
func TestViewOfStream(t *testing.T) {
	for _, rows := range []bool{false, true} {
		r := crowded()
		r.Stream, r.Options.Kind, r.Options.Batch, r.Topology = onStream().Stream, model.TGN, 600, nil
		r.Stream.Staleness = run.StalenessOf{K: 250, Publish: run.Early, Inflight: 252, Realised: 0.999}
		r.Stream.State = &run.StateOf{Nodes: 11_000_000_000, RecordBytes: 1 << 20, Touched: 1, BytesWritten: 1023 << 40}
		r.Live.Recent.Updates = 1000
		r.Live.Recent.Stages = pipeline.Stats{Gather: 95, State: 90, Step: 20, Write: 3, Wait: 80, Run: 100}
		if !rows {
			r.Stats, r.Live.Recent.Stats, r.Latency = cachetier.Stats{}, cachetier.Stats{}, nil
		}
		r.Advice = live.Advise(r)
		lines := view(r, viewHeight)
		text := strings.Join(lines, "\n")
		require.LessOrEqual(t, len(lines), viewHeight, text)
		for i, l := range lines {
			if i > 0 {
				require.LessOrEqual(t, utf8.RuneCountInString(l), viewWidth, l)
			}
		}
		require.Contains(t, lines[0], "   staleness 250   run ")
		require.Regexp(t, `(?m)^state +#+\.+ +90\.0 %  of gather, limits$`, text)
		require.Regexp(t, `(?m)^write +#\.+ +3\.0 %  of rewritten rows$`, text)
		require.Contains(t, text, "\nstate: 11 G × 1 MiB, 1023 TiB written   252 in flight, early, 99.9 % out of date\n")
		require.Contains(t, text, "\nevents 6 k/s")
		require.Contains(t, line(r), "   events 6 k/s")
		require.Contains(t, line(r), "state limits   staleness 250")
		if !rows {
			require.NotContains(t, text, "hit ")
			require.Contains(t, text, "reading state limits")
		}
	}
	ended := onStream()
	require.Contains(t, strings.Join(view(ended, viewHeight), "\n"), "events 2.2 k/s")
	for _, r := range []*run.Result{{Stream: &run.StreamOf{}}, {Stream: &run.StreamOf{}, Status: run.Running, Live: &run.Live{}}} {
		require.NotContains(t, strings.Join(append(view(r, viewHeight), line(r)), "\n"), "NaN")
	}
}

// TestRunsOnStreams: stats shows what a run on a stream came to, and a dataset that is gone is
// asked for in a line.
func TestRunsOnStreams(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wiki-1")
	dir, err := run.Create(path)
	require.NoError(t, err)
	r := onStream()
	r.Run, r.Options = path, parsed(t, "--model tgn")
	require.NoError(t, dir.WriteRecord(&run.Record{Dataset: "wiki.gnn", Seal: "00ff", Options: r.Options}))
	require.NoError(t, dir.WriteResult(r))
	require.NoError(t, dir.Close())
	none := "gnnstore: run " + path + ": its dataset wiki.gnn is no longer there; give its new place as DATASET\n"
	for _, c := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"eval", path}, 1, none},
		{[]string{"predict", path, filepath.Join(t.TempDir(), "x.csv")}, 1, none},
		{[]string{"stats", path}, 0, ""},
		{[]string{"train", "--resume", "--run", path, "--epochs", "2"}, 0, ""}, // it has made them
		{[]string{"train", "--resume", "--run", path, "--epochs", "2", "--staleness", "2"}, 1, "gnnstore: resume " + path + ": --staleness is 2 and the run's is 0\n"},
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, c.code, execute(c.args, &stdout, &stderr), "%s: %s", c.args, &stderr)
		require.Equal(t, c.stderr, stderr.String(), c.args)
		if c.code == 0 {
			require.Contains(t, stdout.String(), "what needs no network", c.args)
		}
		require.Equal(t, c.code == 0 && c.args[0] == "train", strings.Contains(stdout.String(), "gnnstore predict "+path), c.args)
	}
}
