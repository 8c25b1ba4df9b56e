package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/run"
)

// likeOf reads the encodings that ingest is to follow: those in the dataset at path, or the copy in
// the run at path.
func likeOf(path string) (*ingest.Like, error) {
	dataset, l, seal := path, &ingest.Like{Name: path}, ""
	if _, err := os.Stat(filepath.Join(path, run.RecordFile)); err == nil {
		dir, err := run.Look(path)
		if err != nil {
			return nil, err
		}
		defer dir.Close()
		if l.Encodings, err = dir.Encodings(); err != nil {
			return nil, err
		}
		dataset, seal = dir.Record().Dataset, dir.Record().Seal
	}
	ds, err := store.OpenOne(dataset)
	switch {
	case err == nil && seal != "" && ds.Manifest().Whole() != seal:
		err = fmt.Errorf("%s is not the dataset that the run trained on", dataset)
	case err == nil && l.Encodings == nil:
		l.Encodings, err = ds.Encodings()
	}
	if ds != nil {
		defer ds.Close()
	}
	if err != nil && l.Encodings == nil {
		return nil, l.Errorf("%w", err)
	}
	l.Identity = seal
	if err == nil {
		l.Identity = ds.Manifest().Whole()
	}
	if l.Encodings == nil {
		l.Encodings, l.Silent = outline(ds.Manifest()), true
	}
	l.Labels = l.Encodings.Labels
	if err == nil {
		l.Labels = labelsOf(ds.Manifest(), l.Encodings)
	} else if slices.ContainsFunc(l.Labels, func(of store.LabelEncoding) bool { return !of.Known() }) {
		l.Labels, l.LabelsErr = nil, err
	}
	l.Identity += " " + l.Encodings.Check
	l.TakeAggregates()
	return l, nil
}

// labelsOf describes the labels of a dataset. It reads their columns from said, and all else from
// the manifest.
func labelsOf(m *store.Manifest, said *store.Encodings) (all []store.LabelEncoding) {
	for _, l := range m.Labels {
		of := store.LabelEncoding{Name: l.Name, NodeType: l.NodeType, Classes: l.Classes, ClassNames: l.ClassNames}
		of.Multi, of.Numbers = l.Multi, l.Numbers
		for _, e := range said.Labels {
			if e.Name == l.Name && e.NodeType == l.NodeType {
				of.From = e.From
			}
		}
		all = append(all, of)
	}
	return all
}

// outline makes encodings of a dataset that has none. They have the widths and types of columns and
// no names.
func outline(m *store.Manifest) *store.Encodings {
	e := new(store.Encodings)
	for i := range m.Tables {
		t := &m.Tables[i]
		of := store.TableEncoding{Name: t.Name, NodeType: t.NodeType, Relation: t.Relation, Stream: t.Stream}
		of.Columns = build.Unnamed("", int(t.Dim))
		e.Tables = append(e.Tables, of)
	}
	for i := range m.Relations {
		r := &m.Relations[i]
		of := store.RelationEncoding{Relation: r.Key()}
		for _, c := range r.Columns {
			of.Columns = append(of.Columns, store.ColumnEncoding{Name: c.Name, Elem: c.Elem})
		}
		e.Relations = append(e.Relations, of)
	}
	for i := range m.Streams {
		e.Streams = append(e.Streams, m.Streams[i].EncodingOf())
	}
	return e
}

// follow sets each option that was not given to its value in the dataset of l. It returns the
// options that it changed.
func (o *ingestOptions) follow(l *ingest.Like, given func(key string) bool) (set []string) {
	o.Like = l.Name
	if l.Silent {
		return nil
	}
	o.LikeAggregates = l.Aggregates
	if len(l.Aggregates) > 0 {
		set = append(set, "{counts}")
	}
	undirected := false
	for i := range l.Encodings.Relations {
		r := &l.Encodings.Relations[i]
		undirected = undirected || r.Undirected
		set = append(set, adopt(given, "self_loops", &o.SelfLoops, build.SelfLoops(r.SelfLoops))...)
		set = append(set, adopt(given, "duplicates", &o.Duplicates, build.Duplicates(r.Duplicates))...)
	}
	if !given("undirected") {
		o.Undirected, o.Directed = undirected, !undirected
		if undirected {
			set = append(set, "{undirected}")
		}
	}
	if !given("reverse") {
		if o.Reverse, o.OneWay = l.Reversed(), !l.Reversed(); o.Reverse {
			set = append(set, "{reverse}")
		}
	}
	for i := range l.Encodings.Tables {
		t := &l.Encodings.Tables[i]
		set = append(set, adopt(given, "normalize", &o.Normalize, build.Normalize(t.Normalize))...)
		if t.Made == "degree" || t.Made == "mean" { // both depend on the edges alone
			set = append(set, adopt(given, "features", &o.Features, t.Made)...)
		}
	}
	for _, s := range l.Encodings.Streams {
		if !given("time_scale") {
			o.TimeScale = s.TimeScale
			set = append(set, fmt.Sprintf("{time_scale} %v", s.TimeScale))
		}
	}
	return set
}

// adopt sets an option that was not given to a value, if there is one. It returns the option where
// that changed it.
func adopt[T ~string](given func(key string) bool, key string, option *T, value T) []string {
	if given(key) || value == "" || *option == value {
		return nil
	}
	*option = value
	return []string{fmt.Sprintf("{%s} %s", key, value)}
}
