package run

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/train/checkpoint"
)

// Dir is the directory of one run, locked while the run lasts.
type Dir struct {
	fs      vfs.FS
	path    string
	lock    io.Closer
	dir     vfs.File // locked, too: see lockDir
	metrics metrics
	record  *Record // of the run that is to be resumed; nil: a new one
	found   string  // a note for the user on how the record was found; mostly empty
	of      string  // the run's directory, if d is another worker's than worker 0's; else empty
}

// Create makes the directory path, which must not exist or be empty.
func Create(path string) (*Dir, error) {
	root, err := makeRoot(path)
	if err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	d, err := CreateOn(root, path)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return d, nil
}

// CreateOn is Create on a file system of the caller's.
func CreateOn(fsys vfs.FS, path string) (*Dir, error) {
	if err := holdsOnly(fsys, path, nil); err != nil {
		return nil, err
	}
	d, err := lockRun(fsys, path)
	if err != nil {
		return nil, err
	}
	if err = holdsOnly(fsys, path, []string{runLock}); err == nil { // a run may have come and gone since the first look
		err = d.metrics.create(fsys, d.File(MetricsFile))
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// holdsOnly refuses a directory with other files than those named. One that does not exist holds
// none.
func holdsOnly(fsys vfs.FS, path string, allowed []string) error {
	names, err := fsys.List(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("run directory: %w", err)
	}
	for _, name := range names {
		if slices.Contains(allowed, name) {
			continue
		}
		if holdsRun(fsys, path) {
			return fmt.Errorf("run directory %s: it holds a run; continue it with {resume}, or choose another with {run}", path)
		}
		return fmt.Errorf("run directory %s: it holds %s, and is no run; choose another with {run}", path, name)
	}
	return nil
}

// lockRun makes the directory, if need be, and takes its locks.
func lockRun(fsys vfs.FS, path string) (*Dir, error) {
	if err := fsys.MkdirAll(path, 0o777); err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	busy := fmt.Errorf("run directory %s: a run is at work in it; wait for its end, or choose another with {run}", path)
	dir, err := fsys.OpenDir(path)
	if err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	if !flockDir(dir, unix.LOCK_EX) {
		return nil, errors.Join(busy, dir.Close())
	}
	lock, err := fsys.Lock(filepath.Join(path, runLock))
	var denied *fs.PathError
	switch {
	case errors.As(err, &denied), errors.Is(err, errNotPlain):
		return nil, errors.Join(fmt.Errorf("run directory: %w", err), dir.Close())
	case err != nil:
		return nil, errors.Join(busy, dir.Close())
	}
	d := &Dir{fs: fsys, path: path, lock: lock, dir: dir}
	parents := fsys
	if _, ok := fsys.(*rootFS); ok {
		parents = vfs.Default
	}
	// a checkpoint is lost if its directory is not on disk
	if err := syncDir(parents, parents.PathDir(path)); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Share keeps runs from going on in the directory until release. Readers of learnt rows call it;
// several may at a time. It changes nothing there. File systems without such locks are read without
// one.
func (d *Dir) Share() (release func() error, err error) {
	dir, err := d.fs.OpenDir(d.path)
	if err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	if !flockDir(dir, unix.LOCK_SH) || d.lock == nil && held(d.fs, d.path) {
		return nil, errors.Join(fmt.Errorf("run directory %s: a run is at work in it; wait for its end", d.path), dir.Close())
	}
	return dir.Close, nil
}

// flockDir locks the directory itself, which keeps others out of a run whose lock file was removed.
// It returns false if somebody has it, but for the moment in which stats asks. File systems without
// such locks, as some NFS, leave it to the lock file.
func flockDir(dir vfs.File, how int) bool {
	if dir.Fd() == vfs.InvalidFd {
		return true
	}
	for range 20 {
		if unix.Flock(int(dir.Fd()), how|unix.LOCK_NB) != unix.EWOULDBLOCK {
			return true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

// Begun reports whether path holds the record of a run, to resume or to look at.
func Begun(path string) bool {
	root, err := openRoot(path)
	if err != nil {
		return false
	}
	defer root.Close()
	return holdsRun(root, path)
}

func holdsRun(fsys vfs.FS, path string) bool {
	_, err := fsys.Stat(filepath.Join(path, RecordFile))
	names, _ := (&Dir{fs: fsys, path: path}).Checkpoints() // they have the record, too
	return !errors.Is(err, fs.ErrNotExist) || len(names) > 0
}

// Open takes over the directory of a run that ended, in whatever way, and returns the record that
// it started with. A directory that does not exist, or whose run had not begun, is for a new run,
// and its record is nil.
func Open(path string) (*Dir, *Record, error) {
	root, err := makeRoot(path)
	if err == nil {
		err = root.checkNames()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("run directory: %w", err)
	}
	d, record, err := OpenOn(root, path)
	if err != nil {
		return nil, nil, errors.Join(err, root.Close())
	}
	return d, record, nil
}

// OpenOn is Open on a file system of the caller's.
func OpenOn(fsys vfs.FS, path string) (_ *Dir, _ *Record, err error) {
	// The files of a run that was killed before its record was written.
	left := []string{runLock, MetricsFile, RecordFile + ".tmp", WorkersDir}
	if !holdsRun(fsys, path) {
		if err := holdsOnly(fsys, path, left); err != nil {
			return nil, nil, err
		}
	}
	d, err := lockRun(fsys, path)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	if d.record, err = d.readRecord(); err != nil {
		return nil, nil, err
	}
	if d.record == nil {
		err = d.metrics.create(fsys, d.File(MetricsFile))
	}
	return d, d.record, err
}

// Look reads the record of the run in path, which others may be at work in: nothing is locked, and
// nothing may be written to the Dir. The caller closes it.
func Look(path string) (*Dir, error) {
	root, err := lookRoot(path)
	if err != nil {
		return nil, err
	}
	d := &Dir{fs: root, path: path}
	if d.record, err = d.readRecord(); err == nil && d.record == nil {
		err = fmt.Errorf("run %s: it holds no run: %s is missing", path, RecordFile)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return d, nil
}

// lookRoot opens the directory of a run for reading only.
func lookRoot(path string) (*rootFS, error) {
	if fi, err := os.Stat(path); err != nil || !fi.IsDir() {
		return nil, fmt.Errorf("run %s: no such run directory", path)
	}
	root, err := openRoot(path)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", path, err)
	}
	if err := root.checkNames(); err != nil {
		return nil, errors.Join(fmt.Errorf("run directory: %w", err), root.Close())
	}
	return root, nil
}

// Finished returns the result of a run that needs no resuming; ok is false for all others.
func (d *Dir) Finished() (r *Result, ok bool, err error) {
	r, err = readResult(d.fs, d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil || r.Status != Done && r.Status != StoppedEarly {
		return nil, false, err
	}
	return r, true, nil
}

// Fresh makes the first directory NAME-N of parent that does not exist.
func Fresh(parent, name string) (*Dir, error) {
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	for n := 1; ; n++ {
		path := filepath.Join(parent, fmt.Sprintf("%s-%d", name, n))
		err := os.Mkdir(path, 0o777) // one of several who try at once gets it
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("run directory: %w", err)
		}
		return Create(path)
	}
}

// Record returns the record of the run to resume, or nil for a new run. Found says how the run
// was found if the user should know it, and is mostly empty.
func (d *Dir) Record() *Record { return d.record }

// Found is described at Record.
func (d *Dir) Found() string { return d.found }

// Path is where the run is.
func (d *Dir) Path() string { return d.path }

// run returns the directory to resume the run with.
func (d *Dir) run() string { return cmp.Or(d.of, d.path) }

// Owners returns the number of workers that each have the learnt rows of their own nodes, in
// WorkerDir; 0: the run has no learnt rows, or one worker has all of them.
func (d *Dir) Owners() int {
	if _, err := d.fs.Stat(d.File(EmbeddingDir)); err != nil || d.record == nil || d.record.Workers < 2 {
		return 0
	}
	return d.record.Workers
}

// FS returns the file system that the run is on.
func (d *Dir) FS() vfs.FS { return d.fs }

// File is the path of a file of the run.
func (d *Dir) File(name string) string { return filepath.Join(d.path, name) }

// Close ends the run's hold on the directory. A second Close does nothing.
func (d *Dir) Close() (err error) {
	if d.lock != nil {
		err = errors.Join(d.metrics.close(), d.lock.Close(), d.dir.Close())
		d.lock, d.dir = nil, nil
	}
	if root, ok := d.fs.(*rootFS); ok {
		err = errors.Join(err, root.Close())
	}
	return err
}

// syncDir writes the names in a directory to disk.
func syncDir(fsys vfs.FS, dir string) error {
	f, err := fsys.OpenDir(dir)
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		return fmt.Errorf("run directory: %w", err)
	}
	return nil
}

// WriteRecord replaces run.json atomically.
func (d *Dir) WriteRecord(r *Record) error {
	b, err := r.Encode()
	if err != nil {
		return err
	}
	return checkpoint.WriteFile(d.fs, d.File(RecordFile), b)
}

// WriteResult replaces result.json atomically.
func (d *Dir) WriteResult(r *Result) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return checkpoint.WriteFile(d.fs, d.File(ResultFile), append(b, '\n'))
}

// RemoveResult removes the result of the run up to now, if there is one.
func (d *Dir) RemoveResult() error { return d.remove(ResultFile) }

// WriteResident replaces the list of the rows that the host cache holds of a table with the output
// of write. Tables are numbered from 0.
func (d *Dir) WriteResident(table int, write func(io.Writer) error) error {
	return checkpoint.WriteBy(d.fs, d.residentFile(table), write)
}

// OpenResident opens the list that WriteResident wrote.
func (d *Dir) OpenResident(table int) (io.ReadCloser, error) {
	return checkpoint.Open(d.fs, d.residentFile(table))
}

func (d *Dir) residentFile(table int) string {
	if table == 0 {
		return d.File(ResidentFile)
	}
	return d.File(fmt.Sprintf("%s.%d", ResidentFile, table))
}

// remove deletes a file of the run, if it is there.
func (d *Dir) remove(name string) error {
	if err := d.fs.Remove(d.File(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("run directory: %w", err)
	}
	return nil
}

// saveWeights replaces a file of tensors atomically.
func (d *Dir) saveWeights(name string, tensors []checkpoint.Tensor, meta map[string]string) error {
	return checkpoint.Save(d.fs, d.File(name), tensors, meta)
}

// Explain adds to the error of a full disk, or a full quota, how to go on: everything that the run
// has on record is still there. Other errors it returns as they are.
func (d *Dir) Explain(err error) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	return fmt.Errorf("%w; make room, then go on with gnnstore train {resume} {run} %s", err, d.run())
}

// About puts the run's path in front of an error, unless the error begins with the run or one of
// its files.
func (d *Dir) About(err error) error {
	const separator = string(filepath.Separator)
	for _, begins := range []string{"run " + d.path + ":", d.path + ":", d.path + separator, "read checkpoint " + d.path + separator} {
		if strings.HasPrefix(err.Error(), begins) {
			return err
		}
	}
	return fmt.Errorf("run %s: %w", d.path, err)
}

// Scratch makes an empty directory of this name for the run; done removes it.
func (d *Dir) Scratch(name string) (path string, done func(), err error) {
	path = d.File(name)
	if err := errors.Join(d.fs.RemoveAll(path), d.fs.MkdirAll(path, 0o777)); err != nil {
		return "", nil, fmt.Errorf("run directory: %w", err)
	}
	return path, func() { _ = d.fs.RemoveAll(path) }, nil // if it stays, the next run removes it
}

// CheckpointName returns the name, as in Checkpoints, of the checkpoint after this many updates.
func CheckpointName(updates int) string { return fmt.Sprintf(checkpointName, CheckpointDir, updates) }

// HistoryName returns the name of the file beside a checkpoint that has the kept hidden rows, in
// runs that keep some.
func HistoryName(checkpoint string) string {
	return strings.TrimSuffix(checkpoint, ".safetensors") + historyEnd
}

const historyEnd = ".history"

// MakeCheckpointDir makes the directory of checkpoints, unless it is there.
func (d *Dir) MakeCheckpointDir() error {
	if err := d.fs.MkdirAll(d.File(CheckpointDir), 0o777); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	return syncDir(d.fs, d.path)
}

// AddCheckpoint writes the checkpoint after this many updates, then removes all but the newest
// keep.
func (d *Dir) AddCheckpoint(updates int, tensors []checkpoint.Tensor, meta map[string]string, keep int) error {
	if err := d.MakeCheckpointDir(); err != nil {
		return err
	}
	if err := d.saveWeights(CheckpointName(updates), tensors, meta); err != nil {
		return err
	}
	names, err := d.Checkpoints()
	if err != nil {
		return err
	}
	return d.RemoveCheckpoints(names[:max(0, len(names)-keep)])
}

// RemoveCheckpoints deletes checkpoints by their names in [Dir.Checkpoints], and the files beside
// them. None of them comes back after a crash.
func (d *Dir) RemoveCheckpoints(names []string) error {
	for _, name := range names {
		if err := errors.Join(d.remove(name), d.remove(HistoryName(name))); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		return nil
	}
	return syncDir(d.fs, d.File(CheckpointDir))
}

// keepHistory removes history files of a worker other than 0. It keeps the newest keep files whose
// checkpoints have at most this many updates. It removes all others, and half-written files.
func (d *Dir) keepHistory(updates, keep int) error {
	names, err := d.fs.List(d.File(CheckpointDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("run directory: %w", err)
	}
	var of []int
	for _, name := range names {
		var n int
		if _, err := fmt.Sscanf(name, "%d"+historyEnd, &n); err == nil {
			of = append(of, n)
		}
		if strings.HasSuffix(name, ".tmp") {
			if err := d.remove(filepath.Join(CheckpointDir, name)); err != nil {
				return err
			}
		}
	}
	slices.Sort(of)
	slices.Reverse(of)
	for _, n := range of {
		if n <= updates && keep > 0 {
			keep--
		} else if err := d.remove(HistoryName(CheckpointName(n))); err != nil {
			return err
		}
	}
	return nil
}

// removeHalves deletes what a killed run left half written: history files without their checkpoint,
// temporary files, which would be replaced only if the run wrote the same file again, and rows of
// an evaluation that begins anew.
func (d *Dir) removeHalves() error {
	layers, _ := d.fs.List(d.File(LayerDir)) // or there are none
	for _, name := range layers {
		if ours, _ := filepath.Match("layer-[0-9]*", name); ours || name == layerLock {
			if err := d.fs.RemoveAll(filepath.Join(d.File(LayerDir), name)); err != nil {
				return fmt.Errorf("run directory: %w", err)
			}
		}
	}
	_ = d.fs.Remove(d.File(LayerDir)) // it stays where somebody has put something there
	for _, dir := range []string{"", CheckpointDir} {
		names, err := d.fs.List(d.File(dir))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("run directory: %w", err)
		}
		for _, name := range names {
			of, beside := strings.CutSuffix(name, historyEnd)
			if strings.HasSuffix(name, ".tmp") || beside && !slices.Contains(names, of+".safetensors") {
				if err := d.remove(filepath.Join(dir, name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Checkpoints lists the checkpoints, the oldest first.
func (d *Dir) Checkpoints() ([]string, error) {
	files, err := d.fs.List(d.File(CheckpointDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	updates := map[string]int{}
	var names []string
	for _, f := range files {
		var n int
		name := CheckpointDir + "/" + f
		_, err := fmt.Sscanf(f, "%d.safetensors", &n)
		if err == nil && CheckpointName(n) == name {
			names = append(names, name)
			updates[name] = n
		}
	}
	slices.SortFunc(names, func(a, b string) int { return updates[a] - updates[b] })
	return names, nil
}

// Newest returns the path of the newest checkpoint, or "" if there is none.
func (d *Dir) Newest() string {
	names, err := d.Checkpoints()
	if err != nil || len(names) == 0 {
		return ""
	}
	return d.File(names[len(names)-1])
}

// Read returns the result of the run in path, or the result so far if the run has not ended. Before
// the first step it returns [ErrNoStep], with a result that has only what run.json says, or nil if
// run.json is missing.
func Read(path string) (*Result, error) {
	root, err := lookRoot(path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	r, err := readResult(root, path)
	if !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	return readSoFar(root, path)
}

func readResult(fsys vfs.FS, path string) (*Result, error) {
	b, err := readFile(fsys, filepath.Join(path, ResultFile))
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", path, err)
	}
	r := new(Result)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("run %s: %s is damaged: %w; remove it, and train {resume} makes it again",
			path, ResultFile, err)
	}
	r.Run = path // it may have been moved
	return r, nil
}

// ours has the locks, by Absolute path, that this process holds in run directories.
var ours sync.Map

// held reports whether a run is at work in a directory: whether somebody holds its lock file, or
// the lock of the directory itself. It only queries the lock file: taking that lock, even for a
// moment, would turn away a run that begins just then, and needs write permission. On the directory
// it takes a lock for a moment, and flockDir waits for that.
func held(fsys vfs.FS, run string) bool {
	lock := filepath.Join(run, runLock)
	if _, ok := ours.Load(Absolute(lock)); ok { // and must not be opened: closing it would give up the lock
		return true
	}
	if f, err := fsys.OpenDir(run); err == nil {
		defer f.Close()
		if f.Fd() != vfs.InvalidFd && unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == unix.EWOULDBLOCK {
			return true
		}
	}
	f, err := fsys.Open(lock)
	if err != nil {
		return false
	}
	defer f.Close()
	if f.Fd() == vfs.InvalidFd {
		return false
	}
	l := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart} // the whole file, as rootFS locks it
	err = unix.FcntlFlock(f.Fd(), unix.F_GETLK, &l)
	return err == nil && l.Type != unix.F_UNLCK
}

func readFile(fsys vfs.FS, path string) ([]byte, error) {
	f, err := checkpoint.Open(fsys, path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	return b, errors.Join(err, f.Close())
}

// AllAbsolute returns paths with Absolute of each, or nil if there are none.
func AllAbsolute(paths map[string]string) map[string]string {
	if len(paths) == 0 {
		return nil
	}
	all := map[string]string{}
	for name, path := range paths {
		all[name] = Absolute(path)
	}
	return all
}

// Absolute returns path in a form that is valid from any working directory. An empty path stays
// empty.
func Absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil && path != "" {
		return abs
	}
	return path // the working directory is gone, so it cannot be made absolute
}
