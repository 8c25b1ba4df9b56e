package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gnnstore/gnnstore/ingest/table"
	"github.com/gnnstore/gnnstore/store/setting"
)

// didYouMean returns the end of a message about an unknown word: a question that names the nearest
// of the known words in this form. It returns "" if none is near.
func didYouMean(word string, known []string, form string) string {
	if near := setting.Nearest(word, known); near != "" {
		return fmt.Sprintf("; did you mean "+form+"?", near)
	}
	return ""
}

// wrongFlag returns the error of a command whose flags cannot be read. For an unknown flag it names
// the nearest one.
func wrongFlag(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return pflag.ErrHelp // --help-all was given
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return misuse(err)
	}
	var flags []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
	return misuse(fmt.Errorf("%w%s", err, didYouMean(unknown.GetSpecifiedName(), flags, "--%s")))
}

// commandNames returns the commands and topics of root.
func commandNames(root *cobra.Command) (names []string) {
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	return names
}

// nearPath returns the end of an error message about a path that does not exist: a question that
// names the nearest path that exists. The path must be one of args, the arguments of the command.
// It returns "" if no path is near.
func nearPath(message string, args []string) string {
	for _, arg := range args {
		path := filepath.Clean(arg)
		if _, err := os.Lstat(path); err == nil || !strings.Contains(message, arg+": no such") {
			continue
		}
		entries, err := os.ReadDir(filepath.Dir(path))
		if err != nil {
			continue
		}
		var stems []string // names without ending, of entries that have the ending of path
		ending := filepath.Ext(path)
		for _, e := range entries {
			if stem, ok := strings.CutSuffix(e.Name(), ending); ok && !strings.HasPrefix(stem, ".") {
				stems = append(stems, stem)
			}
		}
		if near := setting.Nearest(strings.TrimSuffix(filepath.Base(path), ending), stems); near != "" {
			return fmt.Sprintf("; did you mean %s?", filepath.Join(filepath.Dir(path), near+ending))
		}
	}
	return ""
}

// schemaAdvice returns the end of a message about a schema of tables, or "" for other errors.
func schemaAdvice(err error) string {
	if errors.As(err, new(*table.SchemaError)) {
		return "; gnnstore help schema lists all keys"
	}
	return ""
}

// placeAdvice returns the end of a message about a directory or lock that cannot be made. It
// returns "" for other errors.
func placeAdvice(err error) string {
	var place *fs.PathError
	made := errors.As(err, &place) && (place.Op == "mkdir" || place.Op == "open" && strings.HasSuffix(place.Path, ".lock"))
	for _, reason := range []error{fs.ErrPermission, fs.ErrNotExist, syscall.EROFS, syscall.ENOTDIR} {
		if made && errors.Is(err, reason) {
			return "; nothing can be made there, so name another place"
		}
	}
	return ""
}
