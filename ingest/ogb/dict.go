package ogb

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/pickle"
	"github.com/gnnstore/gnnstore/ingest/torch"
	"github.com/gnnstore/gnnstore/store"
)

// Dict is a Python dict in a .pt file, as OGB stores splits and counts: of numbers, and of NumPy
// arrays or tensors of node ids, or of dicts of these. It holds the pickle, close to the size of
// the ids; tensors stay in the file.
type Dict struct {
	path  string
	dict  *pickle.Dict
	close func() error
}

// torchMagic is the number that PyTorch before 1.6 put in front, as a pickle's LONG1 and as its
// text.
var torchMagic = [2]string{"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", "L119547037146038801333356L"}

// OpenDict reads what torch.save wrote, in any of its forms, or a plain pickle, in an ingest that
// has so much memory; see [pickle.Share].
func OpenDict(path string, memory int64) (*Dict, error) {
	head, err := headOf(path)
	if err != nil {
		return nil, err
	}
	d := &Dict{path: path, close: func() error { return nil }}
	var value any
	if bytes.HasPrefix(head, []byte("PK")) || bytes.Contains(head, []byte(torchMagic[0])) || bytes.HasPrefix(head, []byte(torchMagic[1])) {
		f, err := torch.Open(path, memory)
		if err != nil {
			return nil, err
		}
		value, d.close = f.Value(), f.Close
	} else if value, err = (&pickle.Dialect{Memory: memory}).ReadFile(path); err != nil {
		return nil, err
	}
	var ok bool
	if d.dict, ok = value.(*pickle.Dict); !ok {
		d.close()
		return nil, fmt.Errorf("%s: it holds %s, where a dict is expected", path, pickle.Kind(value))
	}
	return d, nil
}

func headOf(path string) ([]byte, error) {
	f, err := store.OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 32)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	return head[:n], nil
}

// Close closes the file. Nothing is read from the Dict afterwards.
func (d *Dict) Close() error { return d.close() }

// at finds an entry; keys lead from dict to dict.
func (d *Dict) at(keys ...string) any {
	var value any = d.dict
	for _, key := range keys {
		dict, ok := value.(*pickle.Dict)
		if !ok {
			return nil
		}
		value = dict.Get(key)
	}
	return value
}

// Has reports whether there is an entry.
func (d *Dict) Has(key string) bool { return d.at(key) != nil }

// Keys returns the text keys of the dict at keys; false when no dict is there.
func (d *Dict) Keys(keys ...string) ([]string, bool) {
	dict, ok := d.at(keys...).(*pickle.Dict)
	if !ok {
		return nil, false
	}
	var names []string
	for _, key := range dict.Keys {
		if name, ok := pickle.Text(key); ok {
			names = append(names, name)
		}
	}
	return names, true
}

func (d *Dict) name(keys []string) string { return d.path + ": " + strings.Join(keys, "/") }

// Int is a number in the dict.
func (d *Dict) Int(key string) (int64, error) {
	switch v := d.at(key).(type) {
	case int64:
		return v, nil
	case *pickle.Array:
		if v.Len() == 1 {
			var n [1]int64
			if _, err := v.Reader().ReadInt64s(n[:]); err != nil {
				return 0, fmt.Errorf("%s: %w", d.name([]string{key}), err)
			}
			return n[0], nil
		}
	case nil:
		return 0, fmt.Errorf("%s: no entry %s in its dict", d.path, key)
	}
	return 0, fmt.Errorf("%s: it is %s, where a number is expected", d.name([]string{key}), pickle.Kind(d.at(key)))
}

// IDs streams the node ids at keys: an array, a tensor or a list of integers.
func (d *Dict) IDs(ctx context.Context, emit func(ingest.IDChunk) error, keys ...string) error {
	name := d.name(keys)
	var header npy.Header
	var in interface{ ReadInt64s([]int64) (int, error) }
	switch v := d.at(keys...).(type) {
	case *pickle.Array:
		header, in = v.Header, v.Reader()
	case *torch.Tensor:
		header, in = v.Header, v.Reader()
	case *pickle.List:
		header, in = npy.Header{Shape: []int64{int64(len(v.Items))}}, &list{v.Items}
	case nil:
		return fmt.Errorf("%s: no entry %s in its dict", d.path, strings.Join(keys, "/"))
	default:
		return fmt.Errorf("%s: it is %s, where an array of node ids is expected", name, pickle.Kind(v))
	}
	if len(header.Shape) == 0 || header.Len() != header.Shape[0] {
		return fmt.Errorf("%s: array is %s, where one id a row is expected", name, header.String())
	}
	ids := make([]int64, min(ingest.ChunkRows, header.Len()))
	for first := int64(0); first < header.Len(); {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := in.ReadInt64s(ids)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := emit(ingest.IDChunk{Place: ingest.Place{File: name, First: first}, IDs: ids[:n]}); err != nil {
			return err
		}
		first += int64(n)
	}
	return nil
}

// list reads integers of a Python list.
type list struct{ items []any }

func (l *list) ReadInt64s(dst []int64) (n int, err error) {
	for n < len(dst) && len(l.items) > 0 {
		v, ok := l.items[0].(int64)
		if !ok {
			return n, fmt.Errorf("%s in a list of integers", pickle.Kind(l.items[0]))
		}
		dst[n] = v
		l.items = l.items[1:]
		n++
	}
	return n, nil
}
