package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxLines is where STYLE asks whether a file holds two nouns.
const maxLines = 800

// promise matches a comment that leaves work for later; the brackets keep this line from being one.
var promise = regexp.MustCompile(`\bTO[D]O\b|\bFIX[M]E\b`)

// belongsToCommands are the calls that only a command makes: what prints, ends the process or reads
// its environment.
var belongsToCommands = map[string]*regexp.Regexp{
	"fmt": regexp.MustCompile(`^Print`),
	"log": regexp.MustCompile(`^(Print|Fatal|Panic)`),
	"os":  regexp.MustCompile(`^(Exit|Getenv|LookupEnv|Environ)$`),
}

// checkPlaces compares the directories of the map with those that hold Go files.
func (m *packageMap) checkPlaces(root fs.FS, packages []*pkg) ([]string, error) {
	var findings []string
	for _, p := range packages {
		if !slices.Contains(m.places, p.dir) {
			findings = append(findings, p.dir+": is not in README.md's map")
		}
	}
	for _, place := range m.places {
		info, err := fs.Stat(root, place)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			findings = append(findings, place+": is in README.md's map and not in the tree")
		case err != nil:
			return nil, err
		case !info.IsDir():
			findings = append(findings, place+": is in README.md's map and no directory")
		}
	}
	return findings, nil
}

// checkImports holds a package's imports of ours against the arrows.
func (m *packageMap) checkImports(p *pkg) []string {
	var findings []string
	for _, f := range p.files {
		for _, to := range f.imports {
			fromTest := f.test || isTestHelper(p.dir)
			switch {
			case to == p.dir || f.test && (isTestHelper(to) || path.Base(to) == "sampledata"):
			case !m.draws(p.dir, to):
				findings = append(findings, fmt.Sprintf("%s: imports %s; README.md's map draws no arrow %s", f.path, to, arrow(p.dir, to)))
			case isTestHelper(to) && !fromTest && roomOf(p.dir) != "tools":
				findings = append(findings, fmt.Sprintf("%s: imports %s, a helper of tests", f.path, to))
			}
		}
	}
	return findings
}

// arrow names the arrow that an import would need.
func arrow(from, to string) string {
	if roomOf(from) == roomOf(to) {
		return fmt.Sprintf("inside %s: %s -> %s", roomOf(from), nameInside(from), nameInside(to))
	}
	return fmt.Sprintf("%s -> %s", roomOf(from), roomOf(to))
}

// isTestHelper tells storetest and kerneltest from packages that a program uses.
func isTestHelper(dir string) bool {
	return strings.HasSuffix(dir, "test")
}

// checkFiles applies the rules that need no map.
func checkFiles(p *pkg) []string {
	var findings []string
	documented, testsOnly := false, true
	for _, f := range p.files {
		if !f.test {
			testsOnly = false
			documented = documented || f.documents()
		}
		if f.lines > maxLines && !ast.IsGenerated(f.syntax) {
			findings = append(findings, fmt.Sprintf("%s: has %d lines; past %d, look for a second noun", f.path, f.lines, maxLines))
		}
		findings = append(findings, f.promises()...)
		if !f.test {
			findings = append(findings, f.vagueNames()...)
		}
		if room := roomOf(p.dir); room != "cmd" && room != "tools" && !f.test && !isTestHelper(p.dir) {
			findings = append(findings, f.commandCalls()...)
		}
	}
	if !documented && !testsOnly {
		findings = append(findings, fmt.Sprintf(`%s: has no package comment that starts "Package %s "`, p.dir, path.Base(p.dir)))
	}
	return findings
}

// documents reports whether f carries the package comment: of a command, any; of a package, one
// that names it.
func (f *file) documents() bool {
	if name := f.syntax.Name.Name; name != "main" {
		return strings.HasPrefix(f.syntax.Doc.Text(), "Package "+name+" ")
	}
	return f.syntax.Doc.Text() != ""
}

func (f *file) promises() []string {
	var findings []string
	for _, group := range f.syntax.Comments {
		for _, comment := range group.List {
			if word := promise.FindString(comment.Text); word != "" {
				findings = append(findings, fmt.Sprintf("%s: %s: keep the promise or drop it", f.at(comment.Pos()), word))
			}
		}
	}
	return findings
}

// vague has names that do not describe what they name.
var vague = map[string]bool{"hall": true, "letters": true, "told": true, "far": true, "star": true}

// vagueNames returns a finding for each declaration of a vague name.
func (f *file) vagueNames() []string {
	var findings []string
	declared := func(names ...ast.Expr) {
		for _, name := range names {
			if id, ok := name.(*ast.Ident); ok && vague[id.Name] {
				findings = append(findings, fmt.Sprintf("%s: %s: name what it holds", f.at(id.Pos()), id.Name))
			}
		}
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field: // of a struct; or a parameter, a result or a method
			for _, name := range n.Names {
				declared(name)
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				declared(name)
			}
		case *ast.FuncDecl:
			declared(n.Name)
		case *ast.TypeSpec:
			declared(n.Name)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				declared(n.Lhs...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				declared(n.Key, n.Value)
			}
		}
		return true
	})
	return findings
}

func (f *file) commandCalls() []string {
	forbidden := map[string]*regexp.Regexp{} // by the name that f gives the package
	for _, spec := range f.syntax.Imports {
		target, _ := strconv.Unquote(spec.Path.Value)
		if names := belongsToCommands[target]; names != nil {
			local := target
			if spec.Name != nil {
				local = spec.Name.Name
			}
			forbidden[local] = names
		}
	}
	var findings []string
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := selector.X.(*ast.Ident); ok && forbidden[x.Name] != nil && forbidden[x.Name].MatchString(selector.Sel.Name) {
			findings = append(findings, fmt.Sprintf("%s: %s.%s below cmd: return a value or an error, take an option",
				f.at(n.Pos()), x.Name, selector.Sel.Name))
		}
		return true
	})
	return findings
}
