package pickle

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/gnnstore/gnnstore/store"
)

// window is the number of bytes of a streamed pickle read at a time, or more where one value needs
// it.
const window = 1 << 20

// source is the file of a pickle that is streamed.
type source struct {
	file io.Reader
	left int64 // bytes of it that are not yet in machine.b
	base int64 // place in the file of machine.b[0]

	dict  *Dict // whose items are visited
	visit func(key, value any) error
	err   error    // of visit, which has its words
	puts  int      // values that were remembered so far
	fresh []uint32 // the newest of them, since an item was visited
	kept  int64    // bytes that the others take
}

// EachItem streams the items of the dict that the file at path is: visit gets each key with its
// value, in the order of the file, lent for the call. A file may be of any size, since neither its
// bytes nor its items are kept, nor what an item remembers: where a later one recalls a value of an
// earlier one, other than a name, a dtype or a short text, the pickle ends in an error.
// Dialect.Memory bounds what is held at a time.
func (d *Dialect) EachItem(path string, visit func(key, value any) error) error {
	f, size, err := store.OpenSized(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return d.EachItemOf(path, f, size, visit)
}

// EachItemOf is EachItem for the size bytes that r yields. Messages use name.
func (d *Dialect) EachItemOf(name string, r io.Reader, size int64, visit func(key, value any) error) error {
	if size == 0 {
		return fmt.Errorf("%s: %w", name, truncated("the file is empty; fetch it again"))
	}
	s := &source{file: r, left: size, visit: visit}
	m := machine{dialect: d, memo: map[uint32]any{}, left: Share(d.Memory), source: s}
	v, err := m.run()
	switch dict, ok := v.(*Dict); {
	case s.err != nil:
		return s.err
	case err != nil:
		return fmt.Errorf("%s: byte %d: %w", name, s.base+int64(m.op), err)
	case !ok:
		return fmt.Errorf("%s: it holds %s instead of a dict", name, Kind(v))
	case int64(len(m.b)-m.pos)+s.left > 0:
		return fmt.Errorf("%s: byte %d: %d bytes follow the end of the pickle", name, s.base+int64(m.pos), int64(len(m.b)-m.pos)+s.left)
	default: // items that it was made with, by an opcode that Python writes for no dict of its own
		return s.give(dict)
	}
}

// fill has n bytes or more be in b from pos on, if there are so many. Where they are not there yet,
// b becomes another one: what was lent from the one before stays as it is.
func (m *machine) fill(n int64) error {
	s := m.source
	if s == nil || s.left == 0 {
		return nil
	}
	rest := int64(len(m.b) - m.pos)
	if n -= rest; n <= 0 {
		return nil
	}
	n = min(max(n, window), s.left)
	if err := m.charge(rest + n); err != nil {
		return err
	}
	b := make([]byte, rest+n)
	copy(b, m.b[m.pos:])
	s.base += int64(m.pos)
	m.op -= m.pos // which may be before it
	m.b, m.pos = b, 0
	if _, err := io.ReadFull(s.file, b[rest:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
			err = errors.New("the file became shorter while it was read; fetch it again")
		}
		return err
	}
	s.left -= n
	return nil
}

// unread returns the number of bytes of the pickle that have not been taken.
func (m *machine) unread() int64 {
	n := int64(len(m.b) - m.pos)
	if m.source != nil {
		n += m.source.left
	}
	return n
}

// emit gives away the items of the dict that the pickle is, once they are complete, and forgets
// what they remembered.
func (m *machine) emit(d *Dict) error {
	s := m.source
	if s == nil || len(m.stack) != 1 || len(m.marks) > 0 || m.stack[0] != any(d) {
		return nil
	}
	s.dict = d
	if err := s.give(d); err != nil {
		return err
	}
	*d = Dict{attributes: d.attributes}
	for _, key := range s.fresh {
		v := m.memo[key]
		if v != any(d) && !lasting(v) {
			delete(m.memo, key)
			continue
		}
		if b, ok := v.(Bytes); ok {
			m.memo[key] = Bytes(bytes.Clone(b)) // of a window that goes
		}
		s.kept += memoBytes + sizeOf(v)
	}
	s.fresh = s.fresh[:0]
	m.left = Share(m.dialect.Memory) - s.kept // the rest is forgotten
	return m.charge(int64(len(m.b)))
}

// lasting reports whether a later item may recall a value: what Python makes once for all of them.
func lasting(v any) bool {
	switch v := v.(type) {
	case Global, *dtype:
		return true
	case string:
		return len(v) <= 64
	case Bytes:
		return len(v) <= 1
	}
	return false
}

// give visits the items that a dict has.
func (s *source) give(d *Dict) error {
	for i, key := range d.Keys {
		if s.err = s.visit(key, d.Values[i]); s.err != nil {
			return s.err
		}
	}
	return nil
}

// remembered is put of a streamed pickle. Values are remembered under the numbers from 0 on, or
// from 1, as Python does it.
func (s *source) remembered(m *machine, key uint64) error {
	if _, there := m.memo[uint32(key)]; there {
		return nil
	}
	switch {
	case key == uint64(s.puts), key == uint64(s.puts)+1 && s.puts == 0:
		s.puts = int(key) + 1
		s.fresh = append(s.fresh, uint32(key))
	default:
		return fmt.Errorf("value %d is remembered behind value %d, which is not how Python writes; this file is refused", key, s.puts-1)
	}
	return nil
}
