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

// sealed is a manifest that is right in every checksum, so that only validate stands between its lies and the reader.
func sealed(t *testing.T, change func(m *Manifest)) []byte {
	file := func(path string, e Elem, rows, cols, stride int64) File {
		return File{Path: path, Elem: e, Rows: rows, Cols: cols, Stride: stride, Bytes: PageSize + roundUp(rows*stride, PageSize)}
	}
	m := &Manifest{
		Format: formatName, Version: Version, Name: "x", Order: "original",
		NodeTypes: []NodeType{{Name: "node", Count: 3, Original: file("ids/o", I64, 3, 1, 8), Order: file("ids/p", U32, 3, 1, 4)}},
		Relations: []Relation{{Src: "node", Name: "to", Dst: "node", Edges: 2, Offsets: file("topo/o", U64, 4, 1, 8), Neighbors: file("topo/n", U32, 2, 1, 4)}},
		Tables:    []Table{{Name: "feat", NodeType: "node", Elem: F16, Dim: 3, Shards: []File{file("feat/0", F16, 3, 3, 8)}}},
	}
	if change != nil {
		change(m)
	}
	b, err := m.seal()
	require.NoError(t, err)
	return b
}

func TestHostileManifest(t *testing.T) {
	_, err := decodeManifest(sealed(t, nil))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change func(m *Manifest)
		want   string
	}{
		"parent path":    {func(m *Manifest) { m.Tables[0].Shards[0].Path = "../../etc/passwd" }, "does not stay inside"},
		"hidden parent":  {func(m *Manifest) { m.Tables[0].Shards[0].Path = "a/../b" }, "does not stay inside"},
		"absolute path":  {func(m *Manifest) { m.Tables[0].Shards[0].Path = "/etc/passwd" }, "does not stay inside"},
		"empty path":     {func(m *Manifest) { m.Tables[0].Shards[0].Path = "" }, "does not stay inside"},
		"itself":         {func(m *Manifest) { m.Tables[0].Shards[0].Path = manifestName }, "does not stay inside"},
		"same twice":     {func(m *Manifest) { m.NodeTypes[0].Order.Path = "ids/o" }, "listed twice"},
		"rows overflow":  {func(m *Manifest) { m.Tables[0].Shards[0].Rows = 1 << 61 }, "overflow"},
		"wide overflow":  {func(m *Manifest) { m.Tables[0].Shards[0].Cols = 1 << 62 }, "do not fit in a stride"},
		"negative":       {func(m *Manifest) { m.Relations[0].Neighbors.Rows = -1 }, "negative"},
		"stride 0":       {func(m *Manifest) { m.Tables[0].Shards[0].Stride = 0 }, "do not fit in a stride"},
		"bytes":          {func(m *Manifest) { m.Tables[0].Shards[0].Bytes++ }, "make a file of"},
		"too many nodes": {func(m *Manifest) { m.NodeTypes[0].Count = 1 << 32 }, "ids are 32 bits"},
		"short offsets":  {func(m *Manifest) { m.NodeTypes[0].Count = 5 }, "belongs"},
		"edges":          {func(m *Manifest) { m.Relations[0].Edges = 3 }, "belongs"},
		"unknown type":   {func(m *Manifest) { m.Relations[0].Src = "author" }, `no node type "author"`},
		"bad name":       {func(m *Manifest) { m.NodeTypes[0].Name = "a__b" }, "names are unique words"},
		"shard gap":      {func(m *Manifest) { m.Tables[0].Shards[0].First = 1 }, "follow each other"},
		"element":        {func(m *Manifest) { m.Tables[0].Elem = I32 }, "features are f16 or f32"},
		"no columns":     {func(m *Manifest) { m.Tables[0].Dim = 0 }, "0 columns"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeManifest(sealed(t, c.change))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func FuzzManifest(f *testing.F) {
	m := &Manifest{Format: formatName, Version: Version}
	b, _ := m.seal()
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

func TestRowStride(t *testing.T) {
	for rowBytes, want := range map[int64]int64{
		0: 0, 1: 1, 2: 2, 6: 8, 10: 16, 16: 16, 20: 32, 200: 208, 250: 256, 256: 256, 1534: 1536, 2866: 2880,
		3950: 4096, 4096: 4096, 4097: 4112, 8000: 8192, 13610: 13616,
	} {
		require.Equal(t, want, rowStride(rowBytes), rowBytes)
	}
}

// TestHeaderGolden holds the header page to its annotated bytes in testdata, so that a moved byte shows in review.
func TestHeaderGolden(t *testing.T) {
	f := &File{Path: "feat/node/feat-00001.f16", Elem: F16, Rows: 0x0102030405, Cols: 100, Stride: 208, First: 0x77}
	h := encodeHeader(f)
	at, err := checkHeader(h[:], f)
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
