package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/dist"
)

// openDataset opens the whole dataset at path, and maps all of it. memory is the budget in bytes
// that must fit beside the map; 0: unknown. It notes on stderr if the format has no checksums to
// check what is read.
func openDataset(stderr io.Writer, path string, memory int64) (*store.Dataset, error) {
	if store.IsParts(path) {
		return nil, fmt.Errorf("%s: it holds parts of a dataset, which train, eval and predict read; give the whole dataset", path)
	}
	ds, err := openAny(stderr, path, memory)
	if err != nil {
		return nil, err
	}
	if part := ds.Manifest().Part; part != nil {
		return nil, errors.Join(fmt.Errorf("%s: it is part %d of %d of a dataset; give the whole dataset, "+
			"or to gnnstore train the directory of all parts", path, part.Index, part.Parts), ds.Close())
	}
	return ds, nil
}

// openAny is openDataset for commands that take a part of a dataset as well.
func openAny(stderr io.Writer, path string, memory int64) (*store.Dataset, error) {
	if store.IsParts(path) {
		return nil, fmt.Errorf("%s: it holds parts of a dataset; give one of them, such as %s", path, store.PartPath(path, 0))
	}
	if err := mapDataset(path, memory); err != nil {
		return nil, err
	}
	ds, err := store.Open(path)
	if err == nil && !ds.Checked() {
		printf(stderr, "note: %s is of format version %d, which has no checksum for each page: what is read is not checked; "+
			"gnnstore verify checks all of it, and ingesting it again makes version %d\n", path, ds.Manifest().Version, store.Version)
	}
	return ds, err
}

// openPart opens the worker's part of a directory of parts. memory is as for openDataset.
func openPart(path string, memory int64, g *dist.Group) (*store.Dataset, error) {
	if err := mapDataset(store.PartPath(path, g.Rank()), memory); err != nil {
		return nil, err
	}
	return store.OpenPart(path, g.Rank(), g.Size())
}

// openGraph opens a dataset for a command that works on relations. It refuses a dataset that has
// nothing but a stream, and lacks ends the message.
func openGraph(stderr io.Writer, path string, memory int64, lacks string) (*store.Dataset, error) {
	ds, err := openDataset(stderr, path, memory)
	if err != nil {
		return nil, err
	}
	if m := ds.Manifest(); len(m.Streams) > 0 && len(m.Relations) == 0 {
		ds.Close()
		return nil, fmt.Errorf("%s has a stream of events and no relation: %s; inspect shows what is in it", path, lacks)
	}
	return ds, nil
}
