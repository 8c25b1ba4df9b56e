package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gnnstore/gnnstore/tools/cli"
)

// A trial is a training and, once it is done, what it reached; accuracies are fractions.
type trial struct {
	Task    string  `json:"task"`
	Variant string  `json:"variant"` // its name
	Seed    int     `json:"seed"`
	Ingest  string  `json:"ingest,omitempty"` // flags of ingest that the variant adds
	Args    string  `json:"args"`             // of train, less dataset and run directory
	Binary  string  `json:"binary"`           // that trained: see fingerprint
	Epoch   int     `json:"epoch"`
	Valid   float64 `json:"valid_acc"`
	Test    float64 `json:"test_acc"`
	Seconds float64 `json:"seconds"`
	Rows    int64   `json:"rows"`  // feature rows that training asked for
	Reuse   float64 `json:"reuse"` // share of hidden rows that steps met and used again
}

// trialOf is the trial of a task that is still to be done.
func trialOf(t task, v variant, seed int) trial {
	args := slices.Concat(trainFlags(t), v.flags, []string{"--seed", strconv.Itoa(seed)})
	return trial{Task: t.name, Variant: v.name, Seed: seed, Ingest: strings.Join(v.ingest, " "), Args: strings.Join(args, " ")}
}

// same reports whether both are the same training, done or not.
func (t trial) same(as trial) bool {
	return t.Task == as.Task && t.Ingest == as.Ingest && t.Args == as.Args
}

func (t trial) test() float64    { return t.Test }
func (t trial) valid() float64   { return t.Valid }
func (t trial) seconds() float64 { return t.Seconds }
func (t trial) rows() float64    { return float64(t.Rows) }
func (t trial) reuse() float64   { return t.Reuse }

// values are one of each trial.
func values(trials []trial, of func(trial) float64) []float64 {
	var all []float64
	for _, t := range trials {
		all = append(all, of(t))
	}
	return all
}

// mean returns the mean of the values of trials.
func mean(trials []trial, of func(trial) float64) float64 {
	mean, _ := meanDeviation(values(trials, of))
	return mean
}

// trainFlags are the flags of a task that no variant and no seed changes.
func trainFlags(t task) []string {
	flags := []string{"--model", t.model, "--epochs", t.epochs}
	if t.model == "" {
		flags = flags[2:]
	}
	return append(flags, t.settings.flags...)
}

// fingerprint tells one gnnstore from another.
func fingerprint(binary cli.Binary) (string, error) {
	f, err := os.Open(string(binary))
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// trialLog holds the trials that are done, in a file as well where it has one: a JSON object a
// line, written when its trial ends. It is safe for concurrent use.
type trialLog struct {
	binary string

	mu struct {
		sync.Mutex
		done []trial
		file *os.File
	}
}

// openTrials goes on with the log in path, or begins it. Without a path nothing is kept.
func openTrials(path, binary string) (*trialLog, error) {
	l := &trialLog{binary: binary}
	if path == "" {
		return l, nil
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	line := 0
	for text := range bytes.Lines(text) {
		line++
		var t trial
		if err := json.Unmarshal(text, &t); err != nil || !bytes.HasSuffix(text, []byte("\n")) {
			return nil, fmt.Errorf("-log %s, line %d: not a whole trial: remove the line, and it is run again", path, line)
		}
		if t.Binary != binary {
			return nil, fmt.Errorf("-log %s, line %d: by gnnstore %s, and this is %s: take the same -bin, or another -log",
				path, line, t.Binary, binary)
		}
		l.mu.done = append(l.mu.done, t)
	}
	l.mu.file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	return l, err
}

// find returns what came of a trial.
func (l *trialLog) find(t trial) (trial, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.mu.done, t.same)
	if i < 0 {
		return trial{}, false
	}
	return l.mu.done[i], true
}

// add keeps what came of a trial.
func (l *trialLog) add(t trial) error {
	t.Binary = l.binary
	line, err := json.Marshal(t)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.done = append(l.mu.done, t)
	if l.mu.file == nil {
		return nil
	}
	_, err = l.mu.file.Write(append(line, '\n'))
	return err
}

// Close closes the file; what was found stays.
func (l *trialLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.file == nil {
		return nil
	}
	return l.mu.file.Close()
}
