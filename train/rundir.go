package train

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/gnnstore/gnnstore/train/checkpoint"
)

// Files of a run directory.
const (
	recordFile  = "run.json"      // RunRecord, written at the start
	metricsFile = "metrics.jsonl" // a metricsLine an epoch, as they finish
	resultFile  = "result.json"   // Result, written at the end
	lastFile    = "last.safetensors"
	bestFile    = "best.safetensors"
	runLock     = "lock"
)

// RunRecord is what a run started as.
type RunRecord struct {
	Dataset    string    `json:"dataset"`
	Seal       string    `json:"seal"`
	Options    Options   `json:"options"`
	Kernels    string    `json:"kernels"`
	DiskEngine string    `json:"disk_engine"`
	Evaluation string    `json:"evaluation"`
	Version    string    `json:"version"`
	Host       Host      `json:"host"`
	Started    time.Time `json:"started"`
}

// Host is the machine of a run.
type Host struct {
	Name string `json:"name"`
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
}

func thisHost() Host {
	name, _ := os.Hostname() // empty where it is not known
	return Host{name, runtime.GOOS, runtime.GOARCH, runtime.NumCPU()}
}

// metricsLine is a line of metrics.jsonl: an epoch, and the run so far without its epochs.
type metricsLine struct {
	Epoch Epoch  `json:"epoch"`
	SoFar Result `json:"so_far"`
}

// RunDir is the directory of one run, locked while the run lasts.
type RunDir struct {
	fs      vfs.FS
	path    string
	lock    io.Closer
	metrics vfs.File
}

// CreateRun makes the directory path, which must not exist or be empty.
func CreateRun(path string) (*RunDir, error) {
	fsys := vfs.Default
	if err := fsys.MkdirAll(path, 0o777); err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	refuse := func(why string) error {
		return fmt.Errorf("run directory %s: %s; choose another with --run", path, why)
	}
	names, err := fsys.List(path)
	if err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	if len(names) > 0 {
		return nil, refuse("it exists and holds files")
	}
	lock, err := fsys.Lock(filepath.Join(path, runLock))
	var denied *fs.PathError
	if errors.As(err, &denied) {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	if err != nil {
		return nil, refuse("another run has just taken it")
	}
	d := &RunDir{fs: fsys, path: path, lock: lock}
	if names, err = fsys.List(path); err == nil && len(names) > 1 { // a run came and went since the first look
		err = refuse("it holds files")
	}
	if err == nil {
		d.metrics, err = fsys.Create(d.file(metricsFile), vfs.WriteCategoryUnspecified)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// FreshRun makes the first directory NAME-N of parent that does not exist.
func FreshRun(parent, name string) (*RunDir, error) {
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	for n := 1; ; n++ {
		path := filepath.Join(parent, fmt.Sprintf("%s-%d", name, n))
		err := os.Mkdir(path, 0o777) // one of several who try at once gets it
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("run directory: %w", err)
		}
		return CreateRun(path)
	}
}

// Path is where the run is.
func (d *RunDir) Path() string { return d.path }

func (d *RunDir) file(name string) string { return filepath.Join(d.path, name) }

// Close ends the run's hold on the directory.
func (d *RunDir) Close() error {
	var err error
	if d.metrics != nil {
		err = d.metrics.Close()
	}
	return errors.Join(err, d.lock.Close())
}

// writeJSON replaces a file of the run atomically.
func (d *RunDir) writeJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return checkpoint.WriteFile(d.fs, d.file(name), append(b, '\n'))
}

func (d *RunDir) appendMetrics(line metricsLine) error {
	b, err := json.Marshal(line)
	if err == nil {
		_, err = d.metrics.Write(append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", d.file(metricsFile), err)
	}
	return nil
}

func (d *RunDir) saveCheckpoint(name string, tensors []checkpoint.Tensor, meta map[string]string) error {
	return checkpoint.Save(d.fs, d.file(name), tensors, meta)
}

// ReadRun returns the result of the run in path; of one that has not ended, the result so far.
func ReadRun(path string) (*Result, error) {
	fail := func(err error) error { return fmt.Errorf("run %s: %w", path, err) }
	if fi, err := os.Stat(path); err != nil || !fi.IsDir() {
		return nil, fail(errors.New("no such run directory"))
	}
	b, err := os.ReadFile(filepath.Join(path, resultFile))
	if err == nil {
		r := new(Result)
		if err := json.Unmarshal(b, r); err != nil {
			return nil, fail(fmt.Errorf("%s: %w", resultFile, err))
		}
		r.Run = path // it may have been moved
		return r, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fail(err)
	}
	return readMetrics(path)
}

// readMetrics rebuilds the result so far from the lines of metrics.jsonl; a last line without its end is being written.
func readMetrics(path string) (*Result, error) {
	b, err := os.ReadFile(filepath.Join(path, metricsFile))
	if err != nil {
		return nil, fmt.Errorf("run %s: not a run directory: it has neither %s nor %s", path, resultFile, metricsFile)
	}
	r := &Result{Run: path}
	var epochs []Epoch
	lines := bufio.NewReader(bytes.NewReader(b))
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var m metricsLine
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("run %s: %s line %d: %w", path, metricsFile, n, err)
		}
		epochs = append(epochs, m.Epoch)
		r = &m.SoFar
	}
	if len(epochs) == 0 {
		return nil, fmt.Errorf("run %s: no epoch has finished yet", path)
	}
	r.Run, r.Epochs = path, epochs
	if !held(filepath.Join(path, runLock)) {
		r.Status = Died
	}
	for _, e := range epochs {
		r.Losses = append(r.Losses, e.Loss)
	}
	return r, nil
}

// held tells whether some process holds the lock file.
func held(lock string) bool {
	if _, err := os.Stat(lock); err != nil {
		return false
	}
	l, err := vfs.Default.Lock(lock)
	if err != nil {
		return true // held, or not ours to try
	}
	return l.Close() != nil
}
