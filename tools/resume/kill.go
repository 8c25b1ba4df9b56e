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
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/gnnstore/gnnstore/tools/cli"
)

// A Moment waits for the moment to kill a process, while it reads the lines of progress that the
// process writes to stderr. It returns false if the lines end first, as the process does.
type Moment func(lines <-chan string) bool

// Kill runs cmd, and kills it with SIGKILL at the moment. A cmd that ends by itself must succeed.
// printed has its stdout.
func Kill(ctx context.Context, cmd *exec.Cmd, at Moment) (printed []byte, killed bool, err error) {
	return disturb(ctx, cmd, at, (*os.Process).Kill)
}

// disturb runs cmd, and hands its process to act at the moment. killed reports that a signal ended
// it after that.
func disturb(ctx context.Context, cmd *exec.Cmd, at Moment, act func(*os.Process) error) (
	printed []byte, killed bool, err error) {
	var stdout, said bytes.Buffer
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, false, err
	}
	if err := cmd.Start(); err != nil {
		return nil, false, err
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(io.TeeReader(stderr, &said))
		scanner.Split(splitProgress)
		for scanner.Scan() {
			if line := strings.TrimSpace(scanner.Text()); line != "" {
				lines <- line
			}
		}
		_, _ = io.Copy(&said, stderr) // what follows a line that is too long for the scanner
	}()
	came := at(lines)
	if came {
		if err = act(cmd.Process); errors.Is(err, os.ErrProcessDone) { // it ended just now
			err = nil
		}
	}
	never(lines) // reads the rest of them, or cmd would wait for a reader
	ended := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, false, ctx.Err()
	case err != nil:
		return nil, false, err
	case came && cmd.ProcessState.ExitCode() < 0:
		return stdout.Bytes(), true, nil
	case ended != nil:
		return nil, false, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), ended, cli.LastLine(said.Bytes()))
	}
	return stdout.Bytes(), false, nil
}

// never is the Moment that does not come.
func never(lines <-chan string) bool {
	for range lines {
	}
	return false
}

// until returns the Moment when there returns true. It calls there with each line of progress, and
// every millisecond without a line.
func until(there func(line string) bool) Moment {
	return func(lines <-chan string) bool {
		poll := time.NewTicker(time.Millisecond)
		defer poll.Stop()
		for running := true; running; {
			line := ""
			select {
			case line, running = <-lines:
			case <-poll.C:
			}
			if running && there(line) {
				return true
			}
		}
		return false
	}
}

// AtFile is the Moment when a file or directory is there.
func AtFile(path string) Moment { return until(func(string) bool { return exists(path) }) }

// atLine is the Moment when a process writes the nth line of progress, from 0.
func atLine(nth int) Moment {
	seen := 0
	return until(func(line string) bool {
		if line != "" {
			seen++
		}
		return seen > nth
	})
}

// atEvent is the Moment when come is closed. It does not wait for a millisecond to pass.
func atEvent(come <-chan struct{}) Moment {
	return func(lines <-chan string) bool {
		for {
			select {
			case <-come:
				return true
			case _, running := <-lines:
				if !running {
					return false
				}
			}
		}
	}
}

// splitProgress cuts at newlines and at the carriage returns that redraw a line of progress.
func splitProgress(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := slices.IndexFunc(data, func(b byte) bool { return b == '\n' || b == '\r' }); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// InDir calls proof with a temporary directory. If proof fails, the directory stays for a look.
func InDir(ctx context.Context, proof func(dir string) error) (err error) {
	dir, err := os.MkdirTemp("", "gnnstore-resume-")
	if err != nil {
		return err
	}
	defer func() {
		if err == nil || ctx.Err() != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	return proof(dir)
}
