package pickle

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/gnnstore/gnnstore/store"
)

const (
	// MaxFile is the size of the largest file that is read. Pickled graphs of Planetoid's kind have
	// a few MB.
	MaxFile = 256 << 20

	maxLine = 4 << 10 // of a number or a name in protocol 0
)

// ReadFile loads a file.
func (d *Dialect) ReadFile(path string) (any, error) {
	f, size, err := store.OpenSized(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	most := min(MaxFile, Share(d.Memory)) + 1
	b := bytes.NewBuffer(make([]byte, 0, min(size, most)+bytes.MinRead))
	if _, err := b.ReadFrom(io.LimitReader(f, most)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d.Load(path, b.Bytes())
}

// Load reads the object of a pickle: nil, bool, int64, float64, string, [Bytes], [Tuple], *[List],
// *[Dict], *[Array] or *[Object], and these in each other. The name is for messages. The result
// lends from b.
func (d *Dialect) Load(name string, b []byte) (any, error) {
	v, n, err := d.LoadFirst(name, b)
	if err != nil {
		return nil, err
	}
	if rest := len(b) - n; rest > 0 {
		return nil, fmt.Errorf("%s: byte %d: %d bytes follow the end of the pickle", name, n, rest)
	}
	return v, nil
}

// LoadFirst reads the object of a pickle that other bytes follow, and returns the pickle's length.
// An error that is io.ErrUnexpectedEOF means that the pickle is longer than b.
func (d *Dialect) LoadFirst(name string, b []byte) (v any, n int, err error) {
	if len(b) > MaxFile {
		return nil, 0, fmt.Errorf("%s: more than %d MiB; such a pickle is not read", name, MaxFile>>20)
	}
	if len(b) == 0 {
		return nil, 0, fmt.Errorf("%s: %w", name, truncated("the file is empty; fetch it again"))
	}
	m := machine{b: b, dialect: d, memo: map[uint32]any{}, left: Share(d.Memory)}
	if err = m.charge(int64(len(b))); err == nil {
		v, err = m.run()
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s: byte %d: %w", name, m.op, err)
	}
	return v, m.pos, nil
}

// truncated is the error of a pickle that does not end.
type truncated string

func (t truncated) Error() string        { return string(t) }
func (t truncated) Is(target error) bool { return target == io.ErrUnexpectedEOF }

// machine is one pickle being read. Nothing is called by it but what globals.go holds.
type machine struct {
	b       []byte
	dialect *Dialect
	pos     int // of the byte to be read next
	op      int // of the opcode under way
	stack   []any
	marks   []int // heights of the stack
	memo    map[uint32]any
	left    int64   // bytes that it may still make
	source  *source // of a pickle that is streamed, whose next bytes are in b; else nil
}

// run follows the opcodes to STOP.
func (m *machine) run() (any, error) {
	for {
		m.op = m.pos
		if err := m.fill(1); err != nil {
			return nil, err
		}
		if m.pos == len(m.b) {
			return nil, m.truncated(1)
		}
		code := m.b[m.pos]
		m.pos++
		if code == '.' {
			v, err := m.pop()
			if err == nil && (len(m.stack) > 0 || len(m.marks) > 0) {
				err = fmt.Errorf("the pickle ends with %d values left over", len(m.stack))
			}
			return v, err
		}
		if err := m.step(code); err != nil {
			return nil, err
		}
	}
}

// step follows one opcode. The letters are from Python's pickletools.
func (m *machine) step(code byte) error {
	switch code {
	// What a stack machine has.
	case 0x80: // PROTO
		v, err := m.uint(1)
		if err == nil && v > 5 {
			err = fmt.Errorf("pickle protocol %d is not known (0 to 5 are)", v)
		}
		return err
	case 0x95: // FRAME: a hint for readers of streams
		n, err := m.uint(8)
		if err == nil && n > uint64(m.unread()) {
			err = m.truncated(n)
		}
		return err
	case '(': // MARK
		before := cap(m.marks)
		m.marks = append(m.marks, len(m.stack))
		return m.charge(int64(cap(m.marks)-before) * 8)
	case '0': // POP
		if n := len(m.marks); n > 0 && m.marks[n-1] == len(m.stack) {
			m.marks = m.marks[:n-1]
			return nil
		}
		_, err := m.pop()
		return err
	case '1': // POP_MARK
		_, err := m.popMark()
		return err
	case '2': // DUP
		v, err := m.top()
		if err != nil {
			return err
		}
		return m.pushAgain(v)
	case 'p', 'q', 'r', 0x94: // PUT, BINPUT, LONG_BINPUT, MEMOIZE
		return m.put(code)
	case 'g', 'h', 'j': // GET, BINGET, LONG_BINGET
		return m.get(code)

	// Plain values.
	case 'N':
		return m.push(nil)
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		return m.push(code == 0x88)
	case 'I', 'L', 'F': // INT, LONG, FLOAT, as text
		return m.number(code)
	case 'K', 'M': // BININT1, BININT2
		v, err := m.uint(int(code-'K')/2 + 1)
		return m.pushed(int64(v), err)
	case 'J': // BININT
		v, err := m.uint(4)
		return m.pushed(int64(int32(v)), err)
	case 0x8a, 0x8b: // LONG1, LONG4
		n, err := m.uint(3*int(code-0x8a) + 1)
		if err != nil {
			return err
		}
		return m.long(n)
	case 'G': // BINFLOAT, big-endian
		b, err := m.take(8)
		if err != nil {
			return err
		}
		return m.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
	case 'S', 'V': // STRING, UNICODE, as text
		return m.quoted(code)
	case 'U', 'C': // SHORT_BINSTRING, SHORT_BINBYTES
		b, err := m.sized(1)
		return m.pushed(Bytes(b), err)
	case 'T', 'B': // BINSTRING, BINBYTES
		b, err := m.sized(4)
		return m.pushed(Bytes(b), err)
	case 0x8e, 0x96: // BINBYTES8, BYTEARRAY8
		b, err := m.sized(8)
		return m.pushed(Bytes(b), err)
	case 0x8c: // SHORT_BINUNICODE
		b, err := m.sized(1)
		return m.pushed(string(b), err)
	case 'X': // BINUNICODE
		b, err := m.sized(4)
		return m.pushed(string(b), err)
	case 0x8d: // BINUNICODE8
		b, err := m.sized(8)
		return m.pushed(string(b), err)

	// Containers.
	case ')':
		return m.push(Tuple(nil))
	case 0x85, 0x86, 0x87: // TUPLE1, TUPLE2, TUPLE3
		items, err := m.copied(m.popN(int(code-0x85) + 1))
		return m.pushed(Tuple(items), err)
	case 't': // TUPLE
		items, err := m.copied(m.popMark())
		return m.pushed(Tuple(items), err)
	case ']', 0x8f: // EMPTY_LIST, EMPTY_SET
		return m.push(&List{})
	case 'l': // LIST
		items, err := m.copied(m.popMark())
		return m.pushed(&List{Items: items}, err)
	case 0x91: // FROZENSET
		items, err := m.copied(m.popMark())
		return m.pushed(&List{Items: items}, err)
	case 'a', 'e', 0x90: // APPEND, APPENDS, ADDITEMS
		return m.appends(code)
	case '}':
		return m.push(&Dict{})
	case 'd': // DICT
		items, err := m.popMark()
		if err != nil {
			return err
		}
		d := &Dict{}
		if err := m.add(d, items); err != nil {
			return err
		}
		return m.push(d)
	case 's', 'u': // SETITEM, SETITEMS
		return m.setItems(code)

	// Classes: see globals.go.
	case 'c', 0x93: // GLOBAL, STACK_GLOBAL
		return m.global(code)
	case 'R': // REDUCE
		return m.reduce()
	case 0x81: // NEWOBJ
		return m.newObject()
	case 'b': // BUILD
		return m.build()
	case 'Q': // BINPERSID
		if m.dialect.Persistent != nil {
			return m.persistent()
		}
	}
	return fmt.Errorf("opcode 0x%02x%s is no part of a pickle of data; this file is refused", code, opcodeName(code))
}

// opcodeName names the opcodes that Python has and this machine refuses.
func opcodeName(code byte) string {
	name := map[byte]string{
		'P': "PERSID", 'Q': "BINPERSID", 'i': "INST", 'o': "OBJ", 0x82: "EXT1", 0x83: "EXT2", 0x84: "EXT4", 0x92: "NEWOBJ_EX", 0x97: "NEXT_BUFFER", 0x98: "READONLY_BUFFER",
	}[code]
	if name == "" {
		return ""
	}
	return " (" + name + ")"
}

// The file.

func (m *machine) truncated(n uint64) error {
	return truncated(fmt.Sprintf("truncated: %d bytes are needed and %d are left; fetch it again", n, m.unread()))
}

// take returns the next n bytes, lent.
func (m *machine) take(n uint64) ([]byte, error) {
	if n > uint64(m.unread()) {
		return nil, m.truncated(n)
	}
	if err := m.fill(int64(n)); err != nil {
		return nil, err
	}
	b := m.b[m.pos : m.pos+int(n) : m.pos+int(n)]
	m.pos += int(n)
	return b, nil
}

// uint reads a little-endian number of size bytes.
func (m *machine) uint(size int) (uint64, error) {
	b, err := m.take(uint64(size))
	if err != nil {
		return 0, err
	}
	var wide [8]byte
	copy(wide[:], b)
	return binary.LittleEndian.Uint64(wide[:]), nil
}

// sized returns bytes after their number, itself of size bytes.
func (m *machine) sized(size int) ([]byte, error) {
	n, err := m.uint(size)
	if err != nil {
		return nil, err
	}
	return m.take(n)
}

// line returns the text up to the end of the line.
func (m *machine) line(most int) ([]byte, error) {
	if err := m.fill(int64(min(most, maxLine)) + 1); err != nil {
		return nil, err
	}
	end := bytes.IndexByte(m.b[m.pos:], '\n')
	if end < 0 {
		return nil, truncated("truncated: a line does not end; fetch it again")
	}
	if end > most {
		return nil, fmt.Errorf("a line of %d bytes, and %d are the most here", end, most)
	}
	text := m.b[m.pos : m.pos+end]
	m.pos += end + 1
	return text, nil
}

// The stack.

func (m *machine) push(v any) error {
	if err := m.charge(sizeOf(v)); err != nil {
		return err
	}
	return m.pushAgain(v)
}

// pushAgain pushes what was remembered, which is counted.
func (m *machine) pushAgain(v any) (err error) {
	m.stack, err = m.extended(m.stack, v)
	return err
}

// pushed pushes what was read without an error.
func (m *machine) pushed(v any, err error) error {
	if err != nil {
		return err
	}
	return m.push(v)
}

// floor is where the values since the last mark begin.
func (m *machine) floor() int {
	if n := len(m.marks); n > 0 {
		return m.marks[n-1]
	}
	return 0
}

func (m *machine) top() (any, error) {
	if len(m.stack) <= m.floor() {
		return nil, fmt.Errorf("a value is needed and the stack is empty")
	}
	return m.stack[len(m.stack)-1], nil
}

func (m *machine) pop() (any, error) {
	v, err := m.top()
	if err == nil {
		m.stack = m.stack[:len(m.stack)-1]
	}
	return v, err
}

// popN returns the last n values, lent until the next push.
func (m *machine) popN(n int) ([]any, error) {
	if len(m.stack)-m.floor() < n {
		return nil, fmt.Errorf("%d values are needed and the stack has %d", n, len(m.stack)-m.floor())
	}
	items := m.stack[len(m.stack)-n:]
	m.stack = m.stack[:len(m.stack)-n]
	return items, nil
}

// copied makes what popN and popMark give last.
func (m *machine) copied(items []any, err error) ([]any, error) {
	if err == nil {
		err = m.charge(int64(len(items)) * slotBytes)
	}
	if err != nil {
		return nil, err
	}
	return append([]any(nil), items...), nil
}

// popMark returns the values since the last mark, lent until the next push, and drops the mark.
func (m *machine) popMark() ([]any, error) {
	n := len(m.marks)
	if n == 0 {
		return nil, fmt.Errorf("a mark is needed and there is none")
	}
	items, err := m.popN(len(m.stack) - m.marks[n-1])
	m.marks = m.marks[:n-1]
	return items, err
}

// put remembers the value on top of the stack.
func (m *machine) put(code byte) error {
	key, err := uint64(len(m.memo)), error(nil)
	if m.source != nil {
		key = uint64(m.source.puts)
	}
	switch code {
	case 'p':
		key, err = m.memoKey()
	case 'q':
		key, err = m.uint(1)
	case 'r':
		key, err = m.uint(4)
	}
	if err != nil {
		return err
	}
	v, err := m.top()
	if err != nil {
		return err
	}
	if m.source != nil {
		if err := m.source.remembered(m, key); err != nil {
			return err
		}
	}
	before := len(m.memo)
	m.memo[uint32(key)] = v
	return m.charge(int64(len(m.memo)-before) * memoBytes)
}

func (m *machine) get(code byte) (err error) {
	var key uint64
	switch code {
	case 'g':
		key, err = m.memoKey()
	case 'h':
		key, err = m.uint(1)
	case 'j':
		key, err = m.uint(4)
	}
	if err != nil {
		return err
	}
	v, ok := m.memo[uint32(key)]
	if !ok && m.source != nil && key < uint64(m.source.puts) {
		return fmt.Errorf("value %d of an earlier item is recalled, and items of such a dict are read one by one; save each with values of its own", key)
	}
	if !ok {
		return fmt.Errorf("value %d is recalled and was never remembered", key)
	}
	return m.pushAgain(v)
}

func (m *machine) memoKey() (uint64, error) {
	text, err := m.line(maxLine)
	if err != nil {
		return 0, err
	}
	key, err := strconv.ParseUint(string(text), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number to remember a value by", clip(text))
	}
	return key, nil
}

// Numbers and text.

// number reads one that stands as text: I01\n is true, for protocols without bool.
func (m *machine) number(code byte) error {
	text, err := m.line(maxLine)
	if err != nil {
		return err
	}
	if code == 'I' && (string(text) == "01" || string(text) == "00") {
		return m.push(text[1] == '1')
	}
	if code == 'F' {
		v, err := strconv.ParseFloat(string(text), 64)
		if err != nil && !math.IsInf(v, 0) {
			return fmt.Errorf("%q is not a number", clip(text))
		}
		return m.push(v)
	}
	v, err := strconv.ParseInt(string(bytes.TrimSuffix(text, []byte("L"))), 10, 64)
	if err != nil {
		return fmt.Errorf("%q is not an integer of 64 bits", clip(text))
	}
	return m.push(v)
}

// long reads an integer of n bytes, in two's complement.
func (m *machine) long(n uint64) error {
	b, err := m.take(n)
	if err != nil {
		return err
	}
	if n > 8 {
		return fmt.Errorf("an integer of %d bytes, and 8 are the most", n)
	}
	var wide [8]byte
	if n > 0 && b[n-1] >= 0x80 {
		wide = [8]byte{255, 255, 255, 255, 255, 255, 255, 255}
	}
	copy(wide[:], b)
	return m.push(int64(binary.LittleEndian.Uint64(wide[:])))
}

// quoted reads a string of protocol 0: S'…' with Python's escapes, or V… with \u alone.
func (m *machine) quoted(code byte) error {
	most := len(m.b)
	if m.source != nil {
		most = maxLine
	}
	text, err := m.line(most)
	if err != nil {
		return err
	}
	if err := m.charge(2 * int64(len(text))); err != nil { // of UTF-8, where the file has Latin-1
		return err
	}
	if code == 'V' {
		return m.pushed(unescapeUnicode(text))
	}
	text = bytes.TrimSpace(text)
	if n := len(text); n < 2 || text[0] != text[n-1] || text[0] != '\'' && text[0] != '"' {
		return fmt.Errorf("a string is not in quotes: %q", clip(text))
	}
	return m.pushed(unescape(text[1 : len(text)-1]))
}

var escapes = map[byte]byte{'\\': '\\', '\'': '\'', '"': '"', 'n': '\n', 't': '\t', 'r': '\r', 'a': 7, 'b': 8, 'f': 12, 'v': 11}

// unescape undoes Python 2's repr of a str.
func unescape(text []byte) (Bytes, error) {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			out = append(out, text[i])
			continue
		}
		i++
		switch {
		case i < len(text) && escapes[text[i]] != 0:
			out = append(out, escapes[text[i]])
		case i+2 < len(text) && text[i] == 'x':
			v, err := strconv.ParseUint(string(text[i+1:i+3]), 16, 8)
			if err != nil {
				return nil, fmt.Errorf(`\%s is no escape of a string`, clip(text[i:i+3]))
			}
			out = append(out, byte(v))
			i += 2
		default:
			return nil, fmt.Errorf(`\%s is no escape of a string`, clip(text[i:min(i+1, len(text))]))
		}
	}
	return out, nil
}

// unescapeUnicode undoes Python's raw-unicode-escape: Latin-1 bytes, \uXXXX and \UXXXXXXXX.
func unescapeUnicode(text []byte) (string, error) {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		digits := 0
		if text[i] == '\\' && i+1 < len(text) {
			digits = map[byte]int{'u': 4, 'U': 8}[text[i+1]]
		}
		if digits == 0 {
			out = utf8.AppendRune(out, rune(text[i]))
			continue
		}
		if i+1+digits >= len(text) {
			return "", fmt.Errorf("%q is cut off", clip(text[i:]))
		}
		v, err := strconv.ParseUint(string(text[i+2:i+2+digits]), 16, 32)
		if err != nil || v > utf8.MaxRune {
			return "", fmt.Errorf("%q is no character", clip(text[i:i+2+digits]))
		}
		out = utf8.AppendRune(out, rune(v))
		i += 1 + digits
	}
	return string(out), nil
}

// Containers.

func (m *machine) appends(code byte) error {
	items, err := m.popFor(code != 'a', 1)
	if err != nil {
		return err
	}
	v, err := m.top()
	if err != nil {
		return err
	}
	l, ok := v.(*List)
	if !ok {
		return fmt.Errorf("something is appended to %s, which is no list", Kind(v))
	}
	l.Items, err = m.extended(l.Items, items...)
	return err
}

func (m *machine) setItems(code byte) error {
	items, err := m.popFor(code == 'u', 2)
	if err != nil {
		return err
	}
	v, err := m.top()
	if err != nil {
		return err
	}
	d, ok := v.(*Dict)
	if !ok {
		return fmt.Errorf("an item is set in %s, which is no dict", Kind(v))
	}
	if err := m.add(d, items); err != nil {
		return err
	}
	return m.emit(d)
}

// popFor returns the values since the last mark, or the last n.
func (m *machine) popFor(marked bool, n int) ([]any, error) {
	if marked {
		return m.popMark()
	}
	return m.popN(n)
}

// add adds keys and values, which come by turns, to a dict.
func (m *machine) add(d *Dict, items []any) (err error) {
	if len(items)%2 != 0 {
		return fmt.Errorf("a dict gets a key without a value")
	}
	for i := 0; i < len(items) && err == nil; i += 2 {
		if d.Keys, err = m.extended(d.Keys, items[i]); err == nil {
			d.Values, err = m.extended(d.Values, items[i+1])
		}
	}
	return err
}

// Kind returns a name for messages of a value from [Dialect.Load]: "a dict".
func Kind(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return "a bool"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case string:
		return "a string"
	case Bytes:
		return "bytes"
	case Tuple:
		return "a tuple"
	case *List:
		return "a list"
	case *Dict:
		return "a dict"
	case *Array:
		if v.objects != nil {
			return "an array of Python objects"
		}
		return "an array"
	case *Object:
		return "a " + v.Class
	case Global:
		return "the class " + string(v)
	case interface{ Kind() string }:
		return v.Kind()
	}
	return "a dtype"
}

// clip shortens text for a message, which quotes it.
func clip(text []byte) []byte { return text[:min(len(text), 40)] }
