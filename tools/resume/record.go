package resume

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"
)

// Files of a run directory, as its user sees them.
const (
	recordFile    = "run.json"
	metricsFile   = "metrics.jsonl"
	resultFile    = "result.json"
	residentFile  = "cache.resident"
	checkpointDir = "checkpoints"
)

// step is a line of metrics.jsonl.
type step struct {
	Epoch   int     `json:"epoch"`
	Step    int     `json:"step"`
	Updates int     `json:"updates"` // of the run, from 1
	Loss    float64 `json:"loss"`
}

// tailBytes hold some lines of metrics.jsonl, each of 2 to 3 KB.
const tailBytes = 64 << 10

// LastUpdate returns the last update that a metrics.jsonl has a whole line of, or 0.
func LastUpdate(file string) (int, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	text := make([]byte, min(info.Size(), tailBytes))
	n, err := f.ReadAt(text, info.Size()-int64(len(text)))
	if err != nil && err != io.EOF {
		return 0, err
	}
	if text = text[:n]; info.Size() > tailBytes {
		_, text, _ = bytes.Cut(text, []byte{'\n'})
	}
	for _, line := range slices.Backward(bytes.SplitAfter(text, []byte{'\n'})) {
		if steps, err := decodeSteps(line); err != nil || len(steps) > 0 {
			return append(steps, step{})[0].Updates, err
		}
	}
	return 0, nil
}

// decodeSteps reads the lines of steps; a last one without its end is being written.
func decodeSteps(text []byte) (steps []step, err error) {
	for line := range bytes.Lines(text) {
		var m struct {
			Step *step `json:"step"`
		}
		if !bytes.HasSuffix(line, []byte{'\n'}) {
			break
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("%s: %w in %.100q", metricsFile, err, line)
		}
		if m.Step != nil {
			steps = append(steps, *m.Step)
		}
	}
	return steps, nil
}

// left has the contents of a run directory after a kill, or after the end.
type left struct {
	begun       bool  // there is a record
	resumed     []int // the step of each resumption on record
	lines       bool  // there is a whole line in metrics.jsonl
	last        int   // update on record
	finished    bool  // there is a result
	checkpoints []int // their steps, ascending
	half        []string
}

func look(dir string) (*left, error) {
	l := &left{}
	text, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err == nil {
		var record struct {
			Resumed []struct {
				Updates int `json:"updates"`
			} `json:"resumed"`
		}
		if err := json.Unmarshal(text, &record); err != nil {
			return nil, fmt.Errorf("%s: %w", recordFile, err)
		}
		l.begun = true
		for _, r := range record.Resumed {
			l.resumed = append(l.resumed, r.Updates)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if text, err = os.ReadFile(filepath.Join(dir, metricsFile)); err == nil {
		l.lines = bytes.Contains(text, []byte{'\n'})
		l.last, err = LastUpdate(filepath.Join(dir, metricsFile))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var n int
		switch {
		case strings.HasSuffix(name, ".tmp"):
			l.half = append(l.half, name)
		case name == resultFile:
			l.finished = true
		case strings.HasPrefix(name, checkpointDir+"/") && strings.HasSuffix(name, ".history"): // of the checkpoint beside it
		case strings.HasPrefix(name, checkpointDir+"/"):
			if _, err := fmt.Sscanf(name, checkpointDir+"/%d.safetensors", &n); err != nil {
				return fmt.Errorf("%s is no checkpoint", name)
			}
			l.checkpoints = append(l.checkpoints, n)
		}
		return nil
	})
	slices.Sort(l.checkpoints)
	return l, err
}

// from is the step that a run goes on after.
func (l *left) from() int {
	if len(l.checkpoints) == 0 {
		return 0
	}
	return slices.Max(l.checkpoints)
}

// inCheckpoint tells that a checkpoint was being written.
func (l *left) inCheckpoint() bool {
	return slices.ContainsFunc(l.half, func(name string) bool { return strings.HasPrefix(name, checkpointDir+"/") })
}

func (l *left) String() string {
	s := "nothing on record"
	switch {
	case l.lines:
		s = fmt.Sprintf("%d steps on record", l.last)
	case l.begun:
		s = "no step on record"
	}
	if len(l.checkpoints) > 0 {
		s += fmt.Sprintf(", checkpoints %d", l.checkpoints)
	}
	if len(l.half) > 0 {
		s += ", half of " + strings.Join(l.half, " and ")
	}
	return s
}

// An outcome has everything that no kill may change: the output of train --json, except times and
// cache contents, and the files that the run leaves.
type outcome struct {
	Status     string    `json:"status"`
	ParamsXXH3 string    `json:"params_xxh3"`
	Losses     []float64 `json:"losses"`
	Best       struct {
		Epoch    int      `json:"epoch"`
		ValidAcc *float64 `json:"valid_acc"`
		TestAcc  *float64 `json:"test_acc"`
	} `json:"best"`
	InputRows int64 `json:"input_rows"`
	Epochs    []struct {
		Epoch     int      `json:"epoch"`
		Loss      float64  `json:"loss"`
		TrainAcc  float64  `json:"train_acc"`
		ValidAcc  *float64 `json:"valid_acc"`
		TestAcc   *float64 `json:"test_acc"`
		Steps     int      `json:"steps"`
		InputRows int64    `json:"input_rows"`
	} `json:"epochs"`
	Files map[string]string `json:"-"` // all but checkpoints; files of weights with their hash
	Steps []step            `json:"-"` // on record
}

// readOutcome takes what train --json printed about the run in dir, and looks at what is there.
func readOutcome(printed []byte, dir string) (*outcome, error) {
	o := &outcome{Files: map[string]string{}}
	if err := json.Unmarshal(printed, o); err != nil {
		return nil, fmt.Errorf("train --json: %w in %.200q", err, printed)
	}
	if o.ParamsXXH3 == "" || len(o.Epochs) == 0 {
		return nil, fmt.Errorf("train --json: no epochs or no hash of the weights in %.200q", printed)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Name() == residentFile { // is there where the host cache outlasts a window, which what may change decides
			continue
		}
		o.Files[e.Name()] = ""
		if strings.HasSuffix(e.Name(), ".safetensors") {
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			o.Files[e.Name()] = fmt.Sprintf("%016x", xxh3.Hash(text))
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, metricsFile))
	if err == nil {
		o.Steps, err = decodeSteps(text)
	}
	return o, err
}

// total is the length of the run in steps.
func (o *outcome) total() int {
	n := 0
	for _, e := range o.Epochs {
		n += e.Steps
	}
	return n
}

// differs names the first thing in which o is not want. Numbers print so that they read back
// exactly, so that what prints alike is alike.
func (o *outcome) differs(want *outcome) error {
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"status", o.Status, want.Status},
		{"losses", o.Losses, want.Losses},
		{"best", o.Best, want.Best},
		{"params_xxh3", o.ParamsXXH3, want.ParamsXXH3},
		{"input_rows", o.InputRows, want.InputRows},
		{"files", o.Files, want.Files},
		{"number of epochs", len(o.Epochs), len(want.Epochs)},
		{"number of steps in " + metricsFile, len(o.Steps), len(want.Steps)},
	} {
		if err := differ(c.name, c.got, c.want); err != nil {
			return err
		}
	}
	for i := range want.Epochs {
		if err := differ(fmt.Sprintf("epoch %d", i+1), o.Epochs[i], want.Epochs[i]); err != nil {
			return err
		}
	}
	for i := range want.Steps {
		if err := differ(fmt.Sprintf("step no. %d in %s", i+1, metricsFile), o.Steps[i], want.Steps[i]); err != nil {
			return err
		}
	}
	return nil
}

func differ(name string, got, want any) error {
	a, err := json.Marshal(got)
	if err != nil {
		return err
	}
	b, err := json.Marshal(want)
	if err != nil {
		return err
	}
	if !bytes.Equal(a, b) {
		return fmt.Errorf("%s: %s, want %s", name, a, b)
	}
	return nil
}
