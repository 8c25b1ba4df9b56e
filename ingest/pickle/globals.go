package pickle

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gnnstore/gnnstore/ingest/npy"
)

// Global is a name that was imported, one of the allow-list or of a [Dialect]:
// "collections.OrderedDict".
type Global string

// role is the permitted use of a global.
type role int

const (
	passed      role = iota + 1 // only as an argument
	makeDict                    // called: an empty dict
	reconstruct                 // called: an array to be built
	makeDtype                   // called: a dtype to be built
	scalar                      // called: a number
	frombuffer                  // called: an array
	encode                      // called: bytes
	noBytes                     // called: bytes without any, as old protocols write them
	makeSet                     // called: a list of the set's members
	instance                    // called or made anew: an object to be built
	copyInstance
)

// allowed is every global that a pickle may name. The names changed over the years: NumPy 2 moved
// numpy.core, SciPy 1.8 scipy.sparse.csr, Python 3 __builtin__ and copy_reg.
var allowed = map[Global]role{
	"numpy.ndarray":                       passed,
	"numpy.dtype":                         makeDtype,
	"numpy.core.multiarray._reconstruct":  reconstruct,
	"numpy._core.multiarray._reconstruct": reconstruct,
	"numpy.core.multiarray.scalar":        scalar,
	"numpy._core.multiarray.scalar":       scalar,
	"numpy.core.numeric._frombuffer":      frombuffer,
	"numpy._core.numeric._frombuffer":     frombuffer,
	"scipy.sparse.csr.csr_matrix":         instance,
	"scipy.sparse._csr.csr_matrix":        instance,
	"scipy.sparse._csr.csr_array":         instance,
	"scipy.sparse.csc.csc_matrix":         instance,
	"scipy.sparse._csc.csc_matrix":        instance,
	"scipy.sparse._csc.csc_array":         instance,
	"scipy.sparse.coo.coo_matrix":         instance,
	"scipy.sparse._coo.coo_matrix":        instance,
	"scipy.sparse._coo.coo_array":         instance,
	"collections.defaultdict":             makeDict,
	"collections.OrderedDict":             makeDict,
	"__builtin__.list":                    passed,
	"builtins.list":                       passed,
	"__builtin__.dict":                    passed,
	"builtins.dict":                       passed,
	"__builtin__.int":                     passed,
	"builtins.int":                        passed,
	"__builtin__.set":                     makeSet,
	"builtins.set":                        makeSet,
	"__builtin__.frozenset":               makeSet,
	"builtins.frozenset":                  makeSet,
	"__builtin__.object":                  passed,
	"builtins.object":                     passed,
	"copy_reg._reconstructor":             copyInstance,
	"copyreg._reconstructor":              copyInstance,
	"_codecs.encode":                      encode,
	"__builtin__.bytes":                   noBytes,
	"builtins.bytes":                      noBytes,
}

// global pushes a name, after holding it against the list.
func (m *machine) global(code byte) error {
	var module, name string
	if code == 'c' {
		a, err := m.line(maxLine)
		if err != nil {
			return err
		}
		b, err := m.line(maxLine)
		if err != nil {
			return err
		}
		module, name = string(a), string(b)
	} else {
		names, err := m.popN(2)
		if err != nil {
			return err
		}
		a, okA := names[0].(string)
		b, okB := names[1].(string)
		if !okA || !okB {
			return fmt.Errorf("a global is named by %s and %s instead of two strings", Kind(names[0]), Kind(names[1]))
		}
		module, name = a, b
	}
	g := Global(module + "." + name)
	if allowed[g] == 0 && !m.dialect.knows(g) {
		remedy := "this file is refused"
		if m.dialect.Remedy != "" {
			remedy = "if you trust the file, load it in Python and save its arrays alone: " + m.dialect.Remedy
		}
		return fmt.Errorf("it imports %q, which is not on the list of what data needs; %s", clip([]byte(g)), remedy)
	}
	return m.push(g)
}

// reduce calls a global.
func (m *machine) reduce() error {
	pair, err := m.popN(2)
	if err != nil {
		return err
	}
	g, ok := pair[0].(Global)
	if o, isObject := pair[0].(*Object); isObject && m.dialect.Calls[Global(o.Class)] != nil {
		g, ok = Global(o.Class), true // an object that is called
	}
	args, isTuple := pair[1].(Tuple)
	if !ok || !isTuple {
		return fmt.Errorf("%s is called with %s", Kind(pair[0]), Kind(pair[1]))
	}
	if err := m.chargeArgs(args); err != nil {
		return err
	}
	v, err := m.call(g, args)
	if err != nil {
		return fmt.Errorf("%s: %w", g, err)
	}
	return m.push(v)
}

func (m *machine) call(g Global, args Tuple) (any, error) {
	if f := m.dialect.Calls[g]; f != nil {
		return f(args)
	}
	switch allowed[g] {
	case makeDict:
		if len(args) == 0 || len(args) == 1 && isFactory(args[0]) {
			return &Dict{attributes: true}, nil
		}
	case reconstruct: // (ndarray, (0,), b'b'): an empty array for BUILD
		if len(args) == 3 && args[0] == Global("numpy.ndarray") {
			return &Array{Header: npy.Header{Descr: "|i1", Type: npy.Type{Kind: npy.Int, Size: 1}, Shape: []int64{0}}}, nil
		}
	case makeDtype: // ('i4', align, copy)
		if len(args) > 0 && len(args) <= 3 {
			if descr, ok := Text(args[0]); ok && len(descr) < 16 {
				return &dtype{descr: descr, order: '='}, nil
			}
		}
	case scalar: // (dtype, bytes)
		if len(args) == 2 {
			return m.scalar(args[0], args[1])
		}
	case frombuffer: // (buffer, dtype, shape, 'C' or 'F')
		if len(args) == 4 {
			order, _ := Text(args[3])
			if order == "C" || order == "F" {
				return array(args[2], args[1], order == "F", args[0])
			}
		}
	case encode: // (text, 'latin1'): how protocol 2 writes bytes
		if len(args) == 2 {
			if name, _ := Text(args[1]); name == "latin1" || name == "latin-1" {
				if text, ok := args[0].(string); ok {
					return m.latin1(text)
				}
			}
		}
	case noBytes:
		if len(args) == 0 {
			return Bytes{}, nil
		}
	case makeSet: // (list of the members)
		if len(args) == 0 {
			return &List{}, nil
		}
		if held, ok := args[0].(*List); ok && len(args) == 1 {
			items, err := m.copied(held.Items, nil)
			return &List{Items: items}, err
		}
	case instance:
		if len(args) == 0 {
			return &Object{Class: string(g)}, nil
		}
	case copyInstance: // (class, object, None)
		if len(args) == 3 && args[2] == nil {
			if class, ok := args[0].(Global); ok && (allowed[class] == instance || m.dialect.Objects[class]) {
				return &Object{Class: string(class)}, nil
			}
		}
	}
	return nil, fmt.Errorf("it is called in a way that data does not need; this file is refused")
}

// isFactory reports whether v is a function that makes values for a defaultdict. It is not called.
func isFactory(v any) bool {
	g, ok := v.(Global)
	_, name, _ := strings.Cut(string(g), ".")
	return v == nil || ok && (allowed[g] == passed || allowed[g] == makeSet) && slices.Contains([]string{"list", "dict", "int", "set", "frozenset"}, name)
}

// newObject makes an instance without a call.
func (m *machine) newObject() error {
	pair, err := m.popN(2)
	if err != nil {
		return err
	}
	class, ok := pair[0].(Global)
	args, isTuple := pair[1].(Tuple)
	if !ok || allowed[class] != instance && !m.dialect.Objects[class] || !isTuple || len(args) > 0 {
		return fmt.Errorf("a new object is made of %s and %s; this file is refused", Kind(pair[0]), Kind(pair[1]))
	}
	return m.push(&Object{Class: string(class)})
}

// build gives the object on the stack its state.
func (m *machine) build() error {
	state, err := m.pop()
	if err != nil {
		return err
	}
	v, err := m.top()
	if err != nil {
		return err
	}
	switch v := v.(type) {
	case *Object:
		v.State = state
		return nil
	case *Dict: // attributes of an OrderedDict, such as the versions in a model's weights
		if v.attributes {
			return nil
		}
	case *dtype:
		return v.build(state)
	case *Array: // (version, shape, dtype, Fortran order, data)
		s, ok := state.(Tuple)
		if !ok || len(s) != 5 {
			return fmt.Errorf("an array gets %s instead of the five values of its state", Kind(state))
		}
		fortran, ok := s[3].(bool)
		if n, isInt := s[3].(int64); isInt { // of a Python without bool in its protocol
			fortran, ok = n != 0, true
		}
		if !ok {
			return fmt.Errorf("an array's order is %s", Kind(s[3]))
		}
		if err := m.chargeArgs(s); err != nil {
			return err
		}
		if d, ok := s[2].(*dtype); ok && d.objects() {
			return v.hold(s[1], fortran, s[4])
		}
		a, err := array(s[1], s[2], fortran, s[4])
		if err != nil {
			return err
		}
		*v = *a
		return nil
	}
	return fmt.Errorf("%s gets a state; this file is refused", Kind(v))
}

// dtype is the type of an array's elements: numpy.dtype('i4') and the byte order that its state
// adds.
type dtype struct {
	descr string
	order byte
}

// objects reports whether elements of this dtype are Python objects.
func (d *dtype) objects() bool {
	return strings.TrimLeft(d.descr, "|") == "O" || d.descr == "O8" || d.descr == "O4"
}

// build takes (version, byte order, subtype, names, fields, size, alignment, flags).
func (d *dtype) build(state any) error {
	s, ok := state.(Tuple)
	if !ok || len(s) < 5 || len(s) > 16 {
		return fmt.Errorf("a dtype gets %s instead of its state", Kind(state))
	}
	order, _ := Text(s[1])
	if len(order) != 1 || !strings.Contains("<>|=", order) {
		return fmt.Errorf("%q is no byte order", clip([]byte(order)))
	}
	if s[2] != nil || s[3] != nil || s[4] != nil {
		return fmt.Errorf("an array of records, which are not read")
	}
	d.order = order[0]
	return nil
}

// hold turns a into an array of the Python objects in the list items.
func (a *Array) hold(shape any, fortran bool, items any) error {
	sizes, err := dimensions(shape)
	if err != nil {
		return err
	}
	list, ok := items.(*List)
	if !ok {
		return fmt.Errorf("an array's objects are %s instead of a list", Kind(items))
	}
	h, err := npy.NewHeader("|i1", fortran, sizes)
	if err != nil {
		return err
	}
	h.Descr, h.Type = "|O", npy.Type{Kind: npy.Opaque, Size: 1}
	if n := h.Len(); n != int64(len(list.Items)) {
		return fmt.Errorf("an array of %s holds %d objects", h.String(), len(list.Items))
	}
	*a = Array{Header: h, objects: list}
	return nil
}

// dimensions returns the shape of an array.
func dimensions(shape any) ([]int64, error) {
	dims, ok := shape.(Tuple)
	if !ok || len(dims) > 64 { // NumPy's limit
		return nil, fmt.Errorf("an array's shape is %s of up to 64 dimensions", Kind(shape))
	}
	sizes := make([]int64, len(dims))
	for i, v := range dims {
		if sizes[i], ok = v.(int64); !ok {
			return nil, fmt.Errorf("a dimension of an array is %s", Kind(v))
		}
	}
	return sizes, nil
}

// array makes an array, and checks its shape against its data.
func array(shape, kindOf any, fortran bool, data any) (*Array, error) {
	d, ok := kindOf.(*dtype)
	if !ok {
		return nil, fmt.Errorf("an array's elements are %s instead of a dtype", Kind(kindOf))
	}
	sizes, err := dimensions(shape)
	if err != nil {
		return nil, err
	}
	descr := d.descr
	if !strings.ContainsAny(descr[:min(1, len(descr))], "<>|=") {
		descr = string(d.order) + descr
	}
	h, err := npy.NewHeader(descr, fortran, sizes)
	if err != nil {
		return nil, err
	}
	b, ok := data.(Bytes)
	if !ok {
		return nil, fmt.Errorf("an array's data are %s instead of bytes", Kind(data))
	}
	if int64(len(b)) != h.Bytes() {
		return nil, fmt.Errorf("an array of %s takes %d bytes, and has %d", h.String(), h.Bytes(), len(b))
	}
	return &Array{Header: h, data: b}, nil
}

// scalar is a number of one element.
func (m *machine) scalar(kindOf, data any) (any, error) {
	a, err := array(Tuple{}, kindOf, false, data)
	if err != nil {
		return nil, err
	}
	if a.Type.Kind == npy.Float {
		var v [1]float64
		_, err := a.Reader().ReadFloat64s(v[:])
		return v[0], err
	}
	var v [1]int64
	if _, err := a.Reader().ReadInt64s(v[:]); err != nil {
		return nil, err
	}
	if a.Type.Kind == npy.Bool {
		return v[0] != 0, nil
	}
	return v[0], nil
}

// latin1 makes one byte of each character.
func (m *machine) latin1(text string) (Bytes, error) {
	if err := m.charge(int64(len(text))); err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if r > 0xff {
			return nil, fmt.Errorf("a character beyond Latin-1 among bytes")
		}
		out = append(out, byte(r))
		i += n
	}
	return out, nil
}
