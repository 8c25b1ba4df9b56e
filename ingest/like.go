package ingest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/store"
)

// Like describes the columns, relations and classes of another dataset, so that they have the same
// numbers in a new one. A Source that knows its columns by name takes it as an option; [Follow]
// compares the others with it.
type Like struct {
	Name     string // of the dataset, or of the run that trained on it
	Identity string // equal for equal contents
	// Encodings leave out the columns that ingest computed from edges. Aggregates has their names,
	// by node type.
	Encodings  *store.Encodings
	Aggregates map[string][]string
	// Silent means that the dataset says nothing of its columns. Encodings then has the names of
	// tables and relations, and the number of columns.
	Silent bool
	// Labels are the labels with all their classes. They are not known if LabelsErr is set, which
	// is the reason.
	Labels    []store.LabelEncoding
	LabelsErr error
}

// TakeAggregates moves the columns that ingest computed from edges to Aggregates.
func (l *Like) TakeAggregates() {
	e := *l.Encodings
	e.Tables, l.Aggregates = slices.Clone(e.Tables), map[string][]string{}
	for i := range e.Tables {
		t := &e.Tables[i]
		of := t.Columns
		t.Columns = slices.DeleteFunc(slices.Clone(of), func(c store.Encoding) bool { return c.Aggregate != "" })
		for _, c := range of {
			if c.Aggregate != "" {
				l.Aggregates[t.NodeType] = append(l.Aggregates[t.NodeType], c.Name)
			}
		}
	}
	l.Encodings = &e
}

// Label returns the label of a node type that has this name, or else its only one. It returns nil
// if there is none.
func (l *Like) Label(nodeType, name string) (*store.LabelEncoding, error) {
	if l.LabelsErr != nil {
		return nil, l.LabelsErr
	}
	var only *store.LabelEncoding
	for i := range l.Labels {
		switch of := &l.Labels[i]; {
		case of.NodeType != nodeType:
		case of.Name == name:
			return of, nil
		case only != nil:
			return nil, nil
		default:
			only = of
		}
	}
	return only, nil
}

// ClassText names the classes of the dataset in messages about other values.
func (l *Like) ClassText() string { return "the classes of " + l.Name }

// Stream returns the description of a stream, or nil if there is none.
func (l *Like) Stream(name string) *store.StreamEncoding {
	for i := range l.Encodings.Streams {
		if s := &l.Encodings.Streams[i]; s.Stream == name {
			return s
		}
	}
	return nil
}

// Relations returns the relations that the dataset's source had, in their order. It leaves out
// those that ingest made as reverses of others.
func (l *Like) Relations() (all []*store.RelationEncoding) {
	for i := range l.Encodings.Relations {
		if r := &l.Encodings.Relations[i]; !l.reversed(r) {
			all = append(all, r)
		}
	}
	return all
}

// NamedRelation is a relation by its names: in the dataset, and in the source.
type NamedRelation struct{ Key, Name, Text string }

// Between returns the relations from a node type to another that the dataset's source had.
func (l *Like) Between(src, dst string) (all []NamedRelation) {
	for _, r := range l.Relations() {
		if from, name, to, ok := splitKey(r.Relation); ok && from == src && to == dst {
			all = append(all, NamedRelation{r.Relation, name, cmp.Or(r.From, name)})
		}
	}
	return all
}

// Reversed reports whether ingest made relations by turning others round.
func (l *Like) Reversed() bool {
	return slices.ContainsFunc(l.Encodings.Relations, func(r store.RelationEncoding) bool { return l.reversed(&r) })
}

// reversed reports whether ingest made r by turning another relation round. Datasets of earlier
// builds do not say so, but the name tells.
func (l *Like) reversed(r *store.RelationEncoding) bool {
	if r.ReverseOf != "" {
		return true
	}
	src, name, dst, _ := splitKey(r.Relation)
	base, made := strings.CutPrefix(name, "rev_")
	return made && l.Encodings.Relation(Relation{Src: dst, Name: base, Dst: src}.Key()) != nil
}

// splitKey takes the Key of a relation apart.
func splitKey(key string) (src, name, dst string, ok bool) {
	parts := strings.Split(key, "__")
	if len(parts) != 3 {
		return "", "", "", false
	}
	return parts[0], parts[1], parts[2], true
}

// Columns returns the names of the columns of a table, in their order.
func (l *Like) Columns(t *store.TableEncoding) (names []string) {
	for i := range t.Columns {
		names = append(names, t.Columns[i].Name)
	}
	return names
}

// Errorf returns an error that names the dataset.
func (l *Like) Errorf(format string, args ...any) error {
	return fmt.Errorf("{like} %s: %w", l.Name, fmt.Errorf(format, args...))
}
