package store

import "slices"

// Unreached counts the nodes among nodes, all of the given type, that receive no edge of any
// relation. Of a part, it looks at the nodes that the part owns. It reads offsets: call it inside
// [Guard].
func (d *Dataset) Unreached(nodeType string, nodes []NodeID) (n int) {
	var into []*Graph
	for i := range d.manifest.Relations {
		if d.manifest.Relations[i].Dst == nodeType {
			into = append(into, d.Graph(i))
		}
	}
	has := d.manifest.own(nodeType)
	for _, v := range nodes {
		row, own := has.Row(v)
		if own && !slices.ContainsFunc(into, func(g *Graph) bool { return g.Degree(row) > 0 }) {
			n++
		}
	}
	return n
}

// TurnsBack returns the ingest option that would let nodes of a type receive messages along the
// edges that leave them: "undirected" for one relation, "reverse" for several. It returns "" if
// each of these relations has its reverse already.
func (m *Manifest) TurnsBack(nodeType string) string {
	for i := range m.Relations {
		r := &m.Relations[i]
		turned := r.Symmetric || r.ReverseOf != "" || slices.ContainsFunc(m.Relations, func(o Relation) bool { return o.ReverseOf == r.Key() })
		switch {
		case r.Src != nodeType || turned:
		case len(m.Relations) == 1 && r.Dst == nodeType:
			return "undirected"
		default:
			return "reverse"
		}
	}
	return ""
}
