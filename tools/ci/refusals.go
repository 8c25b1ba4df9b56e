package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gnnstore/gnnstore/tools/cli"
)

// noSpace lets ingest and train run into a full disk: each says so in one line and exits 1, and ingest leaves nothing.
func noSpace(ctx context.Context, a *arxiv) error {
	if os.Geteuid() != 0 {
		fmt.Println("skipped: no root, and a file system of a few MB takes one to mount")
		return nil
	}
	full, unmount, err := tmpfs(ctx, a.tmp, "4m")
	if err != nil {
		return err
	}
	message, err := refusedForSpace(a.gnnstore.Command(ctx, a.ingestArgs(filepath.Join(full, "out.gnn"))...))
	left, listErr := os.ReadDir(full)
	if err := errors.Join(err, listErr, unmount()); err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("ingest left %v on the full disk", left)
	}
	fmt.Println("ingest:", message)

	dataset, err := a.dataset(ctx, "arxiv.gnn")
	if err != nil {
		return err
	}
	if full, unmount, err = tmpfs(ctx, a.tmp, "16k"); err != nil {
		return err
	}
	message, err = refusedForSpace(a.gnnstore.Command(ctx, trainArgs(dataset, "1", "--run", filepath.Join(full, "run"))...))
	if err := errors.Join(err, unmount()); err != nil {
		return err
	}
	fmt.Println("train:", message)
	return nil
}

func refusedForSpace(cmd *exec.Cmd) (string, error) {
	message, err := cli.Refused(cmd)
	if err == nil && !strings.Contains(message, "space") {
		err = fmt.Errorf("%s: %q does not say that space is short", strings.Join(cmd.Args, " "), message)
	}
	return message, err
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

// readOnly uses a dataset that may only be read, as an ordinary user does: to root no directory is read-only.
func readOnly(ctx context.Context, a *arxiv) error {
	if os.Geteuid() != 0 {
		fmt.Println("skipped: no root, and another user is one to become")
		return nil
	}
	if _, err := exec.LookPath("setpriv"); err != nil {
		return fmt.Errorf("becoming an ordinary user takes setpriv, of util-linux: %w", err)
	}
	nobody := func(args ...string) *exec.Cmd {
		become := []string{"--reuid", "65534", "--regid", "65534", "--clear-groups", string(a.gnnstore)}
		return exec.CommandContext(ctx, "setpriv", append(become, args...)...)
	}
	dataset, err := a.dataset(ctx, "arxiv.gnn", "--undirected")
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
		trainArgs(dataset, "1", "--run", filepath.Join(a.tmp, "run")),
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
	return nil
}
