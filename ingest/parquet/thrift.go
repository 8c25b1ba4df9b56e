package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/parquet-go/parquet-go/encoding/thrift"
)

const (
	maxDepth   = 32      // of structs and lists in metadata; the format's own need about ten
	maxStructs = 1 << 19 // in lists: column chunks and what they have, some 700 bytes each in memory
)

var errShort = errors.New("the metadata ends within a value")

// decodeThrift reads a struct of the compact protocol from the front of b, and returns its size
// there in bytes. The generic decoder allocates lists as long as they say they are and recurses as
// deep as they go, so all is measured first.
func decodeThrift(b []byte, v any) (size int, err error) {
	m := measure{b: b}
	if err := m.structure(0); err != nil {
		return 0, err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the metadata is damaged (%v)", p)
		}
	}()
	return m.at, thrift.Unmarshal(new(thrift.CompactProtocol), b[:m.at], v)
}

// measure walks a value of the compact protocol
// (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md).
type measure struct {
	b       []byte
	at      int
	structs int
}

const (
	typeTrue, typeFalse       = 1, 2
	typeByte                  = 3
	typeI16, typeI32, typeI64 = 4, 5, 6
	typeDouble, typeBinary    = 7, 8
	typeList, typeSet         = 9, 10
	typeMap, typeStruct       = 11, 12
)

func (m *measure) structure(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("the metadata nests deeper than %d", maxDepth)
	}
	for {
		head, err := m.byte()
		if err != nil || head == 0 {
			return err
		}
		if head>>4 == 0 {
			if _, err := m.uvarint(); err != nil {
				return err
			}
		}
		if kind := head & 15; kind != typeTrue && kind != typeFalse { // which are their own value
			if err := m.value(kind, depth+1); err != nil {
				return err
			}
		}
	}
}

func (m *measure) value(kind byte, depth int) error {
	switch kind {
	case typeTrue, typeFalse, typeByte: // a truth in a list takes a byte
		return m.skip(1)
	case typeI16, typeI32, typeI64:
		_, err := m.uvarint()
		return err
	case typeDouble:
		return m.skip(8)
	case typeBinary:
		n, err := m.uvarint()
		if err != nil {
			return err
		}
		return m.skip(n)
	case typeList, typeSet:
		head, err := m.byte()
		n := uint64(head >> 4)
		if err == nil && n == 15 {
			n, err = m.uvarint()
		}
		if err != nil {
			return err
		}
		return m.elements(n, head&15, depth)
	case typeMap:
		n, err := m.uvarint()
		if err != nil || n == 0 {
			return err
		}
		kinds, err := m.byte()
		if err != nil {
			return err
		}
		for range min(n, uint64(len(m.b))) {
			if err := m.elements(1, kinds>>4, depth); err != nil {
				return err
			}
			if err := m.elements(1, kinds&15, depth); err != nil {
				return err
			}
		}
		return nil
	case typeStruct:
		return m.structure(depth)
	}
	return fmt.Errorf("the metadata has a value of unknown type %d", kind)
}

func (m *measure) elements(n uint64, kind byte, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("the metadata nests deeper than %d", maxDepth)
	}
	if n > uint64(len(m.b)-m.at) { // each takes a byte at least
		return errShort
	}
	if kind == typeStruct || kind == typeList || kind == typeBinary {
		if m.structs += int(n); m.structs > maxStructs {
			return fmt.Errorf("the metadata lists more than %d things; write larger row groups, or several files", maxStructs)
		}
	}
	for range n {
		if err := m.value(kind, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (m *measure) byte() (byte, error) {
	if m.at == len(m.b) {
		return 0, errShort
	}
	m.at++
	return m.b[m.at-1], nil
}

func (m *measure) skip(n uint64) error {
	if n > uint64(len(m.b)-m.at) {
		return errShort
	}
	m.at += int(n)
	return nil
}

func (m *measure) uvarint() (uint64, error) {
	v, n := binary.Uvarint(m.b[m.at:])
	if n <= 0 {
		return 0, errShort
	}
	m.at += n
	return v, nil
}
