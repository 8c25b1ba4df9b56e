package build

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestFullDisk fails the n-th operation that may need space, for every n: nothing is left.
func TestFullDisk(t *testing.T) {
	for n := int32(0); ; n++ {
		dir := t.TempDir()
		inj := errorfs.OnIndex(n)
		fsys := errorfs.Wrap(storetest.NoSync, errorfs.InjectorFunc(func(op errorfs.Op) error {
			switch op.Kind {
			case errorfs.OpCreate, errorfs.OpMkdirAll, errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFileSync, errorfs.OpRename:
				if inj.MaybeError(op) != nil {
					return &fs.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
				}
			}
			return nil
		}))
		path := filepath.Join(dir, "x.gnn")
		_, err := Build(context.Background(), small(), path, Options{FS: fsys})
		if err == nil {
			require.Greater(t, n, int32(30))
			return
		}
		require.ErrorIs(t, err, syscall.ENOSPC, "operation %d", n)
		require.NotContains(t, err.Error(), "\n", "one line")
		if _, openErr := store.Open(path); openErr != nil { // past the rename it is there, whole, and Build could not promise it
			requireEmpty(t, dir)
		}
	}
}

// TestSourceFailsAnywhere ends the source at each chunk, by its own error and by cancelling: the
// error comes back as it is, and nothing is left.
func TestSourceFailsAnywhere(t *testing.T) {
	broken := errors.New("feat.csv: the disk came off")
	for _, cancelled := range []bool{false, true} {
		for n := 0; ; n++ {
			dir := t.TempDir()
			ctx, cancel := context.WithCancel(context.Background())
			src, chunks := external(), 0
			src.before = func(string, int) error {
				if chunks++; chunks <= n {
					return nil
				}
				if cancelled {
					cancel()
					return nil
				}
				return broken
			}
			_, err := Build(ctx, src, filepath.Join(dir, "x.gnn"), Options{FS: storetest.NoSync})
			cancel()
			if err == nil {
				require.Greater(t, n, 8)
				break
			}
			if cancelled {
				require.ErrorIs(t, err, context.Canceled)
			} else {
				require.Equal(t, broken, err)
			}
			requireEmpty(t, dir)
		}
	}
}

// TestCancelWithoutChunks cancels in the stages that read nothing.
func TestCancelWithoutChunks(t *testing.T) {
	stages := map[string]bool{}
	o := Options{Features: "fastrp:4", FS: storetest.NoSync}
	o.Progress = func(p ingest.Progress) { stages[p.Stage] = true }
	_, err := Build(context.Background(), small(), filepath.Join(t.TempDir(), "x.gnn"), o)
	require.NoError(t, err)
	require.Contains(t, stages, "embed nodes")
	for stage := range stages {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(context.Background())
		o.Progress = func(p ingest.Progress) {
			if p.Stage == stage {
				cancel()
			}
		}
		_, err := Build(ctx, small(), filepath.Join(dir, "x.gnn"), o)
		cancel()
		require.ErrorIs(t, err, context.Canceled, stage)
		requireEmpty(t, dir)
	}
}

func TestProgress(t *testing.T) {
	var calls []ingest.Progress
	src := small()
	src.chunk = 1
	_, rep := build(t, src, Options{Progress: func(p ingest.Progress) { calls = append(calls, p) }})
	done := map[string]ingest.Progress{}
	for _, p := range calls {
		require.GreaterOrEqual(t, p.Done, done[p.Stage].Done)
		done[p.Stage] = p
	}
	require.Equal(t, ingest.Progress{Stage: "read paper__cites__paper", Done: 8, Total: 8, Unit: "edges"}, done["read paper__cites__paper"])
	require.Equal(t, ingest.Progress{Stage: "write features paper/feat", Done: 6, Total: 6, Unit: "rows"}, done["write features paper/feat"])
	require.LessOrEqual(t, len(calls), 12+int(10*rep.Seconds)+1, "one a stage, and ten a second")
}
