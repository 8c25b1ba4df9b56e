package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/tools/cli"
)

// python is a script that does a turn for every line that it is sent, and answers each with one
// line of JSON. It waits in between, so that both sides have the machine to themselves.
type python struct {
	script string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
	notes  strings.Builder
}

// startPython starts a script, whose first line of JSON, when it is ready, is read into ready.
func (c *comparison) startPython(ctx context.Context, ready any, script string, args ...string) (*python, error) {
	p := &python{script: script, cmd: c.group.Command(ctx, c.python, append([]string{filepath.Join(c.scripts, script)}, args...)...)}
	p.cmd.Env, p.cmd.Stderr = c.environment(), &p.notes
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	p.out.Buffer(nil, 1<<20)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if err := p.read(ready); err != nil {
		p.close() //nolint:errcheck // it is in err
		return nil, err
	}
	return p, nil
}

// confine holds the Python that starts next to a memory cgroup of so many bytes, where there are
// cgroups.
func (c *comparison) confine(limit int64) {
	var err error
	if c.group, err = cli.NewCgroup(fmt.Sprint(os.Getpid()), limit); err != nil {
		fmt.Fprintf(c.out, "note: %v; so the page cache of the Python is without bounds\n\n", err)
	}
}

// printSkipped lists the rivals that a script could not start.
func (c *comparison) printSkipped(skipped []string) {
	for _, s := range skipped {
		fmt.Fprintf(c.out, "skipped: %s\n\n", strings.Join(strings.Fields(s), " "))
	}
}

// environment has the threads that both sides get.
func (c *comparison) environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "OPENBLAS_CORETYPE=")
	})
	n := strconv.Itoa(c.threads)
	return append(env, "OMP_NUM_THREADS="+n, "MKL_NUM_THREADS="+n, "OPENBLAS_NUM_THREADS="+n, "PYTHONWARNINGS=ignore")
}

// asks is the turn of a side in Python, of one of the kinds that its script has.
func asks[T any](p *python, kind string) func(context.Context) (T, error) {
	return func(context.Context) (turn T, err error) { return turn, p.ask(kind, &turn) }
}

// ask asks for a turn, and reads the answer into result.
func (p *python) ask(kind string, result any) error {
	if _, err := io.WriteString(p.in, kind+"\n"); err != nil {
		return err
	}
	return p.read(result)
}

func (p *python) read(result any) error {
	if !p.out.Scan() {
		return fmt.Errorf("%s ended: %w: %.2000s", p.script, cmp.Or(p.out.Err(), p.close(), io.EOF), &p.notes)
	}
	return json.Unmarshal(p.out.Bytes(), result)
}

func (p *python) close() error {
	p.in.Close() //nolint:errcheck // the script ends at the end of its input, and Wait says how
	return p.cmd.Wait()
}
