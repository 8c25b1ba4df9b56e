package train

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// metricsLine is a line of metrics.jsonl: an epoch or a step, and the run so far without its epochs.
type metricsLine struct {
	Epoch *Epoch      `json:"epoch,omitempty"`
	Step  *StepMetric `json:"step,omitempty"`
	SoFar Result      `json:"so_far"`
}

// StepMetric is one update.
type StepMetric struct {
	Epoch   int     `json:"epoch"`
	Step    int     `json:"step"`    // of the epoch, from 1
	Updates int     `json:"updates"` // of the run
	Loss    float64 `json:"loss"`    // as Epoch.Loss, of the step
	Seconds float64 `json:"seconds"` // of training in the epoch so far
}

// metrics is metrics.jsonl, open for appending.
type metrics struct {
	file vfs.File
	size int64
}

func (m *metrics) create(fsys vfs.FS, path string) (err error) {
	m.file, err = fsys.Create(path, vfs.WriteCategoryUnspecified)
	m.size = 0
	return err
}

func (m *metrics) close() error {
	if m.file == nil {
		return nil
	}
	return m.file.Close()
}

func (d *RunDir) appendMetrics(line metricsLine) error {
	b, err := json.Marshal(line)
	if err == nil {
		_, err = d.metrics.file.Write(append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	d.metrics.size += int64(len(b) + 1)
	return nil
}

// syncMetrics puts what was appended on disk, and returns how much that is in all.
func (d *RunDir) syncMetrics() (size int64, err error) {
	if err := d.metrics.file.Sync(); err != nil {
		return 0, fmt.Errorf("metrics: %w", err)
	}
	return d.metrics.size, nil
}

// cutMetrics keeps the first size bytes, returns the epochs in them, and appends from there on. The file is replaced, so
// that a crash leaves all of it or what was kept.
func (d *RunDir) cutMetrics(size int64) ([]Epoch, error) {
	path := d.file(metricsFile)
	text, err := readFile(d.fs, path)
	if err != nil && size > 0 {
		return nil, err
	}
	if int64(len(text)) < size {
		return nil, fmt.Errorf("%s has %d bytes, and the checkpoint was made at %d; restore it, or begin another run with --run",
			path, len(text), size)
	}
	text = text[:size]
	epochs, _, err := decodeMetrics(path, text)
	if err != nil {
		return nil, err
	}
	tmp := path + ".tmp"
	if err := d.metrics.create(d.fs, tmp); err != nil {
		return nil, err
	}
	if _, err := d.metrics.file.Write(text); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	d.metrics.size = size
	if err := errors.Join(d.metrics.file.Sync(), d.fs.Rename(tmp, path)); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return epochs, nil
}

// decodeMetrics reads lines; a last one without its end is being written.
func decodeMetrics(path string, text []byte) (epochs []Epoch, last *metricsLine, err error) {
	for n := 1; ; n++ {
		line, rest, whole := bytes.Cut(text, []byte{'\n'})
		if !whole {
			return epochs, last, nil
		}
		text = rest
		m := new(metricsLine)
		if err := json.Unmarshal(line, m); err != nil {
			return nil, nil, fmt.Errorf("%s line %d: %w", path, n, err)
		}
		if last = m; m.Epoch != nil {
			epochs = append(epochs, *m.Epoch)
		}
	}
}

// readSoFar rebuilds the result so far of the run in path from its metrics.
func readSoFar(path string) (*Result, error) {
	text, err := os.ReadFile(filepath.Join(path, metricsFile))
	if err != nil {
		return nil, fmt.Errorf("run %s: not a run directory: it has neither %s nor %s", path, resultFile, metricsFile)
	}
	epochs, last, err := decodeMetrics(metricsFile, text)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", path, err)
	}
	if last == nil {
		return nil, fmt.Errorf("run %s: no step of it is on record yet", path)
	}
	r := &last.SoFar
	r.Run, r.Epochs, r.Losses = path, epochs, []float64{}
	if !held(filepath.Join(path, runLock)) {
		r.Status = Died
	}
	for _, e := range epochs {
		r.Losses = append(r.Losses, e.Loss)
	}
	return r, nil
}
