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
	if names, err := os.ReadDir(path); err == nil && len(names) > 0 {
		return nil, fmt.Errorf("run directory %s: %w and holds files; choose another with --run", path, fs.ErrExist)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	d := &RunDir{fs: vfs.Default, path: path}
	if err := d.fs.MkdirAll(path, 0o777); err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	var err error
	if d.lock, err = d.fs.Lock(d.file(runLock)); err != nil {
		return nil, fmt.Errorf("run directory %s: in use, or not writable: %w", path, err)
	}
	if d.metrics, err = d.fs.Create(d.file(metricsFile), vfs.WriteCategoryUnspecified); err != nil {
		return nil, errors.Join(fmt.Errorf("run directory: %w", err), d.Close())
	}
	return d, nil
}

// FreshRun makes the first directory NAME-N of parent that does not exist.
func FreshRun(parent, name string) (*RunDir, error) {
	for n := 1; ; n++ {
		path := filepath.Join(parent, fmt.Sprintf("%s-%d", name, n))
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		if d, err := CreateRun(path); !errors.Is(err, fs.ErrExist) {
			return d, err
		}
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
	tmp := d.file(name) + ".tmp"
	f, err := d.fs.Create(tmp, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write(append(b, '\n'))
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err == nil {
		err = d.fs.Rename(tmp, d.file(name))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", d.file(name), err)
	}
	return nil
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
		return r, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fail(err)
	}
	return readMetrics(path)
}

// readMetrics rebuilds the result so far from the lines of metrics.jsonl; a last line without its end is one being written.
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
	for _, e := range epochs {
		r.Losses = append(r.Losses, e.Loss)
	}
	return r, nil
}
