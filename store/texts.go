package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// textCache is the memory, in bytes, for cached blocks of one node type's names.
const textCache = 16 << 20

// HasNames reports whether users know the nodes by texts. If not, Name, Find and EachName panic.
func (m IDs) HasNames() bool { return m.names != nil }

func (m IDs) mustHaveNames() {
	if m.names == nil {
		panic("store: names of nodes that have none")
	}
}

// Name returns the text that users know stored node v by.
func (m IDs) Name(v NodeID) (string, error) {
	if int64(v) >= int64(len(m.original)) {
		panic("store: Name of a node that does not exist")
	}
	m.mustHaveNames()
	var key [4]byte
	binary.BigEndian.PutUint32(key[:], v)
	var name string
	found, err := m.names.find(m.names.byNode, key[:], func(value []byte) error {
		name = string(value)
		return nil
	})
	if err == nil && !found {
		err = m.names.corrupt(m.names.byNode[0], fmt.Errorf("has no name for node %d", v))
	}
	return name, err
}

// Find returns the stored node that users know as name, and whether there is one.
func (m IDs) Find(name []byte) (NodeID, bool, error) {
	m.mustHaveNames()
	var v NodeID
	found, err := m.names.find(m.names.byName, name, func(value []byte) (err error) {
		v, err = m.node(value)
		return err
	})
	return v, found && err == nil, err
}

// EachName calls fn with every node and its name, in stored order. The name is lent for the call.
func (m IDs) EachName(ctx context.Context, fn func(v NodeID, name []byte) error) error {
	m.mustHaveNames()
	next := int64(0)
	err := m.names.each(ctx, m.names.byNode, func(key, value []byte) error {
		v, err := m.node(key)
		if err != nil {
			return err
		}
		if int64(v) != next {
			return fmt.Errorf("has node %d where %d belongs", v, next)
		}
		next++
		if err := fn(v, value); err != nil {
			return &callerError{err}
		}
		return nil
	})
	if err == nil && next != int64(len(m.original)) {
		err = m.names.corrupt(m.names.byNode[0], fmt.Errorf("has names for %d of %d nodes", next, len(m.original)))
	}
	return err
}

// node decodes a stored id and checks its range.
func (m IDs) node(b []byte) (NodeID, error) {
	if len(b) != 4 {
		return 0, fmt.Errorf("has a node id of %d bytes", len(b))
	}
	v := binary.BigEndian.Uint32(b)
	if int64(v) >= int64(len(m.original)) {
		return 0, fmt.Errorf("has node %d of %d", v, len(m.original))
	}
	return v, nil
}

// callerError wraps an error that the caller's function returned, so that it is not taken for
// damage to the table.
type callerError struct{ error }

// texts are the sorted tables of a node type. The first use opens readers for them.
type texts struct {
	dataset        string
	byName, byNode []*textTable
	once           sync.Once
	cache          *pebble.Cache
	err            error // of open
}

// textTable is one table. Its reader is nil before the first use.
type textTable struct {
	spec   *Blob
	file   *os.File
	reader *sstable.Reader
	first  []byte // its first key

	release func() // closes its handle of the cache; nil before the first use
}

func (t *texts) tables() []*textTable { return slices.Concat(t.byName, t.byNode) }

func (t *texts) corrupt(table *textTable, err error) error {
	return &SectionError{t.dataset, table.spec.Path, -1, fmt.Errorf("%w; run gnnstore verify", err)}
}

// guard runs fn, which reads table, and adds to its error which table failed. pebble's decoders
// panic on blocks that hold nonsense under a right checksum; guard turns these panics into errors.
// *away is true while fn calls the caller's function, whose panics pass through.
func (t *texts) guard(table *textTable, away *bool, fn func() error) (err error) {
	defer func() {
		if *away {
			return
		}
		if r := recover(); r != nil {
			err = t.corrupt(table, fmt.Errorf("cannot be decoded: %v", r))
		}
	}()
	err = fn()
	var caller *callerError
	if errors.As(err, &caller) {
		return caller.error
	}
	if err != nil {
		return t.corrupt(table, err)
	}
	return nil
}

// open opens all readers, once.
func (t *texts) open() error {
	t.once.Do(func() {
		t.cache = pebble.NewCache(textCache)
		for _, table := range t.tables() {
			if t.err == nil {
				t.err = t.guard(table, new(bool), func() error { return table.open(t.cache) })
			}
		}
	})
	return t.err
}

func (table *textTable) open(cache *pebble.Cache) error {
	var o sstable.ReaderOptions
	o.CacheOpts.CacheHandle = cache.NewHandle() // one a table, since a handle keeps the blocks of different files apart
	table.release = o.CacheOpts.CacheHandle.Close
	r, err := sstable.NewReader(context.Background(), textFile{table}, o)
	if err != nil {
		return err
	}
	table.reader = r
	it, err := table.iter(context.Background())
	if err != nil {
		return err
	}
	if kv := it.First(); kv != nil {
		table.first = bytes.Clone(kv.K.UserKey)
	} else if it.Error() == nil {
		err = errors.New("is empty")
	}
	return errors.Join(err, it.Error(), it.Close())
}

func (table *textTable) iter(ctx context.Context) (sstable.Iterator, error) {
	return table.reader.NewPointIter(ctx, sstable.IterOptions{
		FilterBlockSizeLimit: sstable.NeverUseFilterBlock,
		ReaderProvider:       sstable.MakeTrivialReaderProvider(table.reader),
		BlobContext:          sstable.AssertNoBlobHandles,
	})
}

// find calls fn with the value of key, if the tables have that key.
func (t *texts) find(tables []*textTable, key []byte, fn func(value []byte) error) (found bool, err error) {
	if err := t.open(); err != nil {
		return false, err
	}
	i, ok := slices.BinarySearchFunc(tables, key, func(t *textTable, k []byte) int { return bytes.Compare(t.first, k) })
	if !ok {
		i--
	}
	if i < 0 {
		return false, nil
	}
	err = t.guard(tables[i], new(bool), func() error {
		it, err := tables[i].iter(context.Background())
		if err != nil {
			return err
		}
		if kv := it.SeekGE(key, 0); kv != nil && bytes.Equal(kv.K.UserKey, key) {
			var value []byte
			if value, _, err = kv.V.Value(nil); err == nil {
				found = true
				err = fn(value)
			}
		}
		return errors.Join(err, it.Error(), it.Close())
	})
	return found, err
}

// each calls fn with every key and value, lent for the call. It looks at ctx now and then.
func (t *texts) each(ctx context.Context, tables []*textTable, fn func(key, value []byte) error) error {
	if err := t.open(); err != nil {
		return err
	}
	for _, table := range tables {
		away := false
		err := t.guard(table, &away, func() error {
			it, err := table.iter(ctx)
			if err != nil {
				return err
			}
			n := -1
			for kv := it.First(); kv != nil && err == nil; kv = it.Next() {
				if n++; n%4096 == 0 && ctx.Err() != nil {
					err = &callerError{ctx.Err()}
					break
				}
				var value []byte
				if value, _, err = kv.V.Value(nil); err == nil {
					away = true
					err = fn(kv.K.UserKey, value)
					away = false
				}
			}
			return errors.Join(err, it.Error(), it.Close())
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *texts) close() error {
	t.once.Do(func() { t.err = errors.New("closed") })
	var errs []error
	for _, table := range t.tables() {
		if table.reader != nil {
			errs = append(errs, table.reader.Close())
		} else {
			errs = append(errs, table.file.Close())
		}
		if table.release != nil {
			table.release()
		}
	}
	if t.cache != nil {
		t.cache.Unref()
	}
	return errors.Join(errs...)
}

// textFile adapts a table's file for its reader (objstorage.Readable).
type textFile struct{ table *textTable }

func (f textFile) ReadAt(_ context.Context, p []byte, off int64) error {
	_, err := f.table.file.ReadAt(p, off)
	return err
}

func (f textFile) Close() error { return f.table.file.Close() }

func (f textFile) Size() int64 { return f.table.spec.Bytes }

func (f textFile) NewReadHandle(objstorage.ReadBeforeSize) objstorage.ReadHandle {
	h := objstorage.MakeNoopReadHandle(f)
	return &h
}
