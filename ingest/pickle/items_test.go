package pickle

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// items reads a dict item by item, from a reader that gives few bytes at a time.
func items(d *Dialect, body string) (keys, values []any, err error) {
	err = d.EachItemOf("t.pkl", iotest.OneByteReader(strings.NewReader(body)), int64(len(body)), func(key, value any) error {
		keys, values = append(keys, key), append(values, value)
		return nil
	})
	return keys, values, err
}

// TestEachItem reads what CPython 3 with NumPy 2 wrote: a dict as TGB's, whose keys are tuples of
// NumPy's scalars, and whose arrays are of integers or, where one that is joined was empty, of
// floats.
func TestEachItem(t *testing.T) {
	for _, p := range []int{0, 2, 4, 5} {
		path := filepath.Join("testdata", fmt.Sprintf("negatives%d.pkl", p))
		var keys []any
		var values [][]float64
		require.NoError(t, new(Dialect).EachItem(path, func(key, value any) error {
			keys, values = append(keys, key), append(values, floats(t, value))
			return nil
		}), "protocol %d", p)
		require.Equal(t, []any{Tuple{int64(0), int64(2), int64(5)}, Tuple{int64(1), int64(3), int64(5)}, Tuple{int64(0), int64(3), int64(1700000000)}}, keys)
		require.Equal(t, [][]float64{{3, 2, 2}, {2}, {}}, values)

		body, err := os.ReadFile(path)
		require.NoError(t, err)
		for n := range body {
			_, _, err := items(new(Dialect), string(body[:n]))
			require.Error(t, err, "protocol %d, cut after %d bytes", p, n)
			require.NotContains(t, err.Error(), "\n")
		}
		again, _, err := items(new(Dialect), string(body))
		require.NoError(t, err)
		require.Equal(t, keys, again)
	}
}

// many is a dict of items as Python writes them, under protocol 4: tuples that are remembered, a
// thousand at a time.
func many(items, bytes int) string {
	var s strings.Builder
	s.WriteString("\x80\x04}\x94")
	for i := 0; i < items; i++ {
		if i%1000 == 0 {
			s.WriteByte('(')
		}
		s.Write([]byte{'M', byte(i), byte(i >> 8), 'K', 1, 0x86, 0x94, 'B', byte(bytes), byte(bytes >> 8), byte(bytes >> 16), byte(bytes >> 24)})
		s.WriteString(strings.Repeat("x", bytes) + "\x94")
		if i%1000 == 999 || i == items-1 {
			s.WriteByte('u')
		}
	}
	return s.String() + "."
}

// TestEachItemMemory reads a file that is several times as large as what it may hold.
func TestEachItemMemory(t *testing.T) {
	body := many(40_000, 1000) // 40 MB, and 1 MB an emission
	d := &Dialect{Memory: 40 << 20}
	seen := 0
	visit := func(key, value any) error {
		require.Equal(t, Tuple{int64(seen % 65536), int64(1)}, key)
		require.Len(t, value, 1000)
		seen++
		return nil
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	require.NoError(t, d.EachItemOf("t.pkl", strings.NewReader(body), int64(len(body)), visit))
	require.Equal(t, 40_000, seen)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4*len(body)), "no byte is copied more than a few times")
	_, err := d.Load("t.pkl", []byte(body))
	require.ErrorContains(t, err, "what it holds takes more than 10 MiB of memory")

	seen = 0
	d.Memory = 4 << 20
	require.ErrorContains(t, d.EachItemOf("t.pkl", strings.NewReader(body), int64(len(body)), visit), "what it holds takes more than 1 MiB of memory")
}

func TestEachItemRefuses(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"", "the file is empty"},
		{"].", "it holds a list instead of a dict"},
		{"K\x01.", "it holds an integer instead of a dict"},
		{"}K\x01K\x02s.x", "byte 7: 1 bytes follow the end of the pickle"},
		{"}K\x01K\x02\x86\x94K\x02sK\x03h\x00s.", "byte 12: value 0 of an earlier item is recalled"},
		{"}K\x01q\x07K\x02s.", "byte 3: value 7 is remembered behind value -1"},
		{"}K\x01h\x07s.", "value 7 is recalled and was never remembered"},
		{"}cos\nsystem\nK\x01s.", `it imports "os.system"`},
		{"}K\x01B\xff\xff\xff\xffx", "byte 3: truncated: 4294967295 bytes are needed and 1 are left"},
		{"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xff}", "truncated"},
		{"}(K\x01u.", "a dict gets a key without a value"},
		{"}K\x01K\x02s", "truncated: 1 bytes are needed and 0 are left"},
	} {
		_, _, err := items(new(Dialect), c.body)
		require.ErrorContains(t, err, c.want, "%q", c.body)
		require.NotContains(t, err.Error(), "\n")
	}
	keys, values, err := items(new(Dialect), "(K\x01K\x02d.")
	require.NoError(t, err, "a dict that is made with its items")
	require.Equal(t, [][]any{{int64(1)}, {int64(2)}}, [][]any{keys, values})

	enough := errors.New("enough")
	body := "}K\x01K\x02s."
	require.Equal(t, enough, new(Dialect).EachItemOf("t.pkl", strings.NewReader(body), int64(len(body)), func(_, _ any) error { return enough }))
	err = new(Dialect).EachItemOf("t.pkl", strings.NewReader(body), int64(len(body))+9, func(_, _ any) error { return nil })
	require.ErrorContains(t, err, "the file became shorter while it was read")
}

// FuzzEachItem: what is read whole is read item by item, or refused in a line.
func FuzzEachItem(f *testing.F) {
	for _, p := range []int{0, 2, 4, 5} {
		body, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("negatives%d.pkl", p)))
		require.NoError(f, err)
		f.Add(string(body))
	}
	f.Add(many(3, 2))
	f.Fuzz(func(t *testing.T, body string) {
		d := &Dialect{Memory: 64 << 20}
		keys, _, err := items(d, body)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		whole, err := d.Load("t.pkl", []byte(body))
		require.NoError(t, err)
		require.Len(t, whole.(*Dict).Keys, len(keys))
	})
}
