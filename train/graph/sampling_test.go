package graph

import (
	"context"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
)

// draws are ways to draw batches, each a change of options.
var draws = map[string]func(o *run.Options){
	"ns":                func(*run.Options) {},
	"ns nested":         func(o *run.Options) { o.Kappa = 5 },
	"ns smoothed":       func(o *run.Options) { o.Kappa, o.Dependent = 5, run.Smoothed },
	"labor0":            func(o *run.Options) { o.Sampler = sample.Labor0 },
	"labor0 nested":     func(o *run.Options) { o.Sampler, o.Kappa = sample.Labor0, 5 },
	"labor0 smoothed":   func(o *run.Options) { o.Sampler, o.Kappa, o.Dependent = sample.Labor0, 5, run.Smoothed },
	"labor0 for ever":   func(o *run.Options) { o.Sampler, o.Kappa = sample.Labor0, sample.Forever },
	"labor0 poisson":    func(o *run.Options) { o.Sampler, o.Poisson = sample.Labor0, true },
	"layer dependency":  func(o *run.Options) { o.LayerDependency = true },
	"labor-star nested": func(o *run.Options) { o.Sampler, o.Kappa = sample.LaborStar, 5 },
	"rw nested":         func(o *run.Options) { o.Sampler, o.Kappa = sample.RW, 5 },
	"walks of one step": func(o *run.Options) { o.Sampler, o.Walk.Length = sample.RW, 1 },
}

// TestDraws: every way to draw learns from neighbours, gives batches of its own, and the same ones
// out of core.
func TestDraws(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 10, 16, 1))
	ways := map[string]string{} // by what the weights became
	for name, change := range draws {
		o := small()
		o.Epochs = 4
		change(&o)
		want := trained(t, ds, o)
		require.Greater(t, *want.Best.TestAcc, 0.6, name) // an MLP comes to 0.52
		require.NotContains(t, ways, want.ParamsXXH3, "%s and %s are one", name, ways[want.ParamsXXH3])
		ways[want.ParamsXXH3] = name
		cold := outOfCore(ds, "pread")
		o.Cache, o.TopologyBytes, o.Window, o.Workers = cold.Cache, cold.TopologyBytes, 3, 5
		sameWork(t, want, trained(t, ds, o), name)
	}
}

// TestOneKappa: κ of 1 is independent batches, however they depend.
func TestOneKappa(t *testing.T) {
	ds := open(t, storetest.Communities(300, 3, 6, 8, 3))
	o := small()
	o.Sampler = sample.Labor0
	want := trained(t, ds, o)
	o.Dependent = run.Smoothed
	sameWork(t, want, trained(t, ds, o))
	o.Kappa, o.Dependent = math.MaxInt, run.Nested
	want = trained(t, ds, o)
	o.Kappa = sample.Forever
	sameWork(t, want, trained(t, ds, o))
}

// TestNoDraws: an MLP is trained the same, whatever is said about neighbours it has not.
func TestNoDraws(t *testing.T) {
	ds := open(t, storetest.Communities(300, 3, 6, 8, 3))
	o := small()
	o.Kind = model.MLP
	want := trained(t, ds, o)
	o.Sampler, o.Kappa = sample.RW, 7
	sameWork(t, want, trained(t, ds, o))
	o.Sampler, o.Weighted = sample.NS, true
	sameWork(t, want, trained(t, ds, o))
	require.Empty(t, o.Draws())
}

func TestDrawsRefused(t *testing.T) {
	for want, change := range map[string]func(o *run.Options){
		"{sampler} labor: there are ns, labor0, labor-star and rw": func(o *run.Options) { o.Sampler = "labor" },
		"{kappa} 0: at least 1, or inf":                            func(o *run.Options) { o.Kappa = 0 },
		"{kappa} -2: at least 1, or inf":                           func(o *run.Options) { o.Kappa = -2 },
		"{dependent} : there are nested and smoothed":              func(o *run.Options) { o.Dependent = "" },
		"{fanout} 0: at least 1, or -1 for every neighbour":        func(o *run.Options) { o.Fanouts = []int{0, 0} },
		"{fanout} -2: at least 1, or -1 for every neighbour":       func(o *run.Options) { o.Fanouts = []int{5, -2} },
		"{poisson} goes with {sampler} labor0":                     func(o *run.Options) { o.Poisson = true },
		"{weighted} goes with {sampler} ns":                        func(o *run.Options) { o.Sampler, o.Weighted = sample.Labor0, true },
		"{walks} 0: from 1 to 65536":                               func(o *run.Options) { o.Sampler, o.Walk.Walks = sample.RW, 0 },
		"{walk_length} 2000: from 1 to 1024":                       func(o *run.Options) { o.Sampler, o.Walk.Length = sample.RW, 2000 },
		"{walk_restart} NaN: at least 0 and below 1":               func(o *run.Options) { o.Sampler, o.Walk.Restart = sample.RW, math.NaN() },
		"{weighted}: {model} gcn takes its weights from degrees":   func(o *run.Options) { o.Kind, o.Weighted = model.GCN, true },
		"{model} gcn needs the probabilities of neighbours":        func(o *run.Options) { o.Kind, o.Sampler = model.GCN, sample.RW },
		"{fanout} -1: {sampler} rw needs a number of neighbours":   func(o *run.Options) { o.Sampler, o.Fanouts = sample.RW, []int{-1, -1} },
		"{dependent} smoothed: walks have no numbers that drift": func(o *run.Options) {
			o.Sampler, o.Kappa, o.Dependent = sample.RW, 2, run.Smoothed
		},
	} {
		o := small()
		change(&o)
		err := o.Validate()
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n", "said once")
		if o.Kind = model.MLP; !strings.Contains(want, "gcn") {
			require.ErrorContains(t, o.Validate(), want, "also where nothing is drawn")
		}
	}
	o := small()
	o.Sampler, o.Dependent = sample.RW, run.Smoothed
	require.NoError(t, o.Validate(), "independent walks have nothing to drift")
}

func TestDrawsText(t *testing.T) {
	for want, change := range map[string]func(o *run.Options){
		"":                                 func(*run.Options) {},
		"labor0":                           func(o *run.Options) { o.Sampler = sample.Labor0 },
		"ns, kappa 16 nested":              func(o *run.Options) { o.Kappa = 16 },
		"labor0, kappa inf smoothed":       func(o *run.Options) { o.Sampler, o.Kappa, o.Dependent = sample.Labor0, sample.Forever, run.Smoothed },
		"ns, weighted":                     func(o *run.Options) { o.Sampler, o.Weighted = "", true },
		"rw, 10 walks of 3":                func(o *run.Options) { o.Sampler = sample.RW },
		"ns, layer dependency":             func(o *run.Options) { o.LayerDependency = true },
		"labor0, poisson":                  func(o *run.Options) { o.Sampler, o.Poisson = sample.Labor0, true },
		"labor-star, kappa 2 nested":       func(o *run.Options) { o.Sampler, o.Kappa = sample.LaborStar, 2 },
		"rw, 4 walks of 2, kappa 3 nested": func(o *run.Options) { o.Sampler, o.Walk.Length, o.Walk.Walks, o.Kappa = sample.RW, 2, 4, 3 },
	} {
		o := small()
		change(&o)
		require.Equal(t, want, o.Draws())
	}
}

// TestOlderRecord: runs of versions that had no samplers read as what they drew by, and go on.
func TestOlderRecord(t *testing.T) {
	o := small()
	text, err := json.Marshal(o)
	require.NoError(t, err)
	var keys map[string]any
	require.NoError(t, json.Unmarshal(text, &keys))
	for _, key := range []string{"sampler", "layer_dependency", "poisson", "weighted", "walk", "kappa", "dependent"} {
		require.Contains(t, keys, key)
		delete(keys, key)
	}
	text, err = json.Marshal(keys)
	require.NoError(t, err)
	var old run.Options
	require.NoError(t, json.Unmarshal(text, &old))
	require.Equal(t, o, old)
	require.NoError(t, o.Resumes(old))

	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	disk := half(t, ds, long())
	changeSchedule(t, disk, func(meta map[string]string) { delete(meta, scheduleKey) })
	var notes []string
	_, err = runOn(context.Background(), disk, ds, long(), run.Hooks{Note: func(s string) { notes = append(notes, s) }})
	require.NoError(t, err)
	require.Contains(t, notes[0], "the checkpoint is of an earlier version, which drew other batches")
}

// changeSchedule changes the metadata of half's newest checkpoint.
func changeSchedule(t *testing.T, disk vfs.FS, change func(meta map[string]string)) {
	tensors, meta, err := checkpoint.Load(disk, halfNewest)
	require.NoError(t, err)
	change(meta)
	require.NoError(t, checkpoint.Save(disk, halfNewest, tensors, meta))
}

const halfNewest = "/run/checkpoints/00000012.safetensors"

// TestResumeSchedule: a checkpoint of other draws is refused by what is different, and so are
// options.
func TestResumeSchedule(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	o := long()
	o.Sampler, o.Kappa, o.Dependent = sample.Labor0, 5, run.Smoothed
	for text, want := range map[string]string{
		`{"seed":1,"kappa":16,"dependent":"smoothed","step":12}`: "it draws with {kappa} 16, and the run with 5",
		`{"seed":1,"kappa":-1,"dependent":"smoothed","step":12}`: "it draws with {kappa} inf, and the run with 5",
		`{"seed":1,"kappa":5,"dependent":"nested","step":12}`:    "it draws with {dependent} nested, and the run with smoothed",
		`{"seed":2,"kappa":5,"dependent":"smoothed","step":12}`:  "it draws from {seed} 2, and the run from 1",
		`{"seed":1,"kappa":5,"dependent":"smoothed","step":11}`:  "it has drawn 11 steps and made 12 updates; remove the file",
		`{"seed":1,"kappa":5,"dependent":"smoothed"}`:            "it has drawn 0 steps and made 12 updates; remove the file",
		`{`: "no schedule to draw by: gnnstore.schedule: unexpected end of JSON input; remove the file",
		"":  "it draws with {kappa} 1, and the run with 5",
	} {
		disk := half(t, ds, o)
		changeSchedule(t, disk, func(meta map[string]string) {
			require.JSONEq(t, `{"seed":1,"kappa":5,"dependent":"smoothed","step":12}`, meta[scheduleKey])
			if meta[scheduleKey] = text; text == "" {
				delete(meta, scheduleKey)
			}
		})
		_, err := runOn(context.Background(), disk, ds, o, run.Hooks{})
		require.ErrorContains(t, err, "resume "+halfNewest+": "+want)
	}
	disk := half(t, ds, o)
	for want, change := range map[string]func(o *run.Options){
		`{sampler} is ns and the run's is labor0`:           func(o *run.Options) { o.Sampler = sample.NS },
		`{kappa} is inf and the run's is 5`:                 func(o *run.Options) { o.Kappa = sample.Forever },
		`{dependent} is nested and the run's is smoothed`:   func(o *run.Options) { o.Dependent = run.Nested },
		`{layer_dependency} is true and the run's is false`: func(o *run.Options) { o.LayerDependency = true },
		`{poisson} is true and the run's is false`:          func(o *run.Options) { o.Poisson = true },
		`{walk_length} is 4 and the run's is 3`:             func(o *run.Options) { o.Walk.Length = 4 },
		`{walks} is 11 and the run's is 10`:                 func(o *run.Options) { o.Walk.Walks = 11 },
		`{walk_restart} is 0.25 and the run's is 0.5`:       func(o *run.Options) { o.Walk.Restart = 0.25 },
		`{epoch_steps} is 4 and the run's is 0`:             func(o *run.Options) { o.EpochSteps = 4 },
	} {
		o := o
		change(&o)
		_, err := runOn(context.Background(), disk, ds, o, run.Hooks{})
		require.ErrorContains(t, err, want)
	}
}

// TestEvaluatedOnWalks: a network of random walks has no weights for all neighbours.
func TestEvaluatedOnWalks(t *testing.T) {
	ds := open(t, storetest.Communities(300, 3, 6, 8, 3))
	notesOf := func(o run.Options) (notes string, r *run.Result) {
		r, err := Run(context.Background(), ds, scratch(t), o, "test", run.Hooks{Note: func(s string) { notes += s + "\n" }})
		require.NoError(t, err)
		return notes, r
	}
	o := small()
	o.Sampler = sample.RW
	notes, r := notesOf(o)
	require.Equal(t, "sampled", r.Evaluation.Method)
	require.Contains(t, notes, "{sampler} rw weighs the nodes that walks visit, and knows no weights for all neighbours")
	for _, kind := range []sample.Kind{sample.NS, sample.Labor0, sample.LaborStar} {
		o.Sampler = kind
		_, r := notesOf(o)
		require.Equal(t, "full", r.Evaluation.Method, kind)
	}

	o.Kappa = sample.Forever
	notes, _ = notesOf(o)
	require.Contains(t, notes, "{kappa} inf: every epoch draws the same neighbours of a node")
	o.Kappa = 10 // an epoch has 4 steps
	notes, _ = notesOf(o)
	require.Contains(t, notes, "{kappa} 10: 2.5 epochs of 4 steps draw the same neighbours of a node")
	o.Dependent, o.Sampler = run.Smoothed, sample.Labor0
	notes, _ = notesOf(o)
	require.Contains(t, notes, "{kappa} 10: the neighbours of a node change once in 2.5 epochs of 4 steps")
	o.Kappa = 4
	notes, _ = notesOf(o)
	require.NotContains(t, notes, "{kappa}")
}

// weighted is a graph whose nodes hear more of other classes than of their own, but for the weights
// of edges.
func weighted(other float32) storetest.Spec {
	const nodes, classes = 900, 4
	s := storetest.Communities(nodes, classes, 10, 16, 1)
	class := s.Class
	for v := range s.Neighbors {
		for i := range 20 {
			s.Neighbors[v] = append(s.Neighbors[v], store.NodeID((v*31+i*97+i*i)%nodes))
		}
		slices.Sort(s.Neighbors[v])
	}
	s.Weight = func(v, i int) float32 {
		if class(int(s.Neighbors[v][i])) == class(v) {
			return 1 + float32(i%3)
		}
		return other
	}
	return s
}

// TestWeighted: neighbours are drawn and count by the weights of their edges, and not at all with
// weight 0. Out of core it is the same, and full evaluation gives the same as blocks of every
// neighbour.
func TestWeighted(t *testing.T) {
	ds := open(t, weighted(0))
	o := small()
	o.Epochs = 4
	plain := trained(t, ds, o)
	o.Weighted = true
	for kind, kappa := range map[model.Kind]int{model.SAGE: 5, model.GAT: 1} {
		o.Kind, o.Heads, o.Kappa, o.Dependent = kind, 2, kappa, run.Smoothed
		want := trained(t, ds, o)
		require.Greater(t, *want.Best.TestAcc, *plain.Best.TestAcc+0.05, kind)
		require.Equal(t, "full", want.Evaluation.Method)
		cold := outOfCore(ds, "pread")
		for i, window := range []int{0, 1} {
			o := o
			o.Cache, o.TopologyBytes, o.Window, o.Workers = cold.Cache, cold.TopologyBytes+int64(i)*4000, window, 1+2*i
			sameWork(t, want, trained(t, ds, o), "%s, window %d", kind, window)
		}
	}
	o.Kind, o.Epochs, o.Fanouts, o.EvalNodes = model.GAT, 2, []int{sample.All, sample.All}, 1000
	full := trained(t, ds, o)
	o.EvalBytes = 0
	blocks := trained(t, ds, o)
	require.Equal(t, "sampled", blocks.Evaluation.Method)
	require.Equal(t, full.Best, blocks.Best)
}

func TestWeightedRefused(t *testing.T) {
	o := small()
	o.Weighted = true
	refused := func(spec storetest.Spec, want string, damage func(*store.Dataset) *store.Dataset) {
		ds := open(t, spec)
		ds = damage(ds)
		_, err := Run(context.Background(), ds, in(filepath.Join(t.TempDir(), "run")), o, "test", run.Hooks{})
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
	whole := func(ds *store.Dataset) *store.Dataset { return ds }
	refused(storetest.Communities(300, 3, 6, 8, 3), "{weighted}: the edges of relation node__to__node have no column weight", whole)
	refused(weighted(1), "{weighted}: column weight of relation node__to__node is i32, and weights are f32",
		func(ds *store.Dataset) *store.Dataset {
			ds.Manifest().Relations[0].Columns[0].Elem = store.I32
			return ds
		})
	refused(weighted(-1), "has the weight -1; edges are drawn by weights of at least 0", whole)
	refused(weighted(1), "has the weight NaN", func(ds *store.Dataset) *store.Dataset {
		return forged(t, ds, "topo/node__to__node/weight.f32", 77, math.Float32bits(float32(math.NaN())))
	})
	for _, kind := range []model.Kind{model.SAGE, model.GAT} { // where nothing weighs anything
		spec := weighted(0)
		spec.Weight = func(int, int) float32 { return 0 }
		o := o
		o.Kind = kind
		require.Equal(t, run.Done, trained(t, open(t, spec), o).Status)
	}
}

// TestWeightsNoted: what is not used is said.
func TestWeightsNoted(t *testing.T) {
	ds := open(t, weighted(1))
	for _, use := range []bool{false, true} {
		o := small()
		o.Epochs, o.Weighted = 1, use
		var notes string
		_, err := Run(context.Background(), ds, scratch(t), o, "test", run.Hooks{Note: func(s string) { notes += s }})
		require.NoError(t, err)
		require.Equal(t, !use, strings.Contains(notes, "column weight of the edges is not used in training"))
	}
}
