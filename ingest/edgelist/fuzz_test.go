package edgelist

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
)

// FuzzSplit: a line that encoding/csv reads is cut the same, but for blanks around a cell.
func FuzzSplit(f *testing.F) {
	for _, line := range []string{"a,b", `"a, b","c""d"`, ` x ,"y" , `, `"",,""`, `"open`, `a"b,c`, "1\t2"} {
		f.Add(line)
	}
	path := filepath.Join(f.TempDir(), "t.csv") // of this process
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ContainsAny(line, "\r\n") {
			return
		}
		require.NoError(t, os.WriteFile(path, []byte("1,1\n"+line+"\n"), 0o644))
		in, err := openTable(path, form{header: "no"}, true, false)
		require.NoError(t, err)
		defer in.Close()
		var cells [][]byte
		for range 2 {
			var row []byte
			if row, err = in.row(); err == nil {
				cells, err = in.split(row)
			}
			if err != nil {
				break
			}
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Fatalf("not one line: %q", err)
		}
		r := csv.NewReader(strings.NewReader(line))
		r.TrimLeadingSpace = true
		want, wantErr := r.Read()
		if wantErr != nil || err != nil && err.Error() == "EOF" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "%") || strings.ContainsAny(line, "\t\u0085\u00a0\v\f\x00") || !isASCII(line) {
			return // csv is stricter, ours refuses zero bytes, or the two differ in what is blank
		}
		require.NoError(t, err)
		var got []string
		for i, c := range cells {
			got = append(got, strings.TrimSpace(string(c)))
			want[i] = strings.TrimSpace(want[i])
		}
		require.Equal(t, want, got)
	})
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0
}

// FuzzOpen: whatever the files hold, the end is a graph or an error of one line.
func FuzzOpen(f *testing.F) {
	f.Add("0,1\n1,2\n", "id,label,x\n0,a,1\n1,b,2\n2,,3\n", `{"0":[1],"2":[0,3]}`, uint8(3))
	f.Add("src dst\n5 6\n", "5\t1\n6\t0\n", `{}`, uint8(1))
	f.Add("src,dst\nalice,bob\n", "id,label\nalice,x\nbob,y\n", "", uint8(1))
	f.Add("# Nodes: 9\n1 2\n", "", "", uint8(0))
	f.Add("3 2\n1 2\n2 3\n", "", "", uint8(0))
	f.Add("src,dst,note\n1,2,\"a\nb\"\n2,1,\"\"\"\"\n", "id|x\n1|\"2\n\"\n2|3\n", "", uint8(1))
	f.Add("1::2::3\n2::1::4\n", "", "", uint8(0))
	f.Add("\xef\xbb\xbf# x\n\"1\";2;\n", "id\n1\n2\n1\n", `{"1":[]}`, uint8(2))
	dir := f.TempDir() // of this process
	f.Fuzz(func(t *testing.T, edges, nodes, features string, which uint8) {
		files{"edges.csv": edges, "n.csv": nodes, "f.json": features}.writeTo(t, dir)
		var o Options
		if which&1 != 0 {
			o.Nodes = "n.csv"
		}
		if which&2 != 0 {
			o.Features = "f.json"
		}
		g, err := read(dir, o)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("not one line: %q", err)
			}
			return
		}
		n := int(g.Schema.NodeTypes[0].Count)
		if node := g.Schema.NodeTypes[0]; !node.Gathered && node.IDs != ingest.RowIDs {
			require.Equal(t, n, len(g.NodeIDs[0].Numbers)+len(g.NodeIDs[0].Texts))
		}
		if declared := g.Schema.Relations[0].Edges; declared >= 0 {
			require.Len(t, g.Edges[0].Src, int(declared))
		}
		for _, table := range g.Schema.Tables {
			require.Len(t, g.Rows[0], n*table.Dim)
		}
		if len(g.Schema.Labels) > 0 {
			require.Len(t, g.Labels[0], n)
		}
	})
}
