package store

import (
	"fmt"
	"io"
)

// ReadRelation reads a finished relation back, given by its Key, into memory that the caller owns: the lists of n nodes lie
// at neighbors[offsets[v]:offsets[v+1]].
func (w *Writer) ReadRelation(key string) (offsets []uint64, neighbors []NodeID, err error) {
	w.mustBeOpen()
	for i := range w.manifest.Relations {
		if r := &w.manifest.Relations[i]; r.Key() == key {
			offsets, neighbors = make([]uint64, r.Offsets.Rows), make([]NodeID, r.Edges)
			if err := w.readBack(&r.Offsets, bytesOf(offsets)); err != nil {
				return nil, nil, err
			}
			return offsets, neighbors, w.readBack(&r.Neighbors, bytesOf(neighbors))
		}
	}
	panic("store: ReadRelation of one that is not written: " + key)
}

func (w *Writer) readBack(spec *File, dst []byte) error {
	f, err := w.fs.Open(w.fs.PathJoin(w.partial, spec.Path))
	if err != nil {
		return fmt.Errorf("read %s back: %w", spec.Path, err)
	}
	defer f.Close()
	if _, err := io.ReadFull(io.NewSectionReader(f, PageSize, int64(len(dst))), dst); err != nil {
		return fmt.Errorf("read %s back: %w", spec.Path, err)
	}
	return nil
}
