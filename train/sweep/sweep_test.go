package sweep

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/run"
)

// world stands for runs that train in no time, and outlive a sweep that is killed.
type world struct {
	settings, seeds, epochs int
	tied, fragile           bool           // validation has few values; runs fail
	trained                 map[string]int // epochs of each run
	work                    int            // epochs in all
	left                    int            // epochs until the kill; below 0: none comes
	tested                  map[string]bool
}

var errKilled = errors.New("killed")

// valid is the validation of an epoch of a run.
func (w *world) valid(name string, epoch int) float64 {
	h := xxh3.HashString(fmt.Sprint(name, " ", epoch))
	if w.tied {
		return float64(h % 4)
	}
	return float64(h%1024) / 1024 // sums of these are exact
}

// fails returns the epoch in which a run fails, or an epoch beyond its end.
func (w *world) fails(name string) int {
	if h := xxh3.HashString(name); w.fragile && h%3 == 0 {
		return 1 + int(h/3)%(w.epochs+1)
	}
	return math.MaxInt
}

func (w *world) train(_ context.Context, t Trial) (Ran, error) {
	name := t.Name(w.settings)
	to := t.Epochs
	if to == 0 {
		to = w.epochs
	}
	ran := Ran{Run: name}
	for w.trained[name] < to {
		if w.left == 0 {
			return ran, errKilled
		}
		if w.left--; w.trained[name]+1 >= w.fails(name) {
			ran.Failed = "the loss is no number"
			break
		}
		w.trained[name]++
		w.work++
	}
	r := &run.Result{Best: run.Best{Metric: metric.Accuracy}, ParamsXXH3: fmt.Sprint(name, w.trained[name])}
	for e := range w.trained[name] {
		v := w.valid(name, e+1)
		r.Epochs = append(r.Epochs, run.Epoch{Metric: metric.Accuracy, Epoch: e + 1, ValidAcc: &v, Seconds: 1})
	}
	if t.Test {
		v := w.valid(name, 0)
		r.Best.TestAcc, w.tested[name] = &v, true
	}
	if ran.Result = r; len(r.Epochs) == 0 {
		ran.Result = nil // it failed before anything was on record
	}
	return ran, nil
}

// do runs a sweep, and returns the whole outcome as text.
func (w *world) do(t require.TestingT, ladder []Rung) (string, *Outcome, error) {
	s := &Sweep{Seed: 5, Seeds: w.seeds, Ladder: ladder, Train: w.train}
	for i := range w.settings {
		s.Settings = append(s.Settings, Setting{Number: i + 1})
	}
	out, err := s.Do(context.Background())
	text := ""
	for _, x := range out.Tried {
		text += fmt.Sprint(x.Number, x.Rung, x.Valid, x.Test, ":")
		for _, r := range x.Runs {
			valid := math.NaN()
			if r.Valid != nil {
				valid = *r.Valid
			}
			text += fmt.Sprint(r.Seed, r.Run, r.Failed, valid, r.Epochs, r.Seconds, r.Params, ";")
		}
	}
	if out.Chosen != nil {
		text += fmt.Sprint("chosen ", out.Chosen.Number)
	}
	return text, out, err
}

// reference returns the number of the chosen setting, 0 for none, and the rung of each setting. It
// works them out from the figures alone.
func (w *world) reference(ladder []Rung) (chosen int, rungs []int) {
	rungs = make([]int, w.settings)
	failed := map[string]bool{}
	var on []int
	for i := range w.settings {
		on = append(on, i)
	}
	for k := 0; k <= len(ladder); k++ {
		keep := 1
		if k < len(ladder) {
			keep = ladder[k].Settings
		}
		if k > 0 {
			var left []int
			for range keep {
				best, bestMean, bestWhole := -1, 0.0, false
				for _, i := range on {
					mean, n := 0.0, 0.0
					for s := range w.seeds {
						name := Trial{Setting: Setting{Number: i + 1}, Seed: 5 + uint64(s)}.Name(w.settings)
						if failed[name] {
							continue
						}
						top := math.Inf(-1)
						for e := 1; e <= ladder[k-1].Epochs; e++ {
							top = max(top, w.valid(name, e))
						}
						mean, n = mean+top, n+1
					}
					taken := false
					for _, j := range left {
						taken = taken || i == j
					}
					if n == 0 || taken {
						continue
					}
					mean /= n
					whole := n == float64(w.seeds)
					if best < 0 || whole && !bestWhole || whole == bestWhole && mean > bestMean+1e-9 {
						best, bestMean, bestWhole = i, mean, whole
					}
				}
				if best >= 0 {
					left = append(left, best)
				}
			}
			on = nil
			for i := range w.settings { // by number
				for _, j := range left {
					if i == j {
						on = append(on, i)
					}
				}
			}
		}
		if k == len(ladder) {
			break
		}
		for _, i := range on {
			rungs[i] = k + 1
			for s := range w.seeds {
				name := Trial{Setting: Setting{Number: i + 1}, Seed: 5 + uint64(s)}.Name(w.settings)
				failed[name] = failed[name] || w.fails(name) <= ladder[k].Epochs
			}
		}
	}
	if len(on) > 0 {
		chosen = on[0] + 1
	}
	return chosen, rungs
}

// TestDo compares sweeps with the reference. A sweep that is killed again and again comes to the
// same end, and trains no epoch twice, except in runs that fail.
func TestDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fresh := func(w world) *world {
			w.trained, w.tested, w.left = map[string]int{}, map[string]bool{}, -1
			return &w
		}
		w := world{
			settings: rapid.IntRange(1, 12).Draw(t, "settings"), seeds: rapid.IntRange(1, 3).Draw(t, "seeds"), epochs: rapid.IntRange(2, 12).Draw(t, "epochs"),
			tied: rapid.Bool().Draw(t, "tied"), fragile: rapid.Bool().Draw(t, "fragile"),
		}
		ladder := []Rung{{w.epochs, w.settings}}
		var given []Rung
		if rapid.Bool().Draw(t, "halving") {
			var err error
			ladder, err = Halving{Eta: rapid.IntRange(2, 4).Draw(t, "eta")}.Ladder(w.settings, w.epochs, 1)
			require.NoError(t, err)
			given = ladder
		}
		still := fresh(w)
		want, out, err := still.do(t, given)
		require.NoError(t, err)
		chosen, rungs := w.reference(ladder)
		for i, x := range out.Tried {
			require.Equal(t, rungs[i], x.Rung, want)
		}
		if chosen == 0 {
			require.Nil(t, out.Chosen)
			require.Empty(t, still.tested)
			return
		}
		require.Equal(t, chosen, out.Chosen.Number, want)
		require.Equal(t, w.seeds-out.Chosen.Failures(), len(still.tested), "the test part is measured for the chosen setting alone")
		for name := range still.tested {
			require.Contains(t, name, fmt.Sprintf("-%0*d-", len(fmt.Sprint(w.settings)), chosen))
		}

		killed := fresh(w)
		for {
			killed.left = rapid.IntRange(1, 40).Draw(t, "left")
			got, _, err := killed.do(t, given)
			if err == nil {
				require.Equal(t, want, got)
				break
			}
			require.ErrorIs(t, err, errKilled)
		}
		require.Equal(t, still.work, killed.work)
		require.Equal(t, still.tested, killed.tested)
	})
}

// TestDoWithoutValidation: where nothing is validated, nothing can be chosen.
func TestDoWithoutValidation(t *testing.T) {
	s := &Sweep{Settings: []Setting{{Number: 1}}, Seeds: 1, Train: func(context.Context, Trial) (Ran, error) {
		return Ran{Run: "r", Result: &run.Result{Epochs: []run.Epoch{{Epoch: 1}}}}, nil
	}}
	_, err := s.Do(t.Context())
	require.ErrorContains(t, err, "run r: nothing was validated, and validation chooses the setting")
}

// TestAlike: settings whose runs have the same weights are named.
func TestAlike(t *testing.T) {
	v := 0.5
	of := func(params string) *Tried { return &Tried{Runs: []Ran{{Params: params, Valid: &v}}} }
	out := &Outcome{Tried: []*Tried{of("a"), of("b"), of("a"), of(""), of("")}}
	require.Equal(t, [][2]*Tried{{out.Tried[0], out.Tried[2]}}, out.Alike())
}

// TestDir: a directory has one sweep, of one grid, and one process works in it.
func TestDir(t *testing.T) {
	path := t.TempDir() + "/s"
	g, err := gridOf("lr: [0.1, 0.2]\nhidden: [4, 8]\nmemory: 1GiB\nepochs: 3")
	require.NoError(t, err)
	r := &Record{Dataset: "/a", Seal: "x", Grid: g.Lines()}
	d, err := Open(path, r, false)
	require.NoError(t, err)
	for _, again := range []bool{false, true} {
		_, err = Open(path, r, again)
		require.ErrorContains(t, err, "a sweep is at work in it")
	}
	require.NoError(t, d.Close())
	_, err = Open(path, r, false)
	require.ErrorContains(t, err, "go on with it by {resume}")
	for text, want := range map[string]string{
		"lr: [0.1, 0.2]\nhidden: [4, 8]\nmemory: 2GiB\nepochs: 3\nworkers: 1": "", // memory and workers change no result
		"lr: [0.1, 0.2]\nhidden: [4, 8]\nepochs: 4":                           "epochs is 4 here, and 3 there",
		"lr: [0.1, 0.3]\nhidden: [4, 8]\nepochs: 3":                           "lr is one of 0.1, 0.3 here, and one of 0.1, 0.2 there",
		"lr: 0.1\nhidden: [4, 8]\nepochs: 3":                                  "lr is 0.1 here, and one of 0.1, 0.2 there",
		"lr: [0.1, 0.2]\nhidden: [4, 8]\nepochs: 3\nseeds: 2":                 "seeds is 2 here, and 1 there",
		"lr: [0.1, 0.2]\nhidden: [4, 8]\nepochs: 3\nhalving: true":            "halving is eta 3 here, and not given there",
		"hidden: [4, 8]\nlr: [0.1, 0.2]\nepochs: 3":                           "the order of what varies is hidden, lr here, and lr, hidden there",
	} {
		g, err := gridOf(text)
		require.NoError(t, err)
		other := &Record{Dataset: "/b", Seal: "x", Grid: g.Lines()}
		d, err := Open(path, other, true)
		if want == "" {
			require.NoError(t, err)
			require.NoError(t, d.Close())
			continue
		}
		require.ErrorContains(t, err, want)
	}
	_, err = Open(path, &Record{Dataset: "/b", Seal: "y", Grid: g.Lines()}, true)
	require.ErrorContains(t, err, "dataset is /b with seal y here, and /a with seal x there")
	require.Equal(t, "", Find(path, r))

	other := t.TempDir()
	prefix := other + "/g"
	for _, n := range []string{"g-1", "g-10", "g-x"} {
		d, err := Open(other+"/"+n, r, false)
		require.NoError(t, err)
		require.NoError(t, d.Close())
	}
	require.Equal(t, prefix+"-10", Find(prefix, r))
	require.NoError(t, os.Remove(prefix+"-x/"+lockFile))
	require.NoError(t, os.Symlink(prefix, prefix+"-x/"+lockFile))
	_, err = Open(prefix+"-x", r, true)
	require.ErrorContains(t, err, "it is a symbolic link")
	_, err = Open(other, r, true)
	require.ErrorContains(t, err, "and no sweep; choose another by {run}")
	for _, text := range []string{"", "{", "{}", `{"seal": 3}`} {
		require.NoError(t, writeFile(prefix+"-1/"+RecordFile, text))
		_, err = Open(prefix+"-1", r, true)
		require.ErrorContains(t, err, "sweep.json is damaged")
	}
}

func writeFile(path, text string) error { return os.WriteFile(path, []byte(text), 0o666) }
