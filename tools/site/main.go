// Site makes the documentation into a static site: the README, the help topics, the help of each
// command, the file format of datasets, and measured results. It has no texts of its own.
//
//	go run -C tools/site . FOLDER
//
// FOLDER must be absent or empty. Any web server can serve it, and it can be read from disk: a page
// loads nothing from elsewhere. A link that leads nowhere is an error, and then FOLDER is not
// written.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
)

func main() {
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: go run -C tools/site . FOLDER") }
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	pages, err := run(ctx, "../..", flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages in %s\n", pages, flag.Arg(0))
}

// run writes the site of the source tree root to the folder out, and returns its number of pages.
func run(ctx context.Context, root, out string) (pages int, err error) {
	if err := empty(out); err != nil {
		return 0, err
	}
	tmp, err := os.MkdirTemp("", "site")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	help := filepath.Join(tmp, "help")
	if err := writeHelp(ctx, root, help); err != nil {
		return 0, err
	}
	s, err := gather(os.DirFS(root), os.DirFS(help))
	if err != nil {
		return 0, err
	}
	files, err := s.files()
	if err != nil {
		return 0, err
	}
	return len(s.pages), write(out, files)
}

// empty checks that a folder is absent or has nothing in it.
func empty(folder string) error {
	entries, err := os.ReadDir(folder)
	if err == nil && len(entries) > 0 {
		return fmt.Errorf("%s has files: name a folder that is absent or empty", folder)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writeHelp runs the program of the source tree root, which writes the help of its commands as
// Markdown.
func writeHelp(ctx context.Context, root, folder string) error {
	cmd := exec.CommandContext(ctx, "go", "run", "-tags", "man", "./cmd/gnnstore", "man", "--markdown", folder)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go run ./cmd/gnnstore man: %w", err)
	}
	return nil
}

// write writes files into a folder.
func write(folder string, files map[string][]byte) error {
	for name, text := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o666); err != nil {
			return err
		}
	}
	return nil
}
