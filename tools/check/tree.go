package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A pkg is a directory with Go files, whatever their build tags.
type pkg struct {
	dir   string // below the root: "train/model"
	files []*file
	apart bool // in a module of its own, which the map does not name
}

type file struct {
	path    string
	test    bool
	lines   int
	text    []string // its lines
	syntax  *ast.File
	fset    *token.FileSet
	imports []string // of ours, as directories below the root
}

// load parses the packages that ./... means, and the packages in modules of their own: no testdata,
// no name that starts with "_" or ".".
func load(root fs.FS) ([]*pkg, error) {
	var packages []*pkg
	var modules []string // directories of modules of their own
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name == "." {
				return nil
			}
			base := path.Base(name)
			if base == "testdata" || strings.HasPrefix(base, "_") || strings.HasPrefix(base, ".") {
				return fs.SkipDir
			}
			if _, err := fs.Stat(root, path.Join(name, "go.mod")); err == nil {
				modules = append(modules, name+"/")
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		f, err := parse(root, name)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		i := slices.IndexFunc(packages, func(p *pkg) bool { return p.dir == dir })
		if i < 0 {
			apart := slices.ContainsFunc(modules, func(m string) bool { return strings.HasPrefix(name, m) })
			i, packages = len(packages), append(packages, &pkg{dir: dir, apart: apart})
		}
		packages[i].files = append(packages[i].files, f)
		return nil
	})
	return packages, err
}

func parse(root fs.FS, name string) (*file, error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	f := &file{
		path:  name,
		test:  strings.HasSuffix(name, "_test.go"),
		lines: bytes.Count(text, []byte("\n")),
		text:  strings.Split(string(text), "\n"),
		fset:  token.NewFileSet(),
	}
	f.syntax, err = parser.ParseFile(f.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, spec := range f.syntax.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
		}
		if dir, ours := strings.CutPrefix(target, module+"/"); ours {
			f.imports = append(f.imports, dir)
		}
	}
	return f, nil
}

// at writes a node's place as an editor reads it.
func (f *file) at(pos token.Pos) string {
	return fmt.Sprintf("%s:%d", f.path, f.fset.Position(pos).Line)
}
