package pickle

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest/npy"
)

// loads loads opcodes.
func loads(code ...string) (any, error) {
	return new(Dialect).Load("t.pkl", []byte(strings.Join(code, "")))
}

func floats(t *testing.T, v any) []float64 {
	a, ok := v.(*Array)
	require.True(t, ok, Kind(v))
	got := make([]float64, a.Len())
	n, err := a.Reader().ReadFloat64s(got)
	require.NoError(t, err)
	require.Equal(t, len(got), n)
	return got
}

// TestProtocols reads one object as CPython 3 with NumPy 2 and SciPy 1.17 pickled it under every
// protocol.
func TestProtocols(t *testing.T) {
	for p := range 6 {
		v, err := new(Dialect).ReadFile(filepath.Join("testdata", fmt.Sprintf("protocol%d.pkl", p)))
		require.NoError(t, err, "protocol %d", p)
		d := v.(*Dict)
		require.Equal(t, []float64{0, 1, 2, 3, 4, 5}, floats(t, d.Get("array")))
		require.Equal(t, "(2, 3) of <i4", d.Get("array").(*Array).String())
		require.Equal(t, []float64{1.5, 3, 2, 4}, floats(t, d.Get("fortran"))) // column by column
		require.True(t, d.Get("fortran").(*Array).Fortran)
		var turned [4]float64
		_, err = d.Get("fortran").(*Array).View().Reader().ReadFloat64s(turned[:])
		require.NoError(t, err)
		require.Equal(t, [4]float64{1.5, 2, 3, 4}, turned)
		require.Equal(t, []float64{1, -2}, floats(t, d.Get("big")))
		require.Equal(t, []float64{1, 0}, floats(t, d.Get("bits")))
		csr := d.Get("csr").(*Object)
		require.Equal(t, "csr_matrix", csr.Class[strings.LastIndexByte(csr.Class, '.')+1:])
		state := csr.State.(*Dict)
		require.Equal(t, Tuple{int64(2), int64(3)}, state.Get("_shape"))
		require.Equal(t, []float64{1.5, 2}, floats(t, state.Get("data")))
		require.Equal(t, []float64{1, 0}, floats(t, state.Get("indices")))
		require.Equal(t, []float64{0, 1, 2}, floats(t, state.Get("indptr")))
		graph := d.Get("graph").(*Dict)
		require.Equal(t, []any{int64(0), int64(1), int64(2)}, graph.Keys)
		require.Equal(t, []any{int64(1), int64(300), int64(70000)}, graph.Values[0].(*List).Items)
		require.Equal(t, []any{int64(-5), int64(1 << 40)}, graph.Values[1].(*List).Items)
		require.Equal(t, 1.5, d.Get("float"))
		require.Nil(t, d.Get("none"))
		require.Equal(t, "é\n\\", d.Get("text"))
		require.Equal(t, Bytes{0, 0xff}, d.Get("bytes"))
		require.Equal(t, true, d.Get("yes"))
		require.Equal(t, false, d.Get("no"))
		require.Equal(t, int64(7), d.Get("int"))
		require.Equal(t, 2.5, d.Get("single"))
		require.Equal(t, Tuple{int64(1), Tuple{int64(2)}, Tuple{int64(3), int64(4), int64(5), int64(6)}}, d.Get("tuple"))
		require.Equal(t, int64(-1<<63), d.Get("huge"))
		same := d.Get("same").(*List).Items
		require.Same(t, same[0], same[1], "one list in two places stays one")
		require.Same(t, same[0], graph.Values[2])
	}
}

// TestPython2 reads what Python 2 writes: str is bytes, escaped as its repr under protocol 0.
func TestPython2(t *testing.T) {
	v, err := loads("(dp1\nS'a\\x00\\n\\'\\\\'\np2\nI01\nsI7\nL12L\nsV\\u00e9\\\\\nF1e3\nsS\"it's\"\nNs.")
	require.NoError(t, err)
	require.Equal(t, &Dict{
		Keys:   []any{Bytes("a\x00\n'\\"), int64(7), "é\\\\", Bytes("it's")},
		Values: []any{true, int64(12), 1000.0, nil},
	}, v)
	array := "\x80\x02cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nq\x02K\x00\x85U\x01b\x87Rq\x03(K\x01K\x03\x85cnumpy\ndtype\nq\x04U\x02i2K\x00K\x01\x87Rq\x05(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x06\x01\x00\x02\x00\xff\xfftb."
	v, err = loads(array)
	require.NoError(t, err)
	require.Equal(t, []float64{1, 2, -1}, floats(t, v))
	v, err = loads("\x80\x02cscipy.sparse.csr\ncsr_matrix\nq\x01)\x81q\x02}q\x03U\x06formatU\x03csrsb.")
	require.NoError(t, err)
	require.Equal(t, &Object{Class: "scipy.sparse.csr.csr_matrix", State: &Dict{Keys: []any{Bytes("format")}, Values: []any{Bytes("csr")}}}, v)
}

func TestRefuses(t *testing.T) {
	f := func(want string, code ...string) {
		t.Helper()
		_, err := loads(code...)
		require.EqualError(t, err, "t.pkl: "+want)
	}
	const refused = "; this file is refused"
	f("the file is empty; fetch it again", "")
	// Imports and calls.
	f(`byte 0: it imports "os.system", which is not on the list of what data needs`+refused, "cos\nsystem\n(S'true'\ntR.")
	f(`byte 2: it imports "posix.system", which is not on the list of what data needs`+refused, "\x80\x02cposix\nsystem\nU\x04true\x85R.")
	f(`byte 16: it imports "builtins.eval", which is not on the list of what data needs`+refused, "\x8c\x08builtins\x8c\x04eval\x93.")
	f(`byte 0: it imports "numpy.core.multiarray.load", which is not on the list of what data needs`+refused, "cnumpy.core.multiarray\nload\n.")
	f("byte 22: __builtin__.list: it is called in a way that data does not need"+refused, "c__builtin__\nlist\n]\x85(0R.")
	f("byte 7: a global is named by an integer and a string instead of two strings", "K\x01X\x00\x00\x00\x00\x93.")
	f("byte 3: an integer is called with a tuple", "K\x01)R.")
	f("byte 2: opcode 0x69 (INST) is no part of a pickle of data"+refused, "\x80\x02ios\nsystem\n.")
	f("byte 0: opcode 0x50 (PERSID) is no part of a pickle of data"+refused, "P1\n.")
	f("byte 0: opcode 0x82 (EXT1) is no part of a pickle of data"+refused, "\x82\x01.")
	f("byte 0: opcode 0x3c is no part of a pickle of data"+refused, "<html>")
	f("byte 2: a dict gets a state"+refused, "}}b.")
	f("byte 16: a new object is made of the class numpy.ndarray and a tuple"+refused, "cnumpy\nndarray\n)\x81.")
}

// TestBounds: what a file says about sizes and numbers is not believed, and costs nothing.
func TestBounds(t *testing.T) {
	le := func(v uint64, n int) string {
		return string(binary.LittleEndian.AppendUint64(nil, v)[:n])
	}
	for name, c := range map[string]struct{ code, want string }{
		"no end":             {"K\x01", "byte 2: truncated: 1 bytes are needed and 0 are left; fetch it again"},
		"rest":               {"N.N", "byte 2: 1 bytes follow the end of the pickle"},
		"left over":          {"NN.", "byte 2: the pickle ends with 1 values left over"},
		"a mark left":        {"N(.", "byte 2: a value is needed and the stack is empty"},
		"nothing":            {".", "byte 0: a value is needed and the stack is empty"},
		"protocol":           {"\x80\x09N.", "byte 0: pickle protocol 9 is not known (0 to 5 are)"},
		"string":             {"T" + le(1<<31-1, 4) + ".", "byte 0: truncated: 2147483647 bytes are needed and 1 are left; fetch it again"},
		"negative string":    {"T" + le(1<<32-1, 4) + ".", "byte 0: truncated: 4294967295 bytes are needed and 1 are left; fetch it again"},
		"bytes":              {"\x8e" + le(1<<63, 8) + ".", "byte 0: truncated: 9223372036854775808 bytes are needed and 1 are left; fetch it again"},
		"text":               {"\x8d" + le(1<<64-1, 8) + ".", "byte 0: truncated: 18446744073709551615 bytes are needed and 1 are left; fetch it again"},
		"frame":              {"\x95" + le(1<<40, 8) + "N.", "byte 0: truncated: 1099511627776 bytes are needed and 2 are left; fetch it again"},
		"long":               {"\x8b" + le(1<<31, 4) + "N.", "byte 0: truncated: 2147483648 bytes are needed and 2 are left; fetch it again"},
		"long that is there": {"\x8b" + le(1000, 4) + strings.Repeat("x", 1000) + ".", "byte 0: an integer of 1000 bytes, and 8 are the most"},
		"decimal":            {"L" + strings.Repeat("9", 4000) + "L\n.", `byte 0: "9999999999999999999999999999999999999999" is not an integer of 64 bits`},
		"long decimal":       {"L" + strings.Repeat("9", 5000) + "L\n.", "byte 0: a line of 5001 bytes, and 4096 are the most here"},
		"line":               {"I7", "byte 0: truncated: a line does not end; fetch it again"},
		"memo":               {"j" + le(1<<32-1, 4) + ".", "byte 0: value 4294967295 is recalled and was never remembered"},
		"memo key":           {"Np-1\n.", `byte 1: "-1" is not a number to remember a value by`},
		"mark":               {"N1.", "byte 1: a mark is needed and there is none"},
		"under the mark":     {"NN(\x86.", "byte 3: 2 values are needed and the stack has 0"},
		"odd dict":           {"}(Nu.", "byte 3: a dict gets a key without a value"},
		"append to a tuple":  {")Na.", "byte 2: something is appended to a tuple, which is no list"},
		"item of a list":     {"]NNs.", "byte 3: an item is set in a list, which is no dict"},
		"escape":             {"S'\\xzz'\n.", `byte 0: \xzz is no escape of a string`},
		"escape at the end":  {"S'\\'\n.", `byte 0: \ is no escape of a string`},
		"quotes":             {"Sabc\n.", `byte 0: a string is not in quotes: "abc"`},
		"unicode escape":     {"V\\u12\n.", `byte 0: "\\u12" is cut off`},
		"no character":       {"V\\UFFFFFFFF\n.", `byte 0: "\\UFFFFFFFF" is no character`},
	} {
		_, err := loads(c.code)
		require.EqualError(t, err, "t.pkl: "+c.want, name)
	}
	// The largest memo index is an entry like any other.
	v, err := loads("K\x07r" + le(1<<32-1, 4) + "0j" + le(1<<32-1, 4) + ".")
	require.NoError(t, err)
	require.Equal(t, int64(7), v)
	for want, code := range map[int64]string{-1: "\x8a\x01\xff", 255: "\x8a\x02\xff\x00", 0: "\x8a\x00", -1 << 63: "\x8b\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80", -2: "J\xfe\xff\xff\xff"} {
		v, err := loads(code + ".")
		require.NoError(t, err)
		require.Equal(t, want, v)
	}
}

func TestBombs(t *testing.T) {
	// A tuple of a tuple of …, deeper than any stack of calls.
	v, err := loads(")" + strings.Repeat("\x85", 200_000) + ".")
	require.NoError(t, err)
	require.Len(t, v, 1)
	// Each level holds the one below twice: 2^1000 leaves to whoever walks them all, 2,000 values
	// here.
	_, err = loads("]" + strings.Repeat("2\x86", 1000) + ".")
	require.NoError(t, err)
	// A list in itself.
	v, err = loads("]q\x00h\x00a.")
	require.NoError(t, err)
	require.Same(t, v, v.(*List).Items[0])
	// One text decoded into bytes again and again.
	small := Dialect{Memory: 4 << 20}
	_, err = small.Load("t.pkl", []byte("c_codecs\nencode\nq\x00X\x00\x00\x01\x00"+strings.Repeat("x", 1<<16)+"X\x06\x00\x00\x00latin1\x86q\x01"+strings.Repeat("h\x00h\x01R", 10_000)+"."))
	require.ErrorContains(t, err, "_codecs.encode: "+tooMuch)
	_, err = new(Dialect).Load("t.pkl", make([]byte, MaxFile+1))
	require.EqualError(t, err, "t.pkl: more than 256 MiB; such a pickle is not read")
}

const tooMuch = "what it holds takes more than 1 MiB of memory, a quarter of {memory}; raise {memory}, or save large arrays as .npy files or tensors"

// TestMemory: what opcodes make is counted before it takes more than the pickle's part of the
// memory, whatever they are.
func TestMemory(t *testing.T) {
	const memory = 64 << 20
	array := "cnumpy.core.multiarray\n_reconstruct\nq\x00cnumpy\nndarray\nq\x01K\x00\x85U\x01bq\x02\x87q\x0300"
	for _, c := range [][2]string{
		{"", "}"}, {"}", "}Ns"}, {"", "]"}, {"", ")"}, {"", "K\x01"}, {"", "M\x01\x02"}, {"N", "2"}, {"", "("}, {"", "]\x94"},
		{"", "G12345678"}, {"]", "]a"}, {"]", "(NNNNNNNNe"}, {"}", "(NNNNNNNNu"}, {"", "(NNNNt"}, {"", "N\x85"}, {"", "X\x08\x00\x00\x0012345678"},
		{"", "U\x00"}, {"", "V\xe9\xe9\xe9\xe9\xe9\xe9\n"}, {"", "S'xxxxxxxx'\n"}, {"", "I7777\n"},
		{"", "ccollections\nOrderedDict\n)R"}, {array, "h\x00h\x03R"}, {"K\x01q\x00", "(" + strings.Repeat("h\x00", 60) + "t0"},
		{"c_codecs\nencode\nq\x00X\x04\x00\x00\x00xxxxX\x06\x00\x00\x00latin1\x86q\x01", "h\x00h\x01R"},
	} {
		code := make([]byte, 0, Share(memory))
		code = append(code, c[0]...)
		for len(code)+len(c[1]) < int(Share(memory))*9/10 {
			code = append(code, c[1]...)
		}
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := (&Dialect{Memory: memory}).Load("t.pkl", code)
		runtime.ReadMemStats(&after)
		require.ErrorContains(t, err, "what it holds takes more than 16 MiB of memory, a quarter of {memory}", "%q", c)
		// All that was ever allocated, and lists are copied as they grow.
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4*Share(memory)), "%q", c)
	}
}

// TestNested: 16 MB of dicts in dicts took 1.3 GB once.
func TestNested(t *testing.T) {
	const memory = 160 << 20
	path := filepath.Join(t.TempDir(), "nested.pkl")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("}N", 4<<20)+"N"+strings.Repeat("s", 4<<20)+"."), 0o644))
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := (&Dialect{Memory: memory}).ReadFile(path)
	runtime.ReadMemStats(&after)
	require.ErrorContains(t, err, path+": byte ")
	require.ErrorContains(t, err, "what it holds takes more than 40 MiB of memory, a quarter of {memory}; raise {memory}")
	require.Less(t, after.HeapAlloc-before.HeapAlloc, uint64(memory))
}

func TestArrays(t *testing.T) {
	const dtype = "cnumpy\ndtype\nU\x02%sK\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
	array := func(shape, descr, data string) string {
		return "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01" + shape + fmt.Sprintf(dtype, descr) + "\x89" + data + "tb."
	}
	for name, c := range map[string]struct{ code, want string }{
		"short":     {array("K\x03\x85", "i4", "U\x04abcd"), "an array of (3,) of <i4 takes 12 bytes, and has 4"},
		"overflow":  {array("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x40K\x08\x86", "i4", "U\x04abcd"), "shape (4611686018427387904, 8) of <i4 is larger than any file"},
		"negative":  {array("J\xff\xff\xff\xff\x85", "i4", "U\x00"), "shape (-1,) of <i4: -1 is not a dimension"},
		"no shape":  {array("K\x03", "i4", "U\x04abcd"), "an array's shape is an integer of up to 64 dimensions"},
		"dimension": {array("N\x85", "i4", "U\x04abcd"), "a dimension of an array is None"},
		"list":      {array("K\x01\x85", "i4", "]"), "an array's data are a list instead of bytes"},
		"objects":   {array("K\x01\x85", "O8", "]"), "an array of (1,) of |O holds 0 objects"},
		"no list":   {array("K\x01\x85", "O8", "U\x00"), "an array's objects are bytes instead of a list"},
		"many":      {array("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x40K\x08\x86", "O8", "]"), "is larger than any file"},
		"dtype": {"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01)N\x89U\x00tb.",
			"an array's elements are None instead of a dtype"},
		"state":      {"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R)b.", "an array gets a tuple instead of the five values of its state"},
		"byte order": {"cnumpy\ndtype\nU\x02i4\x85R(K\x03U\x01!NNNtb.", `"!" is no byte order`},
		"records":    {"cnumpy\ndtype\nU\x02V8\x85R(K\x03U\x01|N)}tb.", "an array of records, which are not read"},
	} {
		_, err := loads(c.code)
		require.ErrorContains(t, err, c.want, name)
		require.NotContains(t, err.Error(), "\n")
	}
}

// TestObjects reads an array of Python objects as a list, without numbers.
func TestObjects(t *testing.T) {
	for _, descr := range []string{"O8", "O4", "|O"} {
		v, err := loads("cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01K\x02\x85cnumpy\ndtype\nU\x02" + descr +
			"\x89\x88\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?tb\x89](X\x01\x00\x00\x00aK\x07etb.")
		require.NoError(t, err)
		a := v.(*Array)
		require.Equal(t, "(2,) of |O", a.String())
		require.Equal(t, []any{"a", int64(7)}, a.Objects().Items)
		require.Equal(t, "an array of Python objects", Kind(a))
		_, err = a.View().Reader().ReadInt64s(make([]int64, 2))
		require.ErrorIs(t, err, npy.ErrUnsupported)
	}
}

// TestSets reads sets as lists of their members, in every protocol.
func TestSets(t *testing.T) {
	for name, code := range map[string]string{
		"called":    "c__builtin__\nset\n](K\x01K\x02e\x85R.",
		"opcodes":   "\x80\x04\x8f(K\x01K\x02\x90.",
		"frozen":    "\x80\x04(K\x01K\x02\x91.",
		"frozenset": "cbuiltins\nfrozenset\n](K\x01K\x02e\x85R.",
	} {
		v, err := loads(code)
		require.NoError(t, err, name)
		require.Equal(t, []any{int64(1), int64(2)}, v.(*List).Items, name)
	}
	v, err := loads("ccollections\ndefaultdict\nc__builtin__\nset\n\x85R.")
	require.NoError(t, err)
	require.Empty(t, v.(*Dict).Keys)
	_, err = loads("c__builtin__\nset\nK\x01\x85R.")
	require.ErrorContains(t, err, "__builtin__.set: it is called in a way that data does not need")
}

// TestUnbuilt: an array that never gets its state is empty.
func TestUnbuilt(t *testing.T) {
	v, err := loads("cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R.")
	require.NoError(t, err)
	require.Empty(t, floats(t, v))
}

func TestReadFile(t *testing.T) {
	_, err := new(Dialect).ReadFile(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = new(Dialect).ReadFile(t.TempDir())
	require.ErrorContains(t, err, "it is a directory, not a file")
}

func FuzzLoad(f *testing.F) {
	for p := range 6 {
		b, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("protocol%d.pkl", p)))
		require.NoError(f, err)
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	for _, code := range []string{
		"cos\nsystem\n(S'true'\ntR.", "]q\x00h\x00a.", "]2\x862\x86.", "\x8b\xff\xff\xff\xff.", "Kr\xff\xff\xff\xff.", "(dp1\nS'a\\x00'\nI01\ns.",
		"cnumpy\ndtype\nU\x02i4\x85R(K\x03U\x01<NNNtb.", "c_codecs\nencode\nX\x02\x00\x00\x00\xc3\xa9X\x06\x00\x00\x00latin1\x86R.",
		"ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(K\x00]K\x01au.", "\x80\x04\x95\x02\x00\x00\x00\x00\x00\x00\x00N.",
	} {
		f.Add([]byte(code))
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		v, err := new(Dialect).Load("t.pkl", code)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("not one line: %q", err)
			}
			return
		}
		if a, ok := v.(*Array); ok && a.Bytes() > int64(2*len(code)) {
			t.Fatalf("%d bytes of data from a file of %d", a.Bytes(), len(code))
		}
		Kind(v)
	})
}
