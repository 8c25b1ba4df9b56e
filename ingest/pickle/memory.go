package pickle

import "fmt"

// share is the part of the memory of an ingest that one pickle may take: the file, and the objects
// made of it.
const share = 4

// Share is the bytes that a pickle may take where an ingest has that much memory; 0 is as in
// [Dialect].
func Share(memory int64) int64 {
	if memory <= 0 {
		memory = 4 * MaxFile
	}
	return memory / share
}

// What values take, in bytes, beside what they hold. TestMemory holds them against the heap.
const (
	slotBytes   = 16  // a value in a list, a dict, a tuple or on the stack
	memoBytes   = 80  // an entry of the memo, while its map grows
	objectBytes = 256 // an array, or what a dialect makes
	dimBytes    = 32  // a dimension, in the shape and the strides of an array
)

// charge counts bytes before they are made. What an opcode drops stays counted: the collector may
// not have seen it yet.
func (m *machine) charge(n int64) error {
	if m.left -= n; m.left < 0 {
		return fmt.Errorf("what it holds takes more than %d MiB of memory, a quarter of {memory}; raise {memory}, or save large arrays as .npy files or tensors",
			(Share(m.dialect.Memory)+1<<20-1)>>20)
	}
	return nil
}

// chargeArgs counts the memory that a call or a state takes for its arguments: an array, its shape
// and its strides.
func (m *machine) chargeArgs(args Tuple) error {
	n := objectBytes
	for _, arg := range args {
		switch v := arg.(type) {
		case Tuple:
			n += dimBytes * len(v)
		case *List:
			n += dimBytes * len(v.Items)
		}
	}
	return m.charge(int64(n))
}

// sizeOf is the bytes that a value takes itself, without its items, and without bytes that are
// lent.
func sizeOf(v any) int64 {
	switch v := v.(type) {
	case nil, bool:
		return 0
	case int64, float64:
		return 8
	case string:
		return slotBytes + int64(len(v))
	case Global:
		return slotBytes + int64(len(v))
	case Bytes, Tuple, *List:
		return 24
	case *Dict:
		return 64
	}
	return objectBytes
}

// extended appends items, and counts what the slice grows by.
func (m *machine) extended(s []any, items ...any) ([]any, error) {
	before := cap(s)
	s = append(s, items...)
	return s, m.charge(int64(cap(s)-before) * slotBytes)
}
