package data

import "github.com/gnnstore/gnnstore/train/sample"

// Unreached counts, by type, the seeds that the last layer draws no edge to. Seeds are the labelled
// nodes to learn, or all nodes of the types that links and edges to learn join. types are the node
// types; nodes counts the seeds of each. In a part these are the nodes that it owns. It reads
// offsets, inside store.Guard.
func (d *Data) Unreached(reach sample.Reach) (nodes, unreached, types []int) {
	drawn := reach.Relations[len(reach.Relations)-1]
	for _, typ := range d.SeedTypes() {
		degree, of := d.InDegree(typ, drawn), d.Own(typ)
		all, without := 0, 0
		look := func(v uint32) {
			if _, own := of.Row(v); !own {
				return
			}
			all++
			if degree(v) == 0 {
				without++
			}
		}
		if d.Links != nil {
			for v := range uint32(d.Types[typ].Nodes) {
				look(v)
			}
		} else {
			for _, part := range [][]uint32{d.Train, d.Valid, d.Test} {
				for _, v := range part {
					look(v)
				}
			}
		}
		nodes, unreached, types = append(nodes, all), append(unreached, without), append(types, typ)
	}
	return nodes, unreached, types
}
