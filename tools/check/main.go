// Check holds the source tree against the map in README.md: the packages that the map names, the
// arrows that it draws between them, or the doc.go of a room inside it, and a few rules that hold
// in every file. It reads files of every build tag, so what only a Mac or a machine with CUDA
// compiles is checked as well.
//
//	go run ./tools/check [DIR]
//
// It prints a line per finding and exits 1, or "ok: N packages, M arrows".
//
//	go run ./tools/check -generated [DIR]
//
// holds the generated files of kernels against their generators instead: it runs every go:generate
// line in a copy, and names each file that is not, byte for byte, what is committed. It needs what
// the generators import, and so, the first time, the network.
//
//	go run ./tools/check -platforms [DIR]
//
// checks the types of every package as other platforms have it.
//
//	go run ./tools/check -same REV [DIR]
//
// proves that the files have the code of a commit, and differ from it in comments alone.
//
//	go run ./tools/check -words [DIR]
//
// writes words.json anew: how often comments use turns of phrase that make a reader stop, and how
// many lines and sentences are long. The check fails where such a number rises.
//
//	go run ./tools/check -reflow [DIR]
//
// wraps the paragraphs of comments that have a line over 100 columns.
//
//	go run ./tools/check -draw 20 -seed 7 [DIR]
//
// prints comments for someone to read who has not written them, drawn by the seed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
)

const module = "github.com/gnnstore/gnnstore"

func main() {
	generated := flag.Bool("generated", false, "compare the generated files of kernels with what their generators write")
	others := flag.Bool("platforms", false, "check the types of every package on other platforms")
	same := flag.String("same", "", "compare the code of every file with that of a commit, `REV`, comments apart")
	record := flag.Bool("words", false, "write the counts of words and long lines anew")
	wrap := flag.Bool("reflow", false, "wrap the comments that have lines over 100 columns")
	draw := flag.Int("draw", 0, "print `N` comments")
	seed := flag.Uint64("seed", 1, "of -draw")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: go run ./tools/check [-generated | -platforms | -same REV | -words | -reflow | -draw N -seed S] [DIR]")
	}
	flag.Parse()
	root := "."
	switch flag.NArg() {
	case 0:
	case 1:
		root = flag.Arg(0)
	default:
		flag.Usage()
		os.Exit(2)
	}
	var ok bool
	var err error
	switch {
	case *generated:
		ok, err = checkGenerated(os.Stdout, os.DirFS(root))
	case *others:
		ok, err = checkPlatforms(os.Stdout, root)
	case *same != "":
		ok, err = checkSame(os.Stdout, root, *same)
	case *record, *wrap, *draw > 0:
		var packages []*pkg
		if packages, err = load(os.DirFS(root)); err != nil {
			break
		}
		switch {
		case *wrap:
			err = reflow(root, packages)
		case *record:
			err = writeWords(root, packages)
		default:
			drawComments(os.Stdout, packages, *draw, *seed)
		}
		ok = err == nil
	default:
		ok, err = check(os.Stdout, os.DirFS(root))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// check prints what is wrong with the tree below root, or one line of counts, and reports which of
// the two it was.
func check(w io.Writer, root fs.FS) (bool, error) {
	readme, err := fs.ReadFile(root, "README.md")
	if err != nil {
		return false, err
	}
	m, err := parseMap(string(readme))
	if err != nil {
		return false, err
	}
	for _, room := range m.rooms() {
		doc, err := fs.ReadFile(root, room+"/doc.go")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = m.addInside(room, string(doc))
		}
		if err != nil {
			return false, err
		}
	}
	packages, err := load(root)
	if err != nil {
		return false, err
	}
	mapped := slices.DeleteFunc(slices.Clone(packages), func(p *pkg) bool { return p.apart })
	findings, err := m.checkPlaces(root, mapped)
	if err != nil {
		return false, err
	}
	for _, p := range mapped {
		findings = append(findings, m.checkImports(p)...)
	}
	for _, p := range packages {
		findings = append(findings, checkFiles(p)...)
	}
	of, err := checkWords(root, packages)
	if err != nil {
		return false, err
	}
	findings = append(findings, of...)
	for _, f := range findings {
		fmt.Fprintln(w, f)
	}
	if len(findings) > 0 {
		return false, nil
	}
	fmt.Fprintf(w, "ok: %d packages, %d arrows\n", len(mapped), m.arrowCount())
	return true, nil
}
