package graph

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
)

// learning is typed with learnt rows of authors and venues, from a graph that has features of both
// or of neither.
func learning() run.Options {
	o := typed(model.RSAGE)
	o.Inputs = map[string]string{"author": "embed:8", "venue": "embed:3"}
	o.Optim.ClipNorm = 0.7
	return o
}

// TestLearntRowsOfPlainLoop: a loop that keeps all rows in a map learns the same weights and rows.
func TestLearntRowsOfPlainLoop(t *testing.T) {
	ds := openTyped(t, storetest.Library(400, 3, 2))
	for _, c := range []struct {
		kind model.Kind
		rows optim.RowKind
	}{{model.RSAGE, optim.RowAdam}, {model.RGCN, optim.RowAdamSteps}, {model.RGAT, optim.RowAdagrad}, {model.HGT, optim.RowAdam}} {
		o := learning()
		o.Kind, o.Optim.Rows, o.Cache.HostBytes, o.Dropout, o.InputDropout = c.kind, c.rows, 9000, 0.3, 0.2
		got := trained(t, ds, o)
		want, touched := plainLoop(t, ds, o)
		require.Equal(t, want, got.ParamsXXH3, "%v", c)
		require.Len(t, got.Embeddings, 2)
		require.Equal(t, "author", got.Embeddings[0].Type)
		require.Equal(t, 8, got.Embeddings[0].Dim)
		require.Equal(t, touched[0], got.Embeddings[0].RowsTouched)
		require.Equal(t, touched[3], got.Embeddings[1].RowsTouched)
		require.GreaterOrEqual(t, got.Embeddings[0].RowsWritten, touched[0])
	}
}

// plainLoop trains as Run does, and returns run.Result.ParamsXXH3 and the rows that were changed,
// by type.
func plainLoop(t *testing.T, ds *store.Dataset, o run.Options) (hash string, touched map[int]int64) {
	return plainLoopFrom(t, ds, o, map[int]map[uint32][]float32{})
}

// plainLoopFrom is plainLoop, some of whose rows, by type, begin as they are here.
func plainLoopFrom(t *testing.T, ds *store.Dataset, o run.Options, rows map[int]map[uint32][]float32) (hash string, touched map[int]int64) {
	m := opened(t, ds, o)
	start := func(n int, dim int, v uint32) []float32 {
		row := make([]float32, o.Optim.Rows.Rule().Columns(dim))
		for c := range dim {
			u := float64(sample.Hash(o.Seed, uint64(n), uint64(v), uint64(c))>>11) / (1 << 53)
			row[c] = float32((2*u - 1) * math.Sqrt(3/float64(dim)))
		}
		return row
	}
	steps := m.task.Steps()
	for epoch := 1; epoch <= o.Epochs; epoch++ {
		m.task.Begin(epoch)
		for i := range steps {
			b, err := m.tiers.First(t.Context(), o.BatchSeeds().At((epoch-1)*steps+i), m.task.Seeds(i), nil)
			require.NoError(t, err)
			in := step.InputOf(b, make([]kernels.Tensor, len(m.data.Types))...)
			in.Key = sample.StepSeed(o.Seed, epoch, i) | 1
			for _, n := range m.tiers.Types {
				x := m.tiers.Zeros(n, len(b.Inputs()[n]))
				for place, v := range b.Inputs()[n] {
					at := x.Slice(place, place+1)
					if f := m.data.Types[n].Features; f != nil {
						bytes, _ := m.Backend.Host(at)
						copy(bytes, f.Row(v))
						continue
					}
					if rows[n] == nil {
						rows[n] = map[uint32][]float32{}
					}
					if rows[n][v] == nil {
						rows[n][v] = start(n, m.data.Types[n].Embed, v)
					}
					m.Backend.UploadF32(at, rows[n][v])
				}
				in.Rows[n] = x
			}
			require.NoError(t, m.step.Compute(in))
			require.NoError(t, m.step.Update(o.Schedule.Rate(o.LR, m.optim.Steps(), o.Epochs*steps, steps), nil))
			_, err = m.step.Launched().Wait()
			require.NoError(t, err)
			for _, n := range m.tiers.Types {
				for place, v := range b.Inputs()[n] {
					if m.data.Types[n].Features == nil {
						m.Backend.DownloadF32(rows[n][v], in.Rows[n].Slice(place, place+1))
					}
				}
				m.Backend.Free(in.Rows[n].Buf)
			}
		}
	}
	h, touched := xxh3.New(), map[int]int64{}
	m.model.AddTo(h)
	for _, n := range slices.Sorted(maps.Keys(rows)) {
		touched[n] = int64(len(rows[n]))
		for _, v := range slices.Sorted(maps.Keys(rows[n])) {
			require.NoError(t, binary.Write(h, binary.LittleEndian, v))
			require.NoError(t, binary.Write(h, binary.LittleEndian, rows[n][v]))
		}
	}
	return fmt.Sprintf("%016x", h.Sum64()), touched
}

// silent has the features of papers and venues say nothing.
func silent(s storetest.TypedSpec) storetest.TypedSpec {
	s.Types[1].Row = func(int) []float32 { return make([]float32, 16) }
	s.Types[3].Row = func(int) []float32 { return []float32{1} }
	return s
}

// TestLearntRowsLearn: that authors are told apart says more than that they write.
func TestLearntRowsLearn(t *testing.T) {
	ds := openTyped(t, silent(storetest.Library(800, 4, 1)))
	o := typed(model.RSAGE)
	o.Epochs, o.Inputs = 12, map[string]string{"author": "constant"}
	without := *trained(t, ds, o).Best.TestAcc
	o.Inputs = nil // author=embed:16 by default
	r := trained(t, ds, o)
	require.Equal(t, 16, r.Embeddings[0].Dim)
	require.Greater(t, *r.Best.TestAcc, without+0.2)
}

// TestLearntRowsOfOneType: a graph of one type may learn its rows, though it has features.
func TestLearntRowsOfOneType(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	for _, kind := range []model.Kind{model.SAGE, model.GCN, model.GAT, model.MLP} {
		o := small()
		o.Kind, o.Inputs, o.Epochs = kind, map[string]string{"node": "embed:12"}, 6
		want := trained(t, ds, o)
		o.Cache.HostBytes, o.Window, o.Workers = 4000, 3, 1
		got := trained(t, ds, o)
		sameWork(t, want, got)
		require.Less(t, got.Losses[5], got.Losses[0])
		require.Equal(t, "node", got.Embeddings[0].Type)
	}
}

// TestNoTables: a run that reads no rows, since all nodes have one for input, has nothing to send
// through a spill.
func TestNoTables(t *testing.T) {
	o := small()
	o.Kind, o.Inputs, o.Epochs, o.SpillBytes = model.RSAGE, map[string]string{"node": "constant"}, 1, 1<<20
	require.Len(t, trained(t, open(t, storetest.Communities(300, 4, 8, 16, 2)), o).Losses, 1)
}

// TestLearntRowsSameResults: budgets, policies, windows, engines, workers, checkpoints and backends
// change nothing.
func TestLearntRowsSameResults(t *testing.T) {
	ds := openTyped(t, storetest.Library(600, 3, 2))
	o := learning()
	o.Epochs = 2
	want := trained(t, ds, o)
	for n, host := range []int64{0, 1 << 10, 8 << 10, 12 << 10, 20 << 10, 30 << 10, 1 << 30} {
		o := o
		o.Cache.HostBytes, o.Cache.Policy = host, policy.Kinds[n%len(policy.Kinds)]
		o.Cache.Engine, o.Window, o.Workers, o.Lookahead = disk.Kinds[1+n%3], []int{0, 1, 8}[n%3], 1+n%3, n%4
		o.CheckpointEvery, o.KeepCheckpoints = []int{0, 2, 5}[n%3], 1+n%2
		if n%2 == 0 {
			o.TopologyBytes, o.Cache.DeviceBytes = 12<<10, 2000
		}
		sameWork(t, want, trained(t, ds, o), "%+v", o)
	}
	remote := kerneltest.Remote(kernels.NewCPU(kernels.CPUOptions{}))
	got, err := Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{Backend: remote})
	require.NoError(t, err)
	sameWork(t, want, got)
}

// TestLearntRowsOfBestEpoch: the test set is measured with the rows of the epoch that validation
// chose, which need not be in a checkpoint that is kept; the rows that the run ends with are the
// last ones.
func TestLearntRowsOfBestEpoch(t *testing.T) {
	ds := openTyped(t, silent(storetest.Library(600, 3, 2)))
	o := learning()
	o.LR, o.Epochs, o.KeepCheckpoints, o.Cache.HostBytes = 0.1, 9, 1, 9000
	o.EvalTest = "epoch"
	each := trained(t, ds, o)
	o.EvalTest = "best"
	for _, evalBytes := range []int64{run.Auto, 0} {
		o.EvalBytes = evalBytes
		r := trained(t, ds, o)
		if evalBytes == run.Auto {
			require.Equal(t, each.Best, r.Best)
			require.NotEqual(t, *each.Epochs[8].TestAcc, *r.Best.TestAcc)
		}
		require.Less(t, r.Best.Epoch, 9)
		require.Equal(t, each.ParamsXXH3, r.ParamsXXH3)
	}
}

// TestLearntRowsResume: interrupted after every second step, and with the rows of an epoch that was
// the best long before.
func TestLearntRowsResume(t *testing.T) {
	ds := openTyped(t, storetest.Library(600, 3, 2))
	o := learning()
	o.Epochs, o.EvalEvery, o.CheckpointEvery, o.LR = 6, 2, 3, 0.1
	resumeOverAndOver(t, ds, o)
}

// TestLearntRowsAfterPowerLoss: see TestResumeAfterPowerLoss. Other goroutines write rows that lose
// their place, so that moments are of several orders.
func TestLearntRowsAfterPowerLoss(t *testing.T) {
	storetest.Long(t)
	ds := openTyped(t, storetest.Library(300, 3, 2))
	o := learning()
	o.Epochs, o.CheckpointEvery, o.LR, o.Cache.HostBytes, o.Batch = 4, 2, 0.05, 5000, 40
	want, err := runOn(context.Background(), vfs.NewMem(), ds, o, run.Hooks{})
	require.NoError(t, err)

	var mu sync.Mutex
	count, crashAt := 0, -1
	var disk, left *vfs.MemFS
	moments := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if count++; count == crashAt {
			left = disk.CrashClone(vfs.CrashCloneCfg{})
		}
		if crashAt > 0 && count >= crashAt {
			return errCrash
		}
		return nil
	})
	disk = vfs.NewCrashableMem()
	_, err = runOn(context.Background(), errorfs.Wrap(disk, moments), ds, o, run.Hooks{})
	require.NoError(t, err)
	total, stride := count, 73
	if testing.Short() {
		stride = 131
	}
	for crashAt = 1; crashAt <= total; crashAt += stride {
		count, left, disk = 0, nil, vfs.NewCrashableMem()
		_, err := runOn(context.Background(), errorfs.Wrap(disk, moments), ds, o, run.Hooks{})
		if err == nil {
			continue // it came to its end with fewer writes
		}
		require.ErrorIs(t, err, errCrash)
		require.NotNil(t, left)
		if d, _, err := run.OpenOn(left, "/run"); err == nil {
			if r, ok, err := d.Finished(); ok {
				require.NoError(t, err)
				require.Equal(t, want.ParamsXXH3, r.ParamsXXH3)
				require.NoError(t, d.Close())
				continue
			}
			require.NoError(t, d.Close())
		}
		got, err := runOn(context.Background(), left, ds, o, run.Hooks{})
		require.NoError(t, err, "after moment %d of %d", crashAt, total)
		require.Equal(t, want.ParamsXXH3, got.ParamsXXH3, "after moment %d of %d", crashAt, total)
		require.Equal(t, want.Best, got.Best, "after moment %d of %d", crashAt, total)
		require.Equal(t, want.Losses, got.Losses, "after moment %d of %d", crashAt, total)
	}
}

// TestLearntRowsGone: a run whose rows are gone, cut or damaged says so in a line, and stays as it
// is.
func TestLearntRowsGone(t *testing.T) {
	ds := openTyped(t, storetest.Library(400, 3, 2))
	o := learning()
	o.Epochs, o.CheckpointEvery = 3, 3
	rows := func(disk vfs.FS) (paths []string) {
		names, err := disk.List("/run/embeddings/author")
		require.NoError(t, err)
		for _, name := range names {
			paths = append(paths, filepath.Join("/run/embeddings/author", name))
		}
		require.NotEmpty(t, paths)
		return paths
	}
	for name, spoil := range map[string]func(t *testing.T, disk vfs.FS){
		"the directory is gone": func(t *testing.T, disk vfs.FS) { require.NoError(t, disk.RemoveAll("/run/embeddings")) },
		"the files are gone": func(t *testing.T, disk vfs.FS) {
			for _, path := range rows(disk) {
				require.NoError(t, disk.Remove(path))
			}
		},
		"they are cut": func(t *testing.T, disk vfs.FS) {
			for _, path := range rows(disk) {
				edit(t, disk, strings.TrimPrefix(path, "/run/"), func(b []byte) []byte { return b[:len(b)/2] })
			}
		},
		"they are of another table": func(t *testing.T, disk vfs.FS) {
			require.NoError(t, disk.RemoveAll("/run/embeddings/author"))
			require.NoError(t, disk.Rename("/run/embeddings/venue", "/run/embeddings/author"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk := half(t, ds, o)
			spoil(t, disk)
			before := listing(t, disk)
			_, err := runOn(context.Background(), disk, ds, o, run.Hooks{})
			require.ErrorContains(t, err, "the learnt rows of type author: ")
			require.ErrorContains(t, err, "or begin another run with {run}")
			require.NotContains(t, err.Error(), "\n")
			require.Equal(t, before, listing(t, disk))
		})
	}
	for want, change := range map[string]func(o *run.Options){
		"{input} is ":                   func(o *run.Options) { o.Inputs = map[string]string{"author": "embed:9"} },
		`{embed_optimizer} is adagrad `: func(o *run.Options) { o.Optim.Rows = optim.RowAdagrad },
	} {
		o := o
		disk := half(t, ds, o)
		change(&o)
		_, err := runOn(context.Background(), disk, ds, o, run.Hooks{})
		require.ErrorContains(t, err, want)
	}
}

// TestLearntRowsFullDisk: no room while rows are written back; all up to the checkpoint before is
// there.
func TestLearntRowsFullDisk(t *testing.T) {
	ds := openTyped(t, storetest.Library(400, 3, 2))
	o := learning()
	o.Epochs, o.CheckpointEvery, o.Cache.HostBytes = 3, 2, 4000
	want, err := runOn(context.Background(), vfs.NewMem(), ds, o, run.Hooks{})
	require.NoError(t, err)
	disk := vfs.NewMem()
	var mu sync.Mutex
	writes, full := 0, true
	fsys := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(op.Path, "/embeddings/") && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			if writes++; full && writes > 60 {
				return &fs.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
			}
		}
		return nil
	}))
	_, err = runOn(context.Background(), fsys, ds, o, run.Hooks{})
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, "; make room, then go on with gnnstore train {resume} {run} /run")
	full = false
	got, err := runOn(context.Background(), fsys, ds, o, run.Hooks{})
	require.NoError(t, err)
	require.Equal(t, want.ParamsXXH3, got.ParamsXXH3)
	require.Equal(t, want.Best, got.Best)
}

// TestEmbedRefuses: columns that no row can have.
func TestEmbedRefuses(t *testing.T) {
	ds := openTyped(t, storetest.Library(200, 3, 2))
	for _, input := range []string{"embed", "embed:", "embed:0", "embed:-3", "embed:x", "embed:99999999"} {
		o := learning()
		o.Inputs["author"] = input
		_, err := Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{})
		require.ErrorContains(t, err, "{input} author="+input+": embed:D has 1 to 65536 columns")
	}
	o := learning()
	o.Optim.Rows = "sgd"
	require.ErrorContains(t, o.Validate(), "{embed_optimizer} sgd: there are adam, adam-row and adagrad")
	o = learning()
	o.Inputs = map[string]string{"reviewer": "embed:4"} // of whom there is none
	require.Len(t, trained(t, ds, o).Embeddings, 1, "those of authors, by default")
}

// roomFS is a file system of so many bytes.
type roomFS struct {
	vfs.FS
	avail uint64
}

// GetDiskUsage implements vfs.FS.
func (f roomFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: f.avail, TotalBytes: 1 << 40}, nil
}

// TestLearntRowsNoRoom: all tables together must have room before a run is on record, so that the
// same command works once there is.
func TestLearntRowsNoRoom(t *testing.T) {
	ds := openTyped(t, storetest.Library(4000, 3, 2))
	o := learning()
	o.Inputs, o.Epochs = map[string]string{"author": "embed:64", "paper": "embed:64"}, 1
	disk := vfs.NewMem()
	_, err := runOn(t.Context(), roomFS{disk, 18 << 20}, ds, o, run.Hooks{}) // enough for each alone
	require.ErrorContains(t, err, "/run: no space left on device: the rows that steps rewrite may take ")
	require.ErrorContains(t, err, "; make room, then go on with gnnstore train {resume} {run} /run")
	_, err = disk.Stat("/run/" + run.RecordFile)
	require.ErrorIs(t, err, fs.ErrNotExist)
	few := o
	few.EpochSteps, few.Batch = 1, 2
	_, err = runOn(t.Context(), roomFS{vfs.NewMem(), 18 << 20}, ds, few, run.Hooks{})
	require.NoError(t, err, "one step reads some of the rows")
	_, err = runOn(t.Context(), roomFS{disk, 400 << 20}, ds, o, run.Hooks{})
	require.NoError(t, err)
	o.KeepCheckpoints = 400
	_, err = Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{})
	require.ErrorContains(t, err, "{keep_checkpoints} 400: at most 247 where rows are learnt")
}

// TestLearntRowsForged: the run refuses a checkpoint with the learnt rows of another run. The line
// names the file, and nothing changes. The run ignores rows of other types in it.
func TestLearntRowsForged(t *testing.T) {
	ds := openTyped(t, storetest.Library(400, 3, 2))
	o := learning()
	o.Epochs, o.CheckpointEvery = 3, 3
	want, err := runOn(context.Background(), vfs.NewMem(), ds, o, run.Hooks{})
	require.NoError(t, err)
	kept := func(text string) func(string) string {
		return func(old string) string {
			var m map[string]json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(old), &m))
			m["kept"] = json.RawMessage(text)
			b, err := json.Marshal(m)
			require.NoError(t, err)
			return string(b)
		}
	}
	for name, forge := range map[string]func(old string) string{
		"missing": func(string) string { return "" },
		"null":    func(string) string { return "null" },
		"none":    kept(`[]`),
		"later":   kept(`[{"updates":99999,"best":0}]`),
		"below 0": kept(`[{"updates":-5,"best":-7}]`),
		"best":    kept(`[{"updates":9,"best":777}]`),
		"order":   kept(`[{"updates":9223372036854775807,"best":0},{"updates":8,"best":4}]`),
		"rows":    func(s string) string { return strings.ReplaceAll(s, `"rows":200`, `"rows":-1`) },
		"tables":  func(s string) string { return strings.ReplaceAll(s, `"author"`, `"autho"`) },
	} {
		disk := half(t, ds, o)
		names := checkpointsOf(t, disk)
		newest := "/run/" + names[len(names)-1]
		tensors, meta, err := checkpoint.Load(disk, newest)
		require.NoError(t, err)
		if meta[embeddingsKey] = forge(meta[embeddingsKey]); meta[embeddingsKey] == "" {
			delete(meta, embeddingsKey)
		}
		require.NoError(t, checkpoint.Save(disk, newest, tensors, meta))
		before := listing(t, disk)
		_, err = runOn(context.Background(), disk, ds, o, run.Hooks{})
		require.ErrorContains(t, err, "resume "+newest+": ", name)
		require.NotContains(t, err.Error(), "\n", name)
		require.Equal(t, before, listing(t, disk), name)
		require.NoError(t, disk.Remove(newest))
		got, err := runOn(context.Background(), disk, ds, o, run.Hooks{})
		require.NoError(t, err, name)
		require.Equal(t, want.ParamsXXH3, got.ParamsXXH3, name)
	}
}

// TestLearntRowsEndOfBegin: a run that is interrupted while its rows are made ready ends as one
// that has not begun, and goes on.
func TestLearntRowsEndOfBegin(t *testing.T) {
	ds := openTyped(t, storetest.Library(400, 3, 2))
	o := learning()
	o.Epochs, o.CheckpointEvery, o.KeepCheckpoints = 3, 3, 3
	disk := half(t, ds, o)
	ctx, cancel := context.WithCancel(context.Background())
	fsys := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if strings.Contains(op.Path, "/embeddings/") {
			cancel()
		}
		return nil
	}))
	o.KeepCheckpoints = 1
	_, err := runOn(ctx, fsys, ds, o, run.Hooks{})
	require.EqualError(t, err, "context canceled")
	want, err := runOn(context.Background(), vfs.NewMem(), ds, o, run.Hooks{})
	require.NoError(t, err)
	got, err := runOn(context.Background(), disk, ds, o, run.Hooks{})
	require.NoError(t, err)
	require.Equal(t, want.ParamsXXH3, got.ParamsXXH3)
}

// TestLearntRowsInEvaluation: layer by layer, they take no more than is counted.
func TestLearntRowsInEvaluation(t *testing.T) {
	const papers, authors = 1 << 15, 1 << 15
	lists := make([][]store.NodeID, papers)
	for v := range lists {
		lists[v] = []store.NodeID{store.NodeID(v * 7919 % authors), store.NodeID(v * 31 % authors)}
	}
	s := storetest.TypedSpec{
		Types: []storetest.TypedNodes{
			{Name: "author", Nodes: authors}, {Name: "paper", Nodes: papers, Dim: 1, Row: func(int) []float32 { return []float32{1} }},
		},
		Relations: []storetest.TypedRelation{{Src: "author", Name: "writes", Dst: "paper", Neighbors: lists}},
		Target:    "paper", Classes: 2, Class: func(v int) int32 { return int32(v % 2) },
	}
	for v := range store.NodeID(papers) {
		if v < 64 {
			s.Train = append(s.Train, v)
		} else {
			s.Valid = append(s.Valid, v)
		}
	}
	o := typed(model.RSAGE)
	o.Hidden, o.Inputs, o.MemoryBytes = 8, map[string]string{"author": "embed:256"}, 2<<30
	m := opened(t, openTyped(t, s), o)
	m.tiers.In(vfs.NewMem(), "/embeddings", "test")
	m.Record = new(run.Record)
	require.NoError(t, m.Fresh(t.Context()))
	require.False(t, m.eval.Sampled())
	before := kernels.HostBytes()
	_, ok, err := m.eval.Measure(t.Context(), m.data.Seeds(m.data.Valid))
	require.NoError(t, err)
	require.True(t, ok)
	require.LessOrEqual(t, kernels.HostBytes()-before, m.eval.MemoryBytes())
}
