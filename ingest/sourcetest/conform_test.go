package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shop is a graph with every kind of section and of ids: users are texts, items numbers, pages
// rows, and tags are gathered.
func shop() *Graph {
	return &Graph{
		Schema: &ingest.Schema{
			Name: "shop", Identity: "shop 1",
			NodeTypes: []ingest.NodeType{
				{Name: "user", IDs: ingest.TextIDs, Count: -1}, {Name: "item", IDs: ingest.IntIDs, Count: 5},
				{Name: "page", Count: 4}, {Name: "tag", IDs: ingest.TextIDs, Gathered: true},
			},
			Relations: []ingest.Relation{
				{Src: "user", Name: "buys", Dst: "item", Edges: 7, Columns: []ingest.EdgeColumn{{Name: "weight", Elem: store.F32}, {Name: "at", Elem: store.I64}}},
				{Src: "page", Name: "links", Dst: "page", Edges: -1}, {Src: "item", Name: "has", Dst: "tag", Edges: 4},
			},
			Tables: []ingest.Table{{Name: "feat", NodeType: "item", Dim: 2}, {Name: "paid", Relation: "user__buys__item", Dim: 1}},
			Labels: []ingest.Label{
				{Name: "stars", NodeType: "item", Classes: 3}, {Name: "topics", NodeType: "page", Classes: 2, Multi: true},
			},
			Splits: []ingest.Split{{Name: "users", NodeType: "user"}, {Name: "pages", NodeType: "page"}},
		},
		NodeIDs: []IDs{{Texts: []string{"ann", "bo", "cy", "dee"}}, {Numbers: []int64{70, 10, 50, -30, 90}}, {}, {}},
		Edges: []Edges{
			{SrcTexts: []string{"ann", "bo", "ann", "dee", "cy", "cy", "bo"}, Dst: []int64{10, 10, 90, 50, 70, -30, 90}, Values: [][]uint64{
				{0x3f800000, 0, 0x40000000, 1, 2, 3, 4}, {1, 2, math.MaxUint64, 4, 5, 6, 7}}},
			{Src: []int64{0, 1, 2, 3, 0}, Dst: []int64{1, 2, 3, 0, 0}},
			{Src: []int64{10, 50, 70, 90}, DstTexts: []string{"new", "old", "new", "red"}},
		},
		Rows:   [][]float32{{1, 2, 3, 4, 0, 0, 7, 8, 9, 10}, {1, 2, 3, 4, 5, 6, 7}},
		Labels: [][]int32{{0, 1, 2, -1, 0}, {0, 1, 1, 1, -1, -1, 0, 0}},
		Splits: []Split{{{Texts: []string{"ann", "cy", "bo", "dee"}}}, {{Numbers: []int64{3}}, {Numbers: []int64{0, 2}}, {Numbers: []int64{1}}}},
	}
}

func whole() *memory {
	return &memory{g: shop(), missing: 1, remarks: []string{"one"}, bad: 1, badErr: errors.New("line 1")}
}

func TestConform(t *testing.T) {
	Conform(t, func() (ingest.Source, error) { return whole(), nil })
}

func TestCollect(t *testing.T) {
	g := Collect(t, whole())
	require.Equal(t, *shop(), g)
	buys := g.Relation("user__buys__item")
	require.Equal(t, []string{"ann>10", "bo>10", "ann>90", "dee>50", "cy>70", "cy>-30", "bo>90"}, buys.Lines())
	require.Equal(t, float32(1), buys.Floats(0)[0])
	require.Nil(t, buys.Floats(2))
	links := g.Relation("page__links__page")
	require.Equal(t, [][2]int64{{0, 1}, {1, 2}, {2, 3}, {3, 0}, {0, 0}}, links.Pairs())
	require.Equal(t, []float32{1, 2, 3, 4, 5, 6, 7}, g.Table("user__buys__item/paid"))
	require.Equal(t, []int32{0, 1, 2, -1, 0}, g.Label("item/stars"))
	require.Equal(t, [3][]int64{{3}, {0, 2}, {1}}, g.Split("pages").Numbers())
	require.Nil(t, g.Table("user/feat"))
	require.Nil(t, g.Label("user/feat"))
	require.Equal(t, Edges{}, g.Relation("none"))
	require.Equal(t, Split{}, g.Split("none"))

	refused := errors.New("no such file")
	_, err := Read(&memory{g: shop(), onSchema: func(context.Context) error { return refused }})
	require.Equal(t, refused, err)
}

// at changes one chunk of a section.
func at(name string, nth int, change func(c *chunk)) func(m *memory) {
	return func(m *memory) {
		m.change = func(s *section, n int, c *chunk) {
			if s.name == name && n == nth {
				change(c)
			}
		}
	}
}

const buys, users = "edges user__buys__item", "ids of user"

// TestForm has a broken source for each rule of form. Read finds it.
func TestForm(t *testing.T) {
	many := make([]int64, 1+ingest.ChunkBytes/8)
	for want, broken := range map[string]func(m *memory){
		"chunk 1: it names no file":                                             at(buys, 1, func(c *chunk) { c.File = "" }),
		"chunk 1: it begins at row 4, and 3 rows came before":                   at(buys, 1, func(c *chunk) { c.First++ }),
		"chunk 0: it begins at row -1":                                          at(users, 0, func(c *chunk) { c.First-- }),
		"5 values are no whole rows of 2":                                       at("rows of item/feat", 0, func(c *chunk) { c.floats = c.floats[:5] }),
		"3 values are no whole rows of 2":                                       at("labels page/topics", 0, func(c *chunk) { c.classes = c.classes[:3] }),
		"it is empty":                                                           at("labels item/stars", 1, func(c *chunk) { c.classes = nil }),
		"3 numbers and 0 texts at end 0, where 0 and 3":                         at(users, 0, func(c *chunk) { c.ids[0], c.texts[0] = []int64{1, 2, 3}, ingest.Texts{} }),
		"2 numbers and 0 texts at end 1, where 3 and 0":                         at(buys, 0, func(c *chunk) { c.ids[1] = c.ids[1][:2] }),
		"3 numbers and 3 texts at end 1":                                        at("edges item__has__tag", 0, func(c *chunk) { c.ids[1] = c.ids[0] }),
		"the ends of its texts are out of order":                                at(buys, 0, func(c *chunk) { c.texts[0].Ends[1] = 99 }),
		"ends of its texts are out of order, or past their bytes;":              at(users, 1, func(c *chunk) { c.texts[0].Bytes = c.texts[0].Bytes[:2] }),
		"it has 1 columns, and the schema 2":                                    at(buys, 2, func(c *chunk) { c.values = c.values[:1] }),
		"column at has 2 values for 3 edges":                                    at(buys, 0, func(c *chunk) { c.values[1] = c.values[1][:2] }),
		"column weight has 0x100000000 at edge 2, which are no bits of f32":     at(buys, 0, func(c *chunk) { c.values[0][2] = 1 << 32 }),
		"131073 rows have 1048584 bytes of numbers and 0 of texts, and 1048576": at("split pages, train", 0, func(c *chunk) { c.ids[0] = many }),
		"5 rows came, and 6 are declared":                                       schema(func(s *ingest.Schema) { s.NodeTypes[1].Count = 6 }),
		"7 rows came, and 8 are declared":                                       schema(func(s *ingest.Schema) { s.Relations[0].Edges = 8 }),
		"3 rows have 0 bytes of numbers and 2097152 of texts": at(users, 0, func(c *chunk) {
			c.texts[0] = texts([]string{string(make([]byte, 1<<20)), string(make([]byte, 1<<20)), ""})
		}),
	} {
		m := whole()
		broken(m)
		_, err := Read(m)
		require.ErrorContains(t, err, want)
		var fault *Fault
		require.ErrorAs(t, err, &fault)
	}

	// One row may be of any size.
	m := whole()
	m.g.Schema.Tables[1].Dim, m.g.Rows[1] = 1<<19, make([]float32, 1<<19)
	require.Len(t, Collect(t, m).Rows[1], 1<<19)
}

// graph changes what there is.
func graph(change func(g *Graph)) func(m *memory) { return func(m *memory) { change(m.g) } }

// schema changes what is said of it.
func schema(change func(s *ingest.Schema)) func(m *memory) {
	return func(m *memory) { change(m.g.Schema) }
}

// TestBroken breaks each promise in turn, and asks only the check of that promise.
func TestBroken(t *testing.T) {
	dir := t.TempDir()
	opened, readings := 0, 0
	stop := make(chan struct{})
	defer close(stop)
	broken := map[string]map[string]func(m *memory){
		"schema is well formed": {
			"no name":                            schema(func(s *ingest.Schema) { s.Name = "" }),
			"two types of a name":                schema(func(s *ingest.Schema) { s.NodeTypes[3].Name = "page" }),
			"rows without a number":              schema(func(s *ingest.Schema) { s.NodeTypes[2].Count = -1 }),
			"two relations of a name":            schema(func(s *ingest.Schema) { s.Relations = append(s.Relations, s.Relations[1]) }),
			"a relation of nothing":              schema(func(s *ingest.Schema) { s.Relations[1].Dst = "site" }),
			"a column of nothing":                schema(func(s *ingest.Schema) { s.Relations[0].Columns[0].Elem = 0 }),
			"a column id":                        schema(func(s *ingest.Schema) { s.Relations[0].Columns[0].Name = "id" }),
			"two columns of a name":              schema(func(s *ingest.Schema) { s.Relations[0].Columns[0].Name = "at" }),
			"a table without columns":            schema(func(s *ingest.Schema) { s.Tables[0].Dim = 0 }),
			"a table of nodes and edges":         schema(func(s *ingest.Schema) { s.Tables[0].Relation = "item__has__tag" }),
			"a table of no edges":                schema(func(s *ingest.Schema) { s.Tables[1].Relation = "buys" }),
			"a table of gathered nodes":          schema(func(s *ingest.Schema) { s.Tables[0].NodeType = "tag" }),
			"labels of gathered nodes":           schema(func(s *ingest.Schema) { s.Labels[0].NodeType = "tag" }),
			"any number of no classes":           schema(func(s *ingest.Schema) { s.Labels[1].Classes = 0 }),
			"names for other classes":            schema(func(s *ingest.Schema) { s.Labels[0].ClassNames = []string{"good"} }),
			"two splits of a name":               schema(func(s *ingest.Schema) { s.Splits[1].Name = "users" }),
			"a split of nothing":                 schema(func(s *ingest.Schema) { s.Splits[1].NodeType = "site" }),
			"features, and a note of their lack": schema(func(s *ingest.Schema) { s.NoFeatures = "none" }),
		},
		"identity is the same for the same input": {
			"another identity": func(m *memory) {
				opened++
				m.g.Schema.Identity = fmt.Sprint(opened)
			},
			"another schema": func(m *memory) {
				opened++
				m.g.Schema.Skipped = []string{fmt.Sprint(opened)}
			},
		},
		"nodes and edges have a row each": {
			"rows":      graph(func(g *Graph) { g.Rows[0] = g.Rows[0][:8] }),
			"edge rows": graph(func(g *Graph) { g.Rows[1] = append(g.Rows[1], 8) }),
			"labels":    graph(func(g *Graph) { g.Labels[1] = g.Labels[1][:6] }),
		},
		"ids are in range": {
			"an id twice":            graph(func(g *Graph) { g.NodeIDs[1].Numbers[0] = 10 }),
			"an empty id":            graph(func(g *Graph) { g.Edges[2].DstTexts[0] = "" }),
			"a long id":              graph(func(g *Graph) { g.Edges[2].DstTexts[0] = string(make([]byte, ingest.MaxIDBytes+1)) }),
			"an unknown source":      graph(func(g *Graph) { g.Edges[0].SrcTexts[0] = "zoe" }),
			"an unknown destination": graph(func(g *Graph) { g.Edges[0].Dst[0] = 11 }),
			"a row too large":        graph(func(g *Graph) { g.Edges[1].Src[0] = 4 }),
			"a negative row":         graph(func(g *Graph) { g.Edges[1].Dst[0] = -1 }),
			"a part of others":       graph(func(g *Graph) { g.Splits[1][ingest.Test].Numbers[0] = 4 }),
			"a node in two parts":    graph(func(g *Graph) { g.Splits[1][ingest.Test].Numbers[0] = 3 }),
		},
		"labels are in range": {
			"a class too many":  graph(func(g *Graph) { g.Labels[0][0] = 3 }),
			"a negative class":  graph(func(g *Graph) { g.Labels[0][0] = -2 }),
			"a two among zeros": graph(func(g *Graph) { g.Labels[1][0] = 2 }),
		},
		"sections can be read again in any order": {
			"the second time, less": func(m *memory) {
				m.change = func(s *section, nth int, c *chunk) {
					if readings++; readings == 40 {
						c.floats, c.classes = nil, nil
						c.ids[0] = append(c.ids[0], 0)
					}
				}
			},
			"a schema that changes": func(m *memory) {
				m.before = func(_ context.Context, s *section) { m.g.Schema.Skipped = append(m.g.Schema.Skipped, s.name) }
			},
		},
		"chunks are lent for the call": {
			"it lends what it keeps": func(m *memory) { m.lends = true },
			"it fills what it has lent": func(m *memory) {
				m.change = func(s *section, _ int, c *chunk) {
					if s.kind == features {
						meanwhile = func() { c.floats[0]++ }
					}
				}
			},
		},
		"emit is called in the reader's goroutine": {
			"in another": func(m *memory) { m.elsewhere = true },
		},
		"an error of emit ends a section": {
			"it goes on": func(m *memory) { m.onError = func(error) error { return nil } },
			"it wraps":   func(m *memory) { m.onError = func(err error) error { return fmt.Errorf("memory: %w", err) } },
			"it takes the error for the end of its file": func(m *memory) {
				m.onError = func(err error) error {
					if err == io.EOF {
						return errEnd
					}
					return err
				}
			},
			"it breaks down": func(m *memory) { m.onError = func(err error) error { m.g.Rows[0][0]++; return err } },
		},
		"a cancelled context ends a section": {
			"it does not look": func(m *memory) { m.deaf = true },
			"it ends well": func(m *memory) {
				m.onError = func(err error) error {
					if errors.Is(err, context.Canceled) {
						return nil
					}
					return err
				}
			},
		},
		"a context that is cancelled at any moment": {
			"half a schema": func(m *memory) {
				m.onSchema = func(ctx context.Context) error {
					m.g.Schema.Skipped = append(m.g.Schema.Skipped, "half")
					return ctx.Err()
				}
			},
			"an error of its own": func(m *memory) {
				m.onSchema = func(ctx context.Context) error {
					if ctx.Err() != nil {
						return errors.New("could not read")
					}
					return nil
				}
			},
			"a chunk all the same": func(m *memory) {
				m.deaf = true
				m.before = func(ctx context.Context, _ *section) { _ = ctx.Err() }
			},
		},
		"nothing is left when a section ends": {
			"a goroutine": func(m *memory) {
				m.before = func(context.Context, *section) {
					go func() { <-stop }()
				}
			},
			"an open file": func(m *memory) {
				m.before = func(context.Context, *section) {
					f, err := os.Create(filepath.Join(dir, "left"))
					require.NoError(t, err)
					m.onClose = func() error { return nil }
					t.Cleanup(func() { f.Close() })
				}
			},
			"a file open after Close": func(m *memory) {
				f, err := os.Create(filepath.Join(dir, "open"))
				require.NoError(t, err)
				t.Cleanup(func() { f.Close() })
			},
		},
		"Close may be called twice": {
			"a file is closed twice": func(m *memory) {
				f, err := os.Create(filepath.Join(dir, "twice"))
				require.NoError(t, err)
				m.onClose = f.Close
			},
		},
		"rows can be had in any order": {
			"other rows": func(m *memory) { m.rowsAt = func(dst []float32) { dst[len(dst)-1]++ } },
		},
		"missing rows are zeros, and counted": {
			"more than there are": func(m *memory) { m.missing = 2 },
			"counted on": func(m *memory) {
				m.missing = 0
				m.before = func(_ context.Context, s *section) {
					if s.kind == features && s.index == 0 {
						m.missing++
					}
				}
			},
		},
		"bad rows and remarks count once": {
			"bad rows": func(m *memory) { m.before = func(context.Context, *section) { m.bad++ } },
			"no error": func(m *memory) { m.badErr = nil },
			"remarks": func(m *memory) {
				m.before = func(_ context.Context, s *section) { m.remarks = append(m.remarks, s.name) }
			},
		},
	}
	for _, p := range promises {
		require.NotEmpty(t, broken[p.name], "no source breaks the promise: %s", p.name)
		for name, breaks := range broken[p.name] {
			t.Run(p.name+"/"+name, func(t *testing.T) {
				defer func(as func()) { meanwhile = as }(meanwhile)
				c, err := newConformance(func() (ingest.Source, error) {
					m := whole()
					breaks(m)
					return m, nil
				})
				if p.name != promises[0].name { // which comes before all reading
					require.NoError(t, err)
					err = p.check(c)
				}
				var fault *Fault
				require.ErrorAs(t, err, &fault)
			})
		}
	}
}
