package data

import (
	"slices"

	"github.com/gnnstore/gnnstore/store"
)

// OpenToDraw is Open for a caller that draws and does not train. Train has the seeds: the training
// nodes of the split, if there are labels only those with a label; without a split all nodes of the
// target. Labels and the other parts are left out.
func OpenToDraw(ds *store.Dataset, o Options) (*Data, error) {
	d, err := openGraph(ds, o.Relation)
	if err != nil {
		return nil, err
	}
	if len(d.Relations) == 0 {
		return nil, d.fail("no relation, so nothing to draw")
	}
	if len(o.Inputs) > 0 {
		if err := d.FindInputs(o.Inputs, 0); err != nil {
			return nil, err
		}
	} else {
		for i := range d.Types {
			d.Types[i].Features = d.table(i, "")
		}
	}
	if err := d.useEdgeInputs(o.EdgeInputs); err != nil {
		return nil, err
	}
	for _, r := range d.Relations {
		if len(r.Inputs) > 0 {
			return nil, d.fail("{edge_input}: columns of edges come with their lists, and are no rows; give %s=table, or leave it out", r.Relation.Key())
		}
	}
	if err := d.findTarget(o.Target, "so say by {target} of which type the seeds are"); err != nil {
		return nil, err
	}
	m, t := ds.Manifest(), d.Types[d.Target]
	names, chosen := d.choose(o.Split)
	switch {
	case t.Nodes == 0:
		return nil, d.fail("no nodes, so nothing to draw")
	case chosen >= 0:
		d.Split = m.Splits[chosen].Name
		var labels *store.Labels
		if i := slices.IndexFunc(m.Labels, func(l store.Label) bool { return l.NodeType == t.Name }); i >= 0 {
			labels = ds.Labels(i)
		}
		err := store.Guard(func() (err error) {
			d.Train, err = ds.Labelled(ds.Split(chosen).Train, t.Nodes, labels)
			return err
		})
		if err == nil && len(d.Train) == 0 {
			err = d.fail("split %s has no training node with a label", d.Split)
		}
		if err != nil {
			return nil, err
		}
	case o.Split != "" && len(names) == 0:
		return nil, d.fail("no split %q; without {split} all nodes are seeds", o.Split)
	case len(names) > 0:
		return nil, d.fail("no split %q; {split} takes one of: %s", o.Split, some(names))
	default:
		d.Split = o.Split
		d.Train = make([]uint32, t.Nodes)
		for v := range d.Train {
			d.Train[v] = uint32(v)
		}
	}
	return d, nil
}

// choose finds the split of the target that has a name, or the only one where the name is empty;
// chosen is -1 where there is none.
func (d *Data) choose(name string) (names []string, chosen int) {
	chosen = -1
	for i, s := range d.Set.Manifest().Splits {
		if s.NodeType != d.Types[d.Target].Name {
			continue
		}
		names = append(names, s.Name)
		if chosen < 0 || s.Name == name {
			chosen = i
		}
	}
	if name == "" && len(names) > 1 || name != "" && !slices.Contains(names, name) {
		chosen = -1
	}
	return names, chosen
}
