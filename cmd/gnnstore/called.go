package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// called returns the words by which the user called this program. Commands that the program
// proposes begin with these words, so that they can be copied.
var called = sync.OnceValue(func() string {
	file, err := os.Executable()
	if err != nil {
		file = ""
	}
	return calledAs(os.Args[0], file)
})

// built matches the path of a program that go run has built, in the build cache or in a temporary
// folder.
var built = regexp.MustCompile(`/[0-9a-f]{64}-d/|/go-build[0-9]*/`)

// calledAs returns the words for the first argument of a process and the file that it runs.
func calledAs(arg, file string) string {
	switch {
	case strings.HasSuffix(arg, ".test"), !strings.ContainsRune(arg, filepath.Separator):
		return "gnnstore"
	case built.MatchString(filepath.ToSlash(file)):
		return "go run ./cmd/gnnstore"
	case strings.ContainsAny(arg, " '\"$&()*;<>?\\|"):
		return "gnnstore" // it would need quotes
	}
	return arg
}
