package lines

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// foreign are files that are no tables, by their first bytes: what they are, and what to do
// instead.
var foreign = []struct{ start, say string }{
	{lfsStart, lfsSay},
	{"PK\x03\x04", "a zip archive; unpack it first and name the file inside"},
	{"BZh", "packed by bzip2 or xz; unpack it, or pack it by gzip or zstd"},
	{"\xfd7zXZ\x00", "packed by bzip2 or xz; unpack it, or pack it by gzip or zstd"},
	{"\xff\xfe", "text in UTF-16; convert it to UTF-8"},
	{"\xfe\xff", "text in UTF-16; convert it to UTF-8"},
	{"%%MatrixMarket", "a matrix in the Matrix Market format, which is not read; save it as .npz, which format npz reads: " +
		"scipy.sparse.save_npz('graph.npz', scipy.io.mmread(FILE).tocsr())"},
	{"MATLAB 5.0 MAT-file", matlabSay},
	{"MATLAB 7.3 MAT-file", matlabSay},
	{"*Vertices", "a graph in Pajek's format, which is not read; write its arcs as an edge list, a pair of ids a row"},
}

const matlabSay = "a MATLAB file, which is not read; save its matrix as .npz, which format npz reads: " +
	"scipy.sparse.save_npz('graph.npz', scipy.io.loadmat(FILE)[NAME].tocsr())"

// foreignBytes is as much as the longest start.
const foreignBytes = 64

// refuseForeign refuses a file whose first bytes show another format than a table's.
func refuseForeign(name string, head []byte) error {
	for _, f := range foreign {
		if bytes.HasPrefix(head, []byte(f.start)) {
			return fmt.Errorf("%s: %s", name, f.say)
		}
	}
	return nil
}

// Git LFS leaves a text of three lines in place of a file that it has not fetched
// (git-lfs/docs/spec.md).
const (
	lfsStart = "version https://git-lfs.github.com/spec/v1"
	lfsSay   = "a Git LFS pointer in place of the file; run git lfs pull in its repository, which fetches the file"
	lfsMost  = 1024 // bytes, by the specification
)

// RefusePointer is an error where the file at path is a Git LFS pointer, whatever its name ends in.
// What cannot be read is none.
func RefusePointer(path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > lfsMost {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	head := make([]byte, len(lfsStart))
	if _, err := io.ReadFull(f, head); err != nil || string(head) != lfsStart {
		return nil
	}
	return fmt.Errorf("%s: %s", path, lfsSay)
}
