// Package checkpoint keeps named float32 tensors in a safetensors file: an 8-byte header length, a
// JSON header, raw little-endian data, as https://huggingface.co/docs/safetensors describes it.
// Such files are read by PyTorch users' tools as they are.
//
// Save replaces the file atomically: a reader, or a process started after a crash, sees the old
// file or the new one. Load believes nothing: sizes are checked before anything is allocated, and a
// checksum of the whole file, which the metadata has, finds every bit that changed. Start at
// [Save].
package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/store"
)

// Tensor is a named matrix in host memory.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
}

const (
	metaKey = "__metadata__"
	// fileSumKey is XXH3-64 of the whole file, its own digits taken as zeros: safetensors has no
	// checksum.
	fileSumKey = "gnnstore.file_xxh3"
	// dataSumKey is the checksum that earlier versions wrote instead, of the data alone.
	dataSumKey = "gnnstore.xxh3"
	// ownPrefix begins every metadata key that we write; a file with such keys has a checksum.
	ownPrefix = "gnnstore."
	noSum     = "0000000000000000"
	// maxHeader is the limit of the reference implementation.
	maxHeader = 100 << 20
)

type entry struct {
	DType   string    `json:"dtype"`
	Shape   []int     `json:"shape"`
	Offsets [2]uint64 `json:"data_offsets"`
}

// Save writes tensors and meta to path, atomically as [WriteFile] does.
func Save(fs vfs.FS, path string, tensors []Tensor, meta map[string]string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write checkpoint %s: %w", path, err)
		}
	}()
	var data []byte
	header := map[string]any{}
	at := uint64(0)
	for _, t := range tensors {
		n := uint64(len(t.Data)) * 4
		header[t.Name] = entry{"F32", t.Shape, [2]uint64{at, at + n}}
		at += n
		data = slices.Grow(data, int(n))
		for _, x := range t.Data {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		}
	}
	all := map[string]string{fileSumKey: noSum}
	maps.Copy(all, meta)
	header[metaKey] = all
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	for len(text)%8 != 0 { // the reference implementation aligns the data with spaces
		text = append(text, ' ')
	}
	length := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	copy(fileSum(text), sumOf(length, text, data))
	return replace(fs, path, func(w io.Writer) error {
		for _, b := range [][]byte{length, text, data} {
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
		return nil
	})
}

// fileSum is where a header has the digits of fileSumKey; nil where it has none.
func fileSum(header []byte) []byte {
	_, digits, found := bytes.Cut(header, []byte(`"`+fileSumKey+`":"`))
	if !found || len(digits) < len(noSum) {
		return nil
	}
	return digits[:len(noSum)]
}

func sumOf(parts ...[]byte) string {
	h := xxh3.New()
	for _, b := range parts {
		_, _ = h.Write(b) // a hash takes everything
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// WriteFile replaces path atomically, by way of path.tmp: whatever happens, path holds the old
// contents or the new.
func WriteFile(fs vfs.FS, path string, contents []byte) error {
	return WriteBy(fs, path, func(w io.Writer) error {
		_, err := w.Write(contents)
		return err
	})
}

// WriteBy is WriteFile of the bytes that write writes. After a Write the caller's bytes may be
// changed, since a vfs.File may do that.
func WriteBy(fs vfs.FS, path string, write func(w io.Writer) error) error {
	if err := replace(fs, path, write); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func replace(fs vfs.FS, path string, write func(w io.Writer) error) (err error) {
	tmp := path + ".tmp"
	f, err := fs.Create(tmp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = fs.Rename(tmp, path)
	}
	if err != nil {
		return errors.Join(err, fs.Remove(tmp))
	}
	d, err := fs.OpenDir(fs.PathDir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Open opens an ordinary file for reading. It refuses others, whose reads may wait forever; see
// [store.OpenFile].
func Open(fs vfs.FS, path string) (vfs.File, error) {
	if info, err := fs.Stat(path); err == nil {
		if err := store.Regular(path, info.Mode()); err != nil {
			return nil, err
		}
	}
	return fs.Open(path)
}

// Load reads all tensors of path, in the order of their data, and its metadata but for the
// checksum. A file of ours in which a bit has changed is an error; one that another program wrote
// has no checksum.
func Load(fs vfs.FS, path string) (_ []Tensor, meta map[string]string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("read checkpoint %s: %w", path, err)
		}
	}()
	f, err := Open(fs, path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	return read(f, fi.Size())
}

// Decode is Load of a file that is in memory.
func Decode(file []byte) ([]Tensor, map[string]string, error) {
	return read(bytes.NewReader(file), int64(len(file)))
}

// read decodes a file of size bytes.
func read(r io.Reader, size int64) (_ []Tensor, meta map[string]string, err error) {
	var length [8]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, nil, errors.New("shorter than a safetensors header: truncated?")
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader || int64(n) > size-8 {
		return nil, nil, fmt.Errorf("header of %d bytes in a file of %d: truncated, or not safetensors", n, size)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, nil, err
	}
	raw := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, nil, fmt.Errorf("header: %w", err)
	}
	meta = map[string]string{}
	if m, ok := raw[metaKey]; ok {
		if err := json.Unmarshal(m, &meta); err != nil {
			return nil, nil, fmt.Errorf("header: metadata: %w", err)
		}
		delete(raw, metaKey)
	}
	entries, end, err := decode(raw)
	if err != nil {
		return nil, nil, err
	}
	if have := uint64(size) - 8 - n; have != end {
		return nil, nil, fmt.Errorf("%d bytes of data, and its tensors take %d: truncated or damaged", have, end)
	}
	data := make([]byte, end)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, nil, err
	}
	if err := checkSum(meta, length[:], text, data); err != nil {
		return nil, nil, err
	}
	tensors := make([]Tensor, len(entries))
	for i, e := range entries {
		t := Tensor{Name: e.name, Shape: e.Shape, Data: make([]float32, (e.Offsets[1]-e.Offsets[0])/4)}
		for i := range t.Data {
			t.Data[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[e.Offsets[0]+uint64(4*i):]))
		}
		tensors[i] = t
	}
	return tensors, meta, nil
}

// checkSum compares the checksum in the metadata with the file, and takes it out of the metadata.
func checkSum(meta map[string]string, length, header, data []byte) error {
	want, whole := meta[fileSumKey]
	old, dataOnly := meta[dataSumKey]
	delete(meta, fileSumKey)
	delete(meta, dataSumKey)
	got := ""
	switch digits := fileSum(header); {
	case digits != nil:
		copy(digits, noSum)
		got = sumOf(length, header, data)
	case dataOnly:
		want, got = old, sumOf(data)
	case !whole: // of another program, or with a damaged key
		for key := range meta {
			if strings.HasPrefix(key, ownPrefix) {
				return errors.New("the checksum is missing: damaged; use the checkpoint before it")
			}
		}
		return nil
	}
	if want != got {
		return errors.New("checksum differs: truncated or damaged; use the checkpoint before it")
	}
	return nil
}

// named is an entry of the header under its name.
type named struct {
	name string
	entry
}

// decode checks the entries and returns them in the order of their data, which fills the bytes [0,
// end) without a gap or an overlap: the format wants that, and so no header makes much of little.
func decode(raw map[string]json.RawMessage) (entries []named, end uint64, err error) {
	for name, m := range raw {
		e := named{name: name}
		if err := json.Unmarshal(m, &e.entry); err != nil {
			return nil, 0, fmt.Errorf("tensor %q: %w", name, err)
		}
		if e.DType != "F32" {
			return nil, 0, fmt.Errorf("tensor %q: elements are %s; save it as float32 (F32)", name, e.DType)
		}
		size := uint64(4)
		for _, d := range e.Shape {
			if d < 0 || d != 0 && size > math.MaxInt64/uint64(d) {
				return nil, 0, fmt.Errorf("tensor %q: no file holds shape %s", name, shapeString(e.Shape))
			}
			size *= uint64(d)
		}
		if lo, hi := e.Offsets[0], e.Offsets[1]; lo > hi || hi-lo != size {
			return nil, 0, fmt.Errorf("tensor %q: bytes %d to %d for shape %s", name, lo, hi, shapeString(e.Shape))
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b named) int {
		return cmp.Or(cmp.Compare(a.Offsets[0], b.Offsets[0]), cmp.Compare(a.Offsets[1], b.Offsets[1]), strings.Compare(a.name, b.name))
	})
	for _, e := range entries {
		if e.Offsets[0] != end {
			return nil, 0, fmt.Errorf("tensor %q: its data begin at byte %d, and those before it end at %d", e.name, e.Offsets[0], end)
		}
		end = e.Offsets[1]
	}
	return entries, end, nil
}

func shapeString(shape []int) string {
	s := make([]string, len(shape))
	for i, d := range shape {
		s[i] = strconv.Itoa(d)
	}
	return "[" + strings.Join(s, " ") + "]"
}
