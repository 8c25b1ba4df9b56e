package arrays

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
	"github.com/gnnstore/gnnstore/ingest/torch"
)

func packed(t testing.TB, f files) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range sorted(f) {
		m, err := w.CreateHeader(&zip.FileHeader{Name: name + ".npy"})
		if err == nil {
			_, err = m.Write(f[name])
		}
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// FuzzArrays puts the arrays in a sound archive; those that are empty are left out.
func FuzzArrays(f *testing.F) {
	s := small()
	f.Add(s["edge_index"], []byte(nil), []byte(nil), s["x"], s["y"], s["train_mask"], []byte(nil), i64(5))
	f.Add([]byte(nil), i64(0, 2, 2, 3, 4, 4), arr(">i2", false, []int{4}, []int16{1, 2, 0, 3}), arr("<f2", true, []int{5, 2}, make([]uint16, 10)), arr("<f8", false, []int{5, 1}, make([]float64, 5)),
		arr("|b1", true, []int{3, 5}, make([]bool, 15)), f32(1, 2, 3, 4), []byte(nil))
	f.Add(arr("<f8", true, []int{2, 4}, make([]float64, 8)), []byte(nil), []byte(nil), []byte(nil), arr("|u1", false, []int{5, 3}, make([]uint8, 15)), i64(1, 2), arr("<f4", false, []int{4, 2}, make([]float32, 8)), []byte(nil))
	f.Add(s["edge_index"], []byte(nil), []byte(nil), s["x"], texts("cat", "NA", "dog", "true", "cat"), s["train_mask"], []byte(nil), i64(5))
	f.Add(s["edge_index"], []byte(nil), []byte(nil), s["x"], arr("|u1", false, []int{5, 2}, []uint8{0, 1, 1, 0, 1, 0, 0, 1, 1, 0}), s["train_mask"], []byte(nil), i64(5))
	for _, name := range []string{"objects.npz", "numbers.npz", "ragged.npz", "sparse.npz"} {
		z, err := zip.OpenReader(filepath.Join("testdata", name))
		require.NoError(f, err)
		member := func(name string) []byte {
			r, err := z.Open(name + ".npy")
			if err != nil {
				return nil
			}
			b, err := io.ReadAll(r)
			require.NoError(f, err)
			return b
		}
		f.Add(append(member("edge_index"), member("adj")...), []byte(nil), []byte(nil), member("x"), member("y"), []byte(nil), []byte(nil), []byte(nil))
		require.NoError(f, z.Close())
	}
	f.Fuzz(func(t *testing.T, edges, bounds, indices, x, y, mask, weight, count []byte) {
		all := files{}
		for name, b := range (files{"edge_index": edges, "indptr": bounds, "indices": indices, "x": x, "y": y, "train_mask": mask, "edge_weight": weight, "num_nodes": count}) {
			if len(b) > 0 {
				all[name] = b
			}
		}
		raw := packed(t, all)
		b := newBag("t.npz", 0)
		if err := b.addArchive(bytes.NewReader(raw), int64(len(raw))); err != nil {
			t.Fatal(err)
		}
		check(t, b, nil)
	})
}

// FuzzTorch reads what a .pt holds as a graph.
func FuzzTorch(f *testing.F) {
	for _, name := range []string{"data.pt", "data.legacy.pt", "hetero.pt", "processed.pt", "strided.pt"} {
		b, err := os.ReadFile(filepath.Join(fixtures, name))
		require.NoError(f, err)
		f.Add(b)
	}
	made, err := filepath.Glob("testdata/*.pt")
	require.NoError(f, err)
	for _, path := range made {
		b, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		file, err := torch.OpenReader("t.pt", bytes.NewReader(raw), int64(len(raw)), 0)
		if err != nil {
			return
		}
		b := newBag("t.pt", 0)
		types, err := b.addTorch(file.Value())
		if err != nil {
			oneLine(t, err)
			return
		}
		check(t, b, types)
	})
}

func oneLine(t *testing.T, err error) {
	if err != nil && strings.Contains(err.Error(), "\n") {
		t.Fatalf("not one line: %q", err)
	}
}

// check reads all sections: what a source emits without an error is as large as it declared.
func check(t *testing.T, b *bag, types []string) {
	s, err := &Source{bag: b, nodes: map[string]*nodeType{}}, error(nil)
	if b.class == temporalClass {
		s, err = newStream(b, Options{}, Events{})
	} else {
		err = s.findAll(types)
	}
	if err != nil {
		oneLine(t, err)
		return
	}
	ctx, enough := context.Background(), errors.New("enough")
	schema, err := s.Schema(ctx)
	if err != nil {
		oneLine(t, err)
		return
	}
	counts := map[string]int64{}
	for _, n := range schema.NodeTypes {
		counts[n.Name] = n.Count
	}
	for i, r := range schema.Relations {
		counts[r.Key()] = r.Edges
		n := int64(0)
		err := s.Edges(ctx, i, func(c ingest.EdgeChunk) error {
			if n += int64(len(c.Src)); n > 1<<22 {
				return enough
			}
			return nil
		})
		if oneLine(t, err); err == nil && n != r.Edges {
			t.Fatalf("%d edges of %d", n, r.Edges)
		}
	}
	for i, table := range schema.Tables {
		n := int64(0)
		err := s.Rows(ctx, i, func(c ingest.RowChunk) error {
			if n += int64(len(c.Values)); n > 1<<22 {
				return enough
			}
			return nil
		})
		if oneLine(t, err); err == nil && n != counts[table.NodeType+table.Relation]*int64(table.Dim) {
			t.Fatalf("%d values of %d rows of %d", n, counts[table.NodeType+table.Relation], table.Dim)
		}
	}
	for i, l := range schema.Labels {
		n, width := int64(0), 1
		if l.Multi {
			width = l.Classes
		}
		err := s.Labels(ctx, i, func(c ingest.LabelChunk) error {
			for _, class := range c.Values {
				if class < -1 || !l.Multi && l.Classes > 0 && int(class) >= l.Classes {
					t.Fatalf("class %d of %d", class, l.Classes)
				}
			}
			if n += int64(len(c.Values)); n > 1<<22 {
				return enough
			}
			return nil
		})
		if oneLine(t, err); err == nil && n != counts[l.NodeType]*int64(width) {
			t.Fatalf("%d labels of %d nodes", n, counts[l.NodeType])
		}
	}
	for i := range schema.Splits {
		for part := ingest.Train; part <= ingest.Test; part++ {
			oneLine(t, s.Split(ctx, i, part, func(ingest.IDChunk) error { return nil }))
		}
	}
}

// TestEveryFormProperty: one graph in any type, order and layout of its edges reads the same.
func TestEveryFormProperty(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(t, "edges")
		if n == 2 {
			n = 3 // (2, 2) is refused
		}
		var want [][2]int64
		ids := rapid.Int64Range(0, 100)
		for range n {
			want = append(want, [2]int64{ids.Draw(t, "src"), ids.Draw(t, "dst")})
		}
		rows, fortran := rapid.Bool().Draw(t, "rows"), rapid.Bool().Draw(t, "fortran")
		var flat []int64
		if rows != fortran { // one end after the other in the file
			for end := range 2 {
				for _, e := range want {
					flat = append(flat, e[end])
				}
			}
		} else {
			for _, e := range want {
				flat = append(flat, e[0], e[1])
			}
		}
		shape := []int{n, 2}
		if rows {
			shape = []int{2, n}
		}
		descr := rapid.SampledFrom([]string{"|i1", "<i2", ">i4", "<i8", "|u1", ">u8", "<f4", ">f8"}).Draw(t, "descr")
		path := filepath.Join(dir, "e.npy")
		if err := os.WriteFile(path, arr(descr, fortran, shape, typed(descr[1:], flat)), 0o666); err != nil {
			t.Fatal(err)
		}
		src, err := Open(path, Options{Nodes: 101})
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		g, err := sourcetest.Read(src)
		if err != nil {
			t.Fatal(err)
		}
		require.Equal(t, want, g.Edges[0].Pairs())
	})
}

// typed are numbers in a Go slice of a NumPy type.
func typed(name string, v []int64) any {
	switch name {
	case "i1", "u1":
		return convert[uint8](v)
	case "i2":
		return convert[int16](v)
	case "i4":
		return convert[int32](v)
	case "i8", "u8":
		return v
	case "f4":
		return convert[float32](v)
	}
	return convert[float64](v)
}

func convert[T uint8 | int16 | int32 | float32 | float64](v []int64) []T {
	out := make([]T, len(v))
	for i, x := range v {
		out[i] = T(x)
	}
	return out
}
