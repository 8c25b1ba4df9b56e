package eventset

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

// Nodes of typedEvents are 8, 3, 4 and 11, in this order.
const typedEvents = "timestamp,head,tail,relation_type\n0,8,3,2\n4,4,8,0\n9,11,3,2\n"

func withTypes(types string) folder {
	return folder{"thgl-y_edgelist.csv": typedEvents, "thgl-y_nodetype.csv": types}
}

// TestNodeTypes makes a column of features of each type of nodes.
func TestNodeTypes(t *testing.T) {
	for name, c := range map[string]struct {
		types string
		o     Options
		want  []float32
		names []string
		left  bool
	}{
		"integers": {types: "node_id,type\n3,1\n4,0\n8,0\n11,5\n", want: []float32{1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1}, names: []string{"0", "1", "5"}},
		"texts":    {types: "node,kind\n8,user\n3, repo\n11,user\n4,\"repo\"\n", want: []float32{0, 1, 1, 0, 1, 0, 0, 1}, names: []string{"repo", "user"}},
		"others":   {types: "node_id,type\r\n3,1\r\n4,1\r\n8,1\r\n11,1\r\n77,2\r\n", want: []float32{1, 1, 1, 1}, names: []string{"1"}, left: true},
		"zeros":    {types: "node_id,type\n3,1\n11,0\n\n", o: Options{Missing: "zeros"}, want: []float32{0, 0, 0, 1, 0, 0, 1, 0}, names: []string{"0", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := OpenTGB(withTypes(c.types).write(t), nil, c.o)
			require.NoError(t, err)
			g, err := sourcetest.Read(s)
			require.NoError(t, err)
			require.Equal(t, []float32{0, 1, 1, 0, 0, 1}, g.Rows[0])
			require.Equal(t, c.want, g.Rows[1])
			require.Equal(t, ingest.Table{Name: "feat", NodeType: "node", Dim: len(c.names)}, g.Schema.Tables[1])
			d := s.Extras().Describe()
			require.Len(t, d.Tables, 2)
			require.Equal(t, c.names, d.Tables[1][0].Categories)
			require.Contains(t, strings.Join(g.Schema.Skipped, "\n"), "thgl-y_nodetype.csv: the type of a node is a column of its features for each type")
			require.Contains(t, strings.Join(g.Schema.Skipped, "\n"), "{node_types} none leaves them out")
			require.Equal(t, c.left, strings.Contains(strings.Join(g.Schema.Skipped, "\n"), "1 rows of nodes that no event names are left out"))
			missing := int64(0)
			if c.o.Missing != "" {
				missing = 2
			}
			require.Equal(t, missing, s.Extras().MissingRows(1))
			require.Zero(t, s.Extras().MissingRows(0))
			ds, _, err := sealed(t, s, build.Options{})
			require.NoError(t, err)
			require.NoError(t, ds.Close())
		})
	}
}

// TestNoNodeTypes reads events alone, or types from another file.
func TestNoNodeTypes(t *testing.T) {
	dir := withTypes("node_id,type\n3,1\n4,0\n8,0\n11,5\n").write(t)
	s, err := OpenTGB(dir, nil, Options{NodeTypes: NoNodeTypes})
	require.NoError(t, err)
	g, err := sourcetest.Read(s)
	require.NoError(t, err)
	require.Len(t, g.Schema.Tables, 1)
	require.Empty(t, g.Schema.Skipped)
	other := filepath.Join(folder{"kinds.csv": "node_id,type\n3,0\n4,0\n8,0\n11,0\n"}.write(t), "kinds.csv")
	s, err = OpenTGB(dir, nil, Options{NodeTypes: other, NoRows: true})
	require.NoError(t, err)
	g, err = sourcetest.Read(s)
	require.NoError(t, err)
	require.Equal(t, [][]float32{{1, 1, 1, 1}}, g.Rows)
	// A version of the dataset has its own table, and users and items are types.
	versions := folder{"thgl-y_edgelist_v2.csv": typedEvents, "thgl-y_nodetype.csv": "x", "tgbl-w_edgelist.csv": wiki, "tgbl-w_nodetype.csv": "node_id,type\n0,1\n"}.write(t)
	s, err = OpenTGB(filepath.Join(versions, "thgl-y_edgelist_v2.csv"), nil, Options{})
	require.NoError(t, err)
	g, err = sourcetest.Read(s)
	require.NoError(t, err)
	require.Len(t, g.Schema.Tables, 1)
	s, err = OpenTGB(filepath.Join(versions, "tgbl-w_edgelist.csv"), nil, Options{})
	require.NoError(t, err)
	g, err = sourcetest.Read(s)
	require.NoError(t, err)
	require.Contains(t, strings.Join(g.Schema.Skipped, "\n"), "types of nodes, since users and items are two types already")
	_, err = OpenTGB(filepath.Join(versions, "tgbl-w_edgelist.csv"), nil, Options{NodeTypes: other})
	require.ErrorContains(t, err, "the users and items of ")
	_, err = OpenTGB(filepath.Join(versions, "tgbl-w_edgelist.csv"), nil, Options{Missing: "zeros"})
	require.EqualError(t, err, "{missing_features}: it goes with the types of nodes, NAME_nodetype.csv or {node_types}, and there are none")
}

// TestBadNodeTypes refuses a table of types with the place and a remedy.
func TestBadNodeTypes(t *testing.T) {
	many := "node_id,type\n"
	for i := range maxNodeTypes + 1 {
		many += fmt.Sprintf("%d,%d\n", i, i)
	}
	var chain strings.Builder
	chain.WriteString("timestamp,head,tail,relation_type\n")
	for i := range maxNodeTypes {
		fmt.Fprintf(&chain, "%d,%d,%d,0\n", i, i, i+1)
	}
	whole := "node_id,type\n3,1\n4,0\n8,0\n11,5\n"
	for want, f := range map[string]folder{
		"line 6, column 1: node \"4\" is there twice; leave one of its rows out":                                                       withTypes(whole + "4,1\n"),
		"2 of the 4 nodes of events have no type, \"4\" is the first; add them, or say {missing_features} zeros, or {node_types} none": withTypes("node_id,type\n3,1\n8,0\n"),
		"line 3, column 2: 99999999999 is not the number of a type (0 to 65535 are); number types anew, or say {node_types} none":      withTypes("node_id,type\n3,1\n4,99999999999\n"),
		"line 2, column 2: -1 is not the number of a type":                                                                             withTypes("node_id,type\n3,-1\n"),
		"line 2, column 2: a type is missing; fill it in, or leave the row out":                                                        withTypes("node_id,type\n3,\n"),
		"line 2, column 1: a node is missing; fill it in":                                                                              withTypes("node_id,type\n,1\n"),
		"line 2, column 2: 300 bytes are no class or category":                                                                         withTypes("node_id,type\n3," + strings.Repeat("z", 300) + "\n"),
		"line 1: a header is expected, as in node_id,type; put one before this row":                                                    withTypes("3,1\n4,0\n"),
		"line 2: a node and its type are expected, in two columns parted by a comma, and there are 3; {node_types} none reads none":    withTypes("node_id,type\n3,1,2\n"),
		"line 1: a node and its type are expected, in two columns parted by a comma, and there are 1; ":                                withTypes("node_id\n3\n"),
		"nodetype.csv: there are no rows in it; a table with the header node_id,type is expected, or say {node_types} none":            withTypes("\n\n"),
		"nodetype.csv: the file is empty; fetch it again":                                                                              withTypes(""),
		"nodetype.csv: no node of the events is in it; is it of another dataset? {node_types} none reads none":                         withTypes("node_id,type\n"),
		"nodetype.csv: more than 1024 different types of nodes, each a column of features; {node_types} none reads none":               {"thgl-y_edgelist.csv": chain.String(), "thgl-y_nodetype.csv": many},
		"line 2: the text is not UTF-8: it has the byte 0xE9":                                                                          withTypes("node_id,type\n3,caf\xe9\n"),
		"the file is not text: it holds a zero byte":                                                                                   withTypes("node_id,type\n3,\x001\n"),
	} {
		s, err := OpenTGB(f.write(t), nil, Options{})
		if err == nil {
			_, err = s.Schema(t.Context())
			require.NoError(t, s.Close())
		}
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
	s, err := OpenTGB(filepath.Join(withTypes(whole).write(t), "thgl-y_edgelist.csv"), nil, Options{NodeTypes: "absent.csv"})
	require.NoError(t, err)
	_, err = s.Schema(t.Context())
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestNodeTypesConform(t *testing.T) {
	const kinds = 100
	const n = ingest.ChunkBytes/4/kinds + 7
	var events, types strings.Builder
	events.WriteString("timestamp,head,tail,relation_type\n")
	types.WriteString("node_id,type\n")
	for i := range n {
		fmt.Fprintf(&events, "%d,%d,%d,1\n", i, i, (i+1)%n)
		fmt.Fprintf(&types, "%d,%d\n", i, i%kinds)
	}
	dir := folder{"thgl-y_edgelist.csv": events.String(), "thgl-y_nodetype.csv": types.String()}.write(t)
	sourcetest.Conform(t, func() (ingest.Source, error) { return OpenTGB(dir, nil, Options{}) })
}

// FuzzNodeTypes reads any table of types without a panic, and refuses it in one line.
func FuzzNodeTypes(f *testing.F) {
	for _, text := range []string{"node_id,type\n3,1\n", "a,b\n\"x\",y\n\n", "3,1", "\ufeffn,t\r\n1,2\r\n", "n,t\n1,2,3\n", ",", "n,t\n1,-9\n"} {
		f.Add([]byte(text))
	}
	path := filepath.Join(f.TempDir(), "x_nodetype.csv")
	f.Fuzz(func(t *testing.T, text []byte) {
		require.NoError(t, os.WriteFile(path, text, 0o600))
		known := map[string]uint32{}
		n := &nodeTypes{path: path}
		err := n.each(t.Context(), func(_ *lines.Scanner, id []byte, _ ingest.Token) error {
			if _, there := known[string(id)]; !there && len(known) < math.MaxUint16 {
				known[string(id)] = uint32(len(known))
			}
			return nil
		})
		if err == nil {
			err = n.read(t.Context(), int64(len(known)), func(id []byte) (uint32, bool) { at, ok := known[string(id)]; return at, ok })
		}
		if err != nil {
			require.NotContains(t, strings.TrimSuffix(err.Error(), "\n"), "\n")
			return
		}
		require.Zero(t, n.missing)
		for _, of := range n.of {
			require.Less(t, int(of), n.names.Len())
			require.GreaterOrEqual(t, of, int32(0))
		}
	})
}
