package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// inspectedReach has the node types that training on Target can read. Messages go along the
// relations, so reach is backwards from the target.
type inspectedReach struct {
	Target string             `json:"target"`
	Types  []inspectedReached `json:"types"`
}

type inspectedReached struct {
	Name   string `json:"name"`
	Layers *int   `json:"reached_at_layers"` // the fewest that reach it: 0 for the target, null if no number of layers does
	// WithReverse is Layers with the reverse of every relation added, for a type that is reached
	// only then.
	WithReverse *int   `json:"reached_at_layers_with_reverse,omitempty"`
	Why         string `json:"not_reached_because,omitempty"`
}

// inspectReach returns the reach of every type that training can take as its target. It returns
// nothing for a graph of one type, which has nothing else to reach.
func inspectReach(m *store.Manifest) (all []inspectedReach) {
	if len(m.NodeTypes) < 2 {
		return nil
	}
	var schema sample.Schema
	for _, t := range m.NodeTypes {
		schema.Types = append(schema.Types, int(t.Count))
	}
	number := func(name string) int {
		return slices.IndexFunc(m.NodeTypes, func(t store.NodeType) bool { return t.Name == name })
	}
	for _, r := range m.Relations {
		schema.Relations = append(schema.Relations, sample.Relation{Src: number(r.Src), Dst: number(r.Dst)})
	}
	reversed := sample.Schema{Types: schema.Types, Relations: slices.Clone(schema.Relations)}
	for _, r := range schema.Relations {
		reversed.Relations = append(reversed.Relations, sample.Relation{Src: r.Dst, Dst: r.Src})
	}
	for target, t := range m.NodeTypes {
		if !slices.ContainsFunc(m.Labels, func(l store.Label) bool { return l.NodeType == t.Name }) ||
			!slices.ContainsFunc(m.Splits, func(s store.Split) bool { return s.NodeType == t.Name }) {
			continue
		}
		layers, withReverse := layersToReach(schema, target), layersToReach(reversed, target)
		reach := inspectedReach{Target: t.Name}
		for i, other := range m.NodeTypes {
			row := inspectedReached{Name: other.Name, Layers: layers[i]}
			switch {
			case layers[i] != nil:
			case withReverse[i] != nil:
				row.WithReverse, row.Why = withReverse[i], "no relation leads from it to a type that is reached"
			default:
				row.Why = fmt.Sprintf("no relations join it to %s, in either direction", t.Name)
			}
			reach.Types = append(reach.Types, row)
		}
		all = append(all, reach)
	}
	return all
}

// layersToReach is, for each type, the fewest layers of a network for the target that read its
// nodes; nil where it is not reached. It asks training's own rule, with as many layers as the
// longest path can have relations.
func layersToReach(s sample.Schema, target int) []*int {
	draws := sample.Config{}
	for range len(s.Types) - 1 {
		draws.Fanouts = append(draws.Fanouts, sample.All)
	}
	reach := draws.Reach(s, target)
	fewest := make([]*int, len(s.Types))
	for layers := range reach.Types {
		for t, read := range reach.Types[len(reach.Types)-1-layers] {
			if read && fewest[t] == nil {
				fewest[t] = &layers
			}
		}
	}
	return fewest
}

func printReach(w io.Writer, all []inspectedReach) {
	for _, reach := range all {
		for _, t := range reach.Types {
			if t.Name == reach.Target {
				continue
			}
			printf(w, "%-10s on %s ", "training", reach.Target)
			switch {
			case t.Layers != nil:
				printf(w, "reaches %s with %s or more\n", t.Name, layerCount(*t.Layers))
			case t.WithReverse != nil:
				printf(w, "does not reach %s: %s; ingested with --reverse, it is reached with %s or more\n", t.Name, t.Why, layerCount(*t.WithReverse))
			default:
				printf(w, "does not reach %s: %s\n", t.Name, t.Why)
			}
		}
	}
}

func layerCount(n int) string {
	if n == 1 {
		return "1 layer"
	}
	return fmt.Sprintf("%d layers", n)
}
