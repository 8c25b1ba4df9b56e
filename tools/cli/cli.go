// Package cli runs a built gnnstore as its user does, for the developer programs: start at [Build],
// then [Binary.JSON] for what a command prints and [Binary.Refused] for how it fails. A Binary is a
// path; it is safe for concurrent use.
package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Binary is the path of a built gnnstore.
type Binary string

// Build builds cmd/gnnstore of the module in the working directory into dir, as releases are built:
// without cgo.
func Build(ctx context.Context, dir string) (Binary, error) { return BuildTagged(ctx, dir, "") }

// BuildTagged is Build with a tag, as gnnstore-TAG.
func BuildTagged(ctx context.Context, dir, tag string) (Binary, error) {
	file := strings.TrimSuffix(filepath.Join(dir, "gnnstore-"+tag), "-")
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", tag, "-o", file, "./cmd/gnnstore")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/gnnstore: %w\n%s", err, out)
	}
	return Binary(file), nil
}

// Command is gnnstore with args, not started. The end of ctx kills it.
func (b Binary) Command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, string(b), args...)
}

// Run runs gnnstore with args and wants exit 0.
func (b Binary) Run(ctx context.Context, args ...string) error {
	_, err := b.output(ctx, args)
	return err
}

// JSON runs gnnstore with args and --json, wants exit 0 and one object on stdout, and reads it into
// result.
func (b Binary) JSON(ctx context.Context, result any, args ...string) error {
	out, err := b.output(ctx, append(args, "--json"))
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(out))
	if err := decoder.Decode(result); err != nil {
		return fmt.Errorf("gnnstore %s --json: %w in %.200q", strings.Join(args, " "), err, out)
	}
	if decoder.More() {
		return fmt.Errorf("gnnstore %s --json: more than one object on stdout", strings.Join(args, " "))
	}
	return nil
}

func (b Binary) output(ctx context.Context, args []string) ([]byte, error) {
	cmd := b.Command(ctx, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("gnnstore %s: %w: %s", strings.Join(args, " "), err, LastLine(stderr.Bytes()))
	}
	return out, nil
}

// Refused runs cmd, made by [Binary.Command] or around it, and wants it to fail as a user expects:
// exit 1, nothing on stdout, no stack, no usage, and a last line on stderr that says why, which it
// returns.
func Refused(cmd *exec.Cmd) (string, error) {
	_, message, err := Outcome(cmd)
	if err == nil && message == "" {
		err = fmt.Errorf("%s: succeeded, and had to fail", strings.Join(cmd.Args, " "))
	}
	return message, err
}

// Outcome runs cmd, which may succeed, and returns what it wrote to stdout; or fail as [Refused]
// has it, and returns why.
func Outcome(cmd *exec.Cmd) (out []byte, refusal string, err error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	name := strings.Join(cmd.Args, " ")
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return stdout.Bytes(), "", nil
	case !errors.As(err, &exit):
		return nil, "", err
	case exit.ExitCode() != 1:
		return nil, "", fmt.Errorf("%s: %w, want exit 1: %s", name, err, LastLine(stderr.Bytes()))
	case stdout.Len() > 0:
		return nil, "", fmt.Errorf("%s: failed and wrote %.200q to stdout", name, &stdout)
	}
	for _, unwanted := range []string{"goroutine ", "Usage:", "panic"} {
		if bytes.Contains(stderr.Bytes(), []byte(unwanted)) {
			return nil, "", fmt.Errorf("%s: want one line, not %.1000s", name, &stderr)
		}
	}
	refusal = LastLine(stderr.Bytes())
	if refusal == "" {
		return nil, "", fmt.Errorf("%s: failed without a word", name)
	}
	return nil, refusal, nil
}

// LastLine returns the last line with text. Progress may end its lines with a carriage return.
func LastLine(text []byte) string {
	lines := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' || r == '\r' })
	for i := len(lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(lines[i]); line != "" {
			return line
		}
	}
	return ""
}
