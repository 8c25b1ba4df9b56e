package ogb

import (
	"archive/zip"
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/flate"

	"github.com/gnnstore/gnnstore/ingest/archive"
	"github.com/gnnstore/gnnstore/ingest/csvgz"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/npz"
	"github.com/gnnstore/gnnstore/store"
)

// folder is the one that holds raw/ and split/: on disk, or in the archive that was downloaded.
// Names are relative to it, with slashes.
type folder struct {
	fsys   fs.FS
	path   string // for messages, and on disk the true one
	name   string // of the dataset, as the folder is called
	packed string // the archive, "" on disk
	close  func() error
}

// openFolder finds it: path itself, the one dataset inside path, or the one inside a zip archive.
func openFolder(path string) (*folder, error) {
	stat, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	d := &folder{path: path, name: filepath.Base(path), close: func() error { return nil }}
	if abs, err := filepath.Abs(path); err == nil {
		d.name = filepath.Base(abs) // "." has no name
	}
	if stat.IsDir() {
		d.fsys = onDisk{os.DirFS(path), path}
	} else if err := d.openZip(); err != nil {
		return nil, err
	}
	if err := d.descend(); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// onDisk is a folder of ordinary files: others are refused, as their reads may wait forever.
type onDisk struct {
	fs.FS
	dir string
}

func (d onDisk) Open(name string) (fs.File, error) {
	info, err := fs.Stat(d.FS, name)
	if err == nil && !info.IsDir() {
		return store.OpenFile(filepath.Join(d.dir, filepath.FromSlash(name)))
	}
	return d.FS.Open(name)
}

func (d *folder) openZip() error {
	if !strings.EqualFold(filepath.Ext(d.path), ".zip") {
		return fmt.Errorf("%s: not a folder; name the one that holds raw/ and split/", d.path)
	}
	f, size, err := store.OpenSized(d.path)
	if err != nil {
		return err
	}
	z, err := archive.NewReader(f, size)
	if err != nil {
		f.Close()
	}
	if errors.Is(err, zip.ErrFormat) {
		return fmt.Errorf("%s: damaged or truncated download: the zip directory at its end does not read (%w); fetch it again", d.path, err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", d.path, err)
	}
	z.RegisterDecompressor(zip.Deflate, func(r io.Reader) io.ReadCloser {
		return flate.NewReader(bufio.NewReaderSize(r, 64<<10))
	})
	d.fsys, d.close, d.packed = z, f.Close, d.path
	d.name = d.name[:len(d.name)-len(".zip")]
	return nil
}

// descend goes to the one child that is a dataset, unless d is one.
func (d *folder) descend() error {
	if d.has("raw") {
		return nil
	}
	children, err := fs.ReadDir(d.fsys, ".")
	if err != nil {
		return d.placed(err)
	}
	var found []string
	for _, c := range children {
		if _, err := fs.Stat(d.fsys, c.Name()+"/raw"); err == nil {
			found = append(found, c.Name())
		}
	}
	switch {
	case len(found) == 0:
		return fmt.Errorf("%s: no raw/ in it; name the folder that an OGB download unpacks to", d.path)
	case len(found) > 1:
		return fmt.Errorf("%s: several datasets (%s); name one of them", d.path, lines.Clip([]byte(strings.Join(found, ", "))))
	}
	sub, err := fs.Sub(d.fsys, found[0])
	if err != nil {
		return d.placed(err)
	}
	d.fsys, d.path, d.name = sub, filepath.Join(d.path, found[0]), found[0]
	return nil
}

// at is a file's path, for messages.
func (d *folder) at(name string) string {
	return filepath.Join(d.path, filepath.FromSlash(d.there(name)))
}

// there is the name of a file as it is there: a table that was unpacked has lost its .gz. It goes
// by the packed name elsewhere.
func (d *folder) there(name string) string {
	plain, ok := strings.CutSuffix(name, ".gz")
	if !ok || !strings.HasSuffix(plain, ".csv") {
		return name
	}
	if _, err := fs.Stat(d.fsys, name); !errors.Is(err, fs.ErrNotExist) {
		return name
	}
	if _, err := fs.Stat(d.fsys, plain); err != nil {
		return name
	}
	return plain
}

// unpacked is an entry of a table that has lost its .gz.
type unpacked struct{ fs.DirEntry }

func (u unpacked) Name() string { return u.DirEntry.Name() + ".gz" }

// placed gives an error of the file system the whole path.
func (d *folder) placed(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) && !filepath.IsAbs(at.Path) {
		err = &fs.PathError{Op: at.Op, Path: d.at(at.Path), Err: at.Err}
	}
	return err
}

// has reports whether there is something of that name; what cannot be looked at is opened, and
// refused, later.
func (d *folder) has(name string) bool {
	_, err := fs.Stat(d.fsys, d.there(name))
	return err == nil || !errors.Is(err, fs.ErrNotExist)
}

// list returns the entries of a folder, sorted; none when it is not there. Tables go by their
// packed names.
func (d *folder) list(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(d.fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, d.placed(err)
	}
	for i, e := range entries {
		if packed := name + "/" + e.Name() + ".gz"; d.there(packed) != packed {
			entries[i] = unpacked{e}
		}
	}
	return entries, nil
}

// folders returns the names of the folders inside a folder, sorted.
func (d *folder) folders(name string) ([]string, error) {
	entries, err := d.list(name)
	var names []string
	for _, e := range entries {
		if stat, err := fs.Stat(d.fsys, name+"/"+e.Name()); err == nil && stat.IsDir() { // links to folders are some
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

// scanner is a table, and the file to close with it.
type scanner struct {
	*csvgz.Scanner
	file fs.File
}

func (s *scanner) Close() error { return errors.Join(s.Scanner.Close(), s.file.Close()) }

func (d *folder) csv(name string) (*scanner, error) {
	there, scan := d.there(name), csvgz.NewScanner
	if there != name {
		scan = csvgz.NewUnpacked
	}
	f, err := d.fsys.Open(there)
	if err != nil {
		return nil, d.placed(err)
	}
	s, err := scan(d.at(name), f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &scanner{s, f}, nil
}

// archive opens an npz file, whose arrays are read at any place: not out of another archive.
func (d *folder) archive(name string) (*npz.Archive, error) {
	if err := d.onDisk(name); err != nil {
		return nil, err
	}
	return npz.OpenArchive(d.at(name))
}

func (d *folder) onDisk(name string) error {
	if d.packed != "" {
		return fmt.Errorf("%s: only .csv.gz files are read out of a zip archive; unzip it first and name the folder inside", d.at(name))
	}
	return nil
}
