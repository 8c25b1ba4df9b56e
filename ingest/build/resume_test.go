package build

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// everything is a graph whose build has a pass of every kind.
func everything() *fake {
	rng := rand.New(rand.NewPCG(1, 2))
	f := &fake{
		schema: ingest.Schema{
			Name: "everything", Identity: "everything 1",
			NodeTypes: []ingest.NodeType{{Name: "0", Count: 40}, {Name: "1", Count: 30, IDs: ingest.IntIDs}, {Name: "2", IDs: ingest.TextIDs}, {Name: "3", IDs: ingest.TextIDs, Gathered: true}},
			Relations: []ingest.Relation{
				{Src: "0", Name: "to", Dst: "0", Edges: 120},
				{Src: "1", Name: "to", Dst: "2", Edges: -1, Columns: []ingest.EdgeColumn{{Name: "weight", Elem: store.F32}}},
				{Src: "3", Name: "to", Dst: "0", Edges: 50},
			},
			Tables: []ingest.Table{{Name: "t", NodeType: "0", Dim: 9}, {Name: "t", NodeType: "1", Dim: 100}, {Name: "e", Relation: "1__to__2", Dim: 2}},
			Labels: []ingest.Label{{Name: "l", NodeType: "0", Classes: 4}, {Name: "l", NodeType: "2", Classes: 4}},
			Splits: []ingest.Split{{Name: "a", NodeType: "0"}, {Name: "b", NodeType: "1"}, {Name: "c", NodeType: "2"}},
		},
		ids: map[int][]int64{}, edges: map[int][][2]int64{}, rows: map[int][]float32{}, labels: map[int][]int32{},
		splits: map[int][3][]int64{}, values: map[int][][]uint64{},
		text:  func(id int64) string { return fmt.Sprintf("node\x00 %d", id*id) },
		chunk: 7,
	}
	counts := []int64{40, 30, 35, 20}
	for i, n := range counts {
		for id := range n {
			f.ids[i] = append(f.ids[i], id*3)
		}
	}
	f.ids[0] = nil
	id := func(t int) int64 {
		if t == 0 {
			return rng.Int64N(40)
		}
		return 3 * rng.Int64N(counts[t])
	}
	for i, ends := range [][2]int{{0, 0}, {1, 2}, {3, 0}} {
		for range []int{120, 80, 50}[i] {
			f.edges[i] = append(f.edges[i], [2]int64{id(ends[0]), id(ends[1])})
		}
	}
	f.values[1] = [][]uint64{make([]uint64, 80)}
	for i, t := range f.schema.Tables {
		rows := map[string]int{"0": 40, "1": 30, "": 80}[t.NodeType]
		for k := range rows * t.Dim {
			f.rows[i] = append(f.rows[i], float32(k%2048))
		}
	}
	for i, n := range []int{40, 35} {
		for range n {
			f.labels[i] = append(f.labels[i], rng.Int32N(5)-1)
		}
	}
	f.splits[0] = [3][]int64{{1, 2, 3}, {4, 5}, {6}}
	f.splits[1] = [3][]int64{{3, 0}, {6}, {9}}
	f.splits[2] = [3][]int64{{0}, {3, 6}, {}}
	return f
}

// everyOptions are ways through all passes.
func everyOptions() []Options {
	return []Options{
		{Undirected: true, Reverse: true, DType: F32, test: tiny},
		{Order: OrderAccess, Features: "degree", EdgeIDs: true, Tmp: "tmp", test: tiny},
		{Order: OrderOriginal, Duplicates: DuplicatesFirst, Reverse: true, test: tiny},
		{Features: "mean", Reverse: true, test: tiny},
	}
}

// disk is a file system in memory whose power can be cut: then nothing works any more.
type disk struct {
	vfs.FS
	mem   *vfs.MemFS
	left  atomic.Int64 // operations until then
	cause error
}

var errPower = errors.New("the power is cut")

func newDisk(mem *vfs.MemFS, operations int64) *disk {
	d := &disk{mem: mem, cause: errPower}
	d.left.Store(operations)
	d.FS = errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if d.left.Add(-1) < 0 {
			return d.cause
		}
		return nil
	}))
	return d
}

func newMem(t *testing.T) *vfs.MemFS {
	mem := vfs.NewCrashableMem()
	require.NoError(t, mem.MkdirAll("tmp", 0o777))
	require.NoError(t, mem.MkdirAll("d", 0o777))
	return mem
}

// requireOnly wants nothing to be left but the dataset.
func requireOnly(t *testing.T, mem vfs.FS, names ...string) {
	t.Helper()
	left, err := mem.List("d")
	require.NoError(t, err)
	require.ElementsMatch(t, names, left)
	left, err = mem.List("tmp")
	require.NoError(t, err)
	require.Empty(t, left)
}

const forever = 1 << 60

// sameReport compares what does not depend on how often it was begun.
func sameReport(t *testing.T, want, got *Report) {
	t.Helper()
	require.Equal(t, want.Seal, got.Seal)
	require.Equal(t, want.Relations, got.Relations)
	require.Equal(t, want.NodeTypes, got.NodeTypes)
	require.Equal(t, want.Tables, got.Tables)
	require.Equal(t, want.Labels, got.Labels)
	require.Equal(t, want.Splits, got.Splits)
	require.Equal(t, passNames(want), passNames(got))
}

func passNames(r *Report) (names []string) {
	for _, p := range r.Passes {
		names = append(names, p.Name)
	}
	return names
}

// TestKilled ends a build at any operation, and its reruns too: the last makes what an
// uninterrupted one makes, and leaves nothing else. Every other time it is the machine that ends,
// and all that was not synced is lost.
func TestKilled(t *testing.T) {
	storetest.Long(t)
	for i, o := range everyOptions() {
		o.test.journal = true
		whole := newDisk(newMem(t), forever)
		o.FS = whole
		want, err := Build(context.Background(), everything(), "d/x.gnn", o)
		require.NoError(t, err)
		requireOnly(t, whole.mem, "x.gnn")
		all := forever - whole.left.Load()
		resumed := 0
		step := all/10 + 1
		if testing.Short() {
			step = all/8 + 1
		}
		for n := 5 + step*int64(i)/4; n < all; n += step {
			mem := newMem(t)
			for try := int64(0); ; try++ {
				d := newDisk(mem, n+try*step/3)
				if try == 2 {
					d = newDisk(mem, forever)
				}
				o.FS = d
				got, err := Build(context.Background(), everything(), "d/x.gnn", o)
				if err != nil {
					require.Less(t, try, int64(2), err)
					require.ErrorIs(t, err, errPower)
					if mem = d.mem; n/step%2 == 0 {
						mem = mem.CrashClone(vfs.CrashCloneCfg{})
					}
					if _, err := mem.Stat("tmp"); err != nil { // a directory nobody synced
						require.NoError(t, mem.MkdirAll("tmp", 0o777))
					}
					require.NoError(t, mem.MkdirAll("d", 0o777))
					if _, err := mem.Stat("d/x.gnn"); err == nil { // sealed, and nobody was told
						break
					}
					continue
				}
				sameReport(t, want, got)
				requireOnly(t, mem, "x.gnn")
				if got.Resumed > 0 {
					resumed++
				}
				break
			}
		}
		require.Greater(t, resumed, 3)
	}
}

// TestCancelled ends a build after a pass: the next build does what is left and no more, also with
// other memory. Each of the options ends after every fourth of its passes and, without -short,
// after each pass at which no earlier options ended.
func TestCancelled(t *testing.T) {
	storetest.Long(t)
	ended := map[string]bool{}
	for i, o := range everyOptions() {
		o.test.journal = true
		o.FS = newMem(t)
		want, err := Build(context.Background(), everything(), "d/x.gnn", o)
		require.NoError(t, err)
		for k, pass := range passNames(want)[:len(want.Passes)-1] { // after the last it is as good as done
			if k%4 != i && (testing.Short() || ended[pass]) {
				continue
			}
			ended[pass] = true
			mem := newMem(t)
			o := o
			o.FS = mem
			ctx, cancel := context.WithCancel(context.Background())
			o.test.done = func(name string) {
				if name == pass {
					cancel()
				}
			}
			_, err := Build(ctx, everything(), "d/x.gnn", o)
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorContains(t, err, fmt.Sprintf(": %d passes are done and kept in d/x.gnn.partial; the same command goes on after them", k+1))

			// A source that is not there for once loses nothing, nor does too little memory.
			gone := everything()
			gone.gone = errors.New("graph.csv: no such file")
			o.test.done = nil
			_, err = Build(context.Background(), gone, "d/x.gnn", o)
			require.ErrorIs(t, err, gone.gone)
			require.ErrorContains(t, err, fmt.Sprintf("%d passes are done and kept", k+1))
			o.Memory = LeastMemory
			_, err = Build(context.Background(), everything(), "d/x.gnn", o)
			require.ErrorContains(t, err, "{memory} 128 MiB is too little for this graph: it needs at least 129 MiB")
			require.NotContains(t, err.Error(), "\n")

			o.Memory = 256 << 20
			if k%2 == 0 {
				o.test = hooks{}
			}
			o.test.done = func(name string) { require.Greater(t, slices.Index(passNames(want), name), k, "done again") }
			got, err := Build(context.Background(), everything(), "d/x.gnn", o)
			require.NoError(t, err)
			require.Equal(t, k+1, got.Resumed)
			require.Equal(t, want.Seal, got.Seal)
			require.Equal(t, want.Tables, got.Tables)
			require.Equal(t, want.Relations, got.Relations)
			requireOnly(t, mem, "x.gnn")
		}
	}
}

// TestKilledWhileSealing: the passes are done, and are not done again.
func TestKilledWhileSealing(t *testing.T) {
	for i, o := range everyOptions() {
		o.test.journal = true
		o.FS = newMem(t)
		want, err := Build(context.Background(), everything(), "d/x.gnn", o)
		require.NoError(t, err)
		last := want.Passes[len(want.Passes)-1].Name
		resumed := 0
		step := int64(16)
		if testing.Short() {
			step = 30
		}
		for n := 1 + 4*int64(i); ; n += step { // the four options together fail at every fourth operation
			d := newDisk(newMem(t), forever)
			o.FS = d
			o.test.done = func(name string) {
				if name == last {
					d.left.Store(n)
				}
			}
			_, err := Build(context.Background(), everything(), "d/x.gnn", o)
			if err == nil {
				break
			}
			require.ErrorIs(t, err, errPower)
			if _, err := d.mem.Stat("d/x.gnn"); err == nil {
				break
			}
			if names, err := d.mem.List("d/x.gnn.partial"); err == nil && !slices.Contains(names, "work") {
				break // all but renamed
			}
			o.FS, o.test.done = d.mem, nil
			got, err := Build(context.Background(), everything(), "d/x.gnn", o)
			require.NoError(t, err)
			require.Len(t, want.Passes, got.Resumed)
			sameReport(t, want, got)
			require.Equal(t, want.Notes, got.Notes)
			requireOnly(t, d.mem, "x.gnn")
			resumed++
		}
		require.Positive(t, resumed)
	}
}

// interrupted leaves a build after a pass, and what it left.
func interrupted(t *testing.T, o Options, pass string) *vfs.MemFS {
	mem := newMem(t)
	o.FS = mem
	o.test.journal = true
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o.test.done = func(name string) {
		if name == pass {
			cancel()
		}
	}
	_, err := Build(ctx, everything(), "d/x.gnn", o)
	require.ErrorIs(t, err, context.Canceled)
	return mem
}

// TestBeginsAnew: what cannot be gone on with is said to be gone, and is.
func TestBeginsAnew(t *testing.T) {
	const pass = "renumber 1__to__2"
	write := func(mem *vfs.MemFS, name, text string) {
		f, err := mem.Create(name, vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		_, err = f.Write([]byte(text))
		require.NoError(t, errors.Join(err, f.Close()))
	}
	const work = "d/x.gnn.partial/work"
	for name, c := range map[string]struct {
		tmp    string
		change func(mem *vfs.MemFS, src *fake, o *Options)
		why    string
	}{
		"another source":       {"", func(_ *vfs.MemFS, src *fake, _ *Options) { src.schema.Identity = "everything 2" }, "of another ingest"},
		"unknown source":       {"", func(_ *vfs.MemFS, src *fake, _ *Options) { src.schema.Identity = "" }, "of another ingest"},
		"another option":       {"", func(_ *vfs.MemFS, _ *fake, o *Options) { o.Undirected = true }, "of another ingest"},
		"another, spilled out": {"tmp", func(_ *vfs.MemFS, _ *fake, o *Options) { o.Undirected, o.Tmp = true, "" }, "of another ingest"},
		"cut journal":          {"", func(mem *vfs.MemFS, _ *fake, _ *Options) { write(mem, work+"/journal.json", "{") }, "with a damaged journal"},
		"changed journal": {"", func(mem *vfs.MemFS, _ *fake, _ *Options) {
			text, err := readFile(mem, work+"/journal.json")
			require.NoError(t, err)
			write(mem, work+"/journal.json", strings.Replace(string(text), `"counts":[40`, `"counts":[41`, 1))
		}, "with a damaged journal"},
		"missing spill": {"", func(mem *vfs.MemFS, _ *fake, _ *Options) { require.NoError(t, mem.RemoveAll(work+"/spill")) }, "without some of its files"},
		"missing tmp": {"tmp", func(mem *vfs.MemFS, _ *fake, _ *Options) {
			names, err := mem.List("tmp")
			require.NoError(t, err)
			require.Len(t, names, 1)
			require.NoError(t, mem.RemoveAll("tmp/"+names[0]))
		}, "without some of its files"},
		"short spill": {"", func(mem *vfs.MemFS, _ *fake, _ *Options) {
			names, err := mem.List(work + "/spill")
			require.NoError(t, err)
			write(mem, work+"/spill/"+names[0], "x")
		}, "without some of its files"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Tmp: c.tmp, test: tiny}
			mem := interrupted(t, o, pass)
			src := everything()
			c.change(mem, src, &o)
			o.FS = mem
			got, err := Build(context.Background(), src, "d/x.gnn", o)
			require.NoError(t, err)
			require.Zero(t, got.Resumed)
			require.Contains(t, got.Notes, "d/x.gnn.partial held unfinished work "+c.why+", and it is gone")
			requireOnly(t, mem, "x.gnn")
			o.FS = newMem(t)
			want, err := Build(context.Background(), src, "d/x.gnn", o)
			require.NoError(t, err)
			require.Equal(t, want.Seal, got.Seal)
		})
	}
	t.Run("missing section", func(t *testing.T) {
		o := Options{Tmp: "tmp", test: tiny}
		mem := interrupted(t, o, "write 1__to__2")
		require.NoError(t, mem.Remove("d/x.gnn.partial/topo/0__to__0/neighbors.u32"))
		o.FS, o.Tmp = mem, ""
		got, err := Build(context.Background(), everything(), "d/x.gnn", o)
		require.NoError(t, err)
		require.Contains(t, got.Notes, "d/x.gnn.partial held unfinished work without some of its sections, and it is gone")
		requireOnly(t, mem, "x.gnn")
	})
	t.Run("elsewhere", func(t *testing.T) { // what was spilled stays where it is, and goes in the end
		o := Options{Tmp: "tmp", test: tiny}
		mem := interrupted(t, o, pass)
		o.FS, o.Tmp = mem, ""
		got, err := Build(context.Background(), everything(), "d/x.gnn", o)
		require.NoError(t, err)
		require.Positive(t, got.Resumed)
		requireOnly(t, mem, "x.gnn")
	})
}

// TestFullDiskAnywhere fails every operation from the n-th on that takes space, and lets others
// work: nothing is left.
func TestFullDiskAnywhere(t *testing.T) {
	for i, o := range everyOptions() {
		step := int64(36)
		if testing.Short() {
			step = 60
		}
		for n := 9 * int64(i); ; n += step { // the four options together fail at every ninth operation
			mem := newMem(t)
			var left atomic.Int64
			left.Store(n)
			o.FS = errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				switch op.Kind {
				case errorfs.OpCreate, errorfs.OpMkdirAll, errorfs.OpFileWrite, errorfs.OpFileWriteAt:
					if left.Add(-1) < 0 {
						return fmt.Errorf("write %s: %w", op.Path, syscall.ENOSPC)
					}
				}
				return nil
			}))
			_, err := Build(context.Background(), everything(), "d/x.gnn", o)
			if err == nil {
				require.Greater(t, n, int64(100))
				break
			}
			require.ErrorIs(t, err, syscall.ENOSPC, "operation %d", n)
			require.NotContains(t, err.Error(), "\n", "one line")
			if _, err := mem.Stat("d/x.gnn"); err != nil {
				requireOnly(t, mem)
			}
		}
	}
}

// TestLeastMemory: what a plan says is needed is, and is enough.
func TestLeastMemory(t *testing.T) {
	storetest.Long(t)
	for _, o := range append(everyOptions(), Options{Split: "per-class:1/1"}, Options{Split: "random:0.5/0.2/0.2", Features: "degree", Order: OrderOriginal}) {
		big := everything()
		big.schema.NodeTypes[0].Count = 300_000 // few of them have edges
		big.rows[0], big.labels[0] = make([]float32, 9*300_000), make([]int32, 300_000)
		for i := range big.labels[0] {
			big.labels[0][i] = int32(i % 4)
		}
		big.chunk = 65536
		if strings.HasPrefix(o.Split, "per-class") {
			big.schema.Labels = big.schema.Labels[:1]
		}
		o.FS, o.test = newMem(t), hooks{}
		plan, err := PlanBuild(context.Background(), big, "d/x.gnn", o)
		require.NoError(t, err)
		o.Memory = plan.LeastMemory - 1
		_, err = Build(context.Background(), big, "d/x.gnn", o)
		require.ErrorContains(t, err, fmt.Sprintf("it needs at least %d MiB", (plan.LeastMemory+1<<20-1)>>20))
		requireOnly(t, o.FS)
		o.Memory = plan.LeastMemory
		for i := range big.schema.NodeTypes { // those that are not declared have a place
			if i > 0 && big.schema.NodeTypes[i].Count == 0 {
				o.Memory += 64 * 40
			}
		}
		_, err = Build(context.Background(), big, "d/x.gnn", o)
		require.NoError(t, err)
	}
}
