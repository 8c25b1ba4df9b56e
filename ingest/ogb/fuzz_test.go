package ogb

import (
	"archive/zip"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

// Whatever splits reads back as it was, and nothing in it leads out of a folder.
func FuzzTriplet(f *testing.F) {
	for _, key := range []string{"paper___has_topic___field_of_study", "a____b___c", "a___b", "a___b___c___d", "_a___b___c", "___b___", "a___../x___c", "a__b___c___d"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		parts, ok := splitTriplet(key)
		if !ok {
			return
		}
		if joinTriplet(parts) != key || !filepath.IsLocal(key) {
			t.Fatalf("%q becomes %q", key, parts)
		}
		for _, p := range parts {
			if strings.Contains(p, "___") || !filepath.IsLocal(p) {
				t.Fatalf("%q has part %q", key, p)
			}
		}
	})
}

// sound reads everything: errors are one line, and data that is read without one keeps the
// contract.
func sound(t *testing.T, s *Source, err error) {
	if err == nil {
		defer s.Close()
		_, err = sourcetest.Read(s)
	}
	var fault *sourcetest.Fault
	if errors.As(err, &fault) || err != nil && strings.Contains(err.Error(), "\n") {
		t.Fatalf("%q", err)
	}
}

func FuzzTypedTables(f *testing.F) {
	m := mag()
	add := func(changes files) {
		with := mag().with(changes)
		f.Add(with["raw/num-node-dict.csv.gz"], with["raw/triplet-type-list.csv.gz"], with["raw/nodetype-has-label.csv.gz"], with["split/time/nodetype-has-split.csv.gz"], with["split/time/paper/train.csv.gz"])
	}
	add(nil)
	add(files{"raw/triplet-type-list.csv.gz": "paper,has_topic,field_of_study\r\n\"author\",writes,paper\n\n"})
	add(files{"raw/num-node-dict.csv.gz": "paper,author,field_of_study\n3.0,-2,9999999999999999999\n"})
	f.Fuzz(func(t *testing.T, counts, triplets, hasLabel, hasSplit, train string) {
		if len(counts)+len(triplets)+len(hasLabel)+len(hasSplit)+len(train) > 60_000 {
			return
		}
		tree := fstest.MapFS{}
		for file, text := range m.with(files{"raw/num-node-dict.csv.gz": counts, "raw/triplet-type-list.csv.gz": triplets,
			"raw/nodetype-has-label.csv.gz": hasLabel, "split/time/nodetype-has-split.csv.gz": hasSplit, "split/time/paper/train.csv.gz": train}) {
			tree[file] = &fstest.MapFile{Data: stored(text)}
		}
		s, err := Options{}.open(&folder{fsys: tree, path: "mag", name: "mag", packed: "doc.go", close: func() error { return nil }})
		sound(t, s, err)
	})
}

// stored is text as a gzip file in one block that is not compressed: cheap to make.
func stored(text string) []byte {
	b := []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}
	b = append(b, 1, byte(len(text)), byte(len(text)>>8), ^byte(len(text)), ^byte(len(text)>>8))
	b = append(b, text...)
	b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE([]byte(text)))
	return binary.LittleEndian.AppendUint32(b, uint32(len(text)))
}

// FuzzArrays varies the keys of raw/data.npz and what lies under them, past the checksums of the
// archive.
func FuzzArrays(f *testing.F) {
	p := papers()
	f.Add("edge_index", p["edge_index"], "num_nodes_list", p["num_nodes_list"], "num_edges_list", p["num_edges_list"], "node_feat", p["node_feat"], true)
	f.Add("edge_index", p["edge_index"], "num_nodes_list", p["num_nodes_list"], "edge_", p["num_edges_list"], "node_", p["node_feat"], false)
	f.Add("edge_index", p["edge_index"], "num_nodes_list", p["num_nodes_list"], "edge_w", array("<f2", "(2, 1)", true, []uint16{1, 2}), "node_label", array("<f8", "(3, 1)", false, []float64{1, 2, -1}), false)
	f.Add("a___b___c", array("<i4", "(2, 1)", true, []int32{0, 0}), "a", array("<i8", "(1,)", false, []int64{1}), "c", array("<i8", "(1,)", false, []int64{1}), "x", []byte{}, true)
	dir := f.TempDir() // of this process
	f.Fuzz(func(t *testing.T, k1 string, a1 []byte, k2 string, a2 []byte, k3 string, a3 []byte, k4 string, a4 []byte, deflate bool) {
		method := zip.Store
		if deflate {
			method = zip.Deflate
		}
		pack := func(a arrays) string { return a.npz(t, method) }
		s, err := Options{}.Open(files{"raw/data.npz": pack(arrays{k1: a1, k2: a2, k3: a3, k4: a4}), "raw/node-label.npz": pack(arrays{k4: a4})}.writeTo(t, filepath.Join(dir, "x")))
		sound(t, s, err)
		s, err = Options{}.Open(files{"raw/edge_index_dict.npz": pack(arrays{k1: a1}), "raw/num_nodes_dict.npz": pack(arrays{k2: a2, k3: a3}),
			"raw/node_feat.npz": pack(arrays{k2: a4}), "raw/edge_x.npz": pack(arrays{k1: a4})}.writeTo(t, filepath.Join(dir, "y")))
		sound(t, s, err)
	})
}

func FuzzDict(f *testing.F) {
	names, err := filepath.Glob("testdata/dicts/*.pt")
	require.NoError(f, err)
	for _, name := range names {
		b, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(b)
	}
	path := filepath.Join(f.TempDir(), "split_dict.pt") // of this process
	f.Fuzz(func(t *testing.T, pt []byte) {
		require.NoError(t, os.WriteFile(path, pt, 0o600))
		d, err := OpenDict(path, 0)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		defer d.Close()
		keys, _ := d.Keys()
		for _, key := range keys {
			ids := int64(0)
			err := d.IDs(context.Background(), func(c ingest.IDChunk) error {
				require.Equal(t, ids, c.First)
				ids += int64(len(c.IDs))
				return nil
			}, key)
			if err == nil && ids > max(64*int64(len(pt)), 64<<20) { // a tensor may repeat what is stored, up to 64 MiB
				t.Fatalf("%d ids of %d bytes", ids, len(pt))
			}
			_, err = d.Int(key)
			_, _ = d.Keys(key)
			if err != nil {
				require.NotContains(t, err.Error(), "\n")
			}
		}
	})
}
