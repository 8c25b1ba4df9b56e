package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// buildLine is the README's command that builds the binary.
var buildLine = regexp.MustCompile(`(?m)^ {4}((?:[A-Z0-9_]+=\S+ )*go build -o )gnnstore( \./cmd/gnnstore)`)

// runStatic builds the binary as the README says, on a machine that may have a C compiler, and
// wants it to need nothing of the system: no program interpreter, which loads shared libraries.
func runStatic(ctx context.Context, _ []string) (err error) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		return err
	}
	found := buildLine.FindStringSubmatch(string(text))
	if found == nil {
		return errors.New("README.md has no line that builds ./gnnstore by go build -o")
	}
	tmp, err := os.MkdirTemp("", "gnnstore-static-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	file := filepath.Join(tmp, "gnnstore")
	cmd := exec.CommandContext(ctx, "sh", "-c", found[1]+`"$FILE"`+found[2])
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "CGO_ENABLED=") }), "FILE="+file)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%sgnnstore%s: %w", found[1], found[2], err)
	}
	if runtime.GOOS != "linux" {
		fmt.Println("it builds; what it needs of the system is looked at on Linux alone")
		return nil
	}
	if err := plain(ctx); err != nil {
		return err
	}
	needs, err := interpreter(file)
	if err == nil && needs {
		err = fmt.Errorf("README.md says %sgnnstore%s, and that gives a binary that needs shared libraries where there is a C compiler; say CGO_ENABLED=0 before it",
			found[1], found[2])
	}
	return err
}

// plain wants that only the build with the tag cuda has the GPU's backend, which needs shared
// libraries.
func plain(ctx context.Context) error {
	const command = "github.com/gnnstore/gnnstore/cmd/gnnstore"
	for tags, want := range map[string]bool{"": false, "cuda": true} {
		cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-tags", tags, command)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
		cmd.Stderr = os.Stderr
		list, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("the packages of %s: %w", command, err)
		}
		for _, name := range []string{"github.com/ebitengine/purego", "github.com/gnnstore/gnnstore/kernels/cuda"} {
			if has := slices.Contains(strings.Fields(string(list)), name); has != want {
				return fmt.Errorf("%s with tags %q has %s: %v, and that should be %v", command, tags, name, has, want)
			}
		}
	}
	return nil
}

// interpreter reports whether a program needs a loader of shared libraries.
func interpreter(file string) (bool, error) {
	f, err := elf.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	return slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }), nil
}
