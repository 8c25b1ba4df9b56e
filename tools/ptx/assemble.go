package main

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/kernels/cuda/ptx"
)

// targets are the devices that every kernel is assembled for.
var targets = []string{"sm_80", "sm_90", "sm_100"}

var (
	compilingPattern = regexp.MustCompile(`Compiling entry function '(\w+)'`)
	spillPattern     = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)
	usedPattern      = regexp.MustCompile(`Used (\d+) registers`)
)

// assemble has an assembler take every file for every target, and writes a line a kernel with its
// registers.
func assemble(w io.Writer, root, assembler string) error {
	registers := map[string][]string{}
	for _, name := range ptx.Files() {
		for _, target := range targets {
			path := filepath.Join(root, ptxDir, name+".ptx")
			out, err := exec.Command(assembler, "-arch="+target, "-v", "-o", "/dev/null", path).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%s for %s: %w\n%s", path, target, err, bytes.TrimSpace(out))
			}
			kernel := ""
			for line := range strings.Lines(string(out)) {
				if m := compilingPattern.FindStringSubmatch(line); m != nil {
					kernel = m[1]
				}
				if m := spillPattern.FindStringSubmatch(line); m != nil && (m[1] != "0" || m[2] != "0" || m[3] != "0") {
					return fmt.Errorf("%s for %s spills: %s", kernel, target, strings.TrimSpace(line))
				}
				if m := usedPattern.FindStringSubmatch(line); m != nil {
					registers[kernel] = append(registers[kernel], m[1])
				}
			}
		}
	}
	names := make([]string, 0, len(registers))
	for name := range registers {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintf(w, "registers for %s\n", strings.Join(targets, ", "))
	for _, name := range names {
		fmt.Fprintf(w, "%s %s\n", name, strings.Join(registers[name], " "))
	}
	return nil
}
