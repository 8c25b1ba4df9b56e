package store

import (
	"os"
	"path/filepath"

	"github.com/gnnstore/gnnstore/store/internal/mapping"
)

// SectionFile is the file of one section, for readers that do their own reading. It is the Dataset's and lasts until that
// is closed. All methods are safe for concurrent use.
type SectionFile struct {
	File    *os.File // open for reading through the page cache
	Path    string   // to open it once more, and for messages
	Dataset string   // path of the dataset, for a SectionError
	Section string   // the section inside it
	Size    int64    // of the whole file: whole pages

	m *mapping.Map
}

// open describes s, of the dataset at path.
func (s *section) open(path string) SectionFile {
	return SectionFile{
		File: s.file, Path: filepath.Join(path, filepath.FromSlash(s.spec.Path)), Dataset: path, Section: s.spec.Path,
		Size: s.spec.Bytes, m: s.m,
	}
}

// Mapped lends size bytes of the file's map from offset on, read-only. They are read inside [Guard] only.
func (f *SectionFile) Mapped(offset int64, size int) []byte {
	return f.m.Bytes()[offset : offset+int64(size) : offset+int64(size)]
}

// WillNeed has the system read size bytes from offset on into the page cache, without waiting for them.
func (f *SectionFile) WillNeed(offset int64, size int) error { return f.m.WillNeed(offset, size) }
