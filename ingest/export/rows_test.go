package export

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// idsOf returns the ids of three nodes: 30, 20, 10 as stored, or texts.
func idsOf(t *testing.T, names bool) store.IDs {
	s := storetest.Spec{Nodes: 3, Original: func(v int) int64 { return int64(30 - 10*v) }}
	if names {
		s.Original, s.Name = nil, func(v int) string { return []string{"ann", "b,ob", "cid;\"dee\""}[v] }
	}
	ds, err := store.Open(storetest.Build(t, s))
	require.NoError(t, err)
	t.Cleanup(func() { ds.Close() })
	return ds.IDs(0)
}

func content(t *testing.T, on vfs.FS, path string) []byte {
	f, err := on.Open(path)
	require.NoError(t, err)
	defer f.Close()
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	return b
}

// rowsOf writes three rows in two chunks.
func rowsOf(on vfs.FS, out string, ids store.IDs, o RowOptions, values []float32) (*RowsReport, error) {
	o.FS, o.Rows = on, 3
	return WriteRows(out, ids, o, func(add func([]store.NodeID, []float32) error) error {
		if err := add([]store.NodeID{0, 1}, values[:2*o.Cols]); err != nil {
			return err
		}
		return add([]store.NodeID{2}, values[2*o.Cols:])
	})
}

var (
	oneClass = RowOptions{Kind: Class, Column: "class", Cols: 1}
	flags    = RowOptions{Kind: Flags, Column: "classes", Cols: 2}
	scores   = RowOptions{Kind: Numbers, Cols: 2}
	vectors  = RowOptions{Kind: Vector, Column: "embedding", Cols: 2}
)

// TestRowsInCSV reads them back.
func TestRowsInCSV(t *testing.T) {
	for _, c := range []struct {
		o       RowOptions
		names   []string
		texts   bool
		values  []float32
		records string
	}{
		{oneClass, nil, false, []float32{1, 0, 2}, "id class|30 1|20 0|10 2"},
		{oneClass, []string{"cat", "dog", "eel"}, true, []float32{1, 0, 2}, "id class|ann dog|b,ob cat|cid;\"dee\" eel"},
		{flags, []string{"cat", "dog"}, false, []float32{1, 1, 0, 1, 0, 0}, "id classes|30 cat;dog|20 dog|10 "},
		{scores, nil, false, []float32{0.1, 1, -2, 1e-9, 0, 3}, "id class_0 class_1|30 0.1 1|20 -2 1e-09|10 0 3"},
		{scores, []string{"cat", "dog"}, false, []float32{0.1, 1, -2, 1e-9, 0, 3}, "id cat dog|30 0.1 1|20 -2 1e-09|10 0 3"},
		{vectors, []string{"cat"}, false, []float32{0.1, 1, -2, 1e-9, 0, 3}, "id embedding_0 embedding_1|30 0.1 1|20 -2 1e-09|10 0 3"},
	} {
		on := vfs.NewMem()
		c.o.Names = c.names
		r, err := rowsOf(on, "out.csv", idsOf(t, c.texts), c.o, c.values)
		require.NoError(t, err)
		require.Equal(t, []string{"out.csv"}, r.Files)
		all, err := csv.NewReader(strings.NewReader(string(content(t, on, "out.csv")))).ReadAll()
		require.NoError(t, err)
		var lines []string
		for _, record := range all {
			lines = append(lines, strings.Join(record, " "))
		}
		require.Equal(t, c.records, strings.Join(lines, "|"))
	}
}

// TestRowsInParquet reads them back.
func TestRowsInParquet(t *testing.T) {
	type row struct {
		ID        int64     `parquet:"id"`
		Class     int32     `parquet:"class,optional"`
		Classes   []int32   `parquet:"classes,list"`
		Cat       float32   `parquet:"cat,optional"`
		ID2       float32   `parquet:"id-class-1,optional"`
		Embedding []float32 `parquet:"embedding,list"`
	}
	read := func(o RowOptions, names []string, values []float32) []row {
		on := vfs.NewMem()
		o.Names = names
		r, err := rowsOf(on, "out", idsOf(t, false), o, values)
		require.NoError(t, err)
		b := content(t, on, "out")
		require.EqualValues(t, len(b), r.Bytes)
		rows, err := parquet.Read[row](strings.NewReader(string(b)), int64(len(b)))
		require.NoError(t, err)
		for i := range rows { // columns that are not there read as empty lists
			if len(rows[i].Classes) == 0 {
				rows[i].Classes = nil
			}
			if len(rows[i].Embedding) == 0 {
				rows[i].Embedding = nil
			}
		}
		return rows
	}
	require.Equal(t, []row{{ID: 30, Class: 1}, {ID: 20}, {ID: 10, Class: 2}}, read(oneClass, nil, []float32{1, 0, 2}))
	require.Equal(t, []row{{ID: 30, Classes: []int32{0, 1}}, {ID: 20, Classes: []int32{1}}, {ID: 10}},
		read(flags, nil, []float32{1, 1, 0, 1, 0, 0}))
	require.Equal(t, []row{{ID: 30, Cat: 1, ID2: 2}, {ID: 20, Cat: 3, ID2: 4}, {ID: 10, Cat: 5, ID2: 6}},
		read(scores, []string{"cat", "id"}, []float32{1, 2, 3, 4, 5, 6}), "a class that is called like the column of ids")
	require.Equal(t, []row{{ID: 30, Embedding: []float32{1, 2}}, {ID: 20, Embedding: []float32{3, 4}}, {ID: 10, Embedding: []float32{5, 6}}},
		read(vectors, nil, []float32{1, 2, 3, 4, 5, 6}))

	type named struct {
		ID      string   `parquet:"id"`
		Classes []string `parquet:"classes,list"`
	}
	on := vfs.NewMem()
	o := flags
	o.Names = []string{"cat", "dog"}
	_, err := rowsOf(on, "out", idsOf(t, true), o, []float32{1, 1, 0, 1, 0, 0})
	require.NoError(t, err)
	b := content(t, on, "out")
	rows, err := parquet.Read[named](strings.NewReader(string(b)), int64(len(b)))
	require.NoError(t, err)
	require.Equal(t, []named{{"ann", []string{"cat", "dog"}}, {"b,ob", []string{"dog"}}, {`cid;"dee"`, []string{}}}, rows)

	wide := RowOptions{Kind: Numbers, Cols: maxColumns + 1}
	_, err = WriteRows("out2", idsOf(t, false), wide, nil)
	require.ErrorContains(t, err, "take {format} npy")
}

// TestRowsInNPY reads them back.
func TestRowsInNPY(t *testing.T) {
	for _, c := range []struct {
		o      RowOptions
		values []float32
		header string
		bytes  string
	}{
		{oneClass, []float32{1, 0, 258}, "'<i8', 'fortran_order': False, 'shape': (3,)", "01000000000000000000000000000000" + "0201000000000000"},
		{flags, []float32{1, 1, 0, 1, 0, 0}, "'|u1', 'fortran_order': False, 'shape': (3, 2)", "010100010000"},
		{scores, []float32{1, 2, 0, 0, 0, -2}, "'<f4', 'fortran_order': False, 'shape': (3, 2)", "0000803f00000040" + strings.Repeat("0", 24) + "000000c0"},
	} {
		on := vfs.NewMem()
		r, err := rowsOf(on, "out.npy", idsOf(t, false), c.o, c.values)
		require.NoError(t, err)
		require.Equal(t, []string{"out.npy", "out.ids.npy"}, r.Files)
		b := content(t, on, "out.npy")
		require.Contains(t, string(b[:128]), c.header)
		require.Equal(t, c.bytes, fmt.Sprintf("%x", b[128:]))
		ids := content(t, on, "out.ids.npy")
		require.Equal(t, npy.AppendHeader(nil, "<i8", 3), ids[:len(ids)-24])
		require.Equal(t, "1e0000000000000014000000000000000a00000000000000", fmt.Sprintf("%x", ids[len(ids)-24:]))
	}
	on := vfs.NewMem()
	_, err := rowsOf(on, "out.npy", idsOf(t, true), oneClass, []float32{1, 0, 2})
	require.NoError(t, err)
	require.Equal(t, "ann\nb,ob\ncid;\"dee\"\n", string(content(t, on, "out.ids.txt")))
}

// TestRowsAreWholeOrAbsent fails at every write, sync and rename: what has its name is whole, and
// nothing else is left but where removing it failed.
func TestRowsAreWholeOrAbsent(t *testing.T) {
	broken := errors.New("the disk is gone")
	ids := idsOf(t, false)
	for _, out := range []string{"out.csv", "out.npy", "out.parquet"} {
		for failAt := 1; ; failAt++ {
			on, count := vfs.NewMem(), 0
			faults := errorfs.InjectorFunc(func(op errorfs.Op) error {
				switch op.Kind {
				case errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpRename, errorfs.OpCreate, errorfs.OpFileFlush:
					if count++; count == failAt {
						return broken
					}
				}
				return nil
			})
			_, err := rowsOf(errorfs.Wrap(on, faults), out, ids, scores, []float32{1, 2, 3, 4, 5, 6})
			left, lerr := on.List("")
			require.NoError(t, lerr)
			if count < failAt {
				require.NoError(t, err)
				break
			}
			require.ErrorIs(t, err, broken, "%s, %d", out, failAt)
			if len(left) > 0 { // only the names were not synced yet
				require.NotContains(t, strings.Join(left, " "), "partial")
				require.Contains(t, left, out)
			}
		}
	}
	// What a process left that ended is written over, and two do not write at once.
	on := vfs.NewMem()
	stale, err := on.Create("out.csv.partial", vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	require.NoError(t, stale.Close())
	o := scores
	o.FS, o.Rows = on, 1
	_, err = WriteRows("out.csv", ids, o, func(add func([]store.NodeID, []float32) error) error {
		_, err := WriteRows("out.csv", ids, o, nil)
		require.Error(t, err)
		return add([]store.NodeID{0}, []float32{1, 2})
	})
	require.NoError(t, err)
	left, err := on.List("")
	require.NoError(t, err)
	require.Equal(t, []string{"out.csv"}, left)

	// Fewer rows than were promised are no file either.
	on = vfs.NewMem()
	o.FS, o.Rows = on, 4
	_, err = WriteRows("out.csv", ids, o, func(add func([]store.NodeID, []float32) error) error { return add([]store.NodeID{0}, []float32{1, 2}) })
	require.ErrorContains(t, err, "1 rows of 4")
	left, err = on.List("")
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestNoFileToReplace: a pipe or a device is not replaced by a file, by force or without.
func TestNoFileToReplace(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o666))
	for _, path := range []string{pipe, "/dev/null"} {
		for _, force := range []bool{false, true} {
			require.EqualError(t, MayWrite(vfs.Default, path, force), path+": it is no ordinary file, and would be replaced by one; choose another name")
		}
	}
}
