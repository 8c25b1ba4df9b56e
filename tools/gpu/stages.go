package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// stages has all stages in the order in which they run: what a visit most needs comes first. The
// limits of the stages that run by default are 480 s together.
var stages = []stage{
	{number: 0, name: "machine", limit: 10 * time.Second, run: (*turn).machine},
	{number: 1, name: "driver", limit: 30 * time.Second, run: (*turn).driver},
	{number: 2, name: "conformance", limit: 50 * time.Second, run: (*turn).conformance},
	{number: 3, name: "sanitizers", limit: 95 * time.Second, run: (*turn).sanitizers},
	{number: 4, name: "repeat", limit: 30 * time.Second, data: []string{papers, mag, events}, run: (*turn).repeat},
	{number: 5, name: "losses", limit: 70 * time.Second, data: []string{papers, mag, events}, run: (*turn).losses},
	{number: 7, name: "training", limit: 70 * time.Second, data: []string{large}, run: (*turn).training},
	{number: 6, name: "speed", limit: 40 * time.Second, run: (*turn).speed},
	{number: 8, name: "pyg", limit: 60 * time.Second, data: []string{large}, run: (*turn).geometric},
	{number: 9, name: "resume", limit: 25 * time.Second, data: []string{papers}, run: (*turn).resume},
	{number: 11, name: "loader", limit: 120 * time.Second, data: []string{large}, run: (*turn).loader, apart: true},
	{number: 10, name: "tiers", limit: 150 * time.Second, data: []string{deep}, run: (*turn).tiers, apart: true},
}

// machine looks at what there is.
func (t *turn) machine() error {
	for _, look := range []string{
		"nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used,clocks.max.sm,pcie.link.gen.current," +
			"pcie.link.width.current,mig.mode.current,compute_mode --format=csv",
		"uname -r", "nproc", "grep MemTotal /proc/meminfo", "lscpu | grep 'Model name'", "df -h .",
		"ldconfig -p | grep -E 'libcuda[.]so|libcublas'", "which compute-sanitizer python3 nvcc",
	} {
		if _, err := t.command("sh", "-c", look); err != nil {
			fmt.Fprintln(t.log, err) // it need not be there
		}
	}
	if _, err := t.command(t.program("gnnstore-cuda"), "version"); err != nil {
		return err
	}
	text, err := t.command(t.program("gnnstore-cuda"), "doctor", "--json")
	if err != nil {
		return err
	}
	var report struct {
		GPU struct {
			Has    string `json:"has"`
			Device *struct {
				Name     string `json:"name"`
				Arch     string `json:"architecture"`
				CUDA     string `json:"cuda"`
				Driver   string `json:"driver"`
				Provider string `json:"provider"`
				Total    int64  `json:"total_bytes"`
				Products string `json:"matrix_products"`
			} `json:"device"`
		} `json:"gpu"`
	}
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		return err
	}
	d := report.GPU.Device
	if d == nil {
		return errors.New(report.GPU.Has)
	}
	t.note("%s (%s, %.0f GiB)", d.Name, d.Arch, float64(d.Total)/(1<<30))
	if d.Driver != "" {
		t.note("driver %s", d.Driver)
	}
	t.note("CUDA %s by %s", d.CUDA, d.Provider)
	t.note("products: %s", d.Products)
	if t.cublas == "" {
		t.note("no cuBLAS found")
	} else {
		t.note("cuBLAS in %s", t.cublas)
	}
	locked, err := t.command("sh", "-c", "ulimit -l")
	if err != nil {
		return err
	}
	t.note("locked memory %s", strings.TrimSpace(locked))
	if libc, err := t.command("sh", "-c", "ldd --version | head -1"); err == nil {
		if words := strings.Fields(libc); len(words) > 0 {
			t.note("glibc %s", words[len(words)-1])
		}
	}
	return nil
}

// test runs tests of package kernels/cuda, and returns their output and figures. An error names the
// tests that failed.
func (t *turn) test(env []string, pattern string) (string, map[string]number, error) {
	output, err := t.commandIn(env, t.program("cuda.test"), "-test.v", "-test.run", pattern)
	passes, skips, fails := verdicts(output)
	switch {
	case len(fails) > 0:
		err = fmt.Errorf("%d failed: %s%s", len(fails), strings.Join(fails, " "), firstReason(output))
	case err == nil && (skips > 0 || passes == 0):
		err = fmt.Errorf("%s: %d passed, %d skipped", pattern, passes, skips)
	}
	figures, wrong := figuresIn(output)
	return output, figures, errors.Join(err, wrong)
}

// driver tests what the backend stands on.
func (t *turn) driver() error {
	var errs []error
	cold, warm := 5.0, 0.3 // seconds of the compiler, without its cache and with it
	for _, of := range []struct {
		name string
		most float64
	}{{"cold", cold}, {"warm", warm}} {
		_, f, err := t.test(nil, "^TestGPUModules$")
		errs = append(errs, err)
		if err != nil {
			break
		}
		if of.name == "cold" {
			t.note("%.0f kernels, none spills, %.0f registers at most", f["kernels"].value, f["registers"].value)
		}
		t.target(f["jit"].value < of.most, fmt.Sprintf("want < %g", of.most), "JIT %s %.2g s", of.name, f["jit"].value)
	}
	_, f, err := t.test(nil, "^TestGPUContexts$")
	if errs = append(errs, err); err == nil {
		t.note("8 threads: %v a launch", f["launch"])
	}
	_, f, err = t.test(nil, "^TestGPUCopies$")
	if errs = append(errs, err); err == nil {
		t.note("registering took %v", f["register"])
		for _, way := range []string{"up", "down"} {
			of := f[way+"_of_own"]
			t.target(of.value >= 90, "want 90", "%s %v, %.0f %% of the driver's own", way, f[way], of.value)
		}
	}
	_, _, err = t.test(nil, "^TestGPUOrder$")
	if errs = append(errs, err); err == nil {
		t.note("events keep order")
	}
	return errors.Join(errs...)
}

// alone is the number of failed tests that conformance runs again, one by one.
const alone = 4

// conformance runs every operation, and those that failed alone, with launches that wait.
func (t *turn) conformance() error {
	output, _, err := t.test(nil, "^TestGPUConform$")
	passes, _, fails := verdicts(output)
	t.note("%d tests pass", passes)
	if err == nil || len(fails) == 0 {
		return err
	}
	errs := []error{err}
	for _, name := range fails[:min(alone, len(fails))] {
		_, _, err := t.test([]string{"CUDA_LAUNCH_BLOCKING=1"}, exactly(name))
		errs = append(errs, fmt.Errorf("%s alone: %w", name, orPass(err)))
	}
	return errors.Join(errs...)
}

// exactly returns the pattern of -test.run for the test with this name.
func exactly(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

func orPass(err error) error {
	if err == nil {
		return errors.New("passes")
	}
	return err
}

// sanitizers runs conformance with memcheck and racecheck.
func (t *turn) sanitizers() error {
	const name = "compute-sanitizer"
	tool := findTool(name, "/usr/local/cuda*/bin", "/usr/local/cuda*/"+name, "/opt/nvidia/*/*")
	if tool == "" {
		return skipError(name + " is not installed")
	}
	var errs []error
	for _, of := range []struct{ check, pattern, options string }{
		// An event that has not come is an error of the query, and the backend looks at every code.
		{"memcheck", "^TestGPUConform$/^odd$", "--report-api-errors no"},
		{"racecheck", "^TestGPUConform$/^aligned$", ""},
	} {
		args := append([]string{"--tool", of.check, "--error-exitcode", "9"}, strings.Fields(of.options)...)
		output, err := t.command(tool, append(args, t.program("cuda.test"), "-test.v", "-test.run", of.pattern)...)
		found, none := sanitizerErrors(output)
		if none == nil {
			t.note("%s: %d errors", of.check, found)
		}
		if err == nil && found > 0 {
			err = fmt.Errorf("%d errors", found)
		}
		if err = errors.Join(err, none); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", of.check, err))
		}
	}
	return errors.Join(errs...)
}

// findTool returns the path of a program in PATH or in folders of patterns, or "".
func findTool(name string, patterns ...string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	if at := placeOf(patterns, name); at != "" {
		return filepath.Join(at, name)
	}
	return ""
}

// speed prints the rates of kernels as shares of a copy's rate.
func (t *turn) speed() error {
	_, f, err := t.test(nil, "^TestGPUSpeed$")
	if err != nil {
		return err
	}
	t.note("copy %v", f["copy"])
	t.note("staged up %v", f["staged"])
	for _, name := range []string{"gather", "mean_f16", "mean_f32", "adam"} {
		t.target(f[name].value >= 70, "want 70", "%s %.0f %%", name, f[name].value)
	}
	for _, n := range []string{"130000", "14000", "1000", "130", "70", "33"} {
		ours, there := f["product_"+n]
		if !there {
			continue
		}
		t.note("product of %s rows %v", n, ours)
		if of, timed := f["product_"+n+"_of_cublas"]; timed {
			t.target(of.value >= 25, "want 25", "%.0f %% of cuBLAS's %v", of.value, f["cublas_"+n])
		}
	}
	if _, timed := f["cublas_1000"]; !timed && !t.small {
		t.note("cuBLAS was not timed")
	}
	return nil
}
