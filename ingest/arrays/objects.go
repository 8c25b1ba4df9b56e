package arrays

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/pickle"
	"github.com/gnnstore/gnnstore/ingest/torch"
)

// unread is the error of an array whose elements are not read.
type unread struct {
	name string // the file, and the key in it
	form string // "(100,) of |O"
	kind string // of the elements, with the first one that shows it
	line string // of Python that converts the array
}

func (u *unread) Error() string {
	return fmt.Sprintf("%s is %s, %s; convert it in Python and save it again: %s", u.name, u.form, u.kind, u.line)
}

func (u *unread) Is(target error) bool { return target == npy.ErrUnsupported }

// last returns the name of an array without its type of nodes or edges.
func last(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }

const maxShown = 80 // bytes of a type in a message

// unreadType is the error of an array whose type of elements has no numbers.
func unreadType(key, name string, h npy.Header) *unread {
	x, form := last(key), strings.TrimLeft(h.Descr, "<>|=")
	if !lines.Printable(h.Descr) || len(h.Descr) > maxShown {
		h.Descr = fmt.Sprintf("%.*q", maxShown, h.Descr)
	}
	u := &unread{name: name, form: h.String()}
	switch {
	case strings.HasPrefix(form, "complex"):
		u.kind, u.line = "complex numbers", fmt.Sprintf("%s = torch.view_as_real(%s).flatten(1)", x, x)
	case strings.HasPrefix(form, "c"):
		u.kind, u.line = "complex numbers", fmt.Sprintf("%s = numpy.hstack([%s.real, %s.imag])", x, x, x)
	case strings.HasPrefix(form, "q"):
		u.kind, u.line = "quantized numbers", fmt.Sprintf("%s = %s.dequantize()", x, x)
	case strings.HasPrefix(form, "M"), strings.HasPrefix(form, "m"):
		u.kind, u.line = "dates or spans of time", fmt.Sprintf(`%s = %s.astype("datetime64[s]").astype("int64")`, x, x)
		if form[0] == 'm' {
			u.line = fmt.Sprintf(`%s = %s.astype("timedelta64[s]").astype("int64")`, x, x)
		}
	case strings.HasPrefix(form, "["):
		u.kind, u.line = "records", fmt.Sprintf("%s = numpy.lib.recfunctions.structured_to_unstructured(%s)", x, x)
	case strings.HasPrefix(form, "f"):
		u.kind, u.line = "floats of a size that only some machines have", fmt.Sprintf(`%s = %s.astype("float64")`, x, x)
	default:
		u.kind, u.line = "elements without a known meaning", fmt.Sprintf(`%s = %s.astype("float32")`, x, x)
	}
	return u
}

// room reserves n bytes for values that are made of Python objects. It returns an error if these
// values take more than a quarter of the memory.
func (b *bag) room(n int64) error {
	if b.held += n; b.held > pickle.Share(b.memory) {
		return fmt.Errorf("the numbers and texts in its Python objects take more than %d MiB, a quarter of {memory}; raise {memory}, or save arrays of numbers", pickle.Share(b.memory)>>20)
	}
	return nil
}

// unpickle reads an array of Python objects, as NumPy writes it behind a header.
func (b *bag) unpickle(key, name string, h npy.Header, r io.Reader, size int64) (*array, error) {
	if most := min(pickle.MaxFile, pickle.Share(b.memory)); size > most {
		return nil, &unread{name, h.String(), fmt.Sprintf("Python objects in a pickle of %d bytes, and %d MiB are the most within {memory}", size, most>>20),
			fmt.Sprintf("%s = %s.astype(str)", last(key), last(key))}
	}
	raw, err := io.ReadAll(io.LimitReader(r, size))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d := &pickle.Dialect{Memory: b.memory, Remedy: fmt.Sprintf(`numpy.savez("graph.npz", %s=%s.astype(str))`, last(key), last(key))}
	v, err := d.Load(name, raw)
	if err != nil {
		return nil, err
	}
	a, ok := v.(*pickle.Array)
	if !ok || a.Objects() == nil {
		return nil, fmt.Errorf("%s: %s where an array of Python objects is expected; save it again", name, pickle.Kind(v))
	}
	if len(a.Shape) == 0 { // numpy.savez wraps a value that is no array
		return b.value(key, name, a.Objects().Items[0])
	}
	return b.objects(key, name, a.Header, a.Objects().Items)
}

// value opens a value of a pickle as an array.
func (b *bag) value(key, name string, v any) (*array, error) {
	a := &array{key: key, name: name}
	switch w := v.(type) {
	case *torch.Tensor:
		a.View = w.View
	case *pickle.Array:
		if w.Objects() != nil {
			return b.objects(key, name, w.Header, w.Objects().Items)
		}
		a.View = w.View()
	case *pickle.List:
		return b.list(key, name, w.Items)
	case pickle.Tuple:
		return b.list(key, name, w)
	case *pickle.Object:
		m, err := matrixOf(name, key, w)
		if err != nil {
			return nil, err
		}
		return m.array(), nil
	case *pickle.Dict:
		return nil, &unread{name, pickle.Kind(v), "which holds several", fmt.Sprintf(`numpy.savez("graph.npz", **%s.item())`, last(key))}
	default:
		return nil, &unread{name, pickle.Kind(v), "and no array", fmt.Sprintf("%s = numpy.asarray(%s)", last(key), last(key))}
	}
	if !a.Type.Number() && !a.isText() {
		return nil, unreadType(key, name, a.Header)
	}
	return a, nil
}

func (b *bag) list(key, name string, items []any) (*array, error) {
	return b.objects(key, name, npy.Header{Descr: "Python objects", Shape: []int64{int64(len(items))}}, items)
}

// objects converts an array of Python objects to an array of numbers, of texts, or of rows of
// numbers. All objects must be of one family. None becomes NaN, or the empty text.
func (b *bag) objects(key, name string, h npy.Header, items []any) (*array, error) {
	refuse := func(kind, line string) (*array, error) {
		return nil, &unread{name, h.String(), kind, fmt.Sprintf("%s = %s", last(key), fmt.Sprintf(line, last(key)))}
	}
	at, first := 0, any(nil) // the first that is not None
	for at = range items {
		if first = items[at]; first != nil {
			break
		}
	}
	family := familyOf(first)
	if len(items) == 0 {
		family = ofNumbers
	}
	for i, v := range items {
		switch f := familyOf(v); {
		case f == family || f == ofNothing && family != ofRows:
		case f == ofOthers || family == ofOthers:
			return refuse(fmt.Sprintf("Python objects (element %d is %s)", i, pickle.Kind(v)), `numpy.stack(%s).astype("float32")`)
		default:
			return refuse(fmt.Sprintf("Python objects of several kinds (element %d is %s, and %d is %s)", at, show(first), i, show(v)), "%s.astype(str)")
		}
	}
	switch family {
	case ofTexts:
		return b.texts(key, name, h, items)
	case ofRows:
		return b.rows(key, name, h, items)
	}
	return b.numeric(key, name, h.Shape, h.Fortran, items)
}

// family is a kind of Python object. Objects of one family make an array together.
type family int

const (
	ofNothing family = iota // None
	ofNumbers
	ofTexts
	ofRows
	ofOthers
)

func familyOf(v any) family {
	switch w := v.(type) {
	case nil:
		return ofNothing
	case int64, float64, bool:
		return ofNumbers
	case string, pickle.Bytes:
		return ofTexts
	case *pickle.List, pickle.Tuple:
		return ofRows
	case *pickle.Array:
		if w.Objects() != nil || !w.Type.Number() || len(w.Shape) != 1 {
			return ofOthers
		}
		return ofRows
	case *torch.Tensor:
		switch {
		case !w.Type.Number() || len(w.Shape) > 1:
			return ofOthers
		case len(w.Shape) == 1:
			return ofRows
		}
	}
	return ofOthers
}

// show describes an object for messages, with its value where that is short.
func show(v any) string {
	if text, ok := pickle.Text(v); ok && lines.Printable(text) {
		return fmt.Sprintf("the text %.40q", text)
	}
	switch v.(type) {
	case int64, float64, bool:
		return fmt.Sprintf("the number %v", v)
	}
	return pickle.Kind(v)
}

// made returns an array of data in memory, row-major unless turned is set.
func made(key, name, descr string, shape []int64, turned bool, data []byte) (*array, error) {
	h, err := npy.NewHeader(descr, turned, shape)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	v, err := npy.NewView(h, nil, 0, npy.FileStorage(bytes.NewReader(data)), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &array{View: v, key: key, name: name}, nil
}

// texts makes an array of texts, each as wide as the longest.
func (b *bag) texts(key, name string, h npy.Header, items []any) (*array, error) {
	width := 1
	for _, v := range items {
		text, _ := pickle.Text(v)
		width = max(width, len(text))
	}
	if err := b.room(int64(width) * int64(len(items))); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	data := make([]byte, width*len(items))
	for i, v := range items {
		text, _ := pickle.Text(v)
		copy(data[i*width:], text)
	}
	return made(key, name, fmt.Sprintf("|S%d", width), h.Shape, h.Fortran, data)
}

// numeric makes an array of truth values or of integers if all items are, else of floats.
func (b *bag) numeric(key, name string, shape []int64, turned bool, items []any) (*array, error) {
	if err := b.room(8 * int64(len(items))); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	whole, truths := true, len(items) > 0
	for _, v := range items {
		_, isInt := v.(int64)
		_, isBool := v.(bool)
		whole, truths = whole && (isInt || isBool), truths && isBool
	}
	data := make([]byte, 0, 8*len(items))
	for _, v := range items {
		bits, x := uint64(0), math.NaN()
		switch v := v.(type) {
		case int64:
			bits, x = uint64(v), float64(v)
		case bool:
			if x = 0; v {
				bits, x = 1, 1
			}
		case float64:
			x = v
		}
		switch {
		case truths:
			data = append(data, byte(bits))
		case whole:
			data = binary.LittleEndian.AppendUint64(data, bits)
		default:
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(x))
		}
	}
	descr := "<f8"
	switch {
	case truths:
		descr = "|b1"
	case whole:
		descr = "<i8"
	}
	return made(key, name, descr, shape, turned, data)
}

// rows makes a matrix of rows, which must be of one length.
func (b *bag) rows(key, name string, h npy.Header, items []any) (*array, error) {
	width := length(items[0])
	for i, v := range items {
		if n := length(v); n != width {
			return nil, &unread{name, h.String(), fmt.Sprintf("rows of several lengths (row 0 has %d, and row %d has %d)", width, i, n),
				fmt.Sprintf(`%s = numpy.array([list(r) + [0] * (max(map(len, %s)) - len(r)) for r in %s], dtype="float32")`, last(key), last(key), last(key))}
		}
	}
	if len(h.Shape) != 1 {
		return nil, &unread{name, h.String(), "rows in more than one dimension", fmt.Sprintf("%s = numpy.stack(%s.ravel())", last(key), last(key))}
	}
	total := width * int64(len(items))
	if err := b.room(16 * total); err != nil { // an interface value takes 16 bytes
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	all := make([]any, 0, total)
	for i, v := range items {
		switch v := v.(type) {
		case *pickle.List:
			all = append(all, v.Items...)
		case pickle.Tuple:
			all = append(all, v...)
		case *pickle.Array:
			more, err := boxed(v.Type, v.Reader(), width)
			if err != nil {
				return nil, fmt.Errorf("%s: row %d: %w", name, i, err)
			}
			all = append(all, more...)
		case *torch.Tensor:
			more, err := boxed(v.Type, v.Reader(), width)
			if err != nil {
				return nil, fmt.Errorf("%s: row %d: %w", name, i, err)
			}
			all = append(all, more...)
		}
	}
	for i, v := range all {
		if f := familyOf(v); f != ofNumbers && f != ofNothing {
			return nil, &unread{name, h.String(), fmt.Sprintf("rows of Python objects (row %d has %s)", int64(i)/width, show(v)),
				fmt.Sprintf(`%s = numpy.array(%s.tolist(), dtype="float32")`, last(key), last(key))}
		}
	}
	return b.numeric(key, name, []int64{int64(len(items)), width}, false, all)
}

// length returns the number of values in a row.
func length(v any) int64 {
	switch v := v.(type) {
	case *pickle.List:
		return int64(len(v.Items))
	case pickle.Tuple:
		return int64(len(v))
	}
	if a := viewOf(v); a != nil && len(a.Shape) > 0 {
		return a.Shape[0]
	}
	return 0
}

// boxed reads n numbers as Python objects.
func boxed(t npy.Type, r *npy.Reader, n int64) ([]any, error) {
	out := make([]any, 0, n)
	if t.Floating() {
		wide := make([]float64, n)
		if _, err := r.ReadFloat64s(wide); err != nil && err != io.EOF {
			return nil, err
		}
		for _, v := range wide {
			out = append(out, v)
		}
		return out, nil
	}
	whole := make([]int64, n)
	if _, err := r.ReadInt64s(whole); err != nil && err != io.EOF {
		return nil, err
	}
	for _, v := range whole {
		out = append(out, v)
	}
	return out, nil
}
