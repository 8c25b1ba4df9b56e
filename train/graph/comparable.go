package graph

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/run"
)

// trainedOn describes the dataset that a run trained on. The run keeps it as JSON, so that its
// network can be used on another dataset when this one is gone.
type trainedOn struct {
	Manifest *store.Manifest `json:"manifest"`
	// Label is the type of nodes whose label is learnt; empty if links or edges are learnt.
	Label  string            `json:"label,omitempty"`
	Edges  *data.EdgeLabel   `json:"edge_label,omitempty"` // nil unless a label of edges is learnt
	Inputs map[string]string `json:"inputs"`               // of the types, as in data.Options.Inputs
	Learns bool              `json:"learns,omitempty"`     // some types have learnt rows
	// Links are the relations that a decoder knows by their places.
	Links []string `json:"links,omitempty"`

	label *store.Label               // of Label's nodes
	rows  map[string]*store.Features // learnt rows by type, for the nodes of the dataset at hand
}

// newTrainedOn describes d.
func newTrainedOn(d *data.Data) *trainedOn {
	known := &trainedOn{Manifest: d.Set.Manifest(), Inputs: map[string]string{}, Learns: d.Learns()}
	for i := range d.Types {
		known.Inputs[d.Types[i].Name] = d.Types[i].Input()
	}
	if d.Links != nil {
		for _, l := range d.Links.All {
			known.Links = append(known.Links, d.Relations[l.Relation].Relation.Key())
		}
	}
	if d.Labels != nil {
		known.Label, known.label = d.Labels.Label.NodeType, d.Labels.Label
	}
	if d.EdgeLabel != nil {
		known.Edges = d.EdgeLabel.Elsewhere()
	}
	return known
}

// readTrainedOn returns the description that a run keeps of its dataset. A run of an earlier build
// keeps none: then the dataset itself is read, which must be in its place. ds is the other dataset,
// for messages.
func readTrainedOn(dir *run.Dir, ds *store.Dataset) (*trainedOn, error) {
	record := dir.Record()
	text, err := dir.TrainedOn()
	if err != nil {
		return nil, err
	}
	if text == nil {
		own, err := store.OpenOne(record.Dataset)
		if err != nil {
			return nil, fmt.Errorf("%s is not the dataset that it trained on, and cannot be compared with that one: %w", ds.Path(), err)
		}
		defer own.Close()
		if err := sameSeal(record, own); err != nil {
			return nil, err
		}
		d, err := data.Open(own, dataOptions(record.Options.WithDefaults()))
		if err != nil {
			return nil, err
		}
		return newTrainedOn(d), nil
	}
	known, err := decodeTrainedOn(text, record)
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w; copy it again from the run", dir.File(run.TrainedOnFile), err)
	}
	return known, nil
}

// sameSeal refuses a dataset that has taken the place of the one that a run trained on.
func sameSeal(record *run.Record, ds *store.Dataset) error {
	if seal := ds.Manifest().Whole(); seal != record.Seal {
		return fmt.Errorf("it trained on a dataset with seal %s, and %s has %s by now; give the place of the former as DATASET", record.Seal, ds.Path(), seal)
	}
	return nil
}

// decodeTrainedOn decodes the description that the run of a record keeps of its dataset.
func decodeTrainedOn(text []byte, record *run.Record) (*trainedOn, error) {
	var parts struct {
		Manifest json.RawMessage `json:"manifest"`
	}
	if err := json.Unmarshal(text, &parts); err != nil {
		return nil, err
	}
	m, err := store.DecodeManifest(parts.Manifest)
	if err != nil {
		return nil, err
	}
	known := new(trainedOn)
	if err := json.Unmarshal(text, known); err != nil {
		return nil, err
	}
	if known.Manifest = m; m.Whole() != record.Seal {
		return nil, fmt.Errorf("it is of a dataset with seal %s, and the run trained on one with %s", m.Whole(), record.Seal)
	}
	switch o := &record.Options; {
	case o.Edges() != (known.Edges != nil) || !o.Edges() && !o.Links() && known.Label == "":
		return nil, errors.New("it does not say what the run learnt")
	case o.Edges() || o.Links():
		return known, nil
	}
	i := slices.IndexFunc(m.Labels, func(l store.Label) bool { return l.NodeType == known.Label })
	if i < 0 {
		return nil, fmt.Errorf("type %q has no label", known.Label)
	}
	known.label = &m.Labels[i]
	return known, nil
}

// comparable returns an error if the network of a run cannot be used on ds, a dataset that it was
// not trained on. ds may have other nodes and edges, but must have the same types, relations,
// widths and classes, under the same names. Labels are not compared if ds has none, or if the run
// learns links or edges.
func comparable(dir *run.Dir, ds *store.Dataset, note func(format string, args ...any)) (_ *trainedOn, err error) {
	record := dir.Record()
	if run.Absolute(ds.Path()) == record.Dataset { // nobody asked for another dataset
		if err := sameSeal(record, ds); err != nil {
			return nil, err
		}
	}
	known, err := readTrainedOn(dir, ds)
	if err != nil {
		return nil, err
	}
	trained, other := known.Manifest, ds.Manifest()
	if differs := differ(trained, other, record.Options); differs != "" {
		here, err := ds.Encodings()
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("it trained on %s, and %s %s%s", record.Dataset, ds.Path(), differs, dir.Remedy(here))
	}
	// Rows that are made of the edges or the numbers of one graph mean nothing in another.
	for _, m := range []*store.Manifest{trained, other} {
		if made := m.Provenance.Options["features"]; strings.HasPrefix(made, "fastrp") || strings.HasPrefix(made, "random") {
			return nil, fmt.Errorf("features that were made by %s are of one graph alone: it predicts on %s, and not on %s", made, record.Dataset, ds.Path())
		}
	}
	reads := func(t *store.Table) bool {
		return t.NodeType != "" || t.Relation != "" && readsTable(other, t.Relation, record.Options.EdgeInputs)
	}
	if err := dir.CheckColumns(ds, reads, note); err != nil {
		return nil, err
	}
	at := -1
	for _, key := range known.Links {
		i := slices.IndexFunc(other.Relations, func(r store.Relation) bool { return r.Key() == key })
		if i < at {
			return nil, fmt.Errorf("it trained on %s, and %s has its relations in another order: %s comes too early; ingest them in the same one",
				record.Dataset, ds.Path(), key)
		}
		at = i
	}
	return known, nil
}

// complete sets o for a dataset that the network was not trained on. known is nil, and o stays as
// it is, if the network was trained on this one.
func (known *trainedOn) complete(o *data.Options) {
	if known != nil {
		o.Uses, o.Label, o.LabelOfEdges, o.Learnt = true, known.label, known.Edges, known.rows
	}
}

// used reports whether the network was trained on another dataset.
func (c *core) used() bool { return c.internal.known != nil }

// differ returns the first thing that only one of the two datasets has, or classes with other
// names, in words that follow the name of other, as in "has no relation ...". It returns "" if
// there is none.
func differ(trained, other *store.Manifest, o run.Options) string {
	types := func(m *store.Manifest) (names []string) {
		for _, t := range m.NodeTypes {
			names = append(names, "node type "+t.Name)
		}
		return names
	}
	relations := func(m *store.Manifest) (names []string) {
		for i := range m.Relations {
			names = append(names, "relation "+m.Relations[i].Key())
		}
		return names
	}
	tables := func(m *store.Manifest) (names []string) {
		for _, t := range m.Tables {
			if t.NodeType != "" {
				names = append(names, fmt.Sprintf("table %s of type %s with %d columns", t.Name, t.NodeType, t.Dim))
			} else if readsTable(m, t.Relation, o.EdgeInputs) {
				names = append(names, fmt.Sprintf("table %s of relation %s with %d columns", t.Name, t.Relation, t.Dim))
			}
		}
		return names
	}
	labels := func(m *store.Manifest) (names []string) {
		for _, l := range m.Labels {
			text := fmt.Sprintf("label of type %s with %d classes", l.NodeType, l.Classes)
			if l.Numbers {
				text = fmt.Sprintf("label of type %s that is a number", l.NodeType)
			}
			if l.Multi {
				text += ", several a node"
			}
			names = append(names, text)
		}
		return names
	}
	compared := []func(*store.Manifest) []string{types, relations, tables}
	labelled := len(other.Labels) > 0 && !o.Links() && !o.Edges()
	if labelled {
		compared = append(compared, labels)
	}
	for _, of := range compared {
		was, is := of(trained), of(other)
		for _, name := range was {
			if !slices.Contains(is, name) {
				return "has no " + name
			}
		}
		for _, name := range is {
			if !slices.Contains(was, name) {
				return "has a " + name + " besides"
			}
		}
	}
	if labelled {
		return otherClass(trained.Labels, other.Labels)
	}
	return ""
}

// otherClass names the first class that has another name in the second dataset than in the first.
// It returns "" if there is none. Both have labels of the same types, with as many classes.
func otherClass(trained, other []store.Label) string {
	for i := range trained {
		was := &trained[i]
		of := func(l store.Label) bool { return l.NodeType == was.NodeType }
		if slices.ContainsFunc(other, func(l store.Label) bool { return of(l) && slices.Equal(l.ClassNames, was.ClassNames) }) {
			continue
		}
		is := &other[slices.IndexFunc(other, of)]
		for class := range max(len(was.ClassNames), len(is.ClassNames)) {
			if a, b := named(was, class), named(is, class); a != b {
				return fmt.Sprintf("has class %d of type %s %s, not %s", class, was.NodeType, b, a)
			}
		}
	}
	return ""
}

// named returns the name of a class of l, in the words of a message.
func named(l *store.Label, class int) string {
	if class >= len(l.ClassNames) {
		return "without a name"
	}
	return fmt.Sprintf("named %q", l.ClassNames[class])
}

// readsTable reports whether edges read the table of relation key: its own edges, or the edges
// of its reverse.
func readsTable(m *store.Manifest, key string, inputs map[string][]string) bool {
	for i := range m.Relations {
		r := &m.Relations[i]
		if r.Key() != key && r.ReverseOf != key {
			continue
		}
		for _, input := range slices.Concat(inputs[r.Name], inputs[r.Key()]) {
			if word, _, _ := strings.Cut(input, ":"); word == data.Table {
				return true
			}
		}
	}
	return false
}
