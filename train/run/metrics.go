package run

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/train/checkpoint"
)

// Line is a line of metrics.jsonl: an epoch or a step, and the run so far without its epochs.
type Line struct {
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
	hash *xxh3.Hasher // of what was written
}

func (m *metrics) create(fsys vfs.FS, path string) (err error) {
	m.file, err = fsys.Create(path, vfs.WriteCategoryUnspecified)
	m.size, m.hash = 0, xxh3.New()
	return err
}

func (m *metrics) close() error {
	if m.file == nil {
		return nil
	}
	return m.file.Close()
}

// Append writes line to metrics.jsonl. It is on disk once [Dir.syncMetrics] has returned.
func (d *Dir) Append(line Line) error {
	b, err := json.Marshal(line)
	b = append(b, '\n')
	if err == nil {
		_, _ = d.metrics.hash.Write(b) // before the file may change it
		_, err = d.metrics.file.Write(b)
	}
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	d.metrics.size += int64(len(b))
	return nil
}

// syncMetrics puts what was appended on disk, and returns how much that is in all, and its
// checksum.
func (d *Dir) syncMetrics() (size int64, sum string, err error) {
	if err := d.metrics.file.Sync(); err != nil {
		return 0, "", fmt.Errorf("metrics: %w", err)
	}
	return d.metrics.size, fmt.Sprintf("%016x", d.metrics.hash.Sum64()), nil
}

// cutMetrics keeps the first size bytes, whose checksum sum was where it is not empty, returns the
// epochs in them, and appends from there on. The file is replaced, so that a crash leaves all of it
// or what was kept.
func (d *Dir) cutMetrics(size int64, sum string) ([]Epoch, error) {
	const instead = "restore it, or begin another run with {run}"
	path := d.File(MetricsFile)
	text, err := readFile(d.fs, path)
	if err != nil && size > 0 {
		return nil, fmt.Errorf("%w; %s", err, instead)
	}
	if int64(len(text)) < size {
		return nil, fmt.Errorf("%s has %d bytes, and the checkpoint was made at %d; %s", path, len(text), size, instead)
	}
	text = text[:size]
	epochs, _, err := decodeMetrics(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s %w; %s", path, err, instead)
	}
	if sum != "" && sum != fmt.Sprintf("%016x", xxh3.Hash(text)) {
		return nil, fmt.Errorf("%s is damaged: lines 1 to %d are not all what the run wrote; %s", path, bytes.Count(text, []byte{'\n'}), instead)
	}
	tmp := path + ".tmp"
	if err := d.metrics.create(d.fs, tmp); err != nil {
		return nil, err
	}
	_, _ = d.metrics.hash.Write(text) // before the file may change it
	if _, err := d.metrics.file.Write(text); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	d.metrics.size = size
	if err := errors.Join(d.metrics.file.Sync(), d.fs.Rename(tmp, path)); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return epochs, nil
}

// decodeMetrics reads lines; a last one without its end is being written. Of the results so far it
// decodes the last alone, since they are most of a long file.
func decodeMetrics(text io.Reader) (epochs []Epoch, last *Line, err error) {
	damaged := func(n int, err error) error { return fmt.Errorf("line %d is damaged: %w", n, err) }
	lines := bufio.NewReaderSize(text, 1<<16)
	var soFar json.RawMessage
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, nil, err
		}
		if err == io.EOF {
			if last != nil && soFar != nil {
				if err := json.Unmarshal(soFar, &last.SoFar); err != nil {
					return nil, nil, damaged(n-1, err)
				}
			}
			return epochs, last, nil
		}
		var m struct {
			Epoch *Epoch          `json:"epoch"`
			Step  *StepMetric     `json:"step"`
			SoFar json.RawMessage `json:"so_far"`
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, nil, damaged(n, err)
		}
		soFar, last = m.SoFar, &Line{Epoch: m.Epoch, Step: m.Step}
		if m.Epoch != nil {
			epochs = append(epochs, *m.Epoch)
		}
	}
}

// ErrNoStep is wrapped by the error of [Read] for a run that has recorded no step yet.
var ErrNoStep = errors.New("no step of it is on record yet")

// readSoFar rebuilds the result so far of the run in path from its metrics. Before the first
// step it returns ErrNoStep with the result of readBegun.
func readSoFar(fsys vfs.FS, path string) (*Result, error) {
	text, err := checkpoint.Open(fsys, filepath.Join(path, MetricsFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("run %s: %w", path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: not a run directory: it has neither %s nor %s", path, ResultFile, MetricsFile)
	}
	defer text.Close()
	epochs, last, err := decodeMetrics(text)
	if err != nil {
		return nil, fmt.Errorf("run %s: %s %w; remove the line to see the others", path, MetricsFile, err)
	}
	var r *Result
	if last != nil {
		r = &last.SoFar
		r.setEpochs(epochs)
	} else if r, err = readBegun(fsys, path); err != nil {
		return nil, err
	}
	r.Run = path
	if !held(fsys, path) {
		r.Status = Died
	}
	if last == nil {
		return r, fmt.Errorf("run %s: %w", path, ErrNoStep)
	}
	return r, nil
}

// readBegun returns the result of a run before its first step, from run.json.
func readBegun(fsys vfs.FS, path string) (*Result, error) {
	text, err := readFile(fsys, filepath.Join(path, RecordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("run %s: %w", path, ErrNoStep)
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", path, err)
	}
	begun, err := DecodeRecord(text)
	if err != nil {
		return nil, fmt.Errorf("run %s: %s is damaged: %w; restore it, or begin another run with {run}", path, RecordFile, err)
	}
	return &Result{
		Dataset: begun.Dataset, Seal: begun.Seal, Options: begun.Options, Seed: begun.Options.Seed,
		Device: begun.Device, DeviceName: begun.DeviceName, Kernels: begun.Kernels, DiskEngine: begun.DiskEngine,
		Status: Running, Epochs: []Epoch{}, Losses: []float64{},
		Metric: begun.Options.Metric, Best: Best{Metric: begun.Options.Metric},
	}, nil
}
