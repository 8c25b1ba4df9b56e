package run

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Names in a run directory.
const (
	RecordFile     = "run.json"       // Record, written at the start
	MetricsFile    = "metrics.jsonl"  // a Line an epoch and every so many steps, as they finish
	ResultFile     = "result.json"    // Result, written at the end
	CheckpointDir  = "checkpoints"    // NNNNNNNN.safetensors after that many updates, to resume
	EmbeddingDir   = "embeddings"     // learnt rows, a directory a type
	StateDir       = "state"          // of the nodes of a stream
	ResidentFile   = "cache.resident" // rows of the host cache after the newest epoch; optional
	LayerDir       = "layers"         // hidden rows of a full evaluation, while it lasts
	RehearsalDir   = "rehearsal"      // node state of the steps that staleness auto tries
	LastFile       = "last.safetensors"
	BestFile       = "best.safetensors"
	SocketFile     = "stats.sock" // while the run is shown to others
	SocketPathFile = "stats.addr" // the path of the socket, where the directory cannot have it
	BestWeights    = "best"       // in options, the weights that validation chose
	LastWeights    = "last"       // and the weights of the newest checkpoint
	runLock        = "lock"
	layerLock      = "lock" // in LayerDir
	checkpointName = "%s/%08d.safetensors"
)

// wanted returns the mode that runs give a name in their directory. Other names are the user's and
// may be anything.
func wanted(name string) (mode fs.FileMode, ours bool) {
	switch name = strings.TrimSuffix(name, ".tmp"); name {
	case RecordFile, EncodingsFile, TrainedOnFile, MetricsFile, ResultFile, LastFile, BestFile, runLock, SocketPathFile:
		return 0, true
	case CheckpointDir, EmbeddingDir, StateDir, LayerDir:
		return fs.ModeDir, true
	case SocketFile:
		return fs.ModeSocket, true
	}
	return 0, strings.HasPrefix(name, ResidentFile)
}

// checkNames refuses a directory if a name that runs use is a link, or not of the kind that runs
// make. Each use of a name checks again; this reports the problem before anything else is done.
func (f *rootFS) checkNames() error {
	names, err := f.List(f.path)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		want, ours := wanted(name)
		if !ours {
			continue
		}
		// a run at work may have removed it
		if err := f.checkName(name, want); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (f *rootFS) checkName(name string, want fs.FileMode) error {
	info, err := f.root.Lstat(name)
	if err != nil {
		return f.named(name, err)
	}
	path := filepath.Join(f.path, name)
	switch mode := info.Mode().Type(); {
	case mode == want && want == fs.ModeDir:
		return f.checkTree(path)
	case mode == want:
		return nil
	default:
		if err := notPlain(path, mode); err != nil {
			return err
		}
		return unlike(path, mode, want)
	}
}

// checkTree refuses a directory of the run that holds anything but regular files and directories.
func (f *rootFS) checkTree(path string) error {
	names, err := f.List(path)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		at := filepath.Join(path, name)
		_, info, err := f.look(at)
		if err == nil && info.IsDir() {
			err = f.checkTree(at)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// unlike returns the error for a path that is not of the kind that runs make.
func unlike(path string, is, want fs.FileMode) error {
	kinds := map[fs.FileMode]string{0: "file", fs.ModeDir: "directory", fs.ModeSocket: "socket"}
	return fmt.Errorf("%s: it is a %s, where a run has a %s; %w; remove it", path, kinds[is], kinds[want], errNotPlain)
}
