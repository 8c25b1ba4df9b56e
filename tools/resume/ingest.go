package resume

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gnnstore/gnnstore/tools/cli"
)

// Ingest makes datasets and kills what makes them. Its methods run one at a time.
type Ingest struct {
	Binary cli.Binary
	// Args returns the arguments of gnnstore ingest or generate that make a dataset at out,
	// spilling to tmp.
	Args func(out, tmp string) []string
	Dir  string    // holds the datasets
	Out  io.Writer // a line a kill
}

// made has the fields that ingest and generate print.
type made struct {
	Seal    string
	Resumed int
	Passes  []struct{ Name string }
}

// Kill makes a dataset undisturbed. Then it kills the making of the like in every pass, once
// something is written in it, and again in every pass of what goes on, and lets it come to an end:
// alone after one kill each, unless chain is all that is wanted, and after all of them. Seals must
// be equal, verify content, and nothing else left.
func (p *Ingest) Kill(ctx context.Context, chainOnly bool) error {
	var whole made
	out, tmp := filepath.Join(p.Dir, "whole.gnn"), filepath.Join(p.Dir, "tmp")
	if err := os.MkdirAll(tmp, 0o777); err != nil {
		return err
	}
	if err := p.Binary.JSON(ctx, &whole, p.Args(out, tmp)...); err != nil {
		return err
	}
	if err := p.whole(ctx, out, tmp, whole.Seal); err != nil {
		return err
	}
	var passes []string
	for _, pass := range whole.Passes {
		passes = append(passes, pass.Name)
	}
	resumed := 0
	try := func(at []string) error {
		out := filepath.Join(p.Dir, "killed.gnn")
		for _, pass := range at {
			killed, err := p.killIn(ctx, out, tmp, pass, passes)
			if err != nil {
				return err
			}
			fmt.Fprintf(p.Out, "ingest: in %q: killed %v\n", pass, killed)
			if !killed { // it was done, or came to its end first
				break
			}
		}
		var got made
		if _, err := os.Lstat(out); errors.Is(err, fs.ErrNotExist) {
			if err := p.Binary.JSON(ctx, &got, p.Args(out, tmp)...); err != nil {
				return err
			}
			resumed += got.Resumed
			fmt.Fprintf(p.Out, "ingest: went on after %d of %d passes\n", got.Resumed, len(got.Passes))
			if len(got.Passes) != len(passes) {
				return fmt.Errorf("%s: %d passes after kills, want %d", out, len(got.Passes), len(passes))
			}
		}
		return p.whole(ctx, out, tmp, whole.Seal)
	}
	if !chainOnly {
		for _, pass := range passes {
			if err := try([]string{pass}); err != nil {
				return err
			}
		}
	}
	if err := try(passes[:len(passes)-1]); err != nil { // after the last there may be nothing to go on with
		return err
	}
	if resumed == 0 {
		return errors.New("no ingest went on from another: nothing was proved; make it take longer")
	}
	return nil
}

// whole verifies a dataset, wants nothing beside it, and removes it.
func (p *Ingest) whole(ctx context.Context, out, tmp, seal string) error {
	if err := p.Binary.Run(ctx, "verify", out); err != nil {
		return err
	}
	var got cli.Inspected
	if err := p.Binary.JSON(ctx, &got, "inspect", out); err != nil {
		return err
	}
	if got.Seal != seal || seal == "" {
		return fmt.Errorf("%s: seal %s, want %s", out, got.Seal, seal)
	}
	if _, err := os.Lstat(out + ".partial"); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s.partial is left beside a whole dataset", out)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		return errors.Join(err, fmt.Errorf("%s: %d files or directories are left", tmp, len(left)))
	}
	return os.RemoveAll(out)
}

// killIn kills the making of out in a pass, once more is on disk than when it began, or as soon as
// another begins. It says false when it ended before.
func (p *Ingest) killIn(ctx context.Context, out, tmp, pass string, passes []string) (killed bool, err error) {
	cmd := p.Binary.Command(ctx, p.Args(out, tmp)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return false, err
	}
	var said bytes.Buffer
	if err := cmd.Start(); err != nil {
		return false, err
	}
	stages := make(chan string)
	go func() {
		defer close(stages)
		for lines := bufio.NewScanner(io.TeeReader(stderr, &said)); lines.Scan(); {
			stages <- strings.TrimSpace(lines.Text())
		}
	}()
	isPass := map[string]bool{}
	for _, name := range passes {
		isPass[name] = true
	}
	began, inside := int64(0), false
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for open := true; open; {
		reached := false
		var stage string
		select {
		case stage, open = <-stages:
			reached = inside && isPass[stage]
			if stage == pass {
				inside, began = true, onDisk(out+".partial", tmp)
			}
		case <-poll.C:
			reached = inside && onDisk(out+".partial", tmp) > began
		}
		if reached {
			_ = cmd.Process.Kill() // it may have ended just now
			inside = false
		}
	}
	err = cmd.Wait()
	if cmd.ProcessState.ExitCode() < 0 && ctx.Err() == nil {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("gnnstore %s: %w: %s", strings.Join(cmd.Args[1:], " "), err, cli.LastLine(said.Bytes()))
	}
	return false, nil
}

// onDisk are the bytes of the files below directories that change meanwhile.
func onDisk(dirs ...string) (bytes int64) {
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				if fi, err := d.Info(); err == nil {
					bytes += fi.Size()
				}
			}
			return nil // it may be gone, which is nobody's fault
		})
	}
	return bytes
}
