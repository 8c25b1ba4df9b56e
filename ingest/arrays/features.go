package arrays

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/npy"
)

// Features is an array of features, a row a node, in a file that has no edges.
type Features struct {
	s       *Source
	rows    *array
	Skipped string // a sentence on the other arrays of the file, or ""
}

const featureFileFlag = "{node_features}"

// FeatureFile reports whether text names a file for [OpenFeatures], FILE or FILE:ARRAY, by the
// file's extension.
func FeatureFile(text string) (path, name string, ok bool) {
	isArrays := func(path string) bool {
		ext := strings.ToLower(filepath.Ext(path))
		return slices.Contains([]string{".npy", ".npz", ".pt", ".pth"}, ext)
	}
	if isArrays(text) {
		return text, "", true
	}
	for i := range text {
		if text[i] == ':' && isArrays(text[:i]) {
			return text[:i], text[i+1:], i+1 < len(text)
		}
	}
	return "", "", false
}

// OpenFeatures opens the array of features in a .npy, .npz, .pt or .pth file. The text may name the
// array: FILE:ARRAY. Else it takes the array of a usual name, or the only array that has a row of
// numbers for each node. It asks which one if there are several.
func OpenFeatures(text string, memory int64) (*Features, error) {
	path, name, ok := FeatureFile(text)
	if !ok {
		return nil, fmt.Errorf("%s: a file of arrays ends in .npy, .npz, .pt or .pth", text)
	}
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		return nil, fmt.Errorf("%s: a folder; name the file of features in it", path)
	}
	s := &Source{o: Options{Memory: memory}}
	var err error
	switch {
	case isTorch(path):
		s.bag, _, err = torchBag(path, &s.o)
	case strings.EqualFold(filepath.Ext(path), ".npz"):
		s.bag, err = npzBag(path, &s.o)
	default:
		s.bag, err = npyBag(path, &s.o)
	}
	if err != nil {
		return nil, err
	}
	f := &Features{s: s}
	if f.rows, err = f.find(name); err == nil && !isFeatures(f.rows) {
		err = fmt.Errorf("%s, and a row of 1 to %d numbers for each node is expected",
			f.rows.form(), int64(ingest.MaxColumns))
	}
	if err != nil {
		s.bag.close()
		return nil, err
	}
	s.tables = []*array{f.rows}
	f.noteOthers()
	return f, nil
}

// isFeatures reports whether an array has a row of numbers for each node.
func isFeatures(a *array) bool {
	if a.matrix != nil {
		return a.Shape[1] >= 1 && a.Shape[1] <= ingest.MaxColumns
	}
	return a.isTable()
}

// find returns the array called name, or chooses one.
func (f *Features) find(name string) (*array, error) {
	b := f.s.bag
	if name == "" && b.has("shape") && (b.has("format") || b.has("indptr")) { // scipy.sparse.save_npz
		if b.has("format") {
			if _, err := f.s.format("format"); err != nil {
				return nil, err
			}
		}
		if b.has("indptr") && b.has("indices") {
			return f.s.sparseUnder("", stem(b.path))
		}
	}
	if a, err := f.s.sparseParts("", name); a != nil || err != nil {
		return a, err
	}
	if name != "" {
		if b.has(name) {
			return b.get(name)
		}
		return nil, fmt.Errorf("%s: there is no %s, which %s names%s", b.path, name, featureFileFlag, f.s.found())
	}
	if i := slices.IndexFunc(xNames, b.has); i >= 0 {
		return b.get(xNames[i])
	}
	if len(b.keys) == 1 {
		a, err := b.get(b.keys[0])
		if err == nil && a.key == "edges" { // a tensor has no name
			a.key, a.name = stem(b.path), b.path
		}
		return a, err
	}
	return f.only()
}

// only returns the one array that has a row of numbers for each node. Arrays of one dimension count
// if there are no others.
func (f *Features) only() (*array, error) {
	b := f.s.bag
	var found [2][]*array // of one dimension, of two
	for _, key := range b.keys {
		a, err := b.get(key)
		if err != nil && !errors.Is(err, npy.ErrUnsupported) {
			return nil, err
		}
		if delete(b.used, key); err == nil && isFeatures(a) {
			found[len(a.Shape)-1] = append(found[len(a.Shape)-1], a)
		}
	}
	few := found[1]
	if len(few) == 0 {
		few = found[0]
	}
	switch len(few) {
	case 0:
		return nil, fmt.Errorf("%s: no array with a row of numbers for each node%s", b.path, f.s.found())
	case 1:
		return b.get(few[0].key)
	}
	var names []string
	for _, a := range few {
		names = append(names, a.key+", "+a.View.String())
	}
	return nil, ingest.Ask("%s: which array has the features of nodes: %s? %s %s:%s takes the first",
		b.path, strings.Join(names[:min(len(names), 8)], "; "), featureFileFlag, b.path, few[0].key)
}

// noteOthers lists the arrays that are not read.
func (f *Features) noteOthers() {
	b := f.s.bag
	left := slices.DeleteFunc(slices.Clone(b.keys), func(key string) bool { return b.used[key] })
	if len(left) > 0 {
		f.Skipped = fmt.Sprintf("%s: features are %s; not read: %s; %s %s:NAME names another array",
			b.path, f.rows.key, lines.List(left), featureFileFlag, b.path)
	}
}

// Path is the file.
func (f *Features) Path() string { return f.s.bag.path }

// Key is the name of the array, without the file.
func (f *Features) Key() string { return f.rows.key }

// Len is the number of rows.
func (f *Features) Len() int64 { return f.rows.Shape[0] }

// Dim is the number of columns.
func (f *Features) Dim() int { return columns(f.rows) }

// Rows streams the rows.
func (f *Features) Rows(ctx context.Context, emit func(ingest.RowChunk) error) error {
	return f.s.Rows(ctx, 0, emit)
}

// NoRow as an entry of order in RowsOf means that no node has the row.
const NoRow = 1<<32 - 1

// RowsOf streams n rows in another order: row i of the array becomes row order[i], and none if that
// is NoRow. Each window of rows takes a reading of the whole array. Windows take an eighth of the
// ingest's memory, but at least 64 MiB.
func (f *Features) RowsOf(ctx context.Context, n int64, order []uint32, emit func(ingest.RowChunk) error) error {
	dim := int64(f.Dim())
	per := max(ingest.ChunkBytes/4/dim, 1)
	window := min(max(ingest.BlockBytes, f.s.o.Memory/8)/4/dim, n)
	window = max(window, 1)
	held, place := make([]float32, window*dim), ingest.Place{File: f.rows.name}
	for first := int64(0); first < n; first += window {
		err := f.Rows(ctx, func(c ingest.RowChunk) error {
			for i := range int64(len(c.Values)) / dim {
				if to := int64(order[c.First+i]) - first; to >= 0 && to < window {
					copy(held[to*dim:], c.Values[i*dim:(i+1)*dim])
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for end := min(first+window, n); place.First < end; place.First += per {
			if err := ctx.Err(); err != nil {
				return err
			}
			from := (place.First - first) * dim
			values := held[from : from+min(per, end-place.First)*dim]
			if err := emit(ingest.RowChunk{Place: place, Values: values}); err != nil {
				return err
			}
		}
		place.First = min(first+window, n)
	}
	return nil
}

// Close closes the file.
func (f *Features) Close() error { return f.s.bag.close() }
