package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// generatedDir is the package whose generated files are committed.
const generatedDir = "kernels"

// checkGenerated prints which generated files are not what their generators write, or one line of
// counts, and reports which of the two it was. The generators run in a copy from which what they
// write has been removed.
func checkGenerated(w io.Writer, root fs.FS) (bool, error) {
	committed, err := generatedFiles(root)
	if err != nil {
		return false, err
	}
	tmp, err := os.MkdirTemp("", "generated-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, generatedDir)
	kernels, err := fs.Sub(root, generatedDir)
	if err != nil {
		return false, err
	}
	if err := os.CopyFS(dir, kernels); err != nil {
		return false, err
	}
	// A module, so that go generate knows the package; what it imports is not looked at.
	if err := os.WriteFile(filepath.Join(tmp, "go.mod"), []byte("module "+module+"\n"), 0o644); err != nil {
		return false, err
	}
	for name := range committed {
		if err := os.Remove(filepath.Join(tmp, filepath.FromSlash(name))); err != nil {
			return false, err
		}
	}
	sources, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return false, err
	}
	generate := exec.Command("go", append([]string{"generate"}, sources...)...)
	generate.Dir = dir
	generate.Env = append(os.Environ(), "GOWORK=off")
	if output, err := generate.CombinedOutput(); err != nil {
		return false, fmt.Errorf("go generate ./%s: %w\n%s", generatedDir, err, bytes.TrimSpace(output))
	}
	written, err := generatedFiles(os.DirFS(tmp))
	if err != nil {
		return false, err
	}
	findings := compareGenerated(committed, written)
	for _, f := range findings {
		fmt.Fprintln(w, f)
	}
	if len(findings) > 0 {
		return false, nil
	}
	fmt.Fprintf(w, "ok: generated files: %d\n", len(committed))
	return true, nil
}

func compareGenerated(committed, written map[string][]byte) []string {
	var findings []string
	for name, text := range committed {
		switch fresh, ok := written[name]; {
		case !ok:
			findings = append(findings, name+": no generator writes it: remove it, or its go:generate line is missing")
		case !bytes.Equal(text, fresh):
			findings = append(findings, name+": is not what its generator writes: run go generate ./"+generatedDir)
		}
	}
	for name := range written {
		if _, ok := committed[name]; !ok {
			findings = append(findings, name+": is not there, and a generator writes it: run go generate ./"+generatedDir)
		}
	}
	slices.Sort(findings)
	return findings
}

// isGenerated matches the line that says so (go.dev/s/generatedcode).
var isGenerated = regexp.MustCompile(`^// Code generated .* DO NOT EDIT\.$`)

// generatedFiles reads the files right in generatedDir, Go or assembly, whose first line says that
// they are generated.
func generatedFiles(root fs.FS) (map[string][]byte, error) {
	entries, err := fs.ReadDir(root, generatedDir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		name := path.Join(generatedDir, entry.Name())
		if entry.IsDir() || !strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".s") {
			continue
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		if lines.Scan() && isGenerated.Match(lines.Bytes()) {
			files[name] = text
		}
	}
	return files, nil
}
