package data

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/store"
)

// Links are the links of a relation: its edges, which are trained on, and the edges that its edge
// split holds out.
type Links struct {
	Relation    int // by number in Data.Relations
	Mirror      int // the relation that has the same edges the other way round; -1: there is none
	Valid, Test store.HeldEdges
	// All has the links that are learnt together, ascending by number of their relation. They are
	// the links of Relation alone, or of several relations within one type; Relation is then the
	// first.
	All []LinksOf
}

// LinksOf is the links of one relation.
type LinksOf struct {
	Relation    int
	Valid, Test store.HeldEdges
}

// Held returns the number of links to validate with, and to test with.
func (l *Links) Held() (valid, test int) {
	for _, r := range l.All {
		valid, test = valid+r.Valid.Len(), test+r.Test.Len()
	}
	return valid, test
}

// Validates reports whether the split has a validation part to choose a model by.
func (d *Data) Validates() bool {
	if d.Links == nil {
		return len(d.Valid) > 0
	}
	valid, _ := d.Links.Held()
	return valid > 0
}

// openLinks finds the relation whose links are learnt: the one of that name, as SRC,REL,DST, by its
// name or by its key; or the only one that has an edge split. If uses is set, no relation need be
// split. With together, and without a name, the links of all relations are learnt, if they are
// within one type.
func (d *Data) openLinks(name string, uses, together bool) error {
	var can []string // relations with a split
	chosen := -1
	for i, r := range d.Relations {
		triple := strings.Join([]string{r.Relation.Src, r.Relation.Name, r.Relation.Dst}, ",")
		split := r.Relation.EdgeSplit != nil
		if split {
			can = append(can, triple)
		}
		switch asked := name == triple || name == r.Relation.Key() || name == r.Relation.Name; {
		case asked && chosen >= 0:
			return d.fail("{target} %s: there are several; give one as SRC,REL,DST", name)
		case asked || name == "" && split:
			chosen = i
		}
	}
	switch {
	case name != "" && chosen < 0:
		return d.fail("{target} %s: no such relation; those whose edges are split are %s", name, someOf(can, " and "))
	case len(can) == 0 && !uses:
		return d.fail("no relation has an edge split, so {task} link has no links to measure by; ingest it again with {edge_split} random:0.85/0.05/0.1")
	case name == "" && together && (len(can) > 1 || uses && len(d.Relations) > 1): // a run of one relation names it
		if first, err := d.oneType(); err != nil {
			return err
		} else if chosen = first; len(d.Links.All) > 1 {
			return nil
		}
	case name == "" && len(can) > 1:
		return d.fail("with {layers} above 0 a run learns the links of one relation, and the edges of %s are split; choose one by {target}, or learn all by {layers} 0", someOf(can, " and "))
	case chosen < 0:
		return d.fail("no relation has an edge split; say by {target} which of them it is")
	}
	r := &d.Relations[chosen]
	switch {
	case r.Relation.EdgeSplit == nil && uses:
	case r.Relation.EdgeSplit == nil && r.Relation.ReverseOf != "":
		return d.fail("{target} %s: it is the reverse of %s, which has the edge split; take that one", name, r.Relation.ReverseOf)
	case r.Relation.EdgeSplit == nil:
		return d.fail("{target} %s: its edges are not split; those of %s are", name, someOf(can, " and "))
	case d.AllEdges(chosen) == 0:
		return d.fail("relation %s has no edges to train on: all of them are held out", r.Relation.Key())
	}
	if err := d.checkBlocks(r); err != nil {
		return err
	}
	d.Target = r.Dst
	d.Links = &Links{Relation: chosen, Mirror: -1, Valid: store.HeldEdges{Part: new(store.HeldOut)}, Test: store.HeldEdges{Part: new(store.HeldOut)}}
	if r.Relation.EdgeSplit != nil {
		d.Split = r.Relation.EdgeSplit.Name
		d.Links.Valid, _ = d.Set.HeldEdges(r.number, store.HeldValid)
		d.Links.Test, _ = d.Set.HeldEdges(r.number, store.HeldTest)
	}
	d.Links.All = []LinksOf{{chosen, d.Links.Valid, d.Links.Test}}
	for i, o := range d.Relations {
		if o.Relation.ReverseOf == r.Relation.Key() {
			d.Links.Mirror = i
		}
	}
	return nil
}

// oneType finds all relations that are no other's reverse: their links are learnt together. It
// returns the first of them.
func (d *Data) oneType() (first int, err error) {
	l := &Links{Mirror: -1}
	edges := int64(0)
	for i, r := range d.Relations {
		if r.Relation.ReverseOf != "" {
			continue
		}
		if len(l.All) > 0 && (r.Src != d.Relations[l.All[0].Relation].Src || r.Dst != r.Src) || r.Src != r.Dst {
			return 0, d.fail("the links of several relations are learnt together where they are within one type of nodes, and %s joins %s and %s; "+
				"say by {target} which of them to learn", r.Relation.Key(), r.Relation.Src, r.Relation.Dst)
		}
		of := LinksOf{i, store.HeldEdges{Part: new(store.HeldOut)}, store.HeldEdges{Part: new(store.HeldOut)}}
		if r.Relation.EdgeSplit != nil {
			of.Valid, _ = d.Set.HeldEdges(r.number, store.HeldValid)
			of.Test, _ = d.Set.HeldEdges(r.number, store.HeldTest)
			d.Split = r.Relation.EdgeSplit.Name
		}
		if err := d.checkBlocks(&r); err != nil {
			return 0, err
		}
		l.All, edges = append(l.All, of), edges+d.AllEdges(i)
	}
	if edges == 0 {
		return 0, d.fail("no relation has edges to train on: all of them are held out")
	}
	l.Relation = l.All[0].Relation
	l.Valid, l.Test = l.All[0].Valid, l.All[0].Test
	d.Links, d.Target = l, d.Relations[l.Relation].Dst
	return l.Relation, nil
}

// checkBlocks refuses a part whose edges cannot be found by their number.
func (d *Data) checkBlocks(r *Relation) error {
	if d.OwnPart() != nil && r.Relation.Blocks == nil {
		return d.fail("relation %s has no blocks, by which its edges are found: an earlier build made this part; "+
			"run gnnstore partition again", r.Relation.Key())
	}
	return nil
}

// some lists names for an error.
func some(names []string) string { return someOf(names, ", ") }

// someOf lists the first few names, since a dataset may have thousands.
func someOf(names []string, between string) string {
	const most = 8
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], between), len(names)-most)
	}
	return strings.Join(names, between)
}

// SeedTypes returns the types of seeds, ascending.
func (d *Data) SeedTypes() []int {
	if d.Links == nil {
		return []int{d.Target}
	}
	r := d.Relations[d.Links.Relation]
	return slices.Compact([]int{min(r.Src, r.Dst), max(r.Src, r.Dst)})
}
