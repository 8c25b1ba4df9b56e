package main

import (
	"compress/gzip"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed run.sh
var script []byte

// mostBytes limits the folder: a borrowed machine takes 64 MiB, and some 20 are the repository.
const mostBytes = 40 << 20

// pack builds the programs, and writes them compressed to folder, with the script that runs them.
// The working directory is the root of the repository.
func pack(stdout io.Writer, folder string) error {
	total := int64(len(script))
	scripts := map[string][]byte{"pyg.py": nil, "pyg_loader.py": nil}
	for name := range scripts {
		text, err := os.ReadFile(filepath.Join("tools/cuda", name))
		if err != nil {
			return fmt.Errorf("run it in the root of the repository: %w", err)
		}
		scripts[name], total = text, total+int64(len(text))
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "pack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	for _, p := range []struct{ name, command string }{
		{"gpu", "build"}, {"gnnstore-cuda", "build -tags cuda"}, {"cuda.test", "test -c -tags cuda"},
		{"step", "build -tags cuda"},
	} {
		made := filepath.Join(work, p.name)
		args := append(strings.Fields(p.command), "-trimpath", "-ldflags=-s -w", "-o", made, packages[p.name])
		build := exec.Command("go", args...)
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
		}
		n, err := compress(made, filepath.Join(folder, p.name+".gz"))
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%s.gz: %.1f MiB\n", p.name, float64(n)/(1<<20))
		total += n
	}
	if total > mostBytes {
		return fmt.Errorf("%d bytes, and a machine takes %d", total, mostBytes)
	}
	errs := []error{os.WriteFile(filepath.Join(folder, "run.sh"), script, 0o777)}
	for name, text := range scripts {
		errs = append(errs, os.WriteFile(filepath.Join(folder, name), text, 0o666))
	}
	return errors.Join(errs...)
}

// packages has what each program is built of.
var packages = map[string]string{
	"gpu": "./tools/gpu", "gnnstore-cuda": "./cmd/gnnstore", "cuda.test": "./kernels/cuda",
	"step": "./tools/gpu/step",
}

// compress writes a file compressed to another, and returns the bytes of that.
func compress(from, to string) (bytes int64, err error) {
	in, err := os.Open(from)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	z, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return 0, err
	}
	if _, err := io.Copy(z, in); err != nil {
		return 0, err
	}
	if err := z.Close(); err != nil {
		return 0, err
	}
	info, err := out.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
