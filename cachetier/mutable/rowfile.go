package mutable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/store"
)

// A row file is a page of header, and then a place for the record of each row of the table: row v
// begins stride·v after the header. What was never written is a hole. Numbers are little-endian.
//
//	00-07  "GNNRROWS"
//	08-0b  version, 1
//	0c-0f  bytes of a row
//	10-13  stride: bytes from record to record
//	14-17  0
//	18-1f  rows
//	20-2f  what the rows belong to: XXH3-128 of Options.Run
//	30-37  serial number of the file among those of its table
//	ffc    CRC-32C of the page up to here
//
// A record is the bytes of the row, and a CRC-32C of serial number, row number and bytes. So the
// check finds a flipped bit, a record of another row or another file, and a hole.
const (
	rowMagic   = "GNNRROWS"
	version    = 1
	headerSize = store.PageSize
	sumSize    = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// shape has the values that all files of a table share.
type shape struct {
	run      [16]byte
	rows     int
	rowBytes int
	stride   int64
}

// strideOf returns the distance in bytes from record to record.
func strideOf(rowBytes int) int64 { return store.RowStride(int64(rowBytes) + sumSize) }

// offset returns where the record of a row begins.
func (s *shape) offset(row uint32) int64 { return headerSize + int64(row)*s.stride }

// size returns the length of a row file.
func (s *shape) size() int64 {
	return headerSize + (int64(s.rows)*s.stride+store.PageSize-1)/store.PageSize*store.PageSize
}

// rowFile is an open row file.
type rowFile struct {
	shape
	serial uint64
	path   string
	file   vfs.File // for writing; for reading, too, if the file system has no descriptors
	reader *os.File // for reading; nil without descriptors
	direct bool     // writes bypass the page cache
}

func rowFileName(serial uint64) string { return fmt.Sprintf("rows-%08d", serial) }

func (f *rowFile) header() []byte {
	h := make([]byte, headerSize)
	copy(h, rowMagic)
	le := binary.LittleEndian
	le.PutUint32(h[8:], version)
	le.PutUint32(h[12:], uint32(f.rowBytes))
	le.PutUint32(h[16:], uint32(f.stride))
	le.PutUint64(h[24:], uint64(f.rows))
	copy(h[32:], f.run[:])
	le.PutUint64(h[48:], f.serial)
	le.PutUint32(h[headerSize-sumSize:], crc32.Checksum(h[:headerSize-sumSize], castagnoli))
	return h
}

// createRows makes a row file: of holes, or with dense with its space allocated.
func createRows(fsys vfs.FS, dir string, s shape, serial uint64, dense bool) (_ *rowFile, err error) {
	f := &rowFile{shape: s, serial: serial, path: fsys.PathJoin(dir, rowFileName(serial))}
	defer func() {
		if err != nil {
			f.close()
			_ = fsys.Remove(f.path) // clean does it, too
			err = fmt.Errorf("create %s: %w", f.path, err)
		}
	}()
	if f.file, err = fsys.OpenReadWrite(f.path, vfs.WriteCategoryUnspecified); err != nil {
		return nil, err
	}
	if _, err = f.file.WriteAt(f.header(), 0); err != nil {
		return nil, err
	}
	if f.size() > headerSize {
		if _, err = f.file.WriteAt([]byte{0}, f.size()-1); err != nil {
			return nil, err
		}
	}
	if dense {
		err := f.file.Preallocate(0, f.size())
		if err != nil && !errors.Is(err, syscall.EOPNOTSUPP) && !errors.Is(err, syscall.ENOSYS) {
			return nil, fmt.Errorf("allocate %d bytes: %w", f.size(), err)
		}
	}
	return f, f.openReader(fsys)
}

// openRows opens a row file for reading, or with write for writing too. It first checks by header
// and size that the file belongs to this table.
func openRows(fsys vfs.FS, dir string, s shape, serial uint64, write bool) (_ *rowFile, err error) {
	f := &rowFile{shape: s, serial: serial, path: fsys.PathJoin(dir, rowFileName(serial))}
	info, err := fsys.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, damaged(f.path, -1, errors.New("the file is gone"))
	case err != nil:
		return nil, err
	}
	if err := store.Regular(f.path, info.Mode()); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	if write {
		f.file, err = fsys.OpenReadWrite(f.path, vfs.WriteCategoryUnspecified)
	} else {
		f.file, err = fsys.Open(f.path)
	}
	if err != nil {
		return nil, err
	}
	h := make([]byte, headerSize)
	if _, err := f.file.ReadAt(h, 0); errors.Is(err, io.EOF) {
		return nil, damaged(f.path, -1, errors.New("it has no header: it was cut"))
	} else if err != nil {
		return nil, err
	}
	if err := f.check(h); err != nil {
		return nil, damaged(f.path, -1, err)
	}
	if info.Size() != f.size() {
		return nil, damaged(f.path, -1, fmt.Errorf("it has %d bytes, and its rows take %d: it was cut or added to", info.Size(), f.size()))
	}
	return f, f.openReader(fsys)
}

// check returns an error if h is not the header of f.
func (f *rowFile) check(h []byte) error {
	le := binary.LittleEndian
	switch {
	case string(h[:8]) != rowMagic:
		return fmt.Errorf("it begins with %q, not with %q", h[:8], rowMagic)
	case le.Uint32(h[8:]) != version:
		return fmt.Errorf("it is of version %d, and this build reads %d", le.Uint32(h[8:]), version)
	case crc32.Checksum(h[:headerSize-sumSize], castagnoli) != le.Uint32(h[headerSize-sumSize:]):
		return errors.New("its header is not as it was written")
	case [16]byte(h[32:48]) != f.run:
		return errors.New("it is of another run or table")
	case le.Uint64(h[24:]) != uint64(f.rows) || le.Uint32(h[12:]) != uint32(f.rowBytes) || int64(le.Uint32(h[16:])) != f.stride:
		return fmt.Errorf("it has %d rows of %d bytes, and the table has %d of %d", le.Uint64(h[24:]), le.Uint32(h[12:]), f.rows, f.rowBytes)
	case le.Uint64(h[48:]) != f.serial:
		return fmt.Errorf("it is file %d of the table, and file %d is looked for", le.Uint64(h[48:]), f.serial)
	}
	return nil
}

// openReader opens the file once more, for package disk. It goes through fsys, which may refuse
// paths that the system would open.
func (f *rowFile) openReader(fsys vfs.FS) error {
	if f.file.Fd() == vfs.InvalidFd {
		return nil
	}
	again, err := fsys.Open(f.path)
	if err != nil {
		return err
	}
	fd, err := unix.FcntlInt(again.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		f.reader = os.NewFile(uintptr(fd), f.path)
	}
	return errors.Join(err, again.Close())
}

// section returns the file in the form that package disk reads.
func (f *rowFile) section(dir string) store.SectionFile {
	return store.SectionFile{File: f.reader, Path: f.path, Dataset: dir, Section: rowFileName(f.serial), Size: f.size()}
}

// sum returns the checksum of a record.
func (f *rowFile) sum(row uint32, b []byte) uint32 {
	c := ^uint32(0)
	for _, id := range [...]uint64{f.serial, uint64(row)} { // by the table: crc32 needs a slice, allocated for each row
		for range 8 {
			c = castagnoli[byte(c)^byte(id)] ^ c>>8
			id >>= 8
		}
	}
	return crc32.Update(^c, castagnoli, b)
}

// encode writes the record of a row to dst, which has stride bytes.
func (f *rowFile) encode(dst []byte, row uint32, b []byte) {
	copy(dst, b)
	binary.LittleEndian.PutUint32(dst[f.rowBytes:], f.sum(row, b))
	clear(dst[f.rowBytes+sumSize:])
}

// decode checks the record of a row and returns its bytes, which lie in record. offset is the
// record's place in the file.
func (f *rowFile) decode(row uint32, record []byte, offset int64) ([]byte, error) {
	b := record[:f.rowBytes:f.rowBytes]
	if f.sum(row, b) != binary.LittleEndian.Uint32(record[f.rowBytes:]) {
		return nil, damaged(f.path, offset, fmt.Errorf("row %d is not as it was written: the disk has changed it", row))
	}
	return b, nil
}

func (f *rowFile) close() {
	if f.file != nil {
		_ = f.file.Close() // synced before anything relies on it
	}
	if f.reader != nil {
		_ = f.reader.Close() // nothing was written
	}
}

// ErrDamaged is in the chain of every error about a file of the table that differs from what was
// written.
var ErrDamaged = errors.New("damaged rows of a run")

// damage is the error that carries ErrDamaged.
type damage struct {
	path   string
	offset int64 // -1: no single place
	err    error
}

func damaged(path string, offset int64, err error) error { return &damage{path, offset, err} }

func (d *damage) Error() string {
	at := ""
	if d.offset >= 0 {
		at = fmt.Sprintf(" at 0x%x", d.offset)
	}
	return fmt.Sprintf("%s%s: %v; restore it, go on from an older checkpoint by removing the newer ones, or begin another run with {run}",
		d.path, at, d.err)
}

// Unwrap returns the cause and ErrDamaged.
func (d *damage) Unwrap() []error { return []error{d.err, ErrDamaged} }
