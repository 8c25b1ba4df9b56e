package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
)

// checkSame compares the code of every Go file below root with a commit, and ignores comments.
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
	return compareCode(w, revision, before, now), nil
}

// compareCode prints the differences between two trees, by file name, and reports whether there are
// none. It empties now.
func compareCode(w io.Writer, revision string, before, now map[string]string) bool {
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
	return ok
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
		all[h.Name] = codeOf(text)
	}
}

// codeBelow returns the code of the Go files below root, but for those in folders that git ignores
// here: runs, datasets and git's own.
func codeBelow(root fs.FS) (map[string]string, error) {
	all := map[string]string{}
	return all, fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (name == ".git" || name == "runs" || path.Ext(name) == ".gnn") {
			return fs.SkipDir
		}
		if entry.IsDir() || path.Ext(name) != ".go" {
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err == nil {
			all[name] = codeOf(text)
		}
		return err
	})
}

// codeOf returns the tokens of a Go file, a line each, without its comments. Directives and the
// output of examples are code, in their place. It makes no difference where lines end.
func codeOf(text []byte) string {
	var b strings.Builder
	var s scanner.Scanner
	fset := token.NewFileSet()
	s.Init(fset.AddFile("", fset.Base(), len(text)), text, nil, scanner.ScanComments)
	for output := false; ; {
		_, tok, literal := s.Scan()
		switch {
		case tok == token.EOF:
			return b.String()
		case tok == token.COMMENT:
			output = output || exampleOutput.MatchString(literal)
			if !output && !directive.MatchString(literal) {
				continue
			}
		case tok == token.SEMICOLON && literal == "\n":
			literal = "" // at the end of a line, which a comment may move
		default:
			output = false
		}
		fmt.Fprintf(&b, "%s %s\n", tok, literal)
	}
}

var (
	directive     = regexp.MustCompile(`^//(go:|line |export |extern |nolint| \+build)|^/\*line |#include`)
	exampleOutput = regexp.MustCompile(`(?i)^//\s*(unordered )?output:`)
)
