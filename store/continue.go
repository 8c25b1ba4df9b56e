package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
)

// workName is the caller's directory in the partial one, and clearedName what it is called while it
// is removed: a work directory that is there is whole.
const (
	workName    = "work"
	clearedName = "work.cleared"
)

// WorkDir makes the directory PATH.partial/work and returns its name. It is the caller's, who syncs
// what is written there; Seal and Abort remove it, and Leave keeps it.
func (w *Writer) WorkDir() (string, error) {
	w.mustBeOpen()
	dir := w.fs.PathJoin(w.partial, workName)
	if err := w.fs.MkdirAll(dir, 0o777); err != nil {
		return "", fmt.Errorf("create dataset: %w", err)
	}
	return dir, nil
}

// Parts makes sure that what is closed so far outlives a crash, and returns a copy of the manifest
// of it: what a caller keeps in its work directory, as JSON, to return from
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

// PartsWith is Parts, and of tables that are under way the shards that are closed, from the first
// on: what [Writer.ContinueTable] goes on from.
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

// ContinueTable is AddTable for a table of which an interrupted Writer may have left some: the rows
// of its closed shards are there, which are FeatureWriter.Done, and those behind them follow.
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

// Leave ends the Writer and keeps what it wrote for the next Create of this path, which goes on
// from there if its Continue says so. Sections that are not closed are lost. It does nothing after
// Seal or Abort.
func (w *Writer) Leave() error {
	if w.lock == nil {
		return nil
	}
	err := errors.Join(w.dropOpen(), w.lock.Close())
	w.lock = nil
	return err
}

// takeOver clears what an interrupted Writer left, but for what ask wants to go on from. It says
// whether anything was there.
func (w *Writer) takeOver(ask func(work string) *Manifest) (found bool, err error) {
	names, err := w.fs.List(w.partial)
	if err != nil {
		return true, fmt.Errorf("create dataset: %w", err)
	}
	found = len(names) > 1
	// The lock file, by which the next Writer knows what is left for ours, is on disk before
	// anything else is there.
	if err := w.syncDir(w.partial); err != nil {
		return found, fmt.Errorf("create dataset: %w", err)
	}
	if !found || ask == nil {
		return found, w.clear()
	}
	m := ask(w.fs.PathJoin(w.partial, workName))
	if m == nil || m.Version != Version { // sections of another version are laid out otherwise
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
		NodeTypes: m.NodeTypes, Relations: m.Relations, Streams: m.Streams, Tables: m.Tables, Labels: m.Labels, Splits: m.Splits,
	}
	for name, isDir := range kept {
		if isDir && name != workName {
			w.dirs[w.fs.PathJoin(w.partial, name)] = true
		}
	}
	return found, nil
}

// holds lists the files of m, and true for the directories on the way to them and for the work
// directory. It is nil when a file is missing or of another size. Contents are not read: whoever
// wrote m down did so after they were synced.
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

// clearBut removes what is in dir of the partial directory and not in kept.
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

// clearWork removes the work directory. It is gone in one step, so that nobody goes on from half of
// it.
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

// sizes are the bytes of every file that m lists.
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
