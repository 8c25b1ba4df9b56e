package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store/storetest"
)

// TestMutantsCompile type-checks every mutant of the table within its package. A change elsewhere
// can turn the new text of a mutant wrong without touching the old one.
func TestMutantsCompile(t *testing.T) {
	storetest.Long(t)
	of := map[string][]mutant{} // by the directory of the file
	for _, table := range tables {
		for _, m := range table {
			dir := filepath.Dir(m.file)
			of[dir] = append(of[dir], m)
		}
	}
	args := []string{"list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles"}
	for dir := range of {
		args = append(args, "./"+dir)
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	c := newChecker(t, root, args)
	for dir, mutants := range of {
		c.check(t, filepath.Join(root, dir), root, mutants)
	}
}

// checker type-checks packages from their source and their imports from what go has compiled.
type checker struct {
	files    *token.FileSet
	imports  types.Importer
	packages map[string]listed // by directory
}

// listed describes a package as go list does.
type listed struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
}

func newChecker(t *testing.T, root string, args []string) *checker {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	c := &checker{files: token.NewFileSet(), packages: map[string]listed{}}
	export := map[string]string{}
	d := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		c.packages[p.Dir], export[p.ImportPath] = p, p.Export
	}
	c.imports = importer.ForCompiler(c.files, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(export[path])
	})
	return c
}

// check type-checks the package in dir once as it is and once with each mutant. It skips a mutant
// of a file that is not built on this platform.
func (c *checker) check(t *testing.T, dir, root string, mutants []mutant) {
	p, ok := c.packages[dir]
	require.True(t, ok, dir)
	parsed := make([]*ast.File, len(p.GoFiles))
	for i, name := range p.GoFiles {
		var err error
		parsed[i], err = parser.ParseFile(c.files, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
	}
	require.NoError(t, c.types(p.ImportPath, parsed))
	for _, m := range mutants {
		at := slices.Index(p.GoFiles, filepath.Base(m.file))
		if at < 0 {
			continue
		}
		source, err := os.ReadFile(filepath.Join(root, m.file))
		require.NoError(t, err)
		changed, err := m.apply(source)
		require.NoError(t, err)
		mutated, err := parser.ParseFile(c.files, m.file, changed, parser.SkipObjectResolution)
		require.NoError(t, err, m.id)
		with := slices.Clone(parsed)
		with[at] = mutated
		if err := c.types(p.ImportPath, with); err != nil {
			t.Errorf("%s: %v", m.id, err) // no FailNow: report every broken mutant
		}
	}
}

// types returns the first type error in the files of a package.
func (c *checker) types(path string, files []*ast.File) error {
	conf := types.Config{Importer: c.imports, Sizes: types.SizesFor("gc", runtime.GOARCH)}
	_, err := conf.Check(path, c.files, files, nil)
	return err
}
