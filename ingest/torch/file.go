package torch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/archive"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/pickle"
	"github.com/gnnstore/gnnstore/store"
)

const kind = "a file of torch.save"

// File is an open file of torch.save.
type File struct {
	name  string
	file  *os.File // nil when the caller's
	value any
}

// Open opens a file and reads its pickle, which may take a part of the ingest's memory:
// [pickle.Share].
func Open(path string, memory int64) (*File, error) {
	f, size, err := store.OpenSized(path)
	if err != nil {
		return nil, err
	}
	file, err := OpenReader(path, f, size, memory)
	if err != nil {
		f.Close()
		return nil, err
	}
	file.file = f
	return file, nil
}

// OpenReader is Open for a file that is already there. The name is for messages; r stays the
// caller's, and must last as long as the File.
func OpenReader(name string, r io.ReaderAt, size, memory int64) (*File, error) {
	f := &File{name: name}
	var err error
	switch head := archive.Head(r); {
	case bytes.HasPrefix(head, []byte("PK")):
		f.value, err = readZip(name, r, size, memory)
	case IsLegacy(head):
		f.value, err = readLegacy(name, r, size, memory)
	default:
		if err = archive.Mistaken(r, size, kind); err == nil {
			err = unknown(r)
		}
		err = fmt.Errorf("%s: %w", name, err)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// unknown explains, in an error, other files with these suffixes.
func unknown(r io.ReaderAt) error {
	var tar [5]byte
	if _, err := r.ReadAt(tar[:], 257); err == nil && string(tar[:]) == "ustar" {
		return errors.New("a tar archive, as PyTorch wrote before version 0.2; load it there and save it again")
	}
	if head := archive.Head(r); head[0] == 0x80 {
		return errors.New("a plain pickle, not " + kind + "; load it in Python and torch.save it")
	}
	return errors.New("not " + kind + ": it begins neither as a zip archive nor as PyTorch's pickles")
}

// Value returns the saved object, in the types of [pickle.Load], with *[Tensor] for tensors.
func (f *File) Value() any { return f.value }

// Close closes the file that Open opened. No Reader works afterwards.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// readZip reads the archive of PyTorch 1.6 and later: TOP/data.pkl, and TOP/data/KEY for every
// storage.
func readZip(name string, r io.ReaderAt, size, memory int64) (any, error) {
	a, err := archive.Open(name, r, size, kind)
	if err != nil {
		return nil, err
	}
	top, found := "", 0
	for _, m := range a.Members {
		if prefix, ok := strings.CutSuffix(m.Name, "data.pkl"); ok && strings.Count(prefix, "/") <= 1 && (prefix == "" || strings.HasSuffix(prefix, "/")) {
			top = prefix
			found++
		}
	}
	switch {
	case found > 1:
		return nil, fmt.Errorf("%s: %d members called data.pkl, and one is expected", name, found)
	case found == 0 && hasArrays(a):
		return nil, fmt.Errorf("%s: this is an npz archive of NumPy, not %s; name it .npz", name, kind)
	case found == 0:
		return nil, fmt.Errorf("%s: a zip archive without data.pkl; it is not %s", name, kind)
	}
	for _, m := range a.Members {
		if rest, ok := strings.CutPrefix(m.Name, top); ok && (rest == "constants.pkl" || strings.HasPrefix(rest, "code/")) {
			return nil, fmt.Errorf("%s: a TorchScript archive (%s): a model with its code; torch.save its state_dict() or tensors instead", name, m.Name)
		}
	}
	m := a.Member(top + "data.pkl")
	if m.Size > pickle.MaxFile {
		return nil, fmt.Errorf("%s: %s has %d bytes, and %d MiB are the most of a pickle; save large arrays as tensors", name, m.Name, m.Size, pickle.MaxFile>>20)
	}
	if room := pickle.Share(memory); m.Size > room {
		return nil, fmt.Errorf("%s: %s has %d bytes, and a pickle may take %d MiB, a quarter of {memory}; raise {memory}, or save large arrays as tensors", name, m.Name, m.Size, room>>20)
	}
	b, err := m.ReadAll(pickle.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	big, err := bigEndian(a.Member(top + "byteorder"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	l := newLoader(name, big, memory)
	l.find = func(key string) (npy.Storage, int64, error) {
		m := a.Member(top + "data/" + key)
		if m == nil {
			return nil, 0, fmt.Errorf("storage %q is not in the archive", clip(key))
		}
		return m, m.Size, nil
	}
	return l.load(name+": "+m.Name, b)
}

func hasArrays(a *archive.Archive) bool {
	for _, m := range a.Members {
		if strings.HasSuffix(m.Name, ".npy") {
			return true
		}
	}
	return false
}

// bigEndian reads the order of the storages' bytes; files of before it was written have the usual
// one.
func bigEndian(m *archive.Member) (bool, error) {
	if m == nil {
		return false, nil
	}
	b, err := m.ReadAll(64)
	if err != nil {
		return false, err
	}
	switch string(b) {
	case "little":
		return false, nil
	case "big":
		return true, nil
	}
	return false, fmt.Errorf("%s: %q is no byte order (little and big are)", m.Name, clip(string(b)))
}

func clip(s string) string { return s[:min(len(s), 40)] }
