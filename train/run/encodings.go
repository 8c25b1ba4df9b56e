package run

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/checkpoint"
)

// EncodingsFile is the run's copy of the dataset's encodings, if the dataset has some.
// TrainedOnFile describes the dataset, if the network can be used on another.
const (
	EncodingsFile = "encodings.json"
	TrainedOnFile = "dataset.json"
)

// keep writes text to a file of the run, unless the file has it already. It writes no nil text.
func (d *Dir) keep(name string, text []byte) error {
	if text == nil {
		return nil
	}
	if there, err := readFile(d.fs, d.File(name)); err == nil && bytes.Equal(there, text) {
		return nil
	}
	return checkpoint.WriteFile(d.fs, d.File(name), text)
}

// TrainedOn returns the contents of TrainedOnFile, or nil if there is none.
func (d *Dir) TrainedOn() ([]byte, error) {
	text, err := readFile(d.fs, d.File(TrainedOnFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	return text, nil
}

// Encodings returns the encodings of the dataset that the run trained on, or nil if none were kept.
func (d *Dir) Encodings() (*store.Encodings, error) {
	text, err := readFile(d.fs, d.File(EncodingsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	e, err := store.DecodeEncodings(text)
	if err != nil {
		return nil, fmt.Errorf("run %s: %s is damaged: %w; copy it again from the dataset that it trained on", d.path, EncodingsFile, err)
	}
	return e, nil
}

// Remedy ends an error about a dataset whose columns differ from the run's: it names the command by
// which they agree. It returns "" if the dataset's columns have no names.
func (d *Dir) Remedy(e *store.Encodings) string {
	if e == nil || !slices.ContainsFunc(e.Tables, func(t store.TableEncoding) bool { return t.Named() }) {
		return ""
	}
	return "; ingest it again with {like} " + d.path
}

// CheckColumns refuses a dataset whose columns or edges mean something else than those the run
// learnt from. It compares the tables for which reads returns true, and calls note for what cannot
// be compared.
func (d *Dir) CheckColumns(ds *store.Dataset, reads func(t *store.Table) bool, note func(format string, args ...any)) error {
	learnt, err := d.Encodings()
	if err != nil {
		return err
	}
	here, err := ds.Encodings()
	if err != nil {
		return err
	}
	silent := ds.Path()
	if learnt == nil {
		silent = "the dataset that the run trained on"
	}
	if learnt == nil || here == nil {
		note("%s was made by an earlier build and says nothing of its columns: those of %s are taken to be the ones that were learnt", silent, ds.Path())
		return nil
	}
	m := ds.Manifest()
	for i := range m.Tables {
		t := &m.Tables[i]
		was, is := learnt.Of(t), here.Of(t)
		if was == nil || is == nil || !reads(t) { // another check reports a table that only one dataset has
			continue
		}
		if differs := tableDiffers(was, is); differs != "" {
			return fmt.Errorf("%s: table %s of %s is not what was learnt from: %s%s",
				ds.Path(), t.Name, t.Owner(), differs, d.Remedy(here))
		}
		if was.Named() != is.Named() {
			note("%s: columns of table %s of %s have names in one of the two datasets only: they are taken to be the ones that were learnt, in their order", ds.Path(),
				t.Name, t.Owner())
		}
	}
	for i := range m.Relations {
		key := m.Relations[i].Key()
		was, is := learnt.Relation(key), here.Relation(key)
		if was == nil || is == nil {
			continue
		}
		if differs := edgesDiffer(was, is); differs != "" {
			return fmt.Errorf("%s: relation %s is not what was learnt from: %s", ds.Path(), key, differs)
		}
	}
	return nil
}

// edgesDiffer returns how the edges were stored differently, or "" if they were stored alike.
func edgesDiffer(was, is *store.RelationEncoding) string {
	switch {
	case was.Undirected && !is.Undirected:
		return "its edges run one way, and ran both ways there; ingest it with {undirected}"
	case is.Undirected && !was.Undirected:
		return "its edges run both ways, and ran one way there; ingest it with {undirected} set to false"
	case was.SelfLoops != is.SelfLoops:
		return fmt.Sprintf("self loops are as by {self_loops} %s, and were as by %s there; ingest it with {self_loops} %s", is.SelfLoops, was.SelfLoops, was.SelfLoops)
	case was.Duplicates != is.Duplicates:
		return fmt.Sprintf("duplicates are as by {duplicates} %s, and were as by %s there; ingest it with {duplicates} %s", is.Duplicates, was.Duplicates,
			was.Duplicates)
	}
	return ""
}

// tableDiffers returns which column has another meaning and what to do, or "" if none has.
func tableDiffers(was, is *store.TableEncoding) string {
	made := func(t *store.TableEncoding) string {
		switch {
		case t.Made == "":
			return "read"
		case t.Seed == 0:
			return "made by {features} " + t.Made
		}
		return fmt.Sprintf("made by {features} %s with {seed} %d", t.Made, t.Seed)
	}
	switch {
	case was.Made != is.Made || was.Seed != is.Seed:
		return fmt.Sprintf("its features were %s, and %s there; ingest it likewise", made(is), made(was))
	case was.Normalize != is.Normalize && was.Normalize == "":
		return "its rows were normalised, and were not there; ingest it without {normalize}"
	case was.Normalize != is.Normalize:
		return fmt.Sprintf("its rows were not normalised, and were there; ingest it with {normalize} %s", was.Normalize)
	}
	if !was.Named() || !is.Named() {
		return ""
	}
	names := func(t *store.TableEncoding) (list []string) {
		for _, c := range t.Columns {
			list = append(list, c.Name)
		}
		return list
	}
	learnt, here := names(was), names(is)
	for i := range was.Columns {
		if (was.Columns[i].Kind == store.FoldedColumns) != (i < len(is.Columns) && is.Columns[i].Kind == store.FoldedColumns) || i < len(is.Columns) &&
			was.Columns[i].XXH3 != is.Columns[i].XXH3 {
			return "its many columns are other ones, or in another order; ingest it with the columns that were learnt, in their order"
		}
	}
	for _, name := range learnt {
		if !slices.Contains(here, name) {
			return fmt.Sprintf("it has no column %s, which was learnt; there are %s; ingest it with that column", clip(name), some(here))
		}
	}
	for _, name := range here {
		if !slices.Contains(learnt, name) {
			return fmt.Sprintf("it has a column %s, which was not learnt; ingest it with the columns %s alone", clip(name), some(learnt))
		}
	}
	if !slices.Equal(learnt, here) {
		return fmt.Sprintf("its columns are in the order %s, and were learnt as %s; ingest it with the columns in that order", some(here), some(learnt))
	}
	for i := range was.Columns {
		if differs := columnDiffers(&was.Columns[i], &is.Columns[i]); differs != "" {
			return fmt.Sprintf("column %s %s", clip(was.Columns[i].Name), differs)
		}
	}
	return ""
}

// columnDiffers returns how a column was encoded differently, or "" if it was encoded alike.
func columnDiffers(was, is *store.Encoding) string {
	rule := func(c *store.Encoding) string {
		if c.Missing == "" {
			return "refused"
		}
		return "replaced by rule " + c.Missing
	}
	switch {
	case was.Kind != is.Kind || was.Encoder != is.Encoder:
		return fmt.Sprintf("is a %s, and was learnt as a %s; ingest it likewise", strings.TrimSpace(is.Kind+" "+is.Encoder), strings.TrimSpace(was.Kind+" "+was.Encoder))
	case was.Unknown != is.Unknown:
		return fmt.Sprintf("treats unknown categories by the rule %s, and by %s where it was learnt; ingest it likewise",
			cmp.Or(is.Unknown, "refuse"), cmp.Or(was.Unknown, "refuse"))
	case !slices.Equal(was.Categories, is.Categories):
		return fmt.Sprintf("has the categories %s, and was learnt with %s; ingest both together, so that a category has one number in both", some(is.Categories),
			some(was.Categories))
	case !slices.Equal(was.Parts, is.Parts):
		return fmt.Sprintf("is a date by its %s, and was learnt by its %s; ingest it likewise", some(is.Parts), some(was.Parts))
	case was.Missing != is.Missing:
		return fmt.Sprintf("has missing numbers %s, and they were %s where it was learnt; ingest it likewise", rule(is), rule(was))
	case was.Width != is.Width:
		return fmt.Sprintf("takes %d numbers, and was learnt with %d; ingest it likewise", is.Width, was.Width)
	case was.Reference != is.Reference:
		return fmt.Sprintf("has ages until %s, and they were until %s where it was learnt; ingest it likewise", is.Reference, was.Reference)
	case !was.SameScale(is):
		return fmt.Sprintf("is scaled by %s, and by %s where it was learnt; ingest it likewise",
			cmp.Or(is.ScaleText(), "nothing"), cmp.Or(was.ScaleText(), "nothing"))
	case is.Filled > 0 && !slices.Equal(was.Means, is.Means):
		return fmt.Sprintf("has %d missing numbers replaced by their mean %v, which was %v where it was learnt; fill them in with the latter", is.Filled,
			is.Means[:min(len(is.Means), 4)], was.Means[:min(len(was.Means), 4)])
	}
	return ""
}

// some lists the first few names.
func some(names []string) string {
	const most = 8
	var list []string
	for _, name := range names[:min(len(names), most)] {
		list = append(list, clip(name))
	}
	if len(names) > most {
		list = append(list, "…")
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// clip shortens a name for a message of one line.
func clip(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, name)
	if runes := []rune(name); len(runes) > 60 {
		name = string(runes[:60]) + "…"
	}
	return name
}
