package stream

import (
	"context"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/temporal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	users, items = 40, 16
	columns      = 6
)

// drifting is a stream of so many events between users and items, who meet in groups that an event
// says little of.
func drifting(t testing.TB, events int) *store.Dataset { return labelledDrifting(t, events, 0) }

// labelledDrifting is one whose labels, of so many classes, say of most users which group they are
// in.
func labelledDrifting(t testing.TB, events, classes int) *store.Dataset {
	return streamOf(t, driftingSpec(events, classes))
}

// streamOf builds the dataset of a stream, and closes it when the test ends.
func streamOf(t testing.TB, s storetest.StreamSpec) *store.Dataset {
	ds, err := store.Open(storetest.BuildStream(t, s))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ds.Close()) })
	return ds
}

func driftingSpec(events, classes int) storetest.StreamSpec {
	rng := rand.New(rand.NewPCG(1, 2))
	s := storetest.StreamSpec{
		Users: users, Items: items, Dim: columns,
		Split: store.StreamSplit{Name: "given", Train: int64(events * 70 / 100), Valid: int64(events * 15 / 100), Test: int64(events - events*70/100 - events*15/100)},
	}
	group, now := make([]int, users), 0.0
	rows := make([][]float32, events)
	for i := range rows {
		u := int(rng.ExpFloat64() * 8)
		for u >= users {
			u = int(rng.ExpFloat64() * 8)
		}
		if rng.IntN(100) == 0 {
			group[u] = rng.IntN(4)
		}
		v := group[u] + 4*rng.IntN(items/4)
		if rng.IntN(3) > 0 {
			now += float64(rng.IntN(5)) // others share a time
		}
		rows[i] = make([]float32, columns)
		for c := range rows[i] {
			rows[i][c] = float32(rng.NormFloat64())
		}
		rows[i][v%4]++
		if classes > 0 {
			s.Labels, s.Classes = append(s.Labels, int32(group[u]%classes)), classes
			if i%7 == 3 {
				s.Labels[i] = -1
			}
		}
		s.Src, s.Dst, s.Times = append(s.Src, uint32(u)), append(s.Dst, uint32(v)), append(s.Times, now)
	}
	s.Row = func(event int) []float32 { return rows[event] }
	return s
}

// options of a small network.
func options(kind model.Kind) run.Options {
	o := run.DefaultStreamOptions(kind)
	o.Hidden, o.Batch, o.Epochs, o.LR = 16, 50, 2, 2e-3
	o.MemoryBytes = 1 << 30
	if kind != model.JODIE {
		o.Fanouts = []int{5}
	}
	return o
}

// run1 returns the result of a run in a directory of its own, in memory: on disk, syncing files
// takes most of the time.
func run1(t testing.TB, ds *store.Dataset, o run.Options, h run.Hooks, in ...internal) *run.Result {
	r, err := runOn(t.Context(), vfs.NewMem(), "/run", ds, o, h, in...)
	require.NoError(t, err)
	return r
}

// runOn begins a run in a directory, or goes on with the one that is there.
func runOn(
	ctx context.Context, fsys vfs.FS, path string, ds *store.Dataset, o run.Options, h run.Hooks, in ...internal,
) (*run.Result, error) {
	return runWith(ctx, ds, func() (*run.Dir, error) {
		dir, _, err := run.OpenOn(fsys, path)
		return dir, err
	}, o, "test", h, append(in, internal{})[0])
}

// outcome has the results that no setting may change.
type outcome struct {
	params string
	losses []float64
	epochs []float64 // metrics
	replay run.ReplayOf
}

func outcomeOf(r *run.Result) outcome {
	o := outcome{params: r.ParamsXXH3, losses: r.Losses, replay: *r.Stream.Replay}
	o.replay.Seconds = 0
	for _, e := range r.Epochs {
		o.epochs = append(o.epochs, e.TrainAcc, *e.ValidAcc)
	}
	return o
}

// late sleeps for a while, most times.
func late(string) {
	if n := rand.IntN(4); n > 0 {
		time.Sleep(time.Duration(rand.IntN(100*n)) * time.Microsecond)
	}
}

// TestSame: budgets, workers, windows, policies and the way of publication change no bit, whatever
// the staleness and however late each stage is; the staleness does.
func TestSame(t *testing.T) {
	ds := drifting(t, 500)
	for n, kind := range model.TemporalKinds {
		all := map[string]bool{}
		for _, k := range []int{1, 3} {
			names := []string{"no memory", "late", "in flight"}
			if n%2 == k/2 {
				names = []string{"some memory", "late, lru", "few in flight"}
			}
			o := options(kind)
			o.Staleness = k
			want := outcomeOf(run1(t, ds, o, run.Hooks{}))
			all[want.params] = true
			for name, change := range map[string]func(o *run.Options){
				"no memory":   func(o *run.Options) { o.Cache.HostBytes, o.Workers = 0, 1 },
				"some memory": func(o *run.Options) { o.Cache.HostBytes, o.Window = 5000, 3 },
				"late":        func(o *run.Options) { o.Publish = run.Late },
				"late, lru": func(o *run.Options) {
					o.Publish, o.Cache.Policy, o.Cache.HostBytes, o.Lookahead = run.Late, cachetier.LRU, 9000, 0
				},
				"in flight":     func(o *run.Options) { o.Inflight, o.Cache.Engine, o.Cache.HostBytes = k+7, disk.Pread, 4000 },
				"few in flight": func(o *run.Options) { o.Inflight = k },
			} {
				if !slices.Contains(names, name) {
					continue
				}
				o := o
				change(&o)
				faults := func(int, int64, int) disk.Fault { late(""); return disk.Fault{} }
				fsys, path := vfs.FS(vfs.NewMem()), "/run"
				if name == "in flight" { // one with files
					fsys, path = vfs.Default, filepath.Join(t.TempDir(), "run")
				}
				r, err := runOn(t.Context(), fsys, path, ds, o, run.Hooks{}, internal{delay: late, faults: faults})
				require.NoError(t, err)
				require.Equal(t, want, outcomeOf(r), "%s, staleness %d, %s", kind, k, name)
			}
		}
		require.Len(t, all, 2)
	}
}

// TestEvaluation: if weights do not change, training leaves the same state as a replay, and every
// part has the same figures from either.
func TestEvaluation(t *testing.T) {
	ds := drifting(t, 800)
	for _, kind := range model.TemporalKinds {
		o := options(kind)
		o.LR, o.Eval, o.Dropout, o.AttnDropout = 1e-30, run.LiveState, 0, 0 // APAN drops state
		r := run1(t, ds, o, run.Hooks{})
		require.Equal(t, r.Stream.Live.Valid, r.Stream.Replay.Valid, kind)
		if kind == model.JODIE {
			require.Nil(t, r.Topology, "it reads no lists")
		} else {
			require.Positive(t, r.Topology.Disk.Rows, kind)
		}
		require.Equal(t, r.Stream.Live.Test, r.Stream.Replay.Test, kind)
		require.Equal(t, *r.Epochs[0].ValidAcc, *r.Epochs[1].ValidAcc)
		o.Eval = run.Replay
		require.Equal(t, *r.Best.TestAcc, *run1(t, ds, o, run.Hooks{}).Best.TestAcc, kind)
	}
}

// TestPlainLoop: a run is the plain loop in which a step sees what all steps up to the k-th before
// it have left.
func TestPlainLoop(t *testing.T) {
	ds := drifting(t, 800)
	for _, kind := range model.TemporalKinds {
		for _, k := range []int{1, 2, 3} {
			o := options(kind)
			o.Staleness = k
			got := run1(t, ds, o, run.Hooks{})
			losses, params, _ := plainLoop(t, ds, o, run.Hooks{})
			require.Equal(t, losses, got.Losses, "%s, staleness %d", kind, k)
			require.Equal(t, params, got.ParamsXXH3, "%s, staleness %d", kind, k)
		}
	}
}

// plainLoop trains with all state in a map for each step.
func plainLoop(t *testing.T, ds *store.Dataset, o run.Options, h run.Hooks) (losses []float64, params string, m run.MitigationOf) {
	tr, err := newTrainer(t.Context(), ds, o, h, internal{})
	require.NoError(t, err)
	defer tr.Close()
	o = tr.Options
	s, be, record := tr.step, tr.Backend, tr.step.Record
	var audited run.MitigationSums
	for epoch := 1; epoch <= o.Epochs; epoch++ {
		sum, events := 0.0, 0.0
		warm := map[uint32][]byte{} // the state before the first step
		for _, p := range []part{{to: o.WarmEvents, batch: int64(o.Batch), stateOnly: true}, tr.learning(epoch)} {
			require.NoError(t, tr.draw.begin(t.Context(), 0, p.step))
			var after []map[uint32][]byte // the state that a step leaves
			for i := range p.steps() {
				var b temporal.Batch
				require.NoError(t, tr.draw.sampler.Draw(t.Context(), []temporal.Step{p.step(i)}, []*temporal.Batch{&b}))
				lag := o.Staleness
				if p.stateOnly {
					lag = 1
				}
				seen := warm
				if i >= lag {
					seen = after[i-lag]
				}
				stateOf := func(v uint32) []byte {
					r := make([]byte, record.Bytes())
					copy(r, seen[v])
					return r
				}
				var state, rows, nodes []byte
				for _, v := range b.Nodes {
					state = append(state, stateOf(v)...)
					if tr.features.nodes != nil {
						nodes = append(nodes, tr.features.nodes.Row(v)...)
					}
				}
				for _, e := range b.Events {
					if tr.features.events != nil {
						rows = append(rows, tr.features.events.Row(e)...)
					}
				}
				if o.Mitigate > 0 && !p.stateOnly {
					requireBlends(t, tr.core, &b, func(v uint32) (last float64, met bool) { return record.Time(stateOf(v)), seen[v] != nil })
					fresh := warm
					if i > 0 {
						fresh = after[i-1]
					}
					auditBlends(&audited, o, record, &b, stateOf, fresh)
					m.Blended += int64(len(b.Blended))
				}
				tensor := func(bytes []byte, of kernels.DType, rows, cols int) kernels.Tensor {
					x := kernels.Tensor{Buf: be.Alloc(of, rows*cols), Type: of, Rows: rows, Cols: cols}
					host, _ := be.Host(x)
					copy(host, bytes)
					return x
				}
				in := temporal.Input{Batch: &b, State: tensor(state, kernels.F32, len(b.Nodes), record.Cols())}
				if f := tr.features.events; f != nil {
					in.Features = tensor(rows, elemOf(f), len(b.Events), f.Dim())
				}
				if f := tr.features.nodes; f != nil {
					in.NodeFeatures = tensor(nodes, elemOf(f), len(b.Nodes), f.Dim())
				}
				if !p.stateOnly {
					in.Key = sample.StepSeed(o.Seed, epoch, i) | 1
				}
				out, err := s.Compute(in)
				require.NoError(t, err)
				now := maps.Clone(warm)
				if i > 0 {
					now = maps.Clone(after[i-1])
				}
				places, changes := s.Changes()
				for j, at := range places {
					r := make([]byte, record.Bytes())
					copy(r, now[b.Nodes[at]])
					record.Apply(r, changes[j*record.ChangeBytes():][:record.ChangeBytes()])
					now[b.Nodes[at]] = r
				}
				after = append(after, now)
				if !p.stateOnly {
					require.NoError(t, s.Update(o.LR, nil))
					n := float64(len(out.Positives))
					sum, events = sum+out.Loss*n, events+n
				}
				for _, x := range []kernels.Tensor{in.State, in.Features, in.NodeFeatures} {
					if x.Buf != nil {
						be.Free(x.Buf)
					}
				}
			}
			if len(after) > 0 {
				warm = after[len(after)-1]
			}
		}
		losses = append(losses, sum/events)
	}
	m.Audit = audited.Of()
	return losses, s.Model.Hash(), m
}

// TestResume: runs that are cut short anywhere, and go on, come to what one does that is not.
func TestResume(t *testing.T) {
	ds := drifting(t, 900)
	for _, kind := range model.TemporalKinds {
		for _, k := range []int{1, 3} {
			o := options(kind)
			o.Staleness, o.CheckpointEvery, o.WarmEvents, o.Mitigate = k, 4, 60, 0.5
			if k == 3 {
				o.Publish = run.Late
			}
			want := outcomeOf(run1(t, ds, o, run.Hooks{}))
			o.CheckpointEvery = 0
			require.Equal(t, want, outcomeOf(run1(t, ds, o, run.Hooks{})), "checkpoints change results")
			o.CheckpointEvery = 5
			fsys, path, cuts := vfs.FS(vfs.NewMem()), "/run", 0
			if kind == model.TGN { // one with files
				fsys, path = vfs.Default, filepath.Join(t.TempDir(), "run")
			}
			for {
				var left atomic.Int64
				left.Store(1 + rand.Int64N(250))
				ctx, cancel := context.WithCancel(t.Context())
				r, err := runOn(ctx, fsys, path, ds, o, run.Hooks{}, internal{delay: func(string) {
					if left.Add(-1) == 0 {
						cancel()
					}
				}})
				cancel()
				if r == nil {
					require.ErrorIs(t, err, context.Canceled)
				} else {
					require.NoError(t, err)
				}
				if r != nil && r.Status == run.Done {
					require.Equal(t, want, outcomeOf(r), "%s, staleness %d, after %d cuts", kind, k, cuts)
					break
				}
				cuts++
				require.Less(t, cuts, 300)
			}
			t.Logf("%s, staleness %d: %d cuts", kind, k, cuts)
		}
	}
}

func TestRun(t *testing.T) {
	ds := drifting(t, 2000)
	for _, kind := range model.TemporalKinds {
		r := run1(t, ds, options(kind), run.Hooks{})
		t.Logf("%s: %+v, valid %v, test %+v", kind, r.Losses, *r.Best.ValidAcc, r.Stream.Replay.Test)
		for _, h := range r.Stream.Heuristics {
			t.Logf("%s %.3f", h.Name, h.AP)
		}
		t.Logf("%+v", r.Stream.State)
		require.Len(t, r.Epochs, 2)
		require.Equal(t, "state of nodes", r.Tables[0].Type)
		require.NotNil(t, r.Stream.State)
	}
}

// TestLive: who looks at a run between two steps sees it go forward, and at last its result.
func TestLive(t *testing.T) {
	var now func() *run.Result
	var shown []*run.Result
	r := run1(t, drifting(t, 600), options(model.TGN), run.Hooks{
		Live: func(f func() *run.Result) func() {
			now = f
			return func() {}
		},
		Step: func(int, int, int, float64) { shown = append(shown, now()) },
	})
	for i, at := range shown {
		require.Equal(t, run.Running, at.Status)
		require.LessOrEqual(t, at.Live.Recent.InputRows, at.InputRows)
		if i > 0 {
			require.GreaterOrEqual(t, at.Live.Updates, shown[i-1].Live.Updates)
			require.GreaterOrEqual(t, at.InputRows, shown[i-1].InputRows)
		}
	}
	last := shown[len(shown)-1]
	require.Len(t, last.Epochs, len(r.Epochs)-1)
	require.Len(t, last.Tables, 2)
	require.Equal(t, r, now())
}

// TestPasses: a pass over events without learning reports its progress, and ends at its last event.
func TestPasses(t *testing.T) {
	ds := drifting(t, 600)
	o := options(model.TGN)
	o.WarmEvents, o.Epochs = 100, 1
	for _, eval := range []string{run.Replay, run.LiveState} {
		o.Eval = eval
		end := map[string][]int64{}
		r := run1(t, ds, o, run.Hooks{Pass: func(what string, done, all int64) { end[what] = []int64{done, all} }})
		require.Equal(t, []int64{100, 100}, end[run.WarmUpPass])
		valid := r.Stream.Train + r.Stream.Valid
		if eval == run.LiveState {
			valid = r.Stream.Events
		}
		require.Equal(t, []int64{valid, valid}, end[run.JudgePass])
		require.Equal(t, []int64{r.Stream.Events, r.Stream.Events}, end[run.ReplayPass])
	}
}
