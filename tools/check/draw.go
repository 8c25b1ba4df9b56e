package main

import (
	"fmt"
	"go/ast"
	"io"
	"math/rand/v2"
	"strings"
)

// drawComments prints n comments of the tree, drawn by a seed: each with its place, and with the
// code that follows it or stands before it on its line.
func drawComments(w io.Writer, packages []*pkg, n int, seed uint64) {
	type comment struct {
		f     *file
		group *ast.CommentGroup
	}
	var all []comment
	for _, p := range packages {
		for _, f := range p.files {
			if ast.IsGenerated(f.syntax) {
				continue
			}
			for _, g := range f.syntax.Comments {
				if g.Text() != "" { // directives have no text
					all = append(all, comment{f, g})
				}
			}
		}
	}
	draw := rand.New(rand.NewPCG(seed, 0))
	for _, i := range draw.Perm(len(all))[:min(n, len(all))] {
		c := all[i]
		from, to := c.f.fset.Position(c.group.Pos()), c.f.fset.Position(c.group.End())
		lines := c.f.text[from.Line-1 : min(to.Line+1, len(c.f.text))]
		if strings.TrimSpace(lines[0][:from.Column-1]) != "" {
			lines = lines[:len(lines)-1] // it stands behind its code
		}
		fmt.Fprintf(w, "%s:%d\n", from.Filename, from.Line)
		for _, line := range lines {
			fmt.Fprintf(w, "    %s\n", strings.ReplaceAll(line, "\t", "    "))
		}
	}
	fmt.Fprintf(w, "%d of %d comments, by seed %d\n", min(n, len(all)), len(all), seed)
}
