package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gnnstore/gnnstore/tools/cli"
	"github.com/gnnstore/gnnstore/tools/resume"
)

// noSpace lets ingest and train run into a full disk: each says so in one line and exits 1. Ingest
// leaves nothing, and a run goes on once there is room.
func noSpace(ctx context.Context, a *arxiv) error {
	if os.Geteuid() != 0 {
		fmt.Println("skipped: no root, and a file system of a few MB takes one to mount")
		return nil
	}
	if err := noSpaceAtAll(ctx, a); err != nil {
		return err
	}
	if err := noSpaceLeft(ctx, a); err != nil {
		return err
	}
	if err := noSpaceToTrain(ctx, a); err != nil {
		return err
	}
	return noSpaceToCheckpoint(ctx, a)
}

// noSpaceAtAll gives ingest a disk that is too small from the start.
func noSpaceAtAll(ctx context.Context, a *arxiv) error {
	disk, unmount, err := tmpfs(ctx, a.tmp, "4m")
	if err != nil {
		return err
	}
	message, err := cli.Refused(a.gnnstore.Command(ctx, a.ingestArgs(filepath.Join(disk, "out.gnn"))...))
	left, listErr := os.ReadDir(disk)
	if err := errors.Join(err, listErr, unmount()); err != nil {
		return err
	}
	if !strings.Contains(message, "free") || len(left) > 0 {
		return fmt.Errorf("ingest into 4 MiB: %q does not say what is free, or %v is left", message, left)
	}
	fmt.Println("ingest into 4 MiB:", message)
	return nil
}

// noSpaceLeft fills the disk once ingest has found it large enough and begun to write.
func noSpaceLeft(ctx context.Context, a *arxiv) error {
	disk, unmount, err := tmpfs(ctx, a.tmp, "64m")
	if err != nil {
		return err
	}
	out := filepath.Join(disk, "out.gnn")
	filled := make(chan error, 1)
	started, stop := context.WithCancel(ctx)
	go func() {
		filled <- fillAfter(started, filepath.Join(disk, "filler"), filepath.Join(out+".partial", "topo"))
	}()
	message, err := cli.Refused(a.gnnstore.Command(ctx, a.ingestArgs(out)...))
	stop()
	left, listErr := os.ReadDir(disk)
	if err := errors.Join(err, <-filled, listErr, unmount()); err != nil {
		return err
	}
	if !strings.Contains(message, "no space left on device") || len(left) != 1 {
		return fmt.Errorf("ingest into a disk that fills up: %q does not say so, or more is left than the filler: %v", message, left)
	}
	fmt.Println("ingest into a disk that fills up:", message)
	return nil
}

// fillAfter waits for a sign and then fills the disk.
func fillAfter(ctx context.Context, file, sign string) error {
	for !exists(sign) {
		select {
		case <-ctx.Done():
			return errors.New("ingest ended before it wrote anything")
		case <-time.After(time.Millisecond):
		}
	}
	return fill(file)
}

// fill writes zeros to file until the disk is full.
func fill(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	for chunk := make([]byte, 1<<20); len(chunk) > 0; {
		if _, err := f.Write(chunk); errors.Is(err, syscall.ENOSPC) {
			chunk = chunk[:len(chunk)/2]
		} else if err != nil {
			return err
		}
	}
	return nil
}

// noSpaceToTrain gives a run no room for its record and its weights.
func noSpaceToTrain(ctx context.Context, a *arxiv) error {
	dataset, err := a.dataset(ctx, directed)
	if err != nil {
		return err
	}
	disk, unmount, err := tmpfs(ctx, a.tmp, "16k")
	if err != nil {
		return err
	}
	message, err := cli.Refused(a.gnnstore.Command(ctx, trainArgs(dataset, "1", "--json", "--run", filepath.Join(disk, "run"))...))
	if err := errors.Join(err, unmount()); err != nil {
		return err
	}
	if !strings.Contains(message, "no space left on device") {
		return fmt.Errorf("train into 16 KiB: %q does not say that space is short", message)
	}
	fmt.Println("train into 16 KiB:", message)
	return nil
}

// noSpaceToCheckpoint fills the disk of a run that has a checkpoint, and makes room again.
func noSpaceToCheckpoint(ctx context.Context, a *arxiv) error {
	return a.prove(ctx, func(p *resume.Prover) error { return a.fullDisk(ctx, p, resume.Configs[0]) })
}

// fullDisk is Prover.FullDisk on a file system of its own.
func (a *arxiv) fullDisk(ctx context.Context, p *resume.Prover, c resume.Config) error {
	disk, unmount, err := tmpfs(ctx, a.tmp, "4m")
	if err != nil {
		return err
	}
	filler := filepath.Join(disk, "filler")
	message, err := p.FullDisk(ctx, c, filepath.Join(disk, "run"),
		func() error { return fill(filler) }, func() error { return os.Remove(filler) })
	if err == nil {
		fmt.Println("train on a disk that fills up:", message)
	}
	return errors.Join(err, unmount())
}

// tmpfs mounts an empty file system of a fixed size below dir.
func tmpfs(ctx context.Context, dir, size string) (path string, unmount func() error, err error) {
	if path, err = os.MkdirTemp(dir, "full-"); err != nil {
		return "", nil, err
	}
	if out, err := exec.CommandContext(ctx, "mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", path).CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("mount a tmpfs: %w: %s", err, out)
	}
	return path, func() error {
		// Not under ctx: a signal must not leave the mount behind.
		if out, err := exec.Command("umount", path).CombinedOutput(); err != nil {
			return fmt.Errorf("umount %s: %w: %s", path, err, out)
		}
		return nil
	}, nil
}

// readOnly uses a dataset that may only be read, as an ordinary user does: to root no directory is
// read-only.
func readOnly(ctx context.Context, a *arxiv) error {
	if os.Geteuid() != 0 {
		fmt.Println("skipped: no root, and another user is one to become")
		return nil
	}
	if _, err := exec.LookPath("setpriv"); err != nil {
		return fmt.Errorf("becoming an ordinary user takes setpriv, of util-linux: %w", err)
	}
	nobody := func(args ...string) *exec.Cmd { return asNobody(ctx, string(a.gnnstore), args...) }
	dataset, err := a.dataset(ctx, directed)
	if err != nil {
		return err
	}
	runs := filepath.Join(a.tmp, "runs")
	if err := errors.Join(os.Mkdir(runs, 0o777), os.Chmod(runs, 0o777), os.Chmod(a.tmp, 0o755)); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"verify", dataset},
		{"inspect", dataset},
		trainArgs(dataset, "1", "--run", filepath.Join(runs, "one")),
	} {
		if out, err := nobody(args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s of a dataset that belongs to someone else: %w\n%s", args[0], err, out)
		}
		fmt.Printf("%s: reads it\n", args[0])
	}
	for _, args := range [][]string{
		a.ingestArgs(filepath.Join(a.tmp, "out.gnn")),
		trainArgs(dataset, "1", "--json", "--run", filepath.Join(a.tmp, "run")),
	} {
		message, err := cli.Refused(nobody(args...))
		if err != nil {
			return err
		}
		if !strings.Contains(message, "permission denied") {
			return fmt.Errorf("%s into a directory of someone else: %q does not say that permission is denied", args[0], message)
		}
		fmt.Printf("%s: %s\n", args[0], message)
	}
	return testReadOnly(ctx, a)
}

// testReadOnly runs the test of package graph that root passes over.
func testReadOnly(ctx context.Context, a *arxiv) error {
	binary := filepath.Join(a.tmp, "train.test")
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, "./train/graph").CombinedOutput(); err != nil {
		return fmt.Errorf("go test -c ./train/graph: %w\n%s", err, out)
	}
	dir := filepath.Join(a.tmp, "runs")
	cmd := asNobody(ctx, binary, "-test.run", "ReadOnly", "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") || strings.Contains(string(out), "--- SKIP") {
		return fmt.Errorf("train's test of read-only directories, as an ordinary user: %v\n%s", err, out)
	}
	fmt.Println("train's test of read-only directories: passed")
	return nil
}

// asNobody is a command run by an ordinary user.
func asNobody(ctx context.Context, program string, args ...string) *exec.Cmd {
	become := []string{"--reuid", "65534", "--regid", "65534", "--clear-groups", program}
	return exec.CommandContext(ctx, "setpriv", append(become, args...)...)
}
