package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// platforms lists the users' platforms besides the one that tests run on.
var platforms = [][2]string{{"linux", "arm64"}, {"darwin", "arm64"}}

// checkPlatforms prints what the compiler has against the module at root on other platforms. It
// goes by types, as the compiler's first half does, and makes no code: that takes seconds, and a
// build of all dependencies minutes.
func checkPlatforms(w io.Writer, root string) (bool, error) {
	ok := true
	for _, p := range platforms {
		n, findings, err := checkPlatform(root, p[0], p[1])
		if err != nil {
			return false, fmt.Errorf("%s/%s: %w", p[0], p[1], err)
		}
		for _, f := range findings {
			ok = false
			fmt.Fprintf(w, "%s/%s: %v\n", p[0], p[1], f)
		}
		if len(findings) == 0 {
			fmt.Fprintf(w, "ok: %d packages for %s/%s\n", n, p[0], p[1])
		}
	}
	return ok, nil
}

// listed has the fields of a package that go list prints.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string // of what the standard library brings with it
	Module          *struct {
		Main      bool
		GoVersion string
	}
}

func checkPlatform(root, system, arch string) (packages int, findings []error, err error) {
	list := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "./...")
	list.Dir, list.Stderr = root, os.Stderr
	list.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
	out, err := list.StdoutPipe()
	if err != nil {
		return 0, nil, err
	}
	if err := list.Start(); err != nil {
		return 0, nil, err
	}
	done := map[string]*types.Package{"unsafe": types.Unsafe}
	fset := token.NewFileSet()
	for d := json.NewDecoder(out); ; { // what a package imports comes before it
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return 0, nil, errors.Join(err, list.Wait())
		}
		if p.ImportPath == "unsafe" {
			continue
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return 0, nil, errors.Join(err, list.Wait())
			}
			files = append(files, f)
		}
		ours := p.Module != nil && p.Module.Main
		conf := types.Config{IgnoreFuncBodies: !ours, Sizes: types.SizesFor("gc", arch), Importer: importer{done, p.ImportMap}}
		if p.Module != nil && p.Module.GoVersion != "" {
			conf.GoVersion = "go" + p.Module.GoVersion
		}
		conf.Error = func(err error) {
			if ours {
				findings = append(findings, err)
			}
		}
		done[p.ImportPath], _ = conf.Check(p.ImportPath, fset, files, nil)
		if ours {
			packages++
		}
	}
	return packages, findings, list.Wait()
}

// importer has the packages that were checked before.
type importer struct {
	done    map[string]*types.Package
	renamed map[string]string
}

func (i importer) Import(path string) (*types.Package, error) {
	if to, ok := i.renamed[path]; ok {
		path = to
	}
	if p := i.done[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("no package %s", path)
}
