package data

import (
	"fmt"
	"strings"

	"github.com/gnnstore/gnnstore/store"
)

// OpenToDraw is Open for who draws and does not train: Train has the seeds, which are the training nodes of the split that have a
// label, where there are labels, and without a split all nodes. Features, Labels and the other parts are left out.
func OpenToDraw(ds *store.Dataset, split string) (*Data, error) {
	m := ds.Manifest()
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s: %s", ds.Path(), fmt.Sprintf(format, args...))
	}
	if len(m.NodeTypes) != 1 || len(m.Relations) != 1 {
		return nil, fail("%d node types and %d relations; samplers draw from one of each", len(m.NodeTypes), len(m.Relations))
	}
	d := &Data{Set: ds, Graph: ds.Graph(0), Split: split}
	names, chosen := choose(m.Splits, split)
	switch {
	case d.Graph.Nodes() == 0:
		return nil, fail("no nodes, so nothing to draw")
	case chosen >= 0:
		d.Split = names[chosen]
		var labels *store.Labels
		if len(m.Labels) > 0 {
			labels = ds.Labels(0)
		}
		err := store.Guard(func() (err error) {
			d.Train, err = ds.Labelled(ds.Split(chosen).Train, d.Graph.Nodes(), labels)
			return err
		})
		if err == nil && len(d.Train) == 0 {
			err = fail("split %s has no training node with a label", d.Split)
		}
		if err != nil {
			return nil, err
		}
	case split != "" && len(names) == 0:
		return nil, fail("no split %q; without {split} all nodes are seeds", split)
	case len(names) > 0:
		return nil, fail("no split %q; {split} takes one of: %s", split, strings.Join(names, ", "))
	default:
		d.Train = make([]uint32, d.Graph.Nodes())
		for v := range d.Train {
			d.Train[v] = uint32(v)
		}
	}
	return d, nil
}

// choose finds the split of a name, or the only one where the name is empty; chosen is -1 where there is none.
func choose(splits []store.Split, name string) (names []string, chosen int) {
	chosen = -1
	for i, s := range splits {
		names = append(names, s.Name)
		if s.Name == name || name == "" && len(splits) == 1 {
			chosen = i
		}
	}
	return names, chosen
}
