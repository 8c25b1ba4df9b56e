package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/run"
)

// mostOptions bounds the file of --file, in bytes.
const mostOptions = 1 << 20

// datasetKey names the dataset in the file of --file.
const datasetKey = "dataset"

// ownInFile are the flags of train outside run.Table that a file may set. The other
// flags concern one command, not the run.
var ownInFile = []string{"run", "seeds", "listen", "listen-optional"}

// optionsFile is the file of --file: YAML, or the run.json of an earlier run.
type optionsFile struct {
	path    string
	dataset string         // empty: the file names none
	seal    string         // of the dataset of run.json
	lines   map[string]int // line of each flag that the file set; 0 for run.json
}

// readFile sets the options that o.file gives and the command line does not.
func (o *trainOptions) readFile(f *pflag.FlagSet) (*optionsFile, error) {
	text, err := readOptionsText(o.file)
	if err != nil {
		return nil, err
	}
	lines, err := setting.ReadLines(o.file, text)
	if err != nil {
		return nil, err
	}
	file := &optionsFile{path: o.file, lines: map[string]int{}}
	has := func(name string) bool {
		return slices.ContainsFunc(lines, func(l setting.Line) bool { return l.Name == name })
	}
	switch {
	case has("options") && has("seal") && has("status"):
		return nil, fmt.Errorf("%s: it is the result of a run; name run.json beside it, which has the options", o.file)
	case has("options") && has("seal"):
		err = file.takeRecord(o.given, text)
	default:
		err = file.takeLines(f, o.given, lines)
	}
	return file, err
}

func readOptionsText(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory; name a file of options, as %s of a run", path, filepath.Join(path, run.RecordFile))
	}
	f, size, err := store.OpenSized(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > mostOptions {
		return nil, fmt.Errorf("%s: it has %d bytes, and options take %d at most; is this a file of options?", path, size, mostOptions)
	}
	text, err := io.ReadAll(io.LimitReader(f, mostOptions))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}

// takeRecord sets the options of the run that wrote text, its run.json.
func (file *optionsFile) takeRecord(b *setting.Bound[run.Options], text []byte) error {
	r, err := run.DecodeRecord(text)
	if err != nil {
		return fmt.Errorf("%s: it is damaged, or was edited: %w; restore it, and give what you change by flags", file.path, err)
	}
	file.dataset, file.seal = r.Dataset, r.Seal
	typed := typedKeys(b)
	for _, c := range r.Again() {
		if typed[c.Key] {
			continue
		}
		if err := b.Give(c.Flag, c.Text); err != nil {
			return fmt.Errorf("%s: %s: %w", file.path, c.Key, err)
		}
		file.lines[c.Flag] = 0
	}
	return nil
}

// typedKeys returns the keys of the options that the command line gives.
func typedKeys(b *setting.Bound[run.Options]) map[string]bool {
	typed := map[string]bool{}
	for _, d := range run.Table {
		typed[d.Key] = typed[d.Key] || b.Changed(d.Key)
	}
	return typed
}

// takeLines sets the options of a YAML file.
func (file *optionsFile) takeLines(f *pflag.FlagSet, b *setting.Bound[run.Options], lines []setting.Line) error {
	typed, seen := typedKeys(b), map[string]setting.Line{}
	for _, l := range lines {
		at := func(err error) error {
			return fmt.Errorf("%s: line %d: %.60s: %w", file.path, l.Number, l.Name, err)
		}
		flag, key, inTable := b.Find(l.Name)
		if !inTable {
			flag = strings.ReplaceAll(l.Name, "_", "-")
			key = flag
		}
		if first, again := seen[key]; again {
			return at(fmt.Errorf("line %d sets it already, as %s; leave one of them out", first.Number, first.Name))
		}
		seen[key] = l
		var err error
		switch {
		case key == datasetKey:
			file.dataset, err = l.Text()
			if err == nil && file.dataset == "" {
				err = errors.New("it is empty; name a dataset, or leave it out")
			}
		case inTable && typed[key]:
		case inTable:
			file.lines[flag] = l.Number
			err = b.Read(flag, l)
		case slices.Contains(ownInFile, flag) && f.Changed(flag):
		case slices.Contains(ownInFile, flag):
			file.lines[flag] = l.Number
			err = setOwn(f, flag, l)
		case f.Lookup(flag) != nil:
			err = errors.New("it concerns one command, not the run; give it on the command line")
		default:
			known := slices.Concat(b.FlagNames(), ownInFile, []string{datasetKey})
			err = fmt.Errorf("there is no such option; gnnstore train --help-all lists them%s", didYouMean(flag, known, "%s"))
		}
		if err != nil {
			return at(errors.New(oneLine(err)))
		}
	}
	return nil
}

// setOwn sets a flag outside run.Table.
func setOwn(f *pflag.FlagSet, flag string, l setting.Line) error {
	text, err := l.Text()
	if err != nil {
		return err
	}
	if f.Set(flag, text) != nil {
		kind := map[string]string{"int": "a whole number", "bool": "true or false"}[f.Lookup(flag).Value.Type()]
		return fmt.Errorf("%q is not %s", text, kind)
	}
	return nil
}

// place puts the file and its line before each message that begins with a flag that the file set.
// If all messages begin so, the file is wrong, and the command line was not misused.
func (file *optionsFile) place(err error) error {
	var wrong *misuseError
	if file == nil || !errors.As(err, &wrong) {
		return err
	}
	var all []string
	ofFile := true
	for text := range strings.Lines(withFlags(wrong.Error())) {
		text = strings.TrimSpace(text)
		flag, _, _ := strings.Cut(strings.TrimPrefix(text, "--"), " ")
		line, set := file.lines[strings.TrimSuffix(flag, ":")]
		switch {
		case !set || !strings.HasPrefix(text, "--"):
			ofFile = false
		case line == 0:
			text = fmt.Sprintf("%s: %s", file.path, text)
		default:
			text = fmt.Sprintf("%s: line %d: %s", file.path, line, text)
		}
		all = append(all, text)
	}
	err = errors.New(strings.Join(all, "\n"))
	if ofFile {
		return err
	}
	return misuse(err)
}

// checkDataset returns an error if the dataset of run.json is gone, and prints a note if another
// one is in its place. It checks nothing if the dataset may be away.
func (file *optionsFile) checkDataset(stderr io.Writer, away bool) error {
	if file.seal == "" || away {
		return nil
	}
	if err := stillThere(file.path, file.dataset, ""); err != nil {
		return err
	}
	ds, err := store.OpenOne(file.dataset)
	if err != nil {
		return nil // the next to open the dataset will report the error
	}
	defer ds.Close()
	if seal := ds.Manifest().Seal; seal != file.seal && !store.IsParts(file.dataset) {
		printf(stderr, "note: %s has seal %s, and the run of %s learnt from one with seal %s, so results will differ\n", file.dataset, seal,
			file.path, file.seal)
	}
	return nil
}

// printConfig writes the options as a file for --file.
func (o *trainOptions) printConfig(w io.Writer, f *pflag.FlagSet, dataset string) error {
	if err := o.complete(); err != nil {
		return misuse(err)
	}
	fmt.Fprint(w, "# gnnstore train -f FILE trains with these options. A flag on the command line replaces one.\n"+
		"# Lines behind # have the defaults of options that were not given. The data may choose others.\n\n")
	lines := setting.Setting(datasetKey, dataset, dataset != "")
	for _, name := range ownInFile {
		lines += setting.Setting(name, f.Lookup(name).Value.String(), f.Changed(name))
	}
	fmt.Fprint(w, lines, o.given.YAML())
	return nil
}
