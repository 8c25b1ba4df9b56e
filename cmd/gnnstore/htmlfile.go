package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/gnnstore/gnnstore/ingest/export"
	"github.com/gnnstore/gnnstore/train/checkpoint"
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
	lock, err := export.Claim(vfs.Default, path)
	if err != nil {
		return fmt.Errorf("--html %w", err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if err := checkHTML(path); err != nil { // another command may have written it meanwhile
		return err
	}
	return checkpoint.WriteFile(vfs.Default, path, text)
}
