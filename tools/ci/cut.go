package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/run"
)

// cutFile has run directories that an earlier commit left when its trainings were interrupted in
// the middle of their second epoch. Every later commit must finish them as if nothing had happened.
const cutFile = "tools/ci/cut.tar.zst"

// cutName is the folder of a run in cutFile.
func (r recordedRun) cutName() string {
	return strings.NewReplacer(", ", "-", " ", "-").Replace(r.name)
}

// cut trains r until the middle of its second epoch, in dir.
func (r recordedRun) cut(ctx context.Context, ds *store.Dataset, dir string) error {
	o, err := r.trainOptions()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	result, err := trainIn(ctx, ds, func() (*run.Dir, error) { return run.Create(dir) }, o, func(epoch, step, steps int) {
		if epoch == 2 && step == steps/2 {
			stop()
		}
	})
	if err == nil && result.Status != run.Interrupted {
		err = errors.New("it went on to its end")
	}
	return err
}

// finish resumes the run in dir, and compares its end with want, the result of a whole run.
func (r recordedRun) finish(ctx context.Context, ds *store.Dataset, dir string, want any) error {
	o, err := r.trainOptions()
	if err != nil {
		return err
	}
	result, err := trainIn(ctx, ds, func() (*run.Dir, error) {
		d, _, err := run.Open(dir)
		return d, err
	}, o, nil)
	if err != nil {
		return err
	}
	got, err := timeless(result)
	if err != nil {
		return err
	}
	return compare("", ends(want), ends(got))
}

// ends returns the parts of a result that are the same for a run that was interrupted.
func ends(result any) map[string]any {
	all, _ := result.(map[string]any)
	of := map[string]any{}
	for _, key := range []string{"params_xxh3", "losses", "best"} {
		of[key] = all[key]
	}
	return of
}

// writeCut replaces cutFile by interrupted trainings of this commit. Do so only if a change is
// meant to change results, or to end the resuming of older runs.
func (a *arxiv) writeCut(ctx context.Context, datasets map[string]string) (err error) {
	dir := filepath.Join(a.tmp, "cut anew")
	unfinished := cutFile + ".tmp"
	f, err := os.Create(unfinished)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err == nil {
			err = os.Rename(unfinished, cutFile)
		} else {
			err = errors.Join(err, os.Remove(unfinished))
		}
	}()
	z, err := zstd.NewWriter(f, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return err
	}
	w := tar.NewWriter(z)
	for _, r := range smallRuns() {
		if err := withDataset(datasets[r.dataset], func(ds *store.Dataset) error {
			return r.cut(ctx, ds, filepath.Join(dir, r.cutName()))
		}); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return errors.Join(w.AddFS(os.DirFS(dir)), w.Close(), z.Close())
}

// finishCut finishes the runs of cutFile and returns how many there are. got has the results of
// whole runs.
func (a *arxiv) finishCut(ctx context.Context, datasets map[string]string, got map[string]any) (n int, err error) {
	dir := filepath.Join(a.tmp, "cut")
	if err := unpack(cutFile, dir); err != nil {
		return 0, fmt.Errorf("%s: %w", cutFile, err)
	}
	for _, r := range smallRuns() {
		at := filepath.Join(dir, r.cutName())
		if _, err := os.Stat(at); err != nil {
			return n, fmt.Errorf("%s lacks %s: go run ./tools/ci record -write", cutFile, r.cutName())
		}
		if err := withDataset(datasets[r.dataset], func(ds *store.Dataset) error {
			return r.finish(ctx, ds, at, got[r.name])
		}); err != nil {
			return n, fmt.Errorf("%s, resumed: %w", r.name, err)
		}
		n++
	}
	return n, nil
}

// smallRuns are the recorded runs whose datasets are small.
func smallRuns() (small []recordedRun) {
	for _, r := range recordedRuns {
		if r.dataset != "large" {
			small = append(small, r)
		}
	}
	return small
}

// unpack writes the files of a packed tar archive into dir.
func unpack(archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		return err
	}
	defer z.Close()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeDir {
			err = root.MkdirAll(strings.TrimSuffix(h.Name, "/"), 0o777)
		} else {
			err = copyTo(root, h.Name, r)
		}
		if err != nil {
			return err
		}
	}
}

// copyTo writes what from has to a new file.
func copyTo(root *os.Root, name string, from io.Reader) error {
	f, err := root.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}
