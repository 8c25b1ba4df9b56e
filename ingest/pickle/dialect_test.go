package pickle

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

type thing struct{ id any }

func (*thing) Kind() string { return "a thing" }

func TestDialect(t *testing.T) {
	d := &Dialect{
		Names:   map[Global]bool{"lib.Kind": true},
		Calls:   map[Global]func(Tuple) (any, error){"lib.twice": func(args Tuple) (any, error) { return args[0].(int64) * 2, nil }},
		Objects: map[Global]bool{"lib.Box": true},
		Persistent: func(id any) (any, error) {
			if id == int64(9) {
				return nil, errors.New("nothing is called 9")
			}
			return &thing{id}, nil
		},
	}
	v, err := d.Load("t.pkl", []byte("clib\ntwice\nK\x04\x85R."))
	require.NoError(t, err)
	require.Equal(t, int64(8), v)
	v, err = d.Load("t.pkl", []byte("K\x05Q."))
	require.NoError(t, err)
	require.Equal(t, &thing{int64(5)}, v)
	for _, made := range []string{")\x81", ")R"} {
		v, err = d.Load("t.pkl", []byte("clib\nBox\n"+made+"}X\x01\x00\x00\x00aK\x01sb."))
		if made == ")R" {
			require.ErrorContains(t, err, "lib.Box: it is called in a way that data does not need")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, &Object{Class: "lib.Box", State: &Dict{Keys: []any{"a"}, Values: []any{int64(1)}}}, v)
	}
	for code, want := range map[string]string{
		"K\x09Q.":                "byte 2: a reference out of the pickle: nothing is called 9",
		"K\x01Q)R.":              "byte 4: a thing is called with a tuple",
		"clib\nKind\n)R.":        "byte 11: lib.Kind: it is called in a way that data does not need; this file is refused",
		"clib\nOther\n.":         `byte 0: it imports "lib.Other", which is not on the list of what data needs; this file is refused`,
		"K\x05Q}b.":              "byte 4: a thing gets a state; this file is refused",
		"}}b.":                   "byte 2: a dict gets a state; this file is refused",
		"clib\nKind\n)\x81.":     "byte 11: a new object is made of the class lib.Kind and a tuple; this file is refused",
		"cnumpy\nload\n)R.":      `byte 0: it imports "numpy.load", which is not on the list of what data needs; this file is refused`,
		"clib\nBox\n)\x81.N":     "byte 12: 1 bytes follow the end of the pickle",
		"Pid\n.":                 "byte 0: opcode 0x50 (PERSID) is no part of a pickle of data; this file is refused",
		"clib\nBox\nK\x01\x85b.": "byte 12: the class lib.Box gets a state; this file is refused",
	} {
		_, err := d.Load("t.pkl", []byte(code))
		require.EqualError(t, err, "t.pkl: "+want, "%q", code)
	}
	_, err = new(Dialect).Load("t.pkl", []byte("K\x05Q."))
	require.EqualError(t, err, "t.pkl: byte 2: opcode 0x51 (BINPERSID) is no part of a pickle of data; this file is refused")
	// The attributes of an OrderedDict are passed over.
	v, err = new(Dialect).Load("t.pkl", []byte("ccollections\nOrderedDict\n)RK\x01K\x02s}b."))
	require.NoError(t, err)
	require.Equal(t, []any{int64(2)}, v.(*Dict).Values)
}

func TestLoadFirst(t *testing.T) {
	d, code := &Dialect{}, "X\x03\x00\x00\x00abcI7\n0."
	v, n, err := d.LoadFirst("t.pkl", []byte(code+"rest"))
	require.NoError(t, err)
	require.Equal(t, "abc", v)
	require.Equal(t, len(code), n)
	for n := range code {
		_, _, err := d.LoadFirst("t.pkl", []byte(code[:n]))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, n)
	}
	_, _, err = d.LoadFirst("t.pkl", []byte("<html>"))
	require.NotErrorIs(t, err, io.ErrUnexpectedEOF)
}
