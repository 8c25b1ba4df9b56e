package hgb

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/flate"

	"github.com/gnnstore/gnnstore/ingest/archive"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/store"
)

// files are the files of one graph: in a folder, or in a zip.
type files struct {
	path    string // of the folder or zip
	dir     string // of the graph's files inside it
	members map[string]*zip.File
	archive io.Closer // nil for a folder
	names   []string  // ascending
}

// findFiles finds the one folder that has node.dat: path itself, or one inside it.
func findFiles(pathname string) (*files, error) {
	info, err := os.Stat(pathname)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return findMembers(pathname)
	}
	f := &files{path: pathname}
	if f.dir, err = oneDir(pathname, func(emit func(string)) error {
		if _, err := os.Stat(filepath.Join(pathname, "node.dat")); err == nil {
			emit("node.dat")
			return nil
		}
		found, err := filepath.Glob(filepath.Join(escapeGlob(pathname), "*", "node.dat"))
		for _, p := range found {
			emit(filepath.Base(filepath.Dir(p)) + "/node.dat")
		}
		return err
	}); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(pathname, f.dir))
	for _, e := range entries {
		if !e.IsDir() {
			f.names = append(f.names, e.Name())
		}
	}
	return f, err
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// findMembers reads the directory of a zip. Its members are read where they lie, so their names
// lead nowhere else.
func findMembers(pathname string) (*files, error) {
	file, size, err := store.OpenSized(pathname)
	if err != nil {
		return nil, err
	}
	z, err := archive.NewReader(file, size)
	if err != nil {
		file.Close()
	}
	if errors.Is(err, zip.ErrFormat) || errors.Is(err, zip.ErrInsecurePath) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("%s: not a folder with node.dat, nor a whole zip of one (%w); fetch it again", pathname, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pathname, err)
	}
	z.RegisterDecompressor(zip.Deflate, func(r io.Reader) io.ReadCloser { return flate.NewReader(r) })
	f := &files{path: pathname, members: map[string]*zip.File{}, archive: file}
	if f.dir, err = oneDir(pathname, func(emit func(string)) error {
		for _, m := range z.File {
			emit(m.Name)
		}
		return nil
	}); err != nil {
		file.Close()
		return nil, err
	}
	for _, m := range z.File {
		if path.Dir(m.Name) != f.dir || strings.HasSuffix(m.Name, "/") {
			continue
		}
		name := path.Base(m.Name)
		if f.members[name] != nil {
			file.Close()
			return nil, fmt.Errorf("%s: %q is there twice; fetch it again", pathname, m.Name)
		}
		f.members[name] = m
		f.names = append(f.names, name)
	}
	slices.Sort(f.names)
	return f, nil
}

// oneDir is the directory of the only node.dat among names.
func oneDir(pathname string, names func(emit func(string)) error) (string, error) {
	var dirs []string
	err := names(func(name string) {
		if path.Base(name) == "node.dat" && !slices.Contains(dirs, path.Dir(name)) {
			dirs = append(dirs, path.Dir(name))
		}
	})
	switch {
	case err != nil:
		return "", err
	case len(dirs) == 0:
		return "", fmt.Errorf("%s: no node.dat in it; name the folder or zip of one graph of the benchmark", pathname)
	case len(dirs) > 1:
		return "", fmt.Errorf("%s: several graphs (%q, %q and perhaps others); name the folder of one", pathname,
			dirs[0], dirs[1])
	}
	return dirs[0], nil
}

func (f *files) has(name string) bool { return slices.Contains(f.names, name) }

// label returns the name of a file in messages.
func (f *files) label(name string) string {
	if f.archive != nil {
		return f.path + ": " + path.Join(f.dir, name)
	}
	return filepath.Join(f.path, f.dir, name)
}

// read lists the paths that a graph is read from.
func (f *files) read() []string {
	if f.archive != nil {
		return []string{f.path}
	}
	var paths []string
	for _, name := range []string{"node.dat", "link.dat", "label.dat", "label.dat.test", "info.dat"} {
		if f.has(name) {
			paths = append(paths, f.label(name))
		}
	}
	return paths
}

// open opens a file of the graph for reading.
func (f *files) open(name string) (io.ReadCloser, error) {
	if f.archive == nil {
		return store.OpenFile(f.label(name))
	}
	m := f.members[name]
	if m == nil {
		return nil, &fs.PathError{Op: "open", Path: f.label(name), Err: fs.ErrNotExist}
	}
	r, err := m.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return nil, fmt.Errorf("%s: packed by method %d, which is not read; unpack the zip and name the folder",
			f.label(name), m.Method)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.label(name), err)
	}
	return r, nil
}

// each gives the lines of a file that are not blank, cut at tabs into cells, which are lent for the
// call. A visit that returns errStop ends the reading.
func (f *files) each(name string, visit func(in *lines.Scanner, cells [][]byte) error) error {
	body, err := f.open(name)
	if err != nil {
		return err
	}
	defer body.Close()
	in, err := lines.NewChecked(f.label(name), body)
	if err != nil {
		return err
	}
	var cells [][]byte
	for {
		line, err := in.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if len(line) == 0 {
			continue
		}
		var few bool
		if cells, few = lines.Cells(cells[:0], line, '\t'); !few {
			return in.Errorf("found more than %d columns, and rows of HGB have three or four, between tabs", lines.MaxCells)
		}
		if err := visit(in, cells); err == errStop {
			return nil
		} else if err != nil {
			return err
		}
	}
}

var errStop = errors.New("enough is read")
