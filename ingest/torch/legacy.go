package torch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/pickle"
)

// magic is 0x1950a86a20f9469cfc6c as a pickle has it, less what stands before it.
// torch/serialization.py calls it so.
var magic = []byte("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.")

// magicLen is where the first pickle ends: magic, perhaps after a protocol and a frame; 0 when it
// is another.
func magicLen(head []byte) int {
	n := 0
	if len(head) > 2 && head[0] == 0x80 {
		n = 2
		if head[2] == 0x95 {
			n += 9
		}
	}
	if n > len(head) || !bytes.HasPrefix(head[n:], magic) {
		const text = "L119547037146038801333356L\n." // under protocol 1
		if bytes.HasPrefix(head, []byte(text)) {
			return len(text)
		}
		return 0
	}
	return n + len(magic)
}

// IsLegacy reports whether PyTorch before 1.6 wrote the file that begins with head.
func IsLegacy(head []byte) bool { return magicLen(head) > 0 }

// readLegacy reads what PyTorch wrote before 1.6: five pickles (magic, protocol, system, the value,
// the keys of its storages), and then each storage as its number of elements and these. All of it
// is little-endian.
func readLegacy(name string, r io.ReaderAt, size, memory int64) (any, error) {
	most := min(pickle.MaxFile, pickle.Share(memory))
	// How long the pickles are, nobody says: take as much as they turn out to need.
	for have := int64(1 << 20); ; have *= 4 {
		have = min(have, size, most)
		b := make([]byte, have)
		if n, err := r.ReadAt(b, 0); n < len(b) {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		v, err := readPickles(name, r, size, b, memory)
		if errors.Is(err, io.ErrUnexpectedEOF) && have < min(size, most) {
			continue
		}
		if errors.Is(err, io.ErrUnexpectedEOF) && have < size {
			return nil, fmt.Errorf("%s: its pickles are larger than the %d MiB that are read within {memory}; raise it, or save large arrays as tensors", name, most>>20)
		}
		return v, err
	}
}

func readPickles(name string, r io.ReaderAt, size int64, b []byte, memory int64) (any, error) {
	at := magicLen(b)
	l := newLoader(name, false, memory)
	l.find = l.legacy
	var values [4]any // protocol, system, value, keys
	for i := range values {
		d := &pickle.Dialect{Memory: memory}
		if i == 2 {
			d = l.dialect()
		}
		v, n, err := d.LoadFirst(name, b[at:])
		if err != nil {
			return nil, err
		}
		if version, ok := v.(int64); i == 0 && !ok {
			return nil, fmt.Errorf("%s: the version of PyTorch's old container is %s, and not a number; fetch the file again", name, pickle.Kind(v))
		} else if i == 0 && version != 1001 {
			return nil, fmt.Errorf("%s: version %d of PyTorch's old container is not known (1001 is)", name, version)
		}
		values[i] = v
		at += n
	}
	keys, ok := values[3].(*pickle.List)
	if !ok {
		return nil, fmt.Errorf("%s: %s where the list of storages is expected", name, pickle.Kind(values[3]))
	}
	return values[2], l.place(r, int64(at), size, keys.Items)
}

// place finds the storages, which follow each other from byte at on.
func (l *loader) place(r io.ReaderAt, at, size int64, keys []any) error {
	placed := 0
	for _, k := range keys {
		key, _ := pickle.Text(k)
		s := l.storages[key]
		if s == nil || s.late.ReaderAt != nil {
			return fmt.Errorf("%s: byte %d: storage %q is listed, and no tensor or another has it", l.name, at, clip(key))
		}
		var b [8]byte
		if n, err := r.ReadAt(b[:], at); n < len(b) {
			return fmt.Errorf("%s: byte %d: truncated: a storage is expected (%w); fetch it again", l.name, at, err)
		}
		at += int64(len(b))
		if n := int64(binary.LittleEndian.Uint64(b[:])); n != s.bytes/s.elem.size {
			return fmt.Errorf("%s: byte %d: storage %q has %d elements, and the pickle says %d; fetch it again", l.name, at-8, clip(key), n, s.bytes/s.elem.size)
		}
		if size-at < s.bytes {
			return fmt.Errorf("%s: byte %d: truncated: storage %q takes %d bytes and %d are left; fetch it again", l.name, at, clip(key), s.bytes, size-at)
		}
		s.late.ReaderAt = io.NewSectionReader(r, at, s.bytes)
		at += s.bytes
		placed++
	}
	if placed < len(l.storages) {
		return fmt.Errorf("%s: byte %d: %d storages, and the tensors are in %d; fetch it again", l.name, at, placed, len(l.storages))
	}
	if at < size {
		return fmt.Errorf("%s: byte %d: %d bytes follow the last storage", l.name, at, size-at)
	}
	return nil
}

// late is a storage whose place is known once the keys are read.
type late struct{ io.ReaderAt }

func (l *late) Stream(off, n int64) io.Reader { return npy.FileStorage(l.ReaderAt).Stream(off, n) }

// legacy promises a storage of that many bytes.
func (l *loader) legacy(string) (npy.Storage, int64, error) { return &late{}, -1, nil }
