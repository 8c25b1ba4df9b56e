package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/ingest/export"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/tools/cli"
)

// flips flips bits of a dataset that has edge weights, ids that are texts and several labels a
// node: one at a time, in every file, and by every disk engine in turn. Training and export must
// then end in one line that says why, or come to the weights, losses, metrics and files of the
// whole dataset, bit for bit.
func flips(ctx context.Context, a *arxiv) error {
	f := flipper{arxiv: a, dataset: filepath.Join(a.tmp, "flips.gnn"), want: map[string]string{}}
	if err := f.make(); err != nil {
		return err
	}
	for _, what := range f.outcomes() {
		got, err := what.run(ctx)
		if err != nil {
			return err
		}
		f.want[what.name] = got
	}
	var files []string
	err := filepath.WalkDir(f.dataset, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(a.seed, 1))
	refused, same := 0, 0
	for i := range a.times {
		damage, err := flip(files[i%len(files)], rng)
		if err != nil {
			return err
		}
		f.damaged = strings.TrimPrefix(filepath.ToSlash(files[i%len(files)]), filepath.ToSlash(f.dataset)+"/")
		outcomes := f.outcomes()
		engines, exports := outcomes[:len(outcomes)-len(formats)], outcomes[len(outcomes)-len(formats):]
		// Over len(files) flips each file meets one engine and one format, and over the next the
		// next.
		for _, what := range []outcome{engines[(i+i/len(files))%len(engines)], exports[(i+i/len(files))%len(exports)]} {
			got, err := what.run(ctx)
			switch {
			case errors.Is(err, errRefused):
				refused++
			case err != nil:
				return fmt.Errorf("%s, %s: %w", damage.what, what.name, err)
			case got != f.want[what.name]:
				return fmt.Errorf("%s: %s comes to another result without a word: %s, want %s", damage.what, what.name, got, f.want[what.name])
			default:
				same++
			}
		}
		if err := damage.undo(); err != nil {
			return err
		}
		f.damaged = ""
	}
	for _, what := range f.outcomes() { // all flips were undone
		got, err := what.run(ctx)
		if err != nil {
			return fmt.Errorf("after all flips were undone: %s: %w", what.name, err)
		}
		if got != f.want[what.name] {
			return fmt.Errorf("after all flips were undone, %s comes to %s, want %s", what.name, got, f.want[what.name])
		}
	}
	fmt.Printf("%d bits flipped in %d files (seed %d): of %d runs and exports %d were refused in one line, and %d came to the same result\n",
		a.times, len(files), a.seed, 2*a.times, refused, same)
	if refused == 0 {
		return errors.New("no flip was noticed")
	}
	return nil
}

// flipper is flips under way.
type flipper struct {
	*arxiv
	dataset string
	want    map[string]string // by the name of an outcome
	damaged string            // file inside the dataset, empty when none is
}

// make seals the dataset.
func (f *flipper) make() error {
	w, err := store.Create(f.dataset, store.WriterOptions{ShardBytes: 64 << 10})
	if err != nil {
		return err
	}
	spec := storetest.Communities(3000, 5, 8, 40, 7)
	class := spec.Class
	spec.Bits = func(v int) []uint8 {
		bits := make([]uint8, spec.Classes)
		bits[class(v)], bits[v%3] = 1, 1
		return bits
	}
	spec.Name = func(v int) string { return fmt.Sprintf("user %d", v*v) }
	spec.Weight = func(v, i int) float32 { return 1 + float32((v+i)%5) }
	_, err = storetest.Write(w, spec)
	return err
}

// outcome is something that a user does with the dataset, and what it comes to.
type outcome struct {
	name string
	run  func(ctx context.Context) (string, error)
}

var formats = []export.Format{export.NPY, export.Parquet, export.GraphBolt}

// errRefused is of a command that ended as it has to: with one line.
var errRefused = errors.New("refused")

// outcomes are training by each engine, then export in each of formats.
func (f *flipper) outcomes() (list []outcome) {
	for _, engine := range disk.Kinds[1:] {
		list = append(list, outcome{"train by " + string(engine), func(ctx context.Context) (string, error) {
			run, err := os.MkdirTemp(f.tmp, "run-")
			if err != nil {
				return "", err
			}
			defer os.RemoveAll(run)
			out, err := f.do(ctx, "train", f.dataset, "--run", run, "--json", "--weighted", "--disk-engine", string(engine),
				"--host-memory", "16KiB", "--topology-memory", "16KiB", "--layers", "2", "--hidden", "16", "--fanout", "5,5",
				"--batch", "200", "--epochs", "2", "--seed", "1")
			if err != nil {
				return "", err
			}
			return results(out)
		}})
	}
	for _, format := range formats {
		list = append(list, outcome{"export as " + string(format), func(ctx context.Context) (string, error) {
			out := filepath.Join(f.tmp, "exported")
			_, err := f.do(ctx, "export", f.dataset, out, "--format", string(format))
			if err != nil {
				for _, left := range []string{out, out + ".partial"} {
					if _, serr := os.Lstat(left); !errors.Is(serr, fs.ErrNotExist) {
						return "", fmt.Errorf("%s is left: %v", left, err)
					}
				}
				return "", err
			}
			sum, err := hashOf(out)
			return sum, errors.Join(err, os.RemoveAll(out))
		}})
	}
	return list
}

// do runs gnnstore and returns its output. The error is errRefused where it failed as it has to,
// naming the damaged file.
func (f *flipper) do(ctx context.Context, args ...string) ([]byte, error) {
	out, refusal, err := cli.Outcome(f.gnnstore.Command(ctx, args...))
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil || refusal == "":
		return out, err
	case f.damaged == "" || !strings.Contains(refusal, f.damaged):
		return nil, fmt.Errorf("refused without the name of the file: %s", refusal)
	}
	return nil, errRefused
}

// results are losses, metrics and the hash of the weights in what train prints.
func results(out []byte) (string, error) {
	var r struct {
		Epochs []map[string]any `json:"epochs"`
		Best   map[string]any   `json:"best"`
		Params string           `json:"params_xxh3"`
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return "", err
	}
	for _, epoch := range r.Epochs {
		delete(epoch, "seconds")
		delete(epoch, "limiting_stage") // by the clock too
	}
	if len(r.Epochs) != 2 || r.Params == "" {
		return "", fmt.Errorf("want two epochs and a hash of the weights, not %.200q", out)
	}
	b, err := json.Marshal(r)
	return string(b), err
}

// hashOf is a hash of the names and the bytes of all files in a folder.
func hashOf(dir string) (string, error) {
	var h xxh3.Hasher
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		_, _ = fmt.Fprintf(&h, "%s %d\n", path, len(b))
		_, _ = h.Write(b)
		return err
	})
	return fmt.Sprintf("%016x", h.Sum64()), err
}

// damage is a flipped bit.
type damage struct {
	what string
	undo func() error
}

// flip flips a bit of a file: one time in two of a byte that is not zero, since most of a small
// section is padding.
func flip(path string, rng *rand.Rand) (*damage, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	at, bit := rng.IntN(len(b)), rng.IntN(8)
	for wanted := rng.IntN(2) == 0; wanted && b[at] == 0; {
		at = rng.IntN(len(b))
	}
	put := func(v byte) error {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte{v}, int64(at))
		return errors.Join(err, f.Close())
	}
	d := &damage{fmt.Sprintf("%s, byte 0x%x, bit %d", path, at, bit), func() error { return put(b[at]) }}
	return d, put(b[at] ^ 1<<bit)
}
