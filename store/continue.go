package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
)

// workName is the caller's directory inside the partial one. It is renamed to clearedName before it
// is removed, so a directory called workName is always complete.
const (
	workName    = "work"
	clearedName = "work.cleared"
)

// WorkDir makes the directory PATH.partial/work and returns its name. It belongs to the caller, who
// syncs the files in it. Seal and Abort remove it; Leave keeps it.
func (w *Writer) WorkDir() (string, error) {
	w.mustBeOpen()
	dir := w.fs.PathJoin(w.partial, workName)
	if err := w.fs.MkdirAll(dir, 0o777); err != nil {
		return "", fmt.Errorf("create dataset: %w", err)
	}
	return dir, nil
}

// Parts makes everything that is closed so far survive a crash, and returns a copy of the manifest
// that lists it. The caller keeps that as JSON in its work directory, to return it from
// [WriterOptions.Continue].
func (w *Writer) Parts() (*Manifest, error) {
	w.mustBeOpen()
	err := w.syncSections()
	if err == nil {
		err = w.syncDirs(w.fs.PathDir(w.final))
	}
	if err != nil {
		return nil, fmt.Errorf("create dataset: %w", err)
	}
	m := new(Manifest)
	b, err := json.Marshal(&w.manifest)
	if err == nil {
		err = json.Unmarshal(b, m)
	}
	if err != nil {
		return nil, fmt.Errorf("create dataset: %w", err)
	}
	m.Version = Version
	return m, nil
}

// PartsWith is Parts, and also lists the closed shards of unfinished tables, from the first shard
// up to the first that is not closed. [Writer.ContinueTable] goes on behind them.
func (w *Writer) PartsWith(tables ...*FeatureWriter) (*Manifest, error) {
	m, err := w.Parts()
	if err != nil {
		return nil, err
	}
	for _, f := range tables {
		if n := f.closed(); n > 0 {
			t := f.table
			t.Shards = slices.Clone(t.Shards[:n])
			m.Tables = append(m.Tables, t)
		}
	}
	return m, nil
}

// ContinueTable is AddTable for a table that an interrupted Writer may have begun. Its first
// FeatureWriter.Done rows, in closed shards, are kept; the caller writes the rows behind them.
func (w *Writer) ContinueTable(name, nodeType string, e Elem, rows int64, dim int) (*FeatureWriter, error) {
	i := slices.IndexFunc(w.manifest.Tables, func(t Table) bool { return t.Name == name && t.NodeType == nodeType })
	if i < 0 {
		return w.AddTable(name, nodeType, e, rows, dim)
	}
	left := w.manifest.Tables[i]
	w.manifest.Tables = slices.Delete(w.manifest.Tables, i, i+1)
	f, err := w.newTable(Table{Name: name, NodeType: nodeType, Elem: e, Dim: int64(dim)}, rows)
	if err != nil {
		return nil, err
	}
	if left.Elem != e || left.Dim != int64(dim) || len(left.Shards) > len(f.shards) {
		return nil, fmt.Errorf("table %s: what an interrupted writer left is of another table", name)
	}
	for k, s := range left.Shards {
		if s.Rows != min(f.shard, rows-int64(k)*f.shard) {
			return nil, fmt.Errorf("table %s: what an interrupted writer left has other shards", name)
		}
		f.table.Shards[k], f.finished[k] = s, true
	}
	return f, nil
}

// Leave ends the Writer and keeps what it wrote for the next Create of this path, which continues
// from there if its WriterOptions.Continue asks for it. Sections that are not closed are lost.
// Leave does nothing after Seal or Abort.
func (w *Writer) Leave() error {
	if w.lock == nil {
		return nil
	}
	err := errors.Join(w.dropOpen(), w.lock.Close())
	w.lock = nil
	return err
}

// takeOver clears what an interrupted Writer left, except the parts that ask wants to keep. It
// reports whether anything was there.
func (w *Writer) takeOver(ask func(work string) *Manifest) (found bool, err error) {
	names, err := w.fs.List(w.partial)
	if err != nil {
		return true, fmt.Errorf("create dataset: %w", err)
	}
	found = len(names) > 1
	// Sync the lock file before anything else exists here: by it the next Writer recognises the
	// directory as a Writer's.
	if err := w.syncDir(w.partial); err != nil {
		return found, fmt.Errorf("create dataset: %w", err)
	}
	if !found || ask == nil {
		return found, w.clear()
	}
	m := ask(w.fs.PathJoin(w.partial, workName))
	if m == nil || m.Version != Version { // other versions lay sections out differently
		return found, w.clear()
	}
	kept, err := w.holds(m)
	if err != nil {
		return found, fmt.Errorf("create dataset: look at an interrupted one: %w", err)
	}
	if kept == nil {
		return found, w.clear()
	}
	if err := w.clearBut(kept, "."); err != nil {
		return found, fmt.Errorf("create dataset: clear an interrupted one: %w", err)
	}
	w.manifest = Manifest{
		NodeTypes: m.NodeTypes, Relations: m.Relations, Shared: m.Shared, Streams: m.Streams,
		Tables: m.Tables, Labels: m.Labels, Splits: m.Splits,
	}
	for name, isDir := range kept {
		if isDir && name != workName {
			w.dirs[w.fs.PathJoin(w.partial, name)] = true
		}
	}
	return found, nil
}

// holds returns the paths to keep: the files of m (false), and the work directory and the
// directories on the way to the files (true). It returns nil if a file is missing or has another
// size. It does not read contents: they were synced before m was returned by Parts.
func (w *Writer) holds(m *Manifest) (map[string]bool, error) {
	kept := map[string]bool{workName: true}
	for name, size := range m.sizes() {
		if !safePath(name) {
			return nil, nil
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if kept[dir] {
				break
			}
			fi, err := w.lstat(w.fs.PathJoin(w.partial, dir))
			if errors.Is(err, fs.ErrNotExist) || err == nil && !fi.IsDir() {
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
			kept[dir] = true
		}
		fi, err := w.lstat(w.fs.PathJoin(w.partial, name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && (!fi.Mode().IsRegular() || fi.Size() != size) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		kept[name] = false
	}
	return kept, nil
}

// clearBut removes everything in dir, a path inside the partial directory, that is not in kept. It
// spares the lock and the work directory.
func (w *Writer) clearBut(kept map[string]bool, dir string) error {
	names, err := w.fs.List(w.fs.PathJoin(w.partial, dir))
	if err != nil {
		return err
	}
	for _, n := range names {
		name := path.Join(dir, n)
		isDir, keep := kept[name]
		switch {
		case name == lockName, name == workName, keep && !isDir:
		case keep:
			err = w.clearBut(kept, name)
		default:
			err = w.fs.RemoveAll(w.fs.PathJoin(w.partial, name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clear removes everything in the partial directory but the lock.
func (w *Writer) clear() error {
	err := w.clearWork()
	if err == nil {
		err = w.clearBut(nil, ".")
	}
	if err != nil {
		return fmt.Errorf("create dataset: clear an interrupted one: %w", err)
	}
	return nil
}

// clearWork removes the work directory. A rename takes it away in one step, so that nobody
// continues from half of it.
func (w *Writer) clearWork() error {
	work, cleared := w.fs.PathJoin(w.partial, workName), w.fs.PathJoin(w.partial, clearedName)
	if _, err := w.lstat(work); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	err := w.fs.RemoveAll(cleared)
	if err == nil {
		err = w.fs.Rename(work, cleared)
	}
	if err == nil {
		err = w.syncDir(w.partial)
	}
	if err == nil {
		err = w.fs.RemoveAll(cleared)
	}
	return err
}

// sizes returns the size in bytes of every file that m lists, by path.
func (m *Manifest) sizes() map[string]int64 {
	sizes := map[string]int64{}
	for _, f := range m.Files() {
		sizes[f.Path] = f.Bytes
	}
	for _, b := range m.Blobs() {
		sizes[b.Path] = b.Bytes
	}
	return sizes
}
