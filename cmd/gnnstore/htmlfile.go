package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/gnnstore/gnnstore/ingest/export"
	"github.com/gnnstore/gnnstore/train/page"
)

// htmlHelp returns the help of a command's --html; what names the content of the page.
func htmlHelp(what string) string {
	return "write " + what + " as one HTML page to this file, which must not exist"
}

// checkHTML returns an error if the file of --html cannot be written, so that a command fails
// before it works. An empty path stands for no page.
func checkHTML(path string) error {
	if path == "" {
		return nil
	}
	if ending := strings.ToLower(filepath.Ext(path)); !slices.Contains([]string{".html", ".htm"}, ending) {
		return misuse(fmt.Errorf("--html %s: the page is HTML; end its name in .html", path))
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("--html %s: it exists already; choose another name, or remove it", path)
	}
	if err := export.MayWrite(vfs.Default, path, false); err != nil {
		return fmt.Errorf("--html %w", err)
	}
	return nil
}

// writeHTML writes a page to a file that must not exist: whole, or on an error not at all.
func writeHTML(path string, d *page.Document) (err error) {
	text, err := d.Page()
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("--html %s: %w", path, err)
	}
	defer func() {
		os.Remove(f.Name()) // the page has its own name by now, or is not wanted
		if err != nil {
			err = fmt.Errorf("--html %s: %w", path, err)
		}
	}()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	switch err := os.Link(f.Name(), path); { // unlike Rename it replaces nothing
	case errors.Is(err, fs.ErrExist):
		return errors.New("it exists already; choose another name, or remove it")
	case err != nil: // a file system without hard links
		if err := os.Rename(f.Name(), path); err != nil {
			return err
		}
	}
	parent, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(parent.Sync(), parent.Close())
}
