package optim

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/checkpoint"
)

var shapes = [][]int{{3, 2}, {4}, {0, 5}, {31, 33}}

// params makes parameters of the shapes on be, filled by value.
func params(t *testing.T, be kernels.Backend, shapes [][]int, value func(param, i int) float32) []Param {
	var ps []Param
	for n, shape := range shapes {
		rows, cols := 1, shape[len(shape)-1]
		if len(shape) == 2 {
			rows = shape[0]
		}
		tensor := func() kernels.Tensor {
			x := kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*cols), Rows: rows, Cols: cols}
			t.Cleanup(func() { be.Free(x.Buf) })
			return x
		}
		p := Param{Name: fmt.Sprintf("p%d", n), Shape: shape, Value: tensor(), Grad: tensor()}
		upload(be, p.Value, func(i int) float32 { return value(n, i) })
		ps = append(ps, p)
	}
	return ps
}

func upload(be kernels.Backend, x kernels.Tensor, value func(i int) float32) {
	host := make([]float32, x.Len())
	for i := range host {
		host[i] = value(i)
	}
	be.UploadF32(x, host)
}

// normOf takes a step and returns the norm of the gradients before clipping, or 0.
func normOf(opt *Optimizer, rate float64, rows ...Rows) float64 {
	squares := opt.Step(rate, kernels.Tensor{}, rows...)
	if squares.Buf == nil {
		return 0
	}
	return kernels.ClipNorm(download(opt.be, squares))
}

func download(be kernels.Backend, x kernels.Tensor) []float32 {
	host := make([]float32, x.Len())
	be.DownloadF32(host, x)
	return host
}

// reference is the optimizer by the formulas of the papers, in float64.
type reference struct {
	Options
	params, first, second [][]float64
	steps                 int
}

func (w *reference) step(rate float64, grads [][]float64) (norm float64) {
	if w.ClipNorm > 0 {
		for _, g := range grads {
			for _, x := range g {
				norm += x * x
			}
		}
		norm = math.Sqrt(norm)
		if norm > w.ClipNorm {
			for _, g := range grads {
				for i := range g {
					g[i] *= w.ClipNorm / (norm + 1e-6)
				}
			}
		}
	}
	w.steps++
	for n, p := range w.params {
		for i := range p {
			g := grads[n][i]
			if w.Kind == AdamW {
				p[i] *= 1 - rate*w.WeightDecay
			} else {
				g += w.WeightDecay * p[i]
			}
			m, v := &w.first[n][i], &w.second[n][i]
			*m = 0.9**m + 0.1*g
			*v = 0.999**v + 0.001*g*g
			mHat, vHat := *m/(1-math.Pow(0.9, float64(w.steps))), *v/(1-math.Pow(0.999, float64(w.steps)))
			p[i] -= rate * mHat / (math.Sqrt(vHat) + 1e-8)
		}
	}
	return norm
}

func TestAgreesWithTheReferenceLoop(t *testing.T) {
	for _, o := range []Options{
		{}, {Kind: Adam, WeightDecay: 0.05}, {Kind: AdamW, WeightDecay: 0.3}, {Kind: AdamW, WeightDecay: 0.01, ClipNorm: 2}, {ClipNorm: 1e-3},
	} {
		for _, be := range []kernels.Backend{kernels.NewReference(), kernels.NewCPU(kernels.CPUOptions{Threads: 2})} {
			rng := rand.New(rand.NewPCG(3, 4))
			w := &reference{Options: o}
			ps := params(t, be, shapes, func(_, i int) float32 { return float32(i%7) - 3 })
			for _, p := range ps {
				wide := make([]float64, p.Value.Len())
				for i, v := range download(be, p.Value) {
					wide[i] = float64(v)
				}
				w.params, w.first, w.second = append(w.params, wide), append(w.first, make([]float64, len(wide))), append(w.second, make([]float64, len(wide)))
			}
			opt := New(be, ps, o)
			for step := range 100 {
				rate, size := 0.01/(1+float64(step)/20), math.Pow(10, float64(step%4)-2)
				var grads [][]float64
				for _, p := range ps {
					g := make([]float64, p.Grad.Len())
					upload(be, p.Grad, func(i int) float32 {
						x := float32(rng.NormFloat64() * size)
						g[i] = float64(x)
						return x
					})
					grads = append(grads, g)
				}
				require.InEpsilon(t, 1+w.step(rate, grads), 1+normOf(opt, rate), 1e-6)
			}
			require.Equal(t, 100, opt.Steps())
			for n, p := range ps {
				for i, got := range download(be, p.Value) {
					require.InDelta(t, w.params[n][i], got, 2e-5, "%s, %+v, parameter %d, element %d", be.Name(), o, n, i)
				}
				for _, g := range download(be, p.Grad) {
					require.Zero(t, g, "gradients are cleared")
				}
			}
			opt.Close()
		}
	}
}

// recorded is testdata/torch.json: see tools/refnums/optim.py.
type recorded struct {
	Steps     int           `json:"steps"`
	PerEpoch  int           `json:"per_epoch"`
	Start     [][]float32   `json:"start"`
	Gradients [][][]float32 `json:"gradients"`
	Cases     map[string]struct {
		Rates    []float64   `json:"rates"`
		Norms    []float64   `json:"norms"`
		Params   [][]float32 `json:"params"`
		ExpAvg   [][]float32 `json:"exp_avg"`
		ExpAvgSq [][]float32 `json:"exp_avg_sq"`
	} `json:"cases"`
}

func TestAgreesWithPyTorch(t *testing.T) {
	b, err := os.ReadFile("testdata/torch.json")
	require.NoError(t, err)
	var torch recorded
	require.NoError(t, json.Unmarshal(b, &torch))
	cases := map[string]struct {
		Options
		Schedule
	}{
		"adam":                     {Options{WeightDecay: 0.02}, Schedule{}},
		"adamw":                    {Options{Kind: AdamW, WeightDecay: 0.5}, Schedule{Kind: Constant}},
		"adam clipped":             {Options{Kind: Adam, ClipNorm: 0.5}, Schedule{}},
		"adamw cosine":             {Options{Kind: AdamW, WeightDecay: 0.5}, Schedule{Kind: Cosine, MinLR: 0.001}},
		"adam clipped warm cosine": {Options{WeightDecay: 0.02, ClipNorm: 1}, Schedule{Kind: Cosine, Warmup: 6}},
		"adam step":                {Options{WeightDecay: 0.02}, Schedule{Kind: Step, Every: 2, Gamma: 0.5}},
		"adam milestones":          {Options{WeightDecay: 0.02}, Schedule{Kind: Step, Milestones: []int{1, 4}}},
	}
	require.Len(t, torch.Cases, len(cases))
	for name, c := range cases {
		want := torch.Cases[name]
		be := kernels.NewCPU(kernels.CPUOptions{})
		ps := params(t, be, [][]int{{3, 2}, {4}}, func(n, i int) float32 { return torch.Start[n][i] })
		require.NoError(t, c.Schedule.Validate())
		opt := New(be, ps, c.Options)
		for step, grads := range torch.Gradients {
			for n, p := range ps {
				be.UploadF32(p.Grad, grads[n])
			}
			rate := c.Rate(0.01, step, torch.Steps, torch.PerEpoch)
			require.InEpsilon(t, want.Rates[step], rate, 1e-12, "%s: step %d", name, step)
			norm := normOf(opt, rate)
			if len(want.Norms) > 0 {
				require.InEpsilon(t, want.Norms[step], norm, 1e-6, "%s: step %d", name, step)
			}
		}
		state := opt.State()
		for n, p := range ps {
			require.InDeltaSlice(t, want.Params[n], download(be, p.Value), 2e-6, name)
			require.Equal(t, "adam.exp_avg."+p.Name, state[2*n].Name)
			require.InDeltaSlice(t, want.ExpAvg[n], state[2*n].Data, 2e-6, name)
			require.Equal(t, "adam.exp_avg_sq."+p.Name, state[2*n+1].Name)
			for i, v := range want.ExpAvgSq[n] {
				// The kernels' 1-0.999 is 1.3e-5 off; see beta2.
				require.InDelta(t, v, state[2*n+1].Data[i], 2e-5*float64(v)+1e-12, name)
			}
		}
		opt.Close()
	}
}

// TestResumesToTheBit stops half-way, once, and goes on in another optimizer.
func TestResumesToTheBit(t *testing.T) {
	be := kernels.NewCPU(kernels.CPUOptions{Threads: 2})
	o := Options{Kind: AdamW, WeightDecay: 0.1, ClipNorm: 1}
	steps := func(opt *Optimizer, ps []Param, from, to int) {
		for step := from; step < to; step++ {
			rng := rand.New(rand.NewPCG(9, uint64(step)))
			for _, p := range ps {
				upload(be, p.Grad, func(int) float32 { return float32(rng.NormFloat64()) })
			}
			opt.Step(0.01, kernels.Tensor{})
		}
	}
	start := func(n, i int) float32 { return float32(n) + float32(i)/8 }
	whole := params(t, be, shapes, start)
	opt := New(be, whole, o)
	steps(opt, whole, 0, 20)
	want := opt.State()
	opt.Close()

	first := params(t, be, shapes, start)
	opt = New(be, first, o)
	steps(opt, first, 0, 9)
	state, done := opt.State(), opt.Steps()
	opt.Close()
	state = append(state, checkpoint.Tensor{Name: "p0", Shape: []int{1}, Data: []float32{7}}) // a weight, ignored
	opt = New(be, first, o)
	require.NoError(t, opt.Restore(done, state))
	steps(opt, first, 9, 20)
	require.Equal(t, 20, opt.Steps())
	require.Equal(t, want, opt.State())
	for n := range whole {
		require.Equal(t, download(be, whole[n].Value), download(be, first[n].Value))
	}

	for _, c := range []struct {
		change func(s []checkpoint.Tensor)
		want   string
	}{
		{func(s []checkpoint.Tensor) { s[2].Name = "other" }, "optimizer state: no tensor adam.exp_avg.p1; the checkpoint is of another model, or of weights alone"},
		{func(s []checkpoint.Tensor) { s[1].Shape = []int{2, 3} }, "optimizer state: adam.exp_avg_sq.p0 has shape [2 3], and the model [3 2]; the checkpoint is of another model"},
		{func(s []checkpoint.Tensor) { s[1].Data = nil }, "optimizer state: adam.exp_avg_sq.p0 has shape [3 2]"},
	} {
		bad := append([]checkpoint.Tensor{}, state...)
		c.change(bad)
		require.ErrorContains(t, opt.Restore(3, bad), c.want)
	}
	require.ErrorContains(t, opt.Restore(-1, state), "after -1 steps")
	require.Equal(t, 20, opt.Steps())
	require.Equal(t, want, opt.State(), "a refused state changes nothing")
	opt.Close()
}

// TestClipOfNonFinite: PyTorch's rule leaves no doubt that something was wrong.
func TestClipOfNonFinite(t *testing.T) {
	be := kernels.NewCPU(kernels.CPUOptions{})
	ps := params(t, be, [][]int{{2}, {2}}, func(int, int) float32 { return 1 })
	be.UploadF32(ps[0].Grad, []float32{1, float32(math.NaN())})
	opt := New(be, ps, Options{ClipNorm: 1})
	defer opt.Close()
	require.True(t, math.IsNaN(normOf(opt, 0.1)))
	for _, x := range download(be, ps[1].Value) {
		require.True(t, math.IsNaN(float64(x)))
	}
}

func TestOptions(t *testing.T) {
	require.NoError(t, Options{}.Validate())
	require.NoError(t, Options{Kind: AdamW, WeightDecay: 0.01, ClipNorm: 5}.Validate())
	err := Options{Kind: "sgd", WeightDecay: -1, ClipNorm: math.NaN()}.Validate()
	for _, want := range []string{"{optimizer} sgd: there are adam and adamw", "{weight_decay} -1: ", "{clip_norm} NaN: "} {
		require.ErrorContains(t, err, want)
	}
	require.Panics(t, func() { New(kernels.NewReference(), nil, Options{Kind: "sgd"}) })
}
