package store

import (
	"os"
	"path/filepath"
)

// SectionFile is the file of one section, for readers that do their own reading. It belongs to the
// Dataset and is valid until that is closed. All methods are safe for concurrent use.
type SectionFile struct {
	File    *os.File // open for reading through the page cache
	Path    string   // opens the file again, and is in messages
	Dataset string   // path of the dataset, for a SectionError
	Section string   // the section inside it
	Size    int64    // of the whole file, a multiple of PageSize

	s *section // nil if the file is not a section: then there is no map, and there are no checksums
}

// open describes s; path is the dataset's.
func (s *section) open(path string) SectionFile {
	return SectionFile{
		File: s.file, Path: filepath.Join(path, filepath.FromSlash(s.spec.Path)), Dataset: path, Section: s.spec.Path,
		Size: s.spec.Bytes, s: s,
	}
}

// Mapped lends size bytes of the file's map from offset on, read-only. It checks the pages that
// they lie on, each once. Call it, and read what it lends, only inside [Guard]: a page that fails
// its checksum panics.
func (f *SectionFile) Mapped(offset int64, size int) []byte {
	end := offset + int64(size)
	f.s.touch(max(offset-PageSize, 0), min(end-PageSize, f.s.spec.payload()))
	return f.s.m.Bytes()[offset:end:end]
}

// Check compares b, whole pages that were read at offset, with their checksums. It skips pages
// without rows: the header, and what follows the payload. The first use reads the checksums. It
// returns a *SectionError for a page that does not match. In a dataset of version 2 it checks
// nothing.
func (f *SectionFile) Check(offset int64, b []byte) error {
	if f.s == nil || f.s.sums == nil {
		return nil
	}
	if offset%PageSize != 0 || len(b)%PageSize != 0 {
		panic("store: Check of parts of pages")
	}
	first, last := offset/PageSize-1, (offset+int64(len(b)))/PageSize-1
	lo, hi := max(first, 0), min(last, f.s.spec.pages())
	if lo >= hi {
		return nil
	}
	return f.s.sums.check(lo, b[(lo-first)*PageSize:(hi-first)*PageSize])
}

// SumBytes returns the memory, outside the Go heap, that the page checksums take from the first
// Check or Mapped on.
func (f *SectionFile) SumBytes() int64 {
	if f.s == nil {
		return 0
	}
	return f.s.sums.bytes()
}

// WillNeed asks the system to read size bytes from offset on into the page cache, and does not
// wait.
func (f *SectionFile) WillNeed(offset int64, size int) error { return f.s.m.WillNeed(offset, size) }
