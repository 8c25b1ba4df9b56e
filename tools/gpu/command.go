package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// process is a program under way. It is the leader of a group, so that what it starts ends with it.
type process struct {
	cmd     *exec.Cmd
	ctx     context.Context
	name    string
	out     bytes.Buffer // standard output
	trouble bytes.Buffer // standard error
	ended   chan struct{}
	err     error // of its end, set before ended is closed
}

// start begins a program, with env beside the visit's. Its output also goes to the log.
func (t *turn) start(env []string, name string, args ...string) (*process, error) {
	p := &process{ctx: t.ctx, name: filepath.Base(name), ended: make(chan struct{})}
	fmt.Fprintf(t.log, "$ %s\n", strings.Join(slices.Concat(env, []string{p.name}, args), " "))
	p.cmd = exec.CommandContext(t.ctx, name, args...)
	p.cmd.Dir, p.cmd.Env = t.work, slices.Concat(t.env, env)
	p.cmd.Stdout, p.cmd.Stderr = io.MultiWriter(&p.out, t.log), io.MultiWriter(&p.trouble, t.log)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Cancel = func() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM) }
	p.cmd.WaitDelay = t.grace
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// wait returns the standard output of a program that ended well. Else the error has its last line.
func (p *process) wait() (string, error) {
	<-p.ended
	err := p.err
	switch {
	case p.ctx.Err() != nil:
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // its children may still run
		err = fmt.Errorf("%s: stopped, its time was over", p.name)
	case errors.Is(err, exec.ErrWaitDelay):
		err = nil // it ended well, and something that it started holds its output
	case err != nil:
		err = fmt.Errorf("%s: %w%s", p.name, err, lastLine(p.trouble.String(), p.out.String()))
	}
	return p.out.String(), err
}

// command runs a program and returns its standard output.
func (t *turn) command(name string, args ...string) (string, error) {
	return t.commandIn(nil, name, args...)
}

// commandIn is command with env beside the visit's.
func (t *turn) commandIn(env []string, name string, args ...string) (string, error) {
	p, err := t.start(env, name, args...)
	if err != nil {
		return "", err
	}
	return p.wait()
}

// program returns the path of a packed program.
func (v *visit) program(name string) string { return filepath.Join(v.folder, name) }

// lastLine returns ": " and the last line with words of the first text that has one.
func lastLine(texts ...string) string {
	for _, text := range texts {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
			return ": " + last
		}
	}
	return ""
}

// environment returns env with key set to value.
func environment(env []string, key, value string) []string {
	var kept []string
	for _, pair := range env {
		if !strings.HasPrefix(pair, key+"=") {
			kept = append(kept, pair)
		}
	}
	return append(kept, key+"="+value)
}

// Places where a driver and cuBLAS may lie. The dynamic linker does not search most of them.
var (
	driverPlaces = []string{
		"/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/wsl/lib",
	}
	cublasPlaces = []string{ // Python's first: PyTorch's figures come from there
		"/opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib", "/opt/*/lib/python3*/site-packages/nvidia/*/lib",
		"/usr/local/lib/python3*/*-packages/nvidia/*/lib", "/usr/lib/python3*/*-packages/nvidia/*/lib",
		"/root/.local/lib/python3*/site-packages/nvidia/*/lib",
		"/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/x86_64-linux/lib", "/usr/lib/x86_64-linux-gnu",
		"/usr/lib64",
	}
)

// placeOf returns the first folder that one of patterns matches and that has a file of this form.
func placeOf(patterns []string, file string) string {
	for _, pattern := range patterns {
		if found, _ := filepath.Glob(filepath.Join(pattern, file)); len(found) > 0 { // no pattern is malformed
			return filepath.Dir(found[0])
		}
	}
	return ""
}

// prepare sets the environment of the programs. Folders that LD_LIBRARY_PATH has stay first.
func (v *visit) prepare() error {
	var folders []string
	if path := os.Getenv("LD_LIBRARY_PATH"); path != "" {
		folders = append(folders, path)
	}
	if at := placeOf(driverPlaces, "libcuda.so.1"); at != "" {
		folders = append(folders, at)
	}
	if v.cublas = placeOf(cublasPlaces, "libcublasLt.so.*"); v.cublas != "" {
		folders = append(folders, v.cublas)
	}
	v.env = environment(os.Environ(), "LD_LIBRARY_PATH", strings.Join(folders, ":"))
	cache := filepath.Join(v.work, "cache") // of compiled kernels: empty, so that a start without it is seen
	v.env = environment(v.env, "CUDA_CACHE_PATH", cache)
	v.env = environment(v.env, "GNNSTORE_GPU", "1")
	v.env = environment(v.env, "PYTHONUNBUFFERED", "1")
	if v.small {
		v.env = environment(v.env, "GNNSTORE_GPU_SMALL", "1")
	}
	return os.MkdirAll(cache, 0o777)
}

// shared is a writer for several programs at a time.
type shared struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}
