package auto

import (
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/lines"
)

const maxDepth = 4 // of the folders inside a source that are searched: raw/relations/TYPE/FILE

// Explain gives err, met in reading the source at path, or what explains it: a file that err names
// is no data but the pointer that Git LFS leaves in its place.
func Explain(path string, err error) error {
	if err == nil {
		return nil
	}
	if pointer := lines.RefusePointer(path); pointer != nil {
		return pointer
	}
	said, found, seen := err.Error(), err, 0
	visit := func(root string, depth int) {
		_ = filepath.WalkDir(root, func(p string, d fs.DirEntry, werr error) error {
			if seen++; seen > maxEntries {
				return fs.SkipAll
			}
			rel, _ := filepath.Rel(root, p)
			switch {
			case werr != nil:
				return nil
			case d.IsDir() && strings.Count(rel, string(filepath.Separator)) >= depth && rel != ".":
				return fs.SkipDir
			case d.IsDir() || !strings.HasPrefix(said, d.Name()) && !strings.Contains(said, string(filepath.Separator)+d.Name()):
				return nil // not the file that the error names
			}
			if pointer := lines.RefusePointer(p); pointer != nil {
				found = pointer
				return fs.SkipAll
			}
			return nil
		})
	}
	visit(path, maxDepth)
	visit(filepath.Dir(path), 0) // files beside it, which a schema names
	return found
}
