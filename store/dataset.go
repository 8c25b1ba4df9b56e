package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gnnstore/gnnstore/store/internal/mapping"
)

// NodeID numbers the nodes of one type, as stored. It is an alias so that kernels take []uint32
// without a cast.
type NodeID = uint32

// Half holds the bits of an IEEE 754 half-precision float.
type Half = uint16

// Dataset is a sealed dataset, open for reading. All methods but Close are safe for concurrent use.
type Dataset struct {
	path     string
	manifest *Manifest
	sections map[string]*section
	places   []sharedPlace // of the relations
	texts    []*texts      // one per node type; nil where it has no names

	encodings *os.File // nil if the dataset has none
}

// section is one open, mapped file.
type section struct {
	file    *os.File
	spec    *File
	m       *mapping.Map
	sums    *pageSums // nil in a dataset of version 2, which has no page checksums
	written time.Time // modification time, as Open found it
}

// payload returns the rows without header and padding. It does not check them.
func (s *section) payload() []byte { return s.m.Bytes()[PageSize : PageSize+s.spec.payload()] }

// Open opens the dataset directory at path. It reads the manifest and the header page of each
// section, compares sizes, and maps the files. It reads no data, so it costs the same for a
// megabyte and a terabyte. Data is checked page by page when it is read, except in datasets of
// version 2: see [Dataset.Checked]. Open refuses a manifest that points outside the directory,
// through a symbolic link, or at sizes that do not fit.
func Open(path string) (_ *Dataset, err error) {
	root, err := OpenRoot(path)
	if err != nil {
		return nil, openError(path, err)
	}
	defer root.Close()
	b, err := readManifest(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no %s: not a sealed dataset; make one with gnnstore ingest", path, manifestName)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	d := &Dataset{path: path, sections: map[string]*section{}}
	if d.manifest, err = decodeManifest(b); err != nil {
		return nil, &SectionError{path, manifestName, -1, err}
	}
	d.places = d.manifest.sharedPlaces()
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	for _, f := range d.manifest.Files() {
		s, at, err := openSection(root, path, f, d.manifest.Version)
		if err != nil {
			return nil, &SectionError{path, f.Path, at, err}
		}
		d.sections[f.Path] = s
	}
	d.texts = make([]*texts, len(d.manifest.NodeTypes))
	for i := range d.manifest.NodeTypes {
		if d.texts[i], err = openTexts(root, path, d.manifest.NodeTypes[i].Names); err != nil {
			return nil, err
		}
	}
	if spec := d.manifest.Encodings; spec != nil {
		f, at, err := openSized(root, spec.Path, spec.Bytes)
		if err != nil {
			return nil, &SectionError{path, spec.Path, at, err}
		}
		d.encodings = f
	}
	return d, nil
}

// OpenRoot is os.OpenRoot, but refuses a named pipe at once: opening one waits for a writer.
func OpenRoot(path string) (*os.Root, error) {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	return os.OpenRoot(path)
}

func openError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: no such dataset", path)
	}
	if fi, serr := os.Stat(path); serr == nil && !fi.IsDir() {
		return fmt.Errorf("%s: a dataset is a directory, and this is a file; raw data is read by gnnstore ingest", path)
	}
	return fmt.Errorf("open dataset: %w", err)
}

func readManifest(root *os.Root) ([]byte, error) {
	f, err := openPlain(root, manifestName)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxManifest+1))
}

// openPlain opens a regular file inside root. It refuses a path that goes through a symbolic link.
func openPlain(root *os.Root, name string) (*os.File, error) {
	parts := strings.Split(name, "/")
	for i := range parts {
		p := filepath.Join(parts[:i+1]...)
		fi, err := root.Lstat(p)
		if err != nil {
			return nil, err
		}
		if last := i == len(parts)-1; !last && !fi.IsDir() || last && !fi.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is a %v; datasets hold plain files and directories only", p, fi.Mode().Type())
		}
	}
	return root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
}

// openSized opens a file and checks that it has the size that the manifest gives.
func openSized(root *os.Root, name string, size int64) (f *os.File, at int64, err error) {
	f, err = openPlain(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, -1, errors.New("missing")
	}
	if err != nil {
		return nil, -1, err
	}
	fi, err := f.Stat()
	if err != nil {
		return nil, -1, errors.Join(err, f.Close())
	}
	if fi.Size() != size {
		f.Close()
		return nil, min(fi.Size(), size),
			fmt.Errorf("%d bytes, and the manifest says %d: an interrupted copy?", fi.Size(), size)
	}
	return f, 0, nil
}

// openTexts opens the tables of names, or returns nil if there are none. It reads nothing: the
// first use does.
func openTexts(root *os.Root, dataset string, names *Names) (_ *texts, err error) {
	if names == nil {
		return nil, nil
	}
	t := &texts{dataset: dataset}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	lists := names.lists()
	for i, tables := range []*[]*textTable{&t.byName, &t.byNode} {
		for j := range lists[i].blobs {
			spec := &lists[i].blobs[j]
			f, at, err := openSized(root, spec.Path, spec.Bytes)
			if err != nil {
				return nil, &SectionError{dataset, spec.Path, at, err}
			}
			*tables = append(*tables, &textTable{spec: spec, file: f})
		}
	}
	return t, nil
}

func openSection(root *os.Root, dataset string, spec *File, version int) (_ *section, at int64, err error) {
	f, at, err := openSized(root, spec.Path, spec.Bytes)
	if err != nil {
		return nil, at, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, -1, err
	}
	var h [PageSize]byte
	if _, err := f.ReadAt(h[:], 0); err != nil {
		return nil, 0, err
	}
	if at, err := checkHeader(h[:], spec, version); err != nil {
		return nil, at, err
	}
	m, err := mapping.Open(f, dataset, spec.Path, int(spec.Bytes))
	if err != nil {
		return nil, -1, err
	}
	s := &section{file: f, spec: spec, m: m, written: info.ModTime()}
	if version >= 3 {
		s.sums = &pageSums{dataset: dataset, spec: spec, file: f, want: binary.LittleEndian.Uint64(h[sumsField:])}
	}
	return s, 0, nil
}

// Forget takes the pages that were read out of the process's resident memory (RssFile in proc(5)).
// They stay in the page cache as long as the system keeps them, and come back when they are read.
// Safe for concurrent use.
func (d *Dataset) Forget() {
	for _, s := range d.sections {
		_ = s.m.Forget() // only advice to the system
	}
}

// Close unmaps everything. Whatever was borrowed from the dataset is invalid afterwards.
func (d *Dataset) Close() error {
	var errs []error
	for _, s := range d.sections {
		errs = append(errs, s.m.Close(), s.sums.close(), s.file.Close())
	}
	for _, t := range d.texts {
		if t != nil {
			errs = append(errs, t.close())
		}
	}
	if d.encodings != nil {
		errs = append(errs, d.encodings.Close())
	}
	d.sections, d.texts, d.encodings = nil, nil, nil
	return errors.Join(errs...)
}

// About puts the dataset's path in front of an error, unless the error begins with it or names one
// of its sections.
func (d *Dataset) About(err error) error {
	if s := new(SectionError); errors.As(err, &s) && s.Dataset == d.path || strings.HasPrefix(err.Error(), d.path+":") {
		return err
	}
	return fmt.Errorf("%s: %w", d.path, err)
}

// Unchanged returns a *SectionError for the first section that was written to since Open, judged by
// modification time and size: what was read from it may match neither the old contents nor the new.
// It makes one system call a section. A section that was replaced by another file counts as
// unchanged, since the dataset keeps the old file open.
func (d *Dataset) Unchanged() error {
	for _, f := range d.manifest.Files() {
		s := d.sections[f.Path]
		info, err := s.file.Stat()
		if err != nil {
			return fmt.Errorf("%s: %w", d.path, err)
		}
		if info.Size() != s.spec.Bytes || !info.ModTime().Equal(s.written) {
			return &SectionError{d.path, f.Path, -1,
				errors.New("it was written to while in use; run gnnstore verify, and restore it if it is damaged")}
		}
	}
	return nil
}

// Checked reports whether data is compared with page checksums when it is read. Datasets of version
// 2 have no page checksums.
func (d *Dataset) Checked() bool { return d.manifest.Version >= 3 }

// Path returns the path that the dataset was opened at.
func (d *Dataset) Path() string { return d.path }

// Manifest returns the description of the dataset. It is shared: do not change it.
func (d *Dataset) Manifest() *Manifest { return d.manifest }

// NodeType finds a node type by name.
func (d *Dataset) NodeType(name string) (*NodeType, bool) {
	for i := range d.manifest.NodeTypes {
		if t := &d.manifest.NodeTypes[i]; t.Name == name {
			return t, true
		}
	}
	return nil, false
}
