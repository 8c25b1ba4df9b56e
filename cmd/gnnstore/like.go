package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/table"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/run"
)

// like is a dataset for ingest to follow, with the encodings of its columns. A run stands for the
// dataset that it trained on.
type like struct {
	table.Like
	reversed bool // relations have reverses that ingest made
}

// likeOf opens a dataset to follow, or a run, which keeps a copy of what its dataset learnt.
func likeOf(path string) (*like, error) {
	dataset, l := path, &like{Like: table.Like{Name: path}}
	if _, err := os.Stat(filepath.Join(path, run.RecordFile)); err == nil {
		dir, err := run.Look(path)
		if err != nil {
			return nil, err
		}
		defer dir.Close()
		if l.Encodings, err = dir.Encodings(); err != nil {
			return nil, err
		}
		dataset = dir.Record().Dataset
		l.Identity = dir.Record().Seal
	}
	ds, err := store.OpenOne(dataset)
	switch {
	case err == nil && l.Identity != "" && ds.Manifest().Whole() != l.Identity:
		err = fmt.Errorf("%s is not the dataset that the run trained on", dataset)
	case err == nil && l.Encodings == nil:
		l.Encodings, err = ds.Encodings()
	}
	if ds != nil {
		defer ds.Close()
	}
	if err != nil && l.Encodings == nil {
		return nil, fmt.Errorf("{like} %s: %w", path, err)
	}
	if l.Encodings == nil {
		return nil, fmt.Errorf("{like} %s: an earlier build made it, and it says nothing of its columns; ingest it again", path)
	}
	var labels []store.Label
	if err == nil {
		m := ds.Manifest()
		labels, l.Identity = m.Labels, m.Whole()
		l.reversed = slices.ContainsFunc(m.Relations, func(r store.Relation) bool {
			return r.ReverseOf != "" && strings.HasPrefix(r.Name, "rev_")
		})
	}
	l.Identity += " " + l.Encodings.Check
	l.Label = func(nodeType string) (*store.Label, error) {
		i := slices.IndexFunc(labels, func(of store.Label) bool { return of.NodeType == nodeType })
		if i < 0 {
			return nil, err
		}
		return &labels[i], nil
	}
	return l, nil
}

// follow sets options of edges and rows to those that l's dataset was made with, unless they were
// given. It returns the options that it changed.
func (o *buildOptions) follow(l *like, given func(key string) bool) (set []string) {
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
	if !given("reverse") && l.reversed {
		o.Reverse = true
		set = append(set, "{reverse}")
	}
	for i := range l.Encodings.Tables {
		set = append(set, adopt(given, "normalize", &o.Normalize, build.Normalize(l.Encodings.Tables[i].Normalize))...)
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
