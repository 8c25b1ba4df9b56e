package mutable

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/store"
)

// A file gen-C lists a generation, where C is the step of its checkpoint: its rows, and the row
// file that has them. The file is replaced atomically. Numbers are little-endian.
//
//	00-07  "GNNRLIST"
//	08-0b  version, 1
//	0c-0f  bytes of a row
//	10-17  rows of the table
//	18-27  what the rows belong to: XXH3-128 of Options.Run
//	28-2f  C
//	30-37  the generation before it, -1: none
//	38-3f  serial number of its row file, 0: it has no rows
//	40-47  number of rows that it has
//	48-4f  1: rows not listed are as if never written; 0: they are in generations before it
//	50     a bit for each row, in words of 64
//	end-8  XXH3-64 of all before
const (
	listMagic  = "GNNRLIST"
	listHeader = 0x50
	listSuffix = 8
)

// none is the generation before the first.
const none = -1

// list is the header of a file gen-C.
type list struct {
	number, after int64
	serial        uint64
	count         int64
	fresh         bool
}

func listName(number int64) string { return fmt.Sprintf("gen-%012d", number) }

// numbered returns the numbers of the files with this prefix in dir.
func numbered(fsys vfs.FS, dir, prefix string) (numbers []int64, err error) {
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, name := range names {
		var n int64
		digits, ok := strings.CutPrefix(name, prefix)
		if _, err := fmt.Sscanf(digits, "%d", &n); ok && err == nil && n >= 0 && (listName(n) == name || rowFileName(uint64(n)) == name) {
			numbers = append(numbers, n)
		}
	}
	return numbers, err
}

// writeList replaces the file of l. has is the set of its rows.
func writeList(fsys vfs.FS, dir string, s *shape, l *list, has policy.Set) (bytes int64, err error) {
	path := fsys.PathJoin(dir, listName(l.number))
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	h := make([]byte, listHeader)
	copy(h, listMagic)
	le := binary.LittleEndian
	le.PutUint32(h[8:], version)
	le.PutUint32(h[12:], uint32(s.rowBytes))
	le.PutUint64(h[16:], uint64(s.rows))
	copy(h[24:], s.run[:])
	le.PutUint64(h[40:], uint64(l.number))
	le.PutUint64(h[48:], uint64(l.after))
	le.PutUint64(h[56:], l.serial)
	le.PutUint64(h[64:], uint64(l.count))
	if l.fresh {
		h[72] = 1
	}
	tmp := path + ".tmp"
	f, err := fsys.Create(tmp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return 0, err
	}
	sum := xxh3.New()
	w := bufio.NewWriterSize(io.MultiWriter(sum, f), 64<<10) // sum first: f may change the bytes that it has written
	w.Write(h)                                               // Flush returns the errors
	var word [8]byte
	for _, bits := range has[:s.words()] {
		le.PutUint64(word[:], bits)
		w.Write(word[:])
	}
	if err = w.Flush(); err == nil {
		_, err = f.Write(le.AppendUint64(nil, sum.Sum64()))
	}
	if err == nil {
		err = f.Sync()
	}
	if err = cmp.Or(err, f.Close()); err == nil {
		err = fsys.Rename(tmp, path)
	}
	if err != nil {
		_ = fsys.Remove(tmp) // clean does it, too
		return 0, err
	}
	return listHeader + 8*int64(s.words()) + listSuffix, syncDir(fsys, dir)
}

// words returns the number of 64-bit words in the bitmap of a list.
func (s *shape) words() int { return (s.rows + 63) / 64 }

// set returns an empty set for the rows of the table.
func (s *shape) set() policy.Set { return make(policy.Set, policy.SetWords(s.rows)) }

// readList reads the file gen-number, and calls do, if not nil, with each word of its bitmap that
// is not 0.
func readList(fsys vfs.FS, dir string, s *shape, number int64, do func(word int, bits uint64)) (l list, err error) {
	path := fsys.PathJoin(dir, listName(number))
	info, err := fsys.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, damaged(path, -1, errors.New("the file is gone"))
	}
	if err == nil {
		err = store.Regular(path, info.Mode())
	}
	if err != nil {
		return l, err
	}
	if want := listHeader + 8*int64(s.words()) + listSuffix; info.Size() != want {
		return l, damaged(path, -1, fmt.Errorf("it has %d bytes, and a list of %d rows has %d: it was cut, or is of another run", info.Size(), s.rows, want))
	}
	f, err := fsys.Open(path)
	if err != nil {
		return l, err
	}
	defer f.Close()
	// Decode twice: do must only see rows of a list whose checksum is right.
	if l, err = s.decodeList(f, nil); err == nil && do != nil {
		var again vfs.File
		if again, err = fsys.Open(path); err != nil {
			return l, err
		}
		defer again.Close()
		l, err = s.decodeList(again, do)
	}
	if err != nil {
		return l, damaged(path, -1, err)
	}
	if l.number != number {
		return l, damaged(path, -1, fmt.Errorf("it is the list of step %d", l.number))
	}
	return l, nil
}

func (s *shape) decodeList(r io.Reader, do func(word int, bits uint64)) (l list, err error) {
	sum := xxh3.New()
	in := bufio.NewReaderSize(r, 64<<10)
	le := binary.LittleEndian
	h := make([]byte, listHeader)
	if _, err := io.ReadFull(in, h); err != nil {
		return l, err
	}
	sum.Write(h)
	switch {
	case string(h[:8]) != listMagic:
		return l, fmt.Errorf("it begins with %q, not with %q", h[:8], listMagic)
	case le.Uint32(h[8:]) != version:
		return l, fmt.Errorf("it is of version %d, and this build reads %d", le.Uint32(h[8:]), version)
	case [16]byte(h[24:40]) != s.run:
		return l, errors.New("it is of another run or table")
	case le.Uint64(h[16:]) != uint64(s.rows) || le.Uint32(h[12:]) != uint32(s.rowBytes):
		return l, fmt.Errorf("it is of %d rows of %d bytes, and the table has %d of %d", le.Uint64(h[16:]), le.Uint32(h[12:]), s.rows, s.rowBytes)
	}
	l = list{
		number: int64(le.Uint64(h[40:])), after: int64(le.Uint64(h[48:])), serial: le.Uint64(h[56:]), count: int64(le.Uint64(h[64:])),
		fresh: h[72] == 1,
	}
	var count int64
	var b [8]byte
	for w := range s.words() {
		if _, err := io.ReadFull(in, b[:]); err != nil {
			return l, err
		}
		sum.Write(b[:])
		if word := le.Uint64(b[:]); word != 0 {
			count += int64(bits.OnesCount64(word))
			if do != nil {
				do(w, word)
			}
		}
	}
	if _, err := io.ReadFull(in, b[:]); err != nil {
		return l, err
	}
	if le.Uint64(b[:]) != sum.Sum64() || count != l.count {
		return l, errors.New("it is not as it was written")
	}
	return l, nil
}

func syncDir(fsys vfs.FS, dir string) error {
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	return cmp.Or(d.Sync(), d.Close())
}
