package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/run"
)

// RecordFile is the name of the file in a sweep's directory that has its Record.
const RecordFile = "sweep.json"

const lockFile = "sweep.lock"

// mostRecord is the largest size of RecordFile, in bytes.
const mostRecord = 1 << 24

// Record has the dataset and the grid of a sweep. Its JSON keys are stable.
type Record struct {
	Dataset string `json:"dataset"` // absolute
	Seal    string `json:"seal"`
	Version string `json:"version"`
	Grid    []Line `json:"grid"`
}

// Line is a part of a grid: an option with its values, or one of the other keys of its file.
type Line struct {
	Name string `json:"name"`
	Text string `json:"text"`
	// Free is set if the value changes no result, so that the sweep may go on with another.
	Free bool `json:"free,omitempty"`
}

// Lines returns the grid as lines. Grids with the same lines have the same settings.
func (g *Grid) Lines() (lines []Line) {
	o := run.DefaultOptions()
	for _, c := range g.Fixed {
		free := slices.ContainsFunc(run.Table, func(d setting.Of[run.Options]) bool {
			return d.Key == c.Key && c.Key != "epochs" && d.Free != nil && d.Free(&o)
		})
		lines = append(lines, Line{c.Flag, c.Text, free})
	}
	slices.SortFunc(lines, func(a, b Line) int { return strings.Compare(a.Name, b.Name) })
	for _, a := range g.Axes {
		lines = append(lines, Line{Name: a.Flag, Text: "one of " + a.String()})
	}
	add := func(name string, value any) { lines = append(lines, Line{Name: name, Text: fmt.Sprint(value)}) }
	add(seedsKey, g.Seeds)
	if g.Trials > 0 {
		add(trialsKey, g.Trials)
	}
	if h := g.Halving; h != nil {
		text := fmt.Sprintf("eta %d", h.eta())
		if h.MinEpochs > 0 {
			text += fmt.Sprintf(", min_epochs %d", h.MinEpochs)
		}
		if h.Rungs > 0 {
			text += fmt.Sprintf(", rungs %d", h.Rungs)
		}
		add(halvingKey, text)
	}
	return lines
}

// differs returns a text on how two records differ, or "" if they do not.
func (r *Record) differs(on *Record) string {
	var all []string
	if r.Seal != on.Seal {
		all = append(all, fmt.Sprintf("dataset is %s with seal %s here, and %s with seal %s there", r.Dataset, r.Seal, on.Dataset, on.Seal))
	}
	texts := func(r *Record) map[string]string {
		m := map[string]string{}
		for _, l := range r.Grid {
			if !l.Free {
				m[l.Name] = l.Text
			}
		}
		return m
	}
	here, there := texts(r), texts(on)
	var names []string
	for _, l := range slices.Concat(r.Grid, on.Grid) {
		if !slices.Contains(names, l.Name) {
			names = append(names, l.Name)
		}
	}
	for _, name := range names {
		text := func(m map[string]string) string {
			if t, ok := m[name]; ok {
				return t
			}
			return "not given"
		}
		if a, b := text(here), text(there); a != b {
			all = append(all, fmt.Sprintf("%s is %s here, and %s there", name, a, b))
		}
	}
	order := func(r *Record) (axes []string) {
		for _, l := range r.Grid {
			if strings.HasPrefix(l.Text, "one of ") {
				axes = append(axes, l.Name)
			}
		}
		return axes
	}
	if a, b := order(r), order(on); all == nil && !slices.Equal(a, b) { // the order decides the numbers of the settings
		all = append(all, fmt.Sprintf("the order of what varies is %s here, and %s there", strings.Join(a, ", "), strings.Join(b, ", ")))
	}
	return strings.Join(all, "; ")
}

// Dir is the directory of a sweep. It is locked until Close.
type Dir struct {
	fs   run.ClosedFS
	lock io.Closer
}

// Open makes the directory at path if needed, locks it, and writes r to it. If the directory has a
// record already, Open fails, unless again is set and both records are the same. Errors name
// options by keys in braces, as errors of package run do.
func Open(path string, r *Record, again bool) (_ *Dir, err error) {
	fsys, err := run.MakeFS(path)
	if err != nil {
		return nil, fmt.Errorf("sweep directory: %w", err)
	}
	d := &Dir{fs: fsys}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	names, err := fsys.List(path)
	if err != nil {
		return nil, fmt.Errorf("sweep directory: %w", err)
	}
	begun := slices.Contains(names, RecordFile)
	for _, name := range names {
		if !begun && name != lockFile && name != RecordFile+".tmp" {
			return nil, fmt.Errorf("sweep directory %s: it holds %.60s, and no sweep; choose another by {run}", path, name)
		}
	}
	lock := filepath.Join(path, lockFile)
	if _, err := fsys.Stat(lock); err != nil && !errors.Is(err, fs.ErrNotExist) { // as a link
		return nil, fmt.Errorf("sweep directory: %w", err)
	}
	d.lock, err = fsys.Lock(lock)
	var denied *fs.PathError
	switch {
	case errors.As(err, &denied):
		return nil, fmt.Errorf("sweep directory: %w", err)
	case err != nil:
		d.lock = nil
		return nil, fmt.Errorf("sweep directory %s: a sweep is at work in it; wait for its end, or choose another by {run}", path)
	}
	switch on, err := readRecord(fsys, filepath.Join(path, RecordFile)); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case !again:
		return nil, fmt.Errorf("sweep directory %s: it holds a sweep; go on with it by {resume}, or choose another directory by {run}", path)
	default:
		if differs := r.differs(on); differs != "" {
			return nil, fmt.Errorf("sweep directory %s: it holds another sweep: %s; choose another directory by {run}", path, differs)
		}
		return d, nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	return d, checkpoint.WriteFile(fsys, filepath.Join(path, RecordFile), append(text, '\n'))
}

// Close unlocks the directory.
func (d *Dir) Close() (err error) {
	if d.lock != nil {
		err = d.lock.Close()
	}
	return errors.Join(err, d.fs.Close())
}

func readRecord(fsys run.ClosedFS, path string) (*Record, error) {
	f, err := checkpoint.Open(fsys, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostRecord))
	if err != nil {
		return nil, err
	}
	r := new(Record)
	if err := json.Unmarshal(text, r); err != nil || r.Seal == "" {
		return nil, fmt.Errorf("%s is damaged: %w; restore it, or begin another sweep by {run}", path, errors.Join(err, noSeal(r)))
	}
	return r, nil
}

func noSeal(r *Record) error {
	if r.Seal == "" {
		return errors.New("no dataset seal in it")
	}
	return nil
}

// Find returns the directory PREFIX-N with the highest N whose record is the same as r, or "" if
// there is none.
func Find(prefix string, r *Record) string {
	entries, _ := os.ReadDir(filepath.Dir(prefix)) // a directory that cannot be read has no sweeps
	var numbers []int
	for _, e := range entries {
		text, ok := strings.CutPrefix(e.Name(), filepath.Base(prefix)+"-")
		if n, err := strconv.Atoi(text); ok && err == nil && e.IsDir() {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	for _, n := range slices.Backward(numbers) {
		path := fmt.Sprintf("%s-%d", prefix, n)
		fsys, err := run.MakeFS(path)
		if err != nil {
			continue
		}
		on, err := readRecord(fsys, filepath.Join(path, RecordFile))
		if cerr := fsys.Close(); err == nil && cerr == nil && r.differs(on) == "" {
			return path
		}
	}
	return ""
}
