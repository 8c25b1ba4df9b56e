package torch

import (
	"fmt"
	"io"
	"slices"

	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/pickle"
)

// Tensor is an array whose elements are in the file. Descr is PyTorch's name of their type,
// "float32" or "bfloat16", whose kind is [npy.BFloat]. The methods of the view read it, or a part.
type Tensor struct {
	*npy.View
}

// Kind returns a tensor's name in package pickle's messages.
func (t *Tensor) Kind() string { return "a tensor" }

const (
	maxTensors = 1 << 18
	maxDims    = 64
)

// elem is a type of elements.
type elem struct {
	name string
	kind npy.Kind
	size int64
}

// elems has the element types by their names. Pickles refer to them as globals, as torch.float32.
var elems = byName([]elem{
	{"float32", npy.Float, 4}, {"float64", npy.Float, 8}, {"float16", npy.Float, 2}, {"bfloat16", npy.BFloat, 2},
	{"int64", npy.Int, 8}, {"int32", npy.Int, 4}, {"int16", npy.Int, 2}, {"int8", npy.Int, 1},
	{"uint8", npy.Uint, 1}, {"uint16", npy.Uint, 2}, {"uint32", npy.Uint, 4}, {"uint64", npy.Uint, 8}, {"bool", npy.Bool, 1},
	{"complex32", npy.Opaque, 4}, {"complex64", npy.Opaque, 8}, {"complex128", npy.Opaque, 16},
	{"quint8", npy.Opaque, 1}, {"qint8", npy.Opaque, 1}, {"qint32", npy.Opaque, 4}, {"quint4x2", npy.Opaque, 1},
	{"quint2x4", npy.Opaque, 1}, {"float8_e4m3fn", npy.E4M3, 1}, {"float8_e5m2", npy.E5M2, 1},
	{"float8_e4m3fnuz", npy.E4M3Z, 1}, {"float8_e5m2fnuz", npy.E5M2Z, 1}, {"float8_e8m0fnu", npy.E8M0, 1},
})

func byName(list []elem) map[string]elem {
	m := make(map[string]elem, len(list))
	for _, e := range list {
		m[e.name] = e
	}
	return m
}

// classes are the types that a storage's class stands for, by its name in the module torch.
var classes = map[string]string{
	"FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
	"LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8",
	"BoolStorage": "bool", "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
	"QUInt8Storage": "quint8", "QInt8Storage": "qint8", "QInt32Storage": "qint32", "QUInt4x2Storage": "quint4x2",
	"QUInt2x4Storage": "quint2x4",
}

// untyped is a storage of bytes, whose tensors say what they are.
var untyped = elem{"bytes", npy.Opaque, 1}

// storage is the object behind a persistent id.
type storage struct {
	elem  elem
	at    npy.Storage
	late  *late // at, in the old container
	bytes int64
	first int64 // byte at which a view of it begins
}

func (s *storage) Kind() string { return "a storage" }

// loader makes tensors of what the pickle says.
type loader struct {
	name     string
	big      bool
	find     func(key string) (at npy.Storage, bytes int64, err error) // bytes is -1 when not known yet
	storages map[string]*storage                                       // of the old container
	tensors  int
	memory   int64 // of the ingest
}

func newLoader(name string, big bool, memory int64) *loader {
	return &loader{name: name, big: big, memory: memory, storages: map[string]*storage{}}
}

func (l *loader) load(name string, b []byte) (any, error) { return l.dialect().Load(name, b) }

// persistent takes ("storage", class, key, location, elements) and, in the old container, a view of
// it.
func (l *loader) persistent(id any) (any, error) {
	t, ok := id.(pickle.Tuple)
	if !ok || len(t) < 5 || len(t) > 6 {
		return nil, fmt.Errorf("%s where a storage is expected", pickle.Kind(id))
	}
	what, _ := pickle.Text(t[0])
	class, isClass := t[1].(pickle.Global)
	key, isKey := pickle.Text(t[2])
	n, isSize := t[4].(int64)
	if what != "storage" || !isClass || !isKey || !isSize || n < 0 {
		return nil, fmt.Errorf("it names no storage")
	}
	e, ok := storageClasses[class]
	if !ok {
		return nil, fmt.Errorf("a storage of class %s, which is not known", class)
	}
	if n > 1<<60/e.size {
		return nil, fmt.Errorf("a storage of %d elements", n)
	}
	at, have, err := l.find(key)
	if err != nil {
		return nil, err
	}
	s := &storage{elem: e, at: at, bytes: n * e.size}
	if have >= 0 && s.bytes > have {
		return nil, fmt.Errorf("storage %q has %d bytes, and the pickle says %d of %s", clip(key), have, n, e.name)
	}
	if have < 0 {
		if s, err = l.promised(key, s); err != nil {
			return nil, err
		}
		if len(t) == 6 && t[5] != nil {
			return s.part(t[5])
		}
	}
	return s, nil
}

// promised is the one storage of a key in the old container.
func (l *loader) promised(key string, s *storage) (*storage, error) {
	if same := l.storages[key]; same != nil {
		if same.elem != s.elem || same.bytes != s.bytes {
			return nil, fmt.Errorf("storage %q is of %d bytes and of %d", clip(key), same.bytes, s.bytes)
		}
		return same, nil
	}
	if len(l.storages) == maxTensors {
		return nil, fmt.Errorf("more than %d storages", maxTensors)
	}
	s.late = s.at.(*late)
	l.storages[key] = s
	return s, nil
}

// part is a view of a storage: (its key, the first element, how many).
func (s *storage) part(view any) (*storage, error) {
	t, _ := view.(pickle.Tuple)
	if len(t) != 3 {
		return nil, fmt.Errorf("%s where a part of a storage is expected", pickle.Kind(view))
	}
	first, ok := t[1].(int64)
	n, isSize := t[2].(int64)
	if have := s.bytes / s.elem.size; !ok || !isSize || first < 0 || n < 0 || first > have || n > have-first {
		return nil, fmt.Errorf("a part of a storage that reaches out of it")
	}
	return &storage{elem: s.elem, at: s.at, bytes: (first + n) * s.elem.size, first: first * s.elem.size}, nil
}

// rebuild takes (storage, offset, shape, strides, …): torch._utils._rebuild_tensor and
// _rebuild_tensor_v2.
func (l *loader) rebuild(args pickle.Tuple) (any, error) {
	if len(args) < 4 || len(args) > 7 {
		return nil, fmt.Errorf("a tensor of %d arguments, and 4 to 7 are expected", len(args))
	}
	s, ok := args[0].(*storage)
	if !ok {
		return nil, fmt.Errorf("a tensor in %s instead of a storage", pickle.Kind(args[0]))
	}
	return l.tensor(s, s.elem, args)
}

// rebuildTyped takes (storage of bytes, offset, shape, strides, requires grad, hooks, type, …):
// _rebuild_tensor_v3, for the types that have no class of storage.
func (l *loader) rebuildTyped(args pickle.Tuple) (any, error) {
	if len(args) < 7 || len(args) > 8 {
		return nil, fmt.Errorf("a tensor of %d arguments, and 7 or 8 are expected", len(args))
	}
	s, ok := args[0].(*storage)
	g, isType := args[6].(pickle.Global)
	e, known := dtypes[g]
	if !ok || !isType || !known {
		return nil, fmt.Errorf("a tensor of type %s in %s", pickle.Kind(args[6]), pickle.Kind(args[0]))
	}
	return l.tensor(s, e, args)
}

// rebuildSubclass takes (function, subclass, its arguments, state): _rebuild_from_type_v2. The
// function makes a tensor, or a subclass such as EdgeIndex, whose state has the tensor.
func (l *loader) rebuildSubclass(args pickle.Tuple) (any, error) {
	if len(args) != 4 {
		return nil, fmt.Errorf("a tensor of %d arguments, and 4 are expected", len(args))
	}
	made, ok := args[0].(pickle.Global)
	of, isTuple := args[2].(pickle.Tuple)
	class, isClass := args[1].(pickle.Global)
	if !ok || !isTuple || !isClass || !slices.Contains(subclasses, class) {
		return nil, fmt.Errorf("%s made by %s", pickle.Kind(args[1]), pickle.Kind(args[0]))
	}
	switch made {
	case "torch._utils._rebuild_tensor_v2":
		return l.rebuild(of)
	case "torch._utils._rebuild_tensor_v3":
		return l.rebuildTyped(of)
	case wrapped:
		state := args[3]
		if both, ok := state.(pickle.Tuple); ok && len(both) > 0 { // (attributes, slots)
			state = both[0]
		}
		if d, ok := state.(*pickle.Dict); ok {
			if t, ok := d.Get("_data").(*Tensor); ok {
				return t, nil
			}
		}
		return nil, fmt.Errorf("a %s without the tensor that it wraps", class)
	}
	return nil, fmt.Errorf("a %s that %s makes", class, made)
}

func (l *loader) tensor(s *storage, e elem, args pickle.Tuple) (any, error) {
	if l.tensors++; l.tensors > maxTensors {
		return nil, fmt.Errorf("more than %d tensors", maxTensors)
	}
	offset, ok := args[1].(int64)
	if !ok || offset < 0 || s.first%e.size != 0 {
		return nil, fmt.Errorf("a tensor at %s of its storage", pickle.Kind(args[1]))
	}
	shape, err := integers(args[2])
	if err != nil {
		return nil, fmt.Errorf("a tensor's shape: %w", err)
	}
	strides, err := integers(args[3])
	if err != nil {
		return nil, fmt.Errorf("a tensor's strides: %w", err)
	}
	if offset > s.bytes/e.size && !slices.Contains(shape, 0) {
		return nil, fmt.Errorf("a tensor at element %d of a storage that has %d", offset, s.bytes/e.size)
	}
	h := npy.Header{Descr: e.name, Type: npy.Type{Kind: e.kind, Size: int(e.size), BigEndian: l.big && e.size > 1}, Shape: shape}
	v, err := npy.NewView(h, strides, s.first/e.size+offset, s.at, s.bytes)
	if err != nil {
		return nil, err
	}
	return &Tensor{v}, nil
}

// integers takes a tuple of them, or a list.
func integers(v any) ([]int64, error) {
	if l, ok := v.(*pickle.List); ok {
		v = pickle.Tuple(l.Items)
	}
	t, ok := v.(pickle.Tuple)
	if !ok || len(t) > maxDims {
		return nil, fmt.Errorf("%s where a tuple of up to %d integers is expected", pickle.Kind(v), maxDims)
	}
	out := make([]int64, len(t))
	for i, n := range t {
		if out[i], ok = n.(int64); !ok {
			return nil, fmt.Errorf("%s among its integers", pickle.Kind(n))
		}
	}
	return out, nil
}

var _ io.ReaderAt = (*late)(nil)
