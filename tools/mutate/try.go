package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// verdict is the fate of a mutant.
type verdict string

const (
	killed   verdict = "killed"
	survived verdict = "SURVIVED"
	stale    verdict = "STALE"
	broken   verdict = "DOES NOT COMPILE"
)

// result is a verdict and what led to it; err is trouble that says nothing about the mutant.
type result struct {
	verdict verdict
	detail  string
	err     error
}

// try runs the tests of m against the module at root with its edit: those listed, and where they
// all pass, all of the package.
func try(ctx context.Context, root string, m mutant, o options) (r result) {
	file, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(m.file)))
	if err != nil {
		return result{err: err}
	}
	source, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return result{verdict: stale, detail: "no such file"}
	}
	if err != nil {
		return result{err: err}
	}
	changed, err := m.apply(source)
	if errors.Is(err, errStale) {
		return result{verdict: stale, detail: err.Error()}
	}
	if err != nil {
		return result{err: err}
	}
	dir, err := os.MkdirTemp("", "gnnstore-mutate-")
	if err != nil {
		return result{err: err}
	}
	defer os.RemoveAll(dir)
	overlay, err := writeOverlay(dir, file, changed)
	if err != nil {
		return result{err: err}
	}
	ofRapid, err := rapidFlags(filepath.Join(root, filepath.FromSlash(m.pack())))
	if err != nil {
		return result{err: err}
	}
	patterns := []string{o.tests}
	if o.tests == "" {
		if patterns = []string{m.tests}; m.tests != "" {
			patterns = append(patterns, "")
		}
	}
	for _, pattern := range patterns {
		// One failure is enough. What it costs when no test runs is the build alone, so a pattern
		// that matches nothing is harmless.
		args := []string{"test", "-overlay", overlay, "-vet=off", "-count=1", "-failfast", "-timeout", o.timeout.String(), "-run", pattern, "./" + m.pack()}
		cmd := exec.CommandContext(ctx, "go", append(args, ofRapid...)...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GNNSTORE_DATA=", "GNNSTORE_LONG=1")
		out, err := cmd.CombinedOutput()
		if r = judge(strings.ReplaceAll(string(out), dir+string(filepath.Separator), ""), err); r.verdict != survived {
			return r
		}
	}
	return r
}

// rapidFlags returns flags of rapid, if the tests in dir use it: the same cases each time, no time
// spent on shrinking a failing case, and no file of it left in the tree.
func rapidFlags(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if bytes.Contains(text, []byte(`"pgregory.net/rapid"`)) {
			return []string{"-rapid.seed=1", "-rapid.shrinktime=0s", "-rapid.nofailfile"}, nil
		}
	}
	return nil, nil
}

// writeOverlay puts changed into dir, and beside it the file that has go read it in place of the
// one called file.
func writeOverlay(dir, file string, changed []byte) (overlay string, err error) {
	mutated := filepath.Join(dir, filepath.Base(file))
	if err := os.WriteFile(mutated, changed, 0o666); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {file: mutated}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o666)
}

var (
	failedTest  = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	runningTest = regexp.MustCompile(`(?m)^\s+running tests:\n\s+(\S+)`)
)

// judge reads what go test printed, and how it ended.
func judge(out string, err error) result {
	var exit *exec.ExitError
	failed := failedTest.FindAllStringSubmatch(out, -1)
	switch {
	case err == nil:
		return result{verdict: survived}
	case !errors.As(err, &exit):
		return result{err: err}
	case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
		return result{verdict: broken, detail: firstError(out)}
	case strings.Contains(out, "panic: test timed out"):
		if m := runningTest.FindStringSubmatch(out); m != nil {
			return result{verdict: killed, detail: m[1] + ", which does not end"}
		}
		return result{verdict: killed, detail: "a test that does not end"}
	case failed != nil: // the innermost comes last
		return result{verdict: killed, detail: failed[len(failed)-1][1]}
	case strings.Contains(out, "FAIL"):
		return result{verdict: killed, detail: "a panic, or what is left over when the tests have passed"}
	}
	return result{err: errors.New(strings.TrimSpace(out))} // go itself has something to say
}

// firstError is the first line of a compiler that names a place.
func firstError(out string) string {
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "#") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
