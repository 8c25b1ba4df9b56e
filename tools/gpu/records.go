package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// result has the fields of a training's result that stages look at.
type result struct {
	Status   string `json:"status"`
	Device   string `json:"device"`
	Params   string `json:"params_xxh3"`
	Inputs   int64  `json:"input_rows"`
	Limiting string `json:"limiting_stage"`
	Stages   struct {
		Sample   float64 `json:"sample"`
		Gather   float64 `json:"gather"`
		Step     float64 `json:"step"`
		Wait     float64 `json:"wait"`
		Run      float64 `json:"run"`
		Samplers float64 `json:"samplers"`
	} `json:"stage_seconds"`
	Bus struct {
		Steps    int64 `json:"steps"`
		Waits    int64 `json:"waits"`
		Uploads  int64 `json:"uploads"`
		Bytes    int64 `json:"upload_bytes"`
		Launches int64 `json:"launches"`
	} `json:"bus"`
	Epochs []struct {
		Steps   int64   `json:"steps"`
		Seconds float64 `json:"seconds"`
	} `json:"epochs"`
	Tiers struct {
		Device tier `json:"device"`
		Host   tier `json:"host"`
		Disk   tier `json:"disk"`
	} `json:"tiers"`
	Memory struct {
		OnDevice int64 `json:"on_device_bytes"`
	} `json:"memory"`
}

// tier has what a tier counted.
type tier struct {
	Hits int64 `json:"rows_hit"`
}

// steps returns the number of steps of a run.
func (r *result) steps() (n int64) {
	for _, e := range r.Epochs {
		n += e.Steps
	}
	return n
}

// readResult reads what train --json prints.
func readResult(text string) (*result, error) {
	r := new(result)
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("the result of a run: %w", err)
	}
	return r, nil
}

// losses returns the loss of each update in the metrics.jsonl of a run directory, from the first
// update on. An update that a resumed run has made again counts as it was made last.
func losses(run string) ([]float64, error) {
	f, err := os.Open(filepath.Join(run, "metrics.jsonl"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := lossesIn(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return all, nil
}

func lossesIn(r io.Reader) (all []float64, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Step *struct {
				Updates int             `json:"updates"`
				Loss    json.RawMessage `json:"loss"`
			} `json:"step"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, err
		}
		if line.Step == nil {
			continue
		}
		loss, err := strconv.ParseFloat(strings.Trim(string(line.Step.Loss), `"`), 64)
		if err != nil {
			loss = math.NaN() // JSON has no number for it
		}
		at := line.Step.Updates
		if at < 1 || at > len(all)+1 {
			return nil, fmt.Errorf("update %d follows update %d", at, len(all))
		}
		all = append(all[:at-1], loss)
	}
	return all, lines.Err()
}

// tolerance is the largest difference between a loss of the CPU and of a GPU, as a share.
const tolerance = 1e-4

// compareLosses returns the largest difference of two runs' losses, as a share. It is an error if
// one is beyond the tolerance, or if the runs differ in length.
func compareLosses(want, got []float64) (most float64, err error) {
	if len(want) == 0 || len(want) != len(got) {
		return 0, fmt.Errorf("%d and %d losses", len(want), len(got))
	}
	for i := range want {
		off := math.Abs(got[i]-want[i]) / math.Abs(want[i])
		if !(off <= tolerance) && err == nil { // a NaN, too
			err = fmt.Errorf("step %d is the first to differ: losses %v and %v", i+1, want[i], got[i])
		}
		most = max(most, off)
	}
	return most, err
}

var figurePattern = regexp.MustCompile(`(?m)^figure (\S+) (\S+) ?(.*)$`)

// number is a figure that a test has printed.
type number struct {
	value float64
	unit  string
}

func (n number) String() string {
	digits := 0
	if n.value < 100 {
		digits = 2 - int(math.Floor(math.Log10(max(n.value, 0.01)))) // three significant ones
	}
	return strings.TrimSpace(strconv.FormatFloat(n.value, 'f', max(digits, 0), 64) + " " + n.unit)
}

// figuresIn returns the figures in a test's output, by name.
func figuresIn(output string) (map[string]number, error) {
	all := map[string]number{}
	for _, m := range figurePattern.FindAllStringSubmatch(output, -1) {
		value, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, fmt.Errorf("figure %s: %w", m[1], err)
		}
		all[m[1]] = number{value, m[3]}
	}
	return all, nil
}

var verdictPattern = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+)`)

// verdicts counts the tests in an output that have no tests inside, and lists those that failed.
func verdicts(output string) (passes, skips int, fails []string) {
	matches := verdictPattern.FindAllStringSubmatch(output, -1)
	inner := map[string]bool{}
	for _, m := range matches {
		if at := strings.LastIndex(m[2], "/"); at >= 0 {
			inner[m[2][:at]] = true
		}
	}
	for _, m := range matches {
		switch {
		case inner[m[2]]:
		case m[1] == "PASS":
			passes++
		case m[1] == "SKIP":
			skips++
		default:
			fails = append(fails, m[2])
		}
	}
	return passes, skips, fails
}

var reasonPattern = regexp.MustCompile(`(?m)^\s+Error:\s+(?:Received unexpected error:\s+)?(\S.*)$`)

// firstReason returns ": " and the first reason that the package require has printed, or "".
func firstReason(output string) string {
	if m := reasonPattern.FindStringSubmatch(output); m != nil {
		return ": " + m[1]
	}
	return ""
}

// sanitizerErrors returns the errors that compute-sanitizer counts in its last line.
func sanitizerErrors(output string) (int, error) {
	m := regexp.MustCompile(`(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:error|hazard)`).FindAllStringSubmatch(output, -1)
	if m == nil {
		return 0, errors.New("compute-sanitizer printed no summary")
	}
	return strconv.Atoi(m[len(m)-1][1])
}
