package npz

import (
	"archive/zip"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/gnnstore/gnnstore/ingest"
)

func FuzzOpen(f *testing.F) {
	f.Add(pack(f, zip.Store, small()))
	f.Add(pack(f, zip.Deflate, small()))
	f.Add(packZip64(zip.Store, small()))
	f.Add(pack(f, zip.Store, with(small(), entry{"labels", f32(1, 0.5, -1, 0)}, entry{"attr_indptr", nil}, entry{"attr_indices", nil}, entry{"attr_data", nil},
		entry{"attr_matrix", arr(">f2", true, []int{4, 2}, make([]uint16, 8))})))
	f.Add(pack(f, zip.Store, with(small(), entry{"adj_data", arr("|O", false, []int{4}, []byte("x"))})))
	f.Fuzz(func(t *testing.T, file []byte) { check(t, file) })
}

// FuzzArrays goes past the zip's checksums: the bytes are the arrays themselves, put in a sound
// archive.
func FuzzArrays(f *testing.F) {
	var all [10][]byte
	for i, e := range small() {
		all[i] = e.npy
	}
	f.Add(all[0], all[1], all[2], all[3], all[4], all[5], all[6], all[7], all[8])
	f.Add(all[0], all[1], i64(0, 0, 0, 4, 4), all[3], f32(), i32(), i32(0, 0, 0, 0, 0), all[7], f32(1, -1, 2, 9))
	f.Add(all[0], all[1], all[2], all[3], all[4], all[5], all[6], all[7], texts("cat", "NA", "10", "true"))
	f.Fuzz(func(t *testing.T, data, indices, indptr, shape, attrData, attrIndices, attrIndptr, attrShape, labels []byte) {
		check(t, pack(t, zip.Store, []entry{{"adj_data", data}, {"adj_indices", indices}, {"adj_indptr", indptr}, {"adj_shape", shape},
			{"attr_data", attrData}, {"attr_indices", attrIndices}, {"attr_indptr", attrIndptr}, {"attr_shape", attrShape}, {"labels", labels}}))
	})
}

// check reads all sections: what a source emits without an error is as large as it declared, and in
// range.
func check(t *testing.T, file []byte) {
	ctx := context.Background()
	oneLine := func(err error) {
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Fatalf("not one line: %q", err)
		}
	}
	s, err := openBytes(file)
	if err != nil {
		oneLine(err)
		return
	}
	schema, err := s.Schema(ctx)
	if err != nil {
		oneLine(err)
		return
	}
	nodes := schema.NodeTypes[0].Count
	edges := int64(0)
	err = s.Edges(ctx, 0, func(c ingest.EdgeChunk) error {
		for i := range c.Src {
			if c.Src[i] < 0 || c.Src[i] >= nodes || c.Dst[i] < 0 || c.Dst[i] >= nodes {
				t.Fatalf("edge %d→%d of %d nodes", c.Src[i], c.Dst[i], nodes)
			}
		}
		edges += int64(len(c.Src))
		return nil
	})
	if oneLine(err); err == nil && edges != schema.Relations[0].Edges {
		t.Fatalf("%d edges, %d declared", edges, schema.Relations[0].Edges)
	}
	enough := errors.New("enough") // a small file may hold a great many empty rows
	for i, table := range schema.Tables {
		values := int64(0)
		err := s.Rows(ctx, i, func(c ingest.RowChunk) error {
			if values += int64(len(c.Values)); values > 1<<24 {
				return enough
			}
			return nil
		})
		if oneLine(err); err == nil && values != nodes*int64(table.Dim) {
			t.Fatalf("%d values for %d rows of %d", values, nodes, table.Dim)
		}
	}
	for i := range schema.Labels {
		labels := int64(0)
		err := s.Labels(ctx, i, func(c ingest.LabelChunk) error {
			for _, v := range c.Values {
				if v < -1 {
					t.Fatalf("label %d", v)
				}
			}
			labels += int64(len(c.Values))
			return nil
		})
		if oneLine(err); err == nil && labels != nodes {
			t.Fatalf("%d labels of %d nodes", labels, nodes)
		}
	}
}
