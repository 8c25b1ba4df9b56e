package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
)

// mutant is one small edit of the source that a test should notice.
type mutant struct {
	id     string
	file   string // of Go, from the module's root
	in     string // the declaration: "checkPart", "trainer.Train", or a package's variable
	old    string // stands in it exactly once
	new    string
	breaks string // what is wrong then
	tests  string // regexp of the tests that notice it; all of the package run where these do not
	pkg    string // of the tests; default the file's own
}

// pack is the directory of the package whose tests are to notice.
func (m mutant) pack() string {
	if m.pkg != "" {
		return m.pkg
	}
	return path.Dir(m.file)
}

// errStale is a mutant whose text is not where the table says.
var errStale = errors.New("stale")

// apply is source with m's edit; the error is errStale, or one of the parser's.
func (m mutant) apply(source []byte) ([]byte, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, m.file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	lo, hi, err := m.find(files, parsed)
	if err != nil {
		return nil, err
	}
	text := string(source[lo:hi])
	if n := strings.Count(text, m.old); n != 1 {
		return nil, fmt.Errorf("%w: %s, %s: %q stands there %d times, not once", errStale, m.file, m.in, m.old, n)
	}
	changed := append([]byte{}, source[:lo]...)
	changed = append(changed, strings.Replace(text, m.old, m.new, 1)...)
	return append(changed, source[hi:]...), nil
}

// find is where the declaration lies in its file, its comment left out.
func (m mutant) find(files *token.FileSet, parsed *ast.File) (lo, hi int, err error) {
	var found []ast.Node
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if funcName(d) == m.in {
				found = append(found, d)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.ValueSpec); ok && len(s.Names) == 1 && s.Names[0].Name == m.in {
					found = append(found, s)
				}
			}
		}
	}
	if len(found) != 1 {
		return 0, 0, fmt.Errorf("%w: %s has %d declarations called %s", errStale, m.file, len(found), m.in)
	}
	return files.Position(found[0].Pos()).Offset, files.Position(found[0].End()).Offset, nil
}

// funcName is "f", or "T.f" of a method of T or *T.
func funcName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	of := d.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name + "." + d.Name.Name
	}
	return d.Name.Name
}
