package store

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sealed returns a manifest with correct checksums, so that only validate can find wrong contents.
func sealed(t *testing.T, change func(m *Manifest)) []byte {
	file := func(path string, e Elem, rows, cols, stride int64) File {
		bytes := PageSize + 2*roundUp(rows*stride, PageSize) // one page of rows, and one of checksums after the header
		return File{Path: path, Elem: e, Rows: rows, Cols: cols, Stride: stride, Bytes: bytes}
	}
	m := &Manifest{
		Format: formatName, Version: Version, Name: "x", Order: "original",
		NodeTypes: []NodeType{{Name: "node", Count: 3,
			Original: file("ids/node/original.i64", I64, 3, 1, 8), Order: file("ids/node/order.u32", U32, 3, 1, 4)}},
		Relations: []Relation{{Src: "node", Name: "to", Dst: "node", Edges: 2,
			Offsets:   file("topo/node__to__node/offsets.u64", U64, 4, 1, 8),
			Neighbors: file("topo/node__to__node/neighbors.u32", U32, 2, 1, 4)}},
		Tables: []Table{{Name: "feat", NodeType: "node", Elem: F16, Dim: 3,
			Shards: []File{file("feat/node/feat-00000.f16", F16, 3, 3, 8)}}},
		Labels: []Label{{Name: "label", NodeType: "node", Classes: 2, Values: file("label/node/label.i32", I32, 3, 1, 4)}},
		Splits: []Split{{Name: "given", NodeType: "node", Train: file("split/given/train.u32", U32, 2, 1, 4),
			Valid: file("split/given/valid.u32", U32, 1, 1, 4), Test: file("split/given/test.u32", U32, 0, 1, 4)}},
	}
	if change != nil {
		change(m)
	}
	b, err := m.seal()
	require.NoError(t, err)
	return b
}

// withEdges adds columns and a table of edges.
func withEdges(m *Manifest) *Relation {
	file := func(path string, e Elem, rows, cols, stride int64) File {
		return File{Path: path, Elem: e, Rows: rows, Cols: cols, Stride: stride, Bytes: 3 * PageSize}
	}
	r := &m.Relations[0]
	r.Columns = []Column{
		{Name: "id", Elem: U32, Values: file("topo/node__to__node/id.u32", U32, 2, 1, 4)},
		{Name: "weight", Elem: F32, Values: file("topo/node__to__node/weight.f32", F32, 2, 1, 4)},
	}
	m.Tables = append(m.Tables, Table{Name: "feat", Relation: r.Key(), Elem: F16, Dim: 3,
		Shards: []File{file("feat/node__to__node/feat-00000.f16", F16, 7, 3, 8)}})
	return r
}

func withNames(m *Manifest) *Names {
	m.NodeTypes[0].Names = &Names{
		ByName: []Blob{{Path: "ids/node/by-name-00000.sst", Bytes: 9}},
		ByNode: []Blob{{Path: "ids/node/by-node-00000.sst", Bytes: 9}},
	}
	return m.NodeTypes[0].Names
}

// withStream adds a stream of two events with a table.
func withStream(m *Manifest) *Stream {
	file := func(path string, e Elem, rows, cols, stride int64) File {
		return File{Path: path, Elem: e, Rows: rows, Cols: cols, Stride: stride, Bytes: 3 * PageSize}
	}
	m.Streams = []Stream{{
		Name: "talks", Src: "node", Dst: "node", Events: 2, TimeScale: 1, Split: StreamSplit{"given", 1, 1, 0},
		Sources: file("stream/talks/src.u32", U32, 2, 1, 4), Destinations: file("stream/talks/dst.u32", U32, 2, 1, 4),
		Times: file("stream/talks/time.f64", F64, 2, 1, 8), Offsets: file("stream/talks/offsets.u64", U64, 4, 1, 8),
		Near: file("stream/talks/near.u64", U64, 4, 2, 16),
	}}
	m.Tables = append(m.Tables, Table{Name: "feat", Stream: "talks", Elem: F16, Dim: 3,
		Shards: []File{file("stream/talks/feat-00000.f16", F16, 2, 3, 8)}})
	return &m.Streams[0]
}

func TestHostileManifest(t *testing.T) {
	for _, good := range []func(m *Manifest){
		nil, func(m *Manifest) { withEdges(m); withNames(m); withStream(m) },
		func(m *Manifest) {
			m.Version = 2
			for _, f := range m.Files() {
				f.Bytes = f.fileBytes(2)
			}
		},
	} {
		_, err := decodeManifest(sealed(t, good))
		require.NoError(t, err)
	}
	for name, c := range map[string]struct {
		change func(m *Manifest)
		want   string
	}{
		"parent path":    {func(m *Manifest) { m.Tables[0].Shards[0].Path = "../../etc/passwd" }, "does not stay inside"},
		"hidden parent":  {func(m *Manifest) { m.Tables[0].Shards[0].Path = "a/../b" }, "does not stay inside"},
		"absolute path":  {func(m *Manifest) { m.Tables[0].Shards[0].Path = "/etc/passwd" }, "does not stay inside"},
		"empty path":     {func(m *Manifest) { m.Tables[0].Shards[0].Path = "" }, "does not stay inside"},
		"itself":         {func(m *Manifest) { m.Tables[0].Shards[0].Path = manifestName }, "does not stay inside"},
		"same twice":     {func(m *Manifest) { m.NodeTypes[0].Order.Path = m.NodeTypes[0].Original.Path }, "listed twice"},
		"rows overflow":  {func(m *Manifest) { m.Tables[0].Shards[0].Rows = 1 << 61 }, "overflow"},
		"wide overflow":  {func(m *Manifest) { m.Tables[0].Shards[0].Cols = 1 << 62 }, "do not fit in a stride"},
		"negative":       {func(m *Manifest) { m.Relations[0].Neighbors.Rows = -1 }, "negative"},
		"stride 0":       {func(m *Manifest) { m.Tables[0].Shards[0].Stride = 0 }, "do not fit in a stride"},
		"bytes":          {func(m *Manifest) { m.Tables[0].Shards[0].Bytes++ }, "make a file of"},
		"too many nodes": {func(m *Manifest) { m.NodeTypes[0].Count = 1 << 32 }, "ids are 32 bits"},
		"short offsets":  {func(m *Manifest) { m.NodeTypes[0].Count = 5 }, "belongs"},
		"edges":          {func(m *Manifest) { m.Relations[0].Edges = 3 }, "belongs"},
		"unknown type":   {func(m *Manifest) { m.Relations[0].Src = "author" }, `no node type "author"`},
		"bad name": {func(m *Manifest) { m.NodeTypes[0].Name = "a__b" },
			`node type "a__b": names are up to 100 letters`},
		"shard gap": {func(m *Manifest) { m.Tables[0].Shards[0].First = 1 }, "follow each other"},
		"element":   {func(m *Manifest) { m.Tables[0].Elem = I32 }, "features are f16 or f32"},
		"odd stride": {func(m *Manifest) {
			f := &m.Tables[0].Shards[0]
			m.Tables[0].Dim, f.Cols, f.Stride, f.Bytes = 1, 1, 3, 3*PageSize
		}, "stride 3 where 1 columns of f16 take 2"},
		"loose stride":  {func(m *Manifest) { m.Tables[0].Shards[0].Stride = 16 }, "stride 16 where 3 columns of f16 take 8"},
		"packed stride": {func(m *Manifest) { m.NodeTypes[0].Order.Stride = 8 }, "stride 8 where 1 columns of u32 take 4"},

		"half a stream":   {func(m *Manifest) { withStream(m).Near.Rows = 2 }, "belongs"},
		"many events":     {func(m *Manifest) { withStream(m).Events = 1 << 32 }, "at most 4294967295"},
		"no time":         {func(m *Manifest) { withStream(m).TimeScale = 0 }, "times are multiplied with 0"},
		"time backwards":  {func(m *Manifest) { withStream(m).TimeScale = -1 }, "times are multiplied with -1"},
		"split of others": {func(m *Manifest) { withStream(m).Split.Train = 2 }, "its split has 2, 1 and 0 of 2"},
		"split overflow":  {func(m *Manifest) { withStream(m).Split = StreamSplit{"x", 2, 1 << 62, -1 << 62} }, "its split has"},
		"nameless split":  {func(m *Manifest) { withStream(m).Split.Name = "" }, "the name of its split"},
		"negatives of others": {func(m *Manifest) {
			file := func(path string, e Elem, rows int64) File {
				return File{Path: path, Elem: e, Rows: rows, Cols: 1, Stride: int64(e.Size())}
			}
			withStream(m).Negatives = &StreamNegatives{file("stream/talks/negative-offsets.u64", U64, 3), file("stream/talks/negatives.u32", U32, 1)}
		}, "3×1 u64 where 2×1 u64 belongs"},
		"no labels":      {func(m *Manifest) { withStream(m).Classes = 2 }, "2 classes"},
		"stream of none": {func(m *Manifest) { withStream(m).Dst = "page" }, `no node type "page"`},
		"stream name":    {func(m *Manifest) { withStream(m).Name = "../x" }, `stream "../x": names are`},
		"two streams":    {func(m *Manifest) { withStream(m); m.Streams = append(m.Streams, m.Streams[0]) }, "stream talks: there are two"},
		"events' rows":   {func(m *Manifest) { withStream(m); m.Tables[1].Stream = "calls" }, `no stream "calls"`},
		"rows of two":    {func(m *Manifest) { withStream(m); m.Tables[1].NodeType = "node" }, "of stream talks and of node"},
		"too few rows":   {func(m *Manifest) { withStream(m); m.Tables[1].Shards[0].Rows = 1 }, "1 rows for 2 events"},
		"f64 column": {func(m *Manifest) {
			c := &withEdges(m).Columns[1]
			c.Elem, c.Values.Elem = F64, F64
		}, "and not f64"},

		"relation name": {func(m *Manifest) { m.Relations[0].Name = "../x" }, `relation "../x": names are`},
		"table name":    {func(m *Manifest) { m.Tables[0].Name = "" }, `table "": names are`},
		"label name":    {func(m *Manifest) { m.Labels[0].Name = "\x1b[2J" }, `label "\x1b[2J": names are`},
		"split name":    {func(m *Manifest) { m.Splits[0].Name = "_given" }, `split "_given": names are`},
		"long name":     {func(m *Manifest) { m.Splits[0].Name = strings.Repeat("x", 101) }, "names are"},
		"two types": {func(m *Manifest) { m.NodeTypes = append(m.NodeTypes, m.NodeTypes[0]) },
			"node type node: there are two"},
		"two relations": {func(m *Manifest) { m.Relations = append(m.Relations, m.Relations[0]) },
			"relation node__to__node: there are two"},
		"two tables": {func(m *Manifest) { m.Tables = append(m.Tables, m.Tables[0]) }, "table node/feat: there are two"},
		"two labels": {func(m *Manifest) {
			l := m.Labels[0]
			l.Multi = true
			l.Values = File{Path: "label/node/label.u8", Elem: U8, Rows: 3, Cols: 2, Stride: 2, Bytes: 3 * PageSize}
			m.Labels = append(m.Labels, l)
		}, "label node/label: there are two"},
		"two splits":    {func(m *Manifest) { m.Splits = append(m.Splits, m.Splits[0]) }, "split given: there are two"},
		"order":         {func(m *Manifest) { m.Order = "chaos" }, `nodes are numbered by "chaos"`},
		"name":          {func(m *Manifest) { m.Name = "../../x" }, `the dataset's name is "../../x"`},
		"no name":       {func(m *Manifest) { m.Name = "" }, `the dataset's name is ""`},
		"escaping name": {func(m *Manifest) { m.Name = "\x1b[2Jx" }, `the dataset's name is "\x1b[2Jx"`},
		"hidden name":   {func(m *Manifest) { m.Name = ".x" }, `the dataset's name is ".x"`},

		"original elsewhere": {func(m *Manifest) { m.NodeTypes[0].Original.Path = "ids/o" },
			`"ids/o" is named where ids/node/original.i64 belongs`},
		"order elsewhere": {func(m *Manifest) { m.NodeTypes[0].Order.Path = "x" }, "where ids/node/order.u32 belongs"},
		"offsets elsewhere": {func(m *Manifest) { m.Relations[0].Offsets.Path = "x" },
			"where topo/node__to__node/offsets.u64 belongs"},
		"neighbors elsewhere": {func(m *Manifest) { m.Relations[0].Neighbors.Path = "x" },
			"where topo/node__to__node/neighbors.u32 belongs"},
		"shard elsewhere": {func(m *Manifest) { m.Tables[0].Shards[0].Path = "x" }, "where feat/node/feat-00000.f16 belongs"},
		"label elsewhere": {func(m *Manifest) { m.Labels[0].Values.Path = "x" }, "where label/node/label.i32 belongs"},
		"parts swapped": {func(m *Manifest) {
			s := &m.Splits[0]
			s.Train.Path, s.Test.Path = s.Test.Path, s.Train.Path
		}, `"split/given/test.u32" is named where split/given/train.u32 belongs`},
		"no columns": {func(m *Manifest) { m.Tables[0].Dim = 0 }, "0 columns"},

		"column of halves": {func(m *Manifest) { withEdges(m).Columns[1].Elem = F16 }, "elements of 1, 4 or 8 bytes"},
		"column of many":   {func(m *Manifest) { withEdges(m).Columns[1].Values.Cols = 2 }, "do not fit in a stride"},
		"short column":     {func(m *Manifest) { withEdges(m).Columns[1].Values.Rows = 1 }, "where 2×1 f32 belongs"},
		"column elsewhere": {func(m *Manifest) { withEdges(m).Columns[1].Values.Path = "x" },
			"where topo/node__to__node/weight.f32 belongs"},
		"column of a shard":    {func(m *Manifest) { withEdges(m).Columns[1].Values.First = 1 }, "first row 1"},
		"column named outside": {func(m *Manifest) { withEdges(m).Columns[1].Name = "../x" }, `column "../x": names are`},
		"column as offsets":    {func(m *Manifest) { withEdges(m).Columns[1].Name = "offsets" }, "cannot be called offsets"},
		"two columns": {func(m *Manifest) { withEdges(m).Columns[1].Name = "id" },
			"relation node__to__node: column id is f32"},
		"same column": {func(m *Manifest) { withEdges(m).Columns[0] = m.Relations[0].Columns[1] },
			"two columns weight"},
		"edge table alone": {func(m *Manifest) { withEdges(m).Columns = nil }, `has no column "id" to find rows by`},
		"edge table of none": {func(m *Manifest) { withEdges(m); m.Tables[1].Relation = "a__b__c" },
			`no relation "a__b__c"`},
		"edge table of both": {func(m *Manifest) { withEdges(m); m.Tables[1].NodeType = "node" },
			"of node type node and of relation node__to__node"},
		"no tables of names": {func(m *Manifest) { m.NodeTypes[0].Names = &Names{} }, "no tables of names by-name"},
		"names elsewhere": {func(m *Manifest) { withNames(m).ByNode[0].Path = "../x" },
			`"../x" is named where ids/node/by-node-00000.sst belongs`},
		"empty names": {func(m *Manifest) { withNames(m).ByName[0].Bytes = 0 }, "by-name-00000.sst: 0 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeManifest(sealed(t, c.change))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func FuzzManifest(f *testing.F) {
	m := &Manifest{Format: formatName, Version: Version, Name: "x", Order: "original"}
	b, _ := m.seal()
	f.Add(b)
	withStream(m)
	m.Streams[0].TimeScale = 2024453.7815123952 // spelled the one way that encoding/json does
	b, _ = m.seal()
	f.Add(b)
	f.Add([]byte(`{"format":"gnnstore","version":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := decodeManifest(b); err == nil {
			again, err := m.encode()
			if err != nil || !bytes.Equal(again, b) {
				t.Fatal("accepted a manifest that is not canonical")
			}
		}
	})
}

func TestCleanName(t *testing.T) {
	for in, want := range map[string]string{
		"ms_academic_cs": "ms_academic_cs", "ogbn-arxiv": "ogbn-arxiv", "v1.2": "v1.2", "": "dataset", ".": "_", "..": "_.",
		"../../x": "_./.._x", "caf\xe9": "caf_", "café": "caf_", "a b\x1b[2J": "a_b__2J", ".hidden": "_hidden",
		strings.Repeat("x", 200): strings.Repeat("x", 100),
	} {
		want = strings.ReplaceAll(want, "/", "_")
		require.Equal(t, want, CleanName(in))
		require.Equal(t, want, CleanName(want))
	}
}

func TestRowStride(t *testing.T) {
	for rowBytes, want := range map[int64]int64{
		0: 0, 1: 1, 2: 2, 6: 8, 10: 16, 16: 16, 20: 32, 200: 208, 250: 256, 256: 256, 1534: 1536, 2866: 2880,
		3950: 4096, 4096: 4096, 4097: 4112, 8000: 8192, 13610: 13616,
	} {
		require.Equal(t, want, RowStride(rowBytes), rowBytes)
	}
}

// TestHeaderGolden compares the header page with annotated bytes in testdata, so that a moved byte
// shows in review.
func TestHeaderGolden(t *testing.T) {
	f := &File{Path: "feat/node/feat-00001.f16", Elem: F16, Rows: 0x0102030405, Cols: 100, Stride: 208, First: 0x77}
	h := encodeHeader(f, 0x0123456789abcdef)
	at, err := checkHeader(h[:], f, Version)
	require.NoError(t, err)
	require.Zero(t, at)

	golden, err := os.ReadFile("testdata/header.hex")
	require.NoError(t, err)
	var want [PageSize]byte
	for line := range strings.Lines(string(golden)) {
		text, _, _ := strings.Cut(line, "#")
		addr, bytesHex, ok := strings.Cut(strings.TrimSpace(text), "  ")
		if !ok {
			continue
		}
		var lo, hi int
		_, err := fmt.Sscanf(addr, "%x-%x", &lo, &hi)
		require.NoError(t, err, line)
		b, err := hex.DecodeString(strings.ReplaceAll(bytesHex, " ", ""))
		require.NoError(t, err, line)
		require.Len(t, b, hi-lo+1, line)
		copy(want[lo:], b)
	}
	for i := range want {
		require.Equal(t, want[i], h[i], "byte 0x%03x", i)
	}
}
