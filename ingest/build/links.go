package build

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// CheckLinks refuses a source, in a folder or under a prefix, with a symbolic link that leads out
// of its folder: whoever packed it would choose what else on this machine is read. Links inside the
// folder are fine, and so is one that is the source itself, which the user named.
func CheckLinks(source string) error {
	info, err := os.Stat(source)
	switch {
	case err != nil: // a prefix of files, as planetoid takes it; or nothing, which its reader reports
		folder, prefix := filepath.Split(source)
		entries, _ := os.ReadDir(filepath.Join(folder, "."))
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), prefix) {
				if err := CheckLink(filepath.Clean(folder), filepath.Join(folder, e.Name())); err != nil {
					return err
				}
			}
		}
		return nil
	case filepath.Base(source) == "metadata.yaml": // of GraphBolt, which stands for its folder
		source = filepath.Dir(source)
	case !info.IsDir():
		return nil
	}
	top := source + string(filepath.Separator) // so that a link to a folder is followed
	return filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Type() != fs.ModeSymlink {
			return nil // what cannot be looked at is not read either
		}
		return CheckLink(source, filepath.Join(source, strings.TrimPrefix(path, top)))
	})
}

// CheckLink refuses a path in a folder if a link on it leads out of the folder. It does not refuse
// a path that names a place elsewhere.
func CheckLink(folder, path string) error {
	if rel, err := filepath.Rel(folder, path); err != nil || !filepath.IsLocal(rel) {
		return nil
	}
	root, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nil
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil // it leads nowhere
	}
	if rel, err := filepath.Rel(root, target); err == nil && filepath.IsLocal(rel) {
		return nil
	}
	return fmt.Errorf("%s: it is a symbolic link out of its folder, to %s; replace it by the file, or say {follow_links} to read it", path, target)
}
