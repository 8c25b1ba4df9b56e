package store

import "slices"

// Unreached counts the nodes among nodes, all of the given type, that receive no edge of any
// relation. Of a part, it looks at the nodes that the part owns. It reads offsets: call it inside
// [Guard].
func (d *Dataset) Unreached(nodeType string, nodes []NodeID) (n int) {
	var into []*Graph
	for i := range d.manifest.Relations {
		if r := &d.manifest.Relations[i]; r.Dst == nodeType && r.Lists == nil {
			into = append(into, d.Graph(i))
		}
	}
	shared := d.sharedReach(nodeType)
	has := d.manifest.own(nodeType)
	for _, v := range nodes {
		row, own := has.Row(v)
		reaches := func(g *Graph) bool { return g.Degree(row) > 0 }
		if own && (shared == nil || shared[v>>6]&(1<<(v&63)) == 0) && !slices.ContainsFunc(into, reaches) {
			n++
		}
	}
	return n
}

// sharedReach returns a bit for each node of a type, set if it receives an edge of relations that
// share sections; nil without such relations.
func (d *Dataset) sharedReach(nodeType string) (bits []uint64) {
	for i := range d.manifest.Shared {
		s := &d.manifest.Shared[i]
		if s.Dst != nodeType {
			continue
		}
		if bits == nil {
			t, _ := d.NodeType(nodeType)
			bits = make([]uint64, t.Count/64+1)
		}
		for _, v := range cast[NodeID](d.sections[s.Nodes.Path].whole()) {
			if int(v>>6) < len(bits) {
				bits[v>>6] |= 1 << (v & 63)
			}
		}
	}
	return bits
}

// TurnsBack returns the ingest option that would let nodes of a type receive messages along the
// edges that leave them: "undirected" for one relation, "reverse" for several. It returns "" if
// each of these relations has its reverse already.
func (m *Manifest) TurnsBack(nodeType string) string {
	reversed := map[string]bool{}
	for i := range m.Relations {
		reversed[m.Relations[i].ReverseOf] = true
	}
	for i := range m.Relations {
		r := &m.Relations[i]
		switch {
		case r.Src != nodeType || r.Symmetric || r.ReverseOf != "" || reversed[r.Key()]:
		case len(m.Relations) == 1 && r.Dst == nodeType:
			return "undirected"
		default:
			return "reverse"
		}
	}
	return ""
}
