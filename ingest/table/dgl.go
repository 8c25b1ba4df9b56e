package table

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/gnnstore/gnnstore/ingest/lines"
)

// dglMeta is the meta.yaml of DGL's CSVDataset:
// https://www.dgl.ai/dgl_docs/guide/data-loadcsv.html
type dglMeta struct {
	Name      string    `yaml:"dataset_name"`
	Separator string    `yaml:"separator"`
	Nodes     []dglData `yaml:"node_data"`
	Edges     []dglData `yaml:"edge_data"`
	Graphs    any       `yaml:"graph_data"`
}

// dglData is one table of nodes or edges.
type dglData struct {
	File string   `yaml:"file_name"`
	Type string   `yaml:"ntype"`
	Ends []string `yaml:"etype"`
	ID   string   `yaml:"node_id_field"`
	Src  string   `yaml:"src_id_field"`
	Dst  string   `yaml:"dst_id_field"`
}

const dglNode = "_V" // what DGL calls a type of nodes without a name

// dglSchema writes the schema of DGL's CSVDataset: nil where the YAML is none.
func dglSchema(path string, text []byte) ([]byte, error) {
	var top struct {
		Edges yaml.Node `yaml:"edge_data"`
	}
	if yaml.Unmarshal(text, &top) != nil || top.Edges.Kind == 0 {
		return nil, nil
	}
	var m dglMeta
	if err := yaml.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%s: a CSVDataset of DGL, whose keys cannot be read: %s", path, lines.ClipText(err.Error()))
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s: a CSVDataset of DGL: "+format, append([]any{path}, args...)...)
	}
	if m.Graphs != nil {
		return nil, fail("graph_data: several graphs, each with labels of its own, are not read")
	}
	delim := cmp.Or(m.Separator, ",")
	if len(delim) != 1 {
		return nil, fail("separator %q: it is one character", lines.ClipText(delim))
	}
	g := guess{notes: []string{"from " + filepath.Base(path) + ", of DGL's CSVDataset"}}
	dir := filepath.Dir(path)
	open := func(d *dglData) (*inferred, error) {
		if !filepath.IsLocal(d.File) {
			return nil, fail("file_name %q: it leads out of the folder; move the file there", lines.ClipText(d.File))
		}
		if _, err := os.Stat(filepath.Join(dir, d.File)); err != nil {
			return nil, fail("%w", err)
		}
		f := form{header: true, format: CSV}
		if delim != "," {
			f.delim = delim[0]
		}
		t, err := sampleForm(dir, []string{filepath.Join(dir, d.File)}, f)
		if err != nil {
			return nil, err
		}
		if c := t.called("graph_id"); c != nil && len(c.values) > 1 {
			return nil, fail("%s: %d graphs, by column graph_id, and one is read", d.File, len(c.values))
		}
		return t, nil
	}
	typeName := func(name string) string {
		if name = cmp.Or(name, dglNode); name == dglNode {
			return "node"
		}
		return cleanName(name)
	}
	for i := range m.Nodes {
		d := &m.Nodes[i]
		t, err := open(d)
		if err != nil {
			return nil, err
		}
		id := t.called(cmp.Or(d.ID, "node_id"))
		if id == nil {
			return nil, fail("%s: there is no column %s, the ids of nodes; name it with node_id_field", d.File, lines.ClipText(cmp.Or(d.ID, "node_id")))
		}
		g.nodes = append(g.nodes, &inferredNodes{
			inferred: t, name: typeName(d.Type), id: id, chosen: chosen{passed: map[*guessed]bool{t.called("graph_id"): true}},
		})
	}
	for i := range m.Edges {
		d := &m.Edges[i]
		t, err := open(d)
		if err != nil {
			return nil, err
		}
		src, dst := t.called(cmp.Or(d.Src, "src_id")), t.called(cmp.Or(d.Dst, "dst_id"))
		if src == nil || dst == nil {
			return nil, fail("%s: there is no column %s or no column %s, the ends of edges; name them with src_id_field and dst_id_field",
				d.File, lines.ClipText(cmp.Or(d.Src, "src_id")), lines.ClipText(cmp.Or(d.Dst, "dst_id")))
		}
		e := &inferredEdges{
			inferred: t, src: src, dst: dst, from: "node", to: "node", relation: "to", why: "by " + filepath.Base(path),
			chosen: chosen{passed: map[*guessed]bool{t.called("graph_id"): true}},
		}
		switch len(d.Ends) {
		case 0:
		case 3:
			e.from, e.relation, e.to = typeName(d.Ends[0]), cleanName(d.Ends[1]), typeName(d.Ends[2])
		default:
			return nil, fail("etype %q: it has three names, of source, relation and destination", d.Ends)
		}
		g.edges = append(g.edges, e)
	}
	if len(g.edges) == 0 {
		return nil, fail("edge_data lists no tables")
	}
	return g.yaml(cmp.Or(m.Name, filepath.Base(dir))), nil
}

// called returns the column of that name; nil without one.
func (t *inferred) called(name string) *guessed {
	i := slices.IndexFunc(t.columns, func(c *guessed) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return t.columns[i]
}
