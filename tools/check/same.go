package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
)

// checkSame compares the code of every Go file below root with that of a commit. Comments, and so
// empty lines beside them, may differ.
func checkSame(w io.Writer, root, revision string) (bool, error) {
	cmd := exec.Command("git", "-C", root, "archive", "--format=tar", revision)
	cmd.Stderr = os.Stderr
	archive, err := cmd.Output()
	if err != nil {
		return false, fmt.Errorf("git archive %s: %w", revision, err)
	}
	before, err := codeOfTar(bytes.NewReader(archive))
	if err != nil {
		return false, err
	}
	now, err := codeBelow(os.DirFS(root))
	if err != nil {
		return false, err
	}
	ok := true
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if code, there := now[name]; !there {
			fmt.Fprintf(w, "%s: is gone\n", name)
			ok = false
		} else if code != before[name] {
			fmt.Fprintf(w, "%s: has other code\n", name)
			ok = false
		}
		delete(now, name)
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		fmt.Fprintf(w, "%s: is new\n", name)
		ok = false
	}
	if ok {
		fmt.Fprintf(w, "ok: %d files have the code of %s\n", len(before), revision)
	}
	return ok, nil
}

// codeOfTar returns the code of the Go files in an archive.
func codeOfTar(r io.Reader) (map[string]string, error) {
	all := map[string]string{}
	for files := tar.NewReader(r); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg || path.Ext(h.Name) != ".go" {
			continue
		}
		text, err := io.ReadAll(files)
		if err != nil {
			return nil, err
		}
		if all[h.Name], err = codeOf(h.Name, text); err != nil {
			return nil, err
		}
	}
}

// codeBelow returns the code of the Go files below root that git might have.
func codeBelow(root fs.FS) (map[string]string, error) {
	all := map[string]string{}
	return all, fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".go" {
			return err
		}
		text, err := fs.ReadFile(root, name)
		if err == nil {
			all[name], err = codeOf(name, text)
		}
		return err
	})
}

// codeOf returns the code of a Go file without its comments, each token as gofmt would print it. A
// comment that is a directive counts as code. Where a file cannot be parsed its text is its code.
func codeOf(name string, text []byte) (string, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return string(text), nil
	}
	var b bytes.Buffer
	for _, group := range f.Comments {
		for _, c := range group.List {
			if bytes.HasPrefix([]byte(c.Text), []byte("//go:")) || bytes.HasPrefix([]byte(c.Text), []byte("// +build")) {
				fmt.Fprintln(&b, c.Text)
			}
		}
	}
	bare, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	var code bytes.Buffer
	if err := format.Node(&code, fset, bare); err != nil {
		return "", err
	}
	for line := range bytes.Lines(code.Bytes()) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			b.Write(bytes.Join(bytes.Fields(line), []byte(" "))) // alignment follows comments
			b.WriteByte('\n')
		}
	}
	return b.String(), nil
}
