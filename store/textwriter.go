package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/zeebo/xxh3"
)

const (
	// maxText is the greatest length, in bytes, of a text that is an id.
	maxText = 1 << 16
	// A table ends once it holds maxTextTable bytes, before compression: until then the writer
	// keeps its index in memory.
	maxTextTable = 256 << 20
)

// textTables returns the options of a sorted table. Its bytes depend on all of them, so FORMAT.md
// lists them. zstd would save a quarter of the space or more, but pebble's encoder with cgo is
// another than without, so equal names would not give equal bytes. Blocks of 16 KiB made look-ups
// faster than blocks of 4 or 32 KiB.
func textTables() sstable.WriterOptions {
	return sstable.WriterOptions{
		TableFormat:             sstable.TableFormatPebblev6,
		Compression:             sstable.SnappyCompression,
		Checksum:                block.ChecksumTypeCRC32c,
		BlockSize:               16 << 10,
		BlockSizeThreshold:      90,
		SizeClassAwareThreshold: 60,
		BlockRestartInterval:    16,
		IndexBlockSize:          16 << 10,
		DisableValueBlocks:      true,
	}
}

// textWriter writes pairs of text and node, in one of their two orders, into tables.
type textWriter struct {
	w     *Writer
	node  *NodeType
	by    string
	limit int64           // bytes before compression, of one table
	table *sstable.Writer // being written; nil between tables
	blob  *blobWriter     // the file of table
	held  int64           // bytes in table
	last  []byte          // the last text added; only the order by name needs it
	count int64
	done  []Blob
}

func (t *textWriter) add(key, value []byte) error {
	if t.table == nil {
		name := t.node.namesPath(t.by, len(t.done))
		f, err := t.w.create(name)
		if err != nil {
			return err
		}
		t.blob = &blobWriter{out: output{file: f}, spec: Blob{Path: name}, buf: pageBuffer()}
		t.table = sstable.NewWriter(t.blob, textTables())
		t.held = 0
		t.w.open = append(t.w.open, t)
	}
	if err := t.table.Set(key, value); err != nil {
		return fmt.Errorf("write %s: %w", t.blob.spec.Path, err)
	}
	t.count++
	t.held += int64(len(key) + len(value))
	if t.held >= t.limit {
		return t.finish()
	}
	return nil
}

// finish ends the table that is being written, if there is one.
func (t *textWriter) finish() error {
	if t.table == nil {
		return nil
	}
	err := t.table.Close()
	t.table = nil
	t.w.closed(t)
	if err != nil {
		return fmt.Errorf("write %s: %w", t.blob.spec.Path, err)
	}
	t.done = append(t.done, t.blob.spec)
	return nil
}

func (t *textWriter) path() string { return t.blob.spec.Path }

// discard ends the table as it is. A table runs its own goroutine, which only ends with it.
func (t *textWriter) discard() error {
	_ = t.finish()
	return nil
}

// AppendName writes the node with the given text as its id. Call it for all nodes, ascending by the
// bytes of their texts. A node type has a name for every node or for none.
func (t *NodeTypeWriter) AppendName(text []byte, v NodeID) error {
	b := &t.names[0]
	if err := t.checkText(text); err != nil {
		return err
	}
	if b.count > 0 && bytes.Compare(b.last, text) >= 0 {
		return fmt.Errorf("node type %s: id %.100q does not follow %.100q; please report it", t.node.Name, text, b.last)
	}
	b.last = append(b.last[:0], text...)
	return b.add(text, binary.BigEndian.AppendUint32(t.id[:0], v))
}

// AppendText writes the text that is the id of the next stored node.
func (t *NodeTypeWriter) AppendText(text []byte) error {
	b := &t.names[1]
	if err := t.checkText(text); err != nil {
		return err
	}
	return b.add(binary.BigEndian.AppendUint32(t.id[:0], NodeID(b.count)), text)
}

func (t *NodeTypeWriter) checkText(text []byte) error {
	if len(text) == 0 || len(text) > maxText {
		return fmt.Errorf("node type %s: id %.100q has %d bytes; ids have 1 to %d", t.node.Name, text, len(text), maxText)
	}
	return nil
}

// closeNames ends the tables and returns their description, or nil if there are no names.
func (t *NodeTypeWriter) closeNames() (*Names, error) {
	byName, byNode := &t.names[0], &t.names[1]
	if err := errors.Join(byName.finish(), byNode.finish()); err != nil {
		return nil, err
	}
	if byName.count == 0 && byNode.count == 0 {
		return nil, nil
	}
	if byName.count != t.node.Count || byNode.count != t.node.Count {
		return nil, fmt.Errorf("node type %s: %d names by text and %d by node for %d nodes; please report it",
			t.node.Name, byName.count, byNode.count, t.node.Count)
	}
	return &Names{ByName: byName.done, ByNode: byNode.done}, nil
}

// blobWriter is the file of a table (objstorage.Writable). The table's own goroutine writes to it
// while the caller fills the next block, so blobWriter itself needs no second goroutine.
type blobWriter struct {
	out  output
	spec Blob
	buf  []byte
	hash xxh3.Hasher
	err  error
}

func (b *blobWriter) Write(p []byte) error {
	for len(p) > 0 && b.err == nil {
		n := min(len(p), cap(b.buf)-len(b.buf))
		b.buf = append(b.buf, p[:n]...)
		p = p[n:]
		if len(b.buf) == cap(b.buf) {
			b.err = b.flush()
		}
	}
	return b.err
}

func (b *blobWriter) flush() error {
	b.hash.Write(b.buf)
	at := b.spec.Bytes
	b.spec.Bytes += int64(len(b.buf))
	defer func() { b.buf = b.buf[:0] }()
	return b.out.writeAt(b.buf, at)
}

func (b *blobWriter) Finish() error {
	if b.err == nil {
		b.err = b.flush()
	}
	if b.err == nil {
		b.spec.XXH3 = hex64(b.hash.Sum64())
		b.err = b.out.file.Sync()
	}
	return errors.Join(b.err, b.out.file.Close())
}

func (b *blobWriter) Abort() { _ = b.out.file.Close() }
