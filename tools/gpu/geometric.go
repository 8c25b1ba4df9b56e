package main

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
)

// geometric times steps on one batch, by us and by PyTorch Geometric on the same blocks.
func (t *turn) geometric() error {
	data, err := t.dataset(large)
	if err != nil {
		return err
	}
	args := []string{"-dataset", data, "-out", "blocks"}
	if t.small {
		args = append(args, "-batch", "10", "-steps", "1")
	}
	output, err := t.command(t.program("step"), args...)
	ours, wrong := figuresIn(output)
	if err = errors.Join(err, wrong); err != nil {
		return err
	}
	t.note("ours %v, in a row %v", ours["step"], ours["step_in_a_row"])
	t.note("with the rows' copy %v, in a row %v", ours["upload_and_step"], ours["upload_and_step_in_a_row"])
	python, err := t.python("torch_geometric")
	if err != nil {
		return err
	}
	args = []string{t.program("pyg.py"), "--blocks", "blocks"}
	if t.small {
		args = append(args, "--device", "cpu", "--steps", "2")
	}
	output, err = t.command(python, args...)
	for _, way := range []struct{ name, theirs, ours string }{
		{"PyG", "step", "step"}, {"with the copy", "upload of f16 rows and step", "upload_and_step"},
	} {
		least, form := leastStep(stepPattern, output, way.theirs)
		row, rowForm := leastStep(rowPattern, output, way.theirs)
		if form == "" || rowForm == "" {
			return errors.Join(err, fmt.Errorf("no %q was timed", way.theirs))
		}
		t.note("%s at least %.2f ms (%s), %.2f times ours", way.name, least, form, least/ours[way.ours+"_least"].value)
		ratio := row / ours[way.ours+"_in_a_row"].value
		t.target(ratio >= 2, "want 2", "in a row %.2f ms (%s), %.2f times ours", row, rowForm, ratio)
	}
	return err
}

// python returns the path of a Python that has PyTorch and the modules. Where there is none, the
// error is a skipError.
func (t *turn) python(modules string) (string, error) {
	python := findTool("python3")
	if found, _ := filepath.Glob("/opt/*/.venv/bin/python3"); len(found) > 0 { // the pattern is well-formed
		python = found[0]
	}
	if python == "" {
		return "", skipError("python3 is not installed")
	}
	if _, err := t.command(python, "-c", "import torch, "+modules); err != nil {
		if t.ctx.Err() != nil {
			return "", err
		}
		return "", skipError("Python has no " + modules + ", or no torch")
	}
	return python, nil
}

// loader times steps end to end, sampling included, by us and by PyTorch Geometric with its native
// sampler. All rows lie on the GPU.
func (t *turn) loader() error {
	data, err := t.dataset(large)
	if err != nil {
		return err
	}
	const epochs = 2 // the first is longer: it touches memory for the first time
	steps, workers := t.pick(400, 10), strconv.Itoa(t.workers())
	r, err := t.trainSAGE(data, "loader", "cuda", epochs, steps, "--workers", workers)
	if err != nil {
		return err
	}
	if len(r.Epochs) != epochs {
		return fmt.Errorf("%d epochs", len(r.Epochs))
	}
	ours := 1e3 * r.Epochs[epochs-1].Seconds / float64(steps)
	t.note("ours %.2f ms a step, %s limits", ours, r.Limiting)
	python, err := t.python("torch_geometric, pyg_lib")
	if err != nil {
		return err
	}
	args := []string{
		t.program("pyg_loader.py"), "--data", data, "--batch", strconv.Itoa(t.batch()), "--hidden", strconv.Itoa(t.hidden()),
		"--steps", strconv.Itoa(steps), "--features", "device", "--workers", workers + "," + workers + "t",
	}
	if t.small {
		args = append(args, "--device", "cpu", "--workers", "2", "--edges", "index")
	}
	output, err := t.command(python, args...)
	least, how := math.Inf(1), ""
	for _, m := range loaderPattern.FindAllStringSubmatch(output, -1) {
		if took, err := strconv.ParseFloat(m[2], 64); err == nil && took < least {
			least, how = took, m[1]
		}
	}
	if how == "" {
		return errors.Join(err, errors.New("nothing was timed"))
	}
	ratio := least / ours
	t.target(ratio >= 3, "want 3", "PyG at least %.2f ms (%s), %.2f times ours", least, how, ratio)
	return err
}

// Lines of pyg_loader.py, and of pyg.py: steps alone, and in a row.
var (
	loaderPattern = regexp.MustCompile(`(?m)^features device, (.+), f32: (\S+) ms a step`)

	stepPattern = regexp.MustCompile(`(?m)^(\S+), f32, ([^:]+): \S+ ms a step \((\S+) …`)
	rowPattern  = regexp.MustCompile(`(?m)^(\S+), f32, ([^:]+)s in a row: (\S+) ms a step$`)
)

// leastStep looks for the lines of pyg.py that time what in float32. It returns the least
// milliseconds, and the form of edges that they are of; "" where there is no such line.
func leastStep(pattern *regexp.Regexp, output, what string) (least float64, form string) {
	for _, m := range pattern.FindAllStringSubmatch(output, -1) {
		took, err := strconv.ParseFloat(m[3], 64)
		if err == nil && m[2] == what && (form == "" || took < least) {
			least, form = took, m[1]
		}
	}
	return least, form
}
