package main

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLossesIn(t *testing.T) {
	f := func(text string, want ...float64) {
		t.Helper()
		got, err := lossesIn(strings.NewReader(text))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	first := `{"step":{"epoch":1,"step":1,"updates":1,"loss":5.25},"so_far":{"losses":null}}` + "\n"
	second := `{"step":{"epoch":1,"step":2,"updates":2,"loss":4.5},"so_far":{}}` + "\n"
	epoch := `{"epoch":{"epoch":1,"loss":4.8},"so_far":{}}` + "\n"
	f("")
	f(first+second+epoch, 5.25, 4.5)
	f(first+second+strings.Replace(second, "4.5", "3", 1), 5.25, 3) // made again after a resumption
	f(first+second+first, 5.25)

	for text, want := range map[string]string{
		second:                     "update 2 follows update 0",
		first[:20]:                 "unexpected end of JSON input",
		first + second[:40] + "\n": "unexpected end of JSON input",
	} {
		_, err := lossesIn(strings.NewReader(text))
		require.EqualError(t, err, want)
	}
	got, err := lossesIn(strings.NewReader(strings.Replace(first, "5.25", "null", 1)))
	require.NoError(t, err)
	require.True(t, math.IsNaN(got[0]))
}

func TestCompareLosses(t *testing.T) {
	f := func(want, got []float64, most float64, message string) {
		t.Helper()
		m, err := compareLosses(want, got)
		require.InDelta(t, most, m, 1e-12)
		if message == "" {
			require.NoError(t, err)
			return
		}
		require.EqualError(t, err, message)
	}
	f([]float64{2, 4}, []float64{2, 4}, 0, "")
	f([]float64{2, 4}, []float64{2, 4.0002}, 0.0002/4, "")
	f([]float64{2, 4, 1}, []float64{2, 4.001, 1.001}, 0.001, "step 2 is the first to differ: losses 4 and 4.001")
	f([]float64{2, 4}, []float64{2}, 0, "2 and 1 losses")
	f(nil, nil, 0, "0 and 0 losses")
	for _, v := range []float64{math.NaN(), math.Inf(1)} {
		_, err := compareLosses([]float64{2}, []float64{v})
		require.ErrorContains(t, err, "step 1 is the first to differ")
		_, err = compareLosses([]float64{v}, []float64{2})
		require.ErrorContains(t, err, "step 1 is the first to differ")
	}
}

func TestFiguresIn(t *testing.T) {
	got, err := figuresIn("=== RUN   TestGPUSpeed\nfigure copy 2987 GB/s\nfigure kernels 159 \n" +
		"not a figure at all\nfigure jit 0.44 s\n")
	require.NoError(t, err)
	require.Equal(t, map[string]number{"copy": {2987, "GB/s"}, "kernels": {159, ""}, "jit": {0.44, "s"}}, got)
	_, err = figuresIn("figure copy fast GB/s\n")
	require.ErrorContains(t, err, "figure copy: ")
}

func TestNumber(t *testing.T) {
	f := func(value float64, unit, want string) {
		t.Helper()
		require.Equal(t, want, number{value, unit}.String())
	}
	f(2987.4, "GB/s", "2987 GB/s")
	f(44.53, "TFLOP/s", "44.5 TFLOP/s")
	f(0.4412, "s", "0.441 s")
	f(3, "", "3.00")
	f(0, "s", "0.0000 s")
}

func TestVerdicts(t *testing.T) {
	passes, skips, fails := verdicts(`=== RUN   TestGPUConform
--- FAIL: TestGPUConform (1.00s)
    --- FAIL: TestGPUConform/odd (1.00s)
        --- PASS: TestGPUConform/odd/Memory (0.00s)
        --- FAIL: TestGPUConform/odd/MatMul (0.00s)
    --- PASS: TestGPUConform/aligned (1.00s)
        --- PASS: TestGPUConform/aligned/Memory (0.00s)
--- SKIP: TestGPUOrder (0.00s)
FAIL
`)
	require.Equal(t, 2, passes)
	require.Equal(t, 1, skips)
	require.Equal(t, []string{"TestGPUConform/odd/MatMul"}, fails)
	require.Equal(t, "^TestGPUConform$/^odd$/^MatMul$", exactly(fails[0]))
}

func TestFirstReason(t *testing.T) {
	f := func(output, want string) {
		t.Helper()
		require.Equal(t, want, firstReason(output))
	}
	f("    Error Trace:\ta_test.go:65\n    Error:      \tReceived unexpected error:\n                \tno NVIDIA driver\n    Test:\tTestA\n",
		": no NVIDIA driver")
	f("    Error:      \tNot equal: \n", ": Not equal: ")
	f("--- FAIL: TestA (0.00s)\n", "")
}

func TestSanitizerErrors(t *testing.T) {
	f := func(output string, want int) {
		t.Helper()
		got, err := sanitizerErrors(output)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	f("========= COMPUTE-SANITIZER\nPASS\n========= ERROR SUMMARY: 0 errors\n", 0)
	f("========= ERROR SUMMARY: 1 error\n", 1)
	f("========= RACECHECK SUMMARY: 12 hazards displayed (12 errors, 0 warnings)\n", 12)
	_, err := sanitizerErrors("Device not supported")
	require.EqualError(t, err, "compute-sanitizer printed no summary")
}

func TestLeastStep(t *testing.T) {
	f := func(pattern *regexp.Regexp, what string, least float64, form string) {
		t.Helper()
		got, of := leastStep(pattern, `torch 2.11.0, torch_geometric 2.8.0, with no compiled companion
index, f32, step: 3.740 ms a step (3.530 … 4.030), peak 2.10 GiB
index, f32, upload of f16 rows and step: 6.110 ms a step (6.060 … 6.180), peak 2.10 GiB
index, f32, loss 5.2 then 5.1
index, TF32, step: 3.010 ms a step (2.850 … 3.130), peak 2.10 GiB
index, f32, steps in a row: 3.210 ms a step
index, TF32, steps in a row: 2.110 ms a step
sorted, f32, step: 3.640 ms a step (3.430 … 4.030), peak 2.10 GiB
sorted, f32, steps in a row: 3.190 ms a step
sorted, f32, upload of f16 rows and steps in a row: 3.440 ms a step
matrix, f32: RuntimeError: no
`, what)
		require.Equal(t, least, got)
		require.Equal(t, form, of)
	}
	f(stepPattern, "step", 3.43, "sorted")
	f(stepPattern, "upload of f16 rows and step", 6.06, "index")
	f(stepPattern, "loss", 0, "")
	f(rowPattern, "step", 3.19, "sorted")
	f(rowPattern, "upload of f16 rows and step", 3.44, "sorted")
	f(rowPattern, "loss", 0, "")
}
