package graphfile

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/edgelist"
)

// BenchmarkRead reads the edges of one graph with weights, from an edge list and from each format.
func BenchmarkRead(b *testing.B) {
	const nodes, edges = 20_000, 200_000
	end := func(i int) int { return i * 7919 % nodes }
	var csv, mtx, xml, json strings.Builder
	csv.WriteString("src,dst,weight\n")
	fmt.Fprintf(&mtx, "%%%%MatrixMarket matrix coordinate integer general\n%d %d %d\n", nodes, nodes, edges)
	xml.WriteString(`<graphml><key id="w" for="edge" attr.name="weight"/><graph edgedefault="directed">`)
	json.WriteString(`{"directed": true, "nodes": [{"id": 0}`)
	for i := range nodes {
		fmt.Fprintf(&xml, "<node id=\"%d\"/>\n", i)
		if i > 0 {
			fmt.Fprintf(&json, `, {"id": %d}`, i)
		}
	}
	json.WriteString(`], "links": [{"weight": 1, "source": 0, "target": 0}`)
	for i := range edges {
		u, v, w := i%nodes, end(i), i%9+1
		fmt.Fprintf(&csv, "%d,%d,%d\n", u, v, w)
		fmt.Fprintf(&mtx, "%d %d %d\n", u+1, v+1, w)
		fmt.Fprintf(&xml, "<edge source=\"%d\" target=\"%d\">\n<data key=\"w\">%d</data>\n</edge>\n", u, v, w)
		fmt.Fprintf(&json, `, {"weight": %d, "source": %d, "target": %d}`, w, u, v)
	}
	xml.WriteString("</graph></graphml>")
	json.WriteString("]}")
	for _, c := range []struct {
		name, text string
		open       opening
	}{
		{"p.csv", csv.String(), edgelist.Open}, {"p.mtx", mtx.String(), OpenMatrix},
		{"p.json", json.String(), OpenNodeLink}, {"p.graphml", xml.String(), OpenGraphML},
	} {
		b.Run("file="+c.name, func(b *testing.B) {
			path := write(b, c.name, c.text)
			info, err := os.Stat(path)
			require.NoError(b, err)
			s, err := c.open(path, edgelist.Options{Weight: map[bool]string{true: "weight"}[c.name == "p.csv"]})
			require.NoError(b, err)
			b.SetBytes(info.Size())
			for b.Loop() {
				require.NoError(b, s.Edges(b.Context(), 0, func(ingest.EdgeChunk) error { return nil }))
			}
		})
	}
}
