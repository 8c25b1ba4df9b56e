package edgelist

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/store"
)

// follow takes the columns of edges and events that Like has, for options that name none. A column
// that is missing is then refused as if the user had named it.
func (o *Options) follow() {
	if o.Like == nil || o.Like.Silent {
		return
	}
	if o.Events {
		if of := o.Like.Stream(StreamName); of != nil {
			o.Bipartite = o.Bipartite || of.Src != of.Dst
		}
	} else {
		o.followKept(o.Like.Encodings.Relation(edgeKey))
	}
	if t := o.followed(); t != nil && len(o.EdgeFeatures) == 0 {
		o.EdgeFeatures = o.Like.Columns(t)
	}
}

var edgeKey = ingest.Relation{Src: "node", Name: "to", Dst: "node"}.Key()

// followed is the encoding of edge features in Like; nil if there is none, or its columns have no
// names.
func (o *Options) followed() *store.TableEncoding {
	if o.Like == nil || o.Like.Silent {
		return nil
	}
	table := store.Table{Name: "edge_feat", Relation: edgeKey}
	if o.Events {
		table = store.Table{Name: "feat", Stream: StreamName}
	}
	if t := o.Like.Encodings.Of(&table); t != nil && t.Made == "" && named(t) {
		return t
	}
	return nil
}

// named reports whether all columns of a table are listed by name.
func named(t *store.TableEncoding) bool {
	return t.Named() && t.Columns[0].Kind != store.FoldedColumns // such a column is the only one
}

// followKept takes the columns that edges keep there.
func (o *Options) followKept(of *store.RelationEncoding) {
	if of == nil || o.Weight != "" || len(o.EdgeColumns) > 0 {
		return
	}
	for _, c := range of.Columns {
		switch {
		case c.Name == store.EdgeID || c.From == "": // not a column of the list, or nobody knows which
		case c.Name == "weight" && (c.Elem == store.F32 || c.Elem == 0):
			o.Weight = c.From
		case c.Elem == 0:
			o.EdgeColumns = append(o.EdgeColumns, c.Name+"="+c.From)
		default:
			o.EdgeColumns = append(o.EdgeColumns, fmt.Sprintf("%s=%s:%v", c.Name, c.From, c.Elem))
		}
	}
}

// followLabel returns the column of labels, as Options.Label names it. It returns none if Like has
// no labels, or if the table lacks the column.
func (n *nodeTable) followLabel(t *table, o *Options) (label string, none bool) {
	of, err := o.Like.Label("node", "label")
	if err == nil && of != nil && of.Multi {
		if n.multi.wanted = true; len(of.ClassNames) > 0 {
			n.multi.known = ingest.KnownCategory(of.ClassNames, o.Like.ClassText())
		}
	}
	switch {
	case o.Label != "" || err != nil:
		return o.Label, false
	case of == nil:
		return "", true
	case of.From == "":
		return "", false
	}
	lacks := slices.ContainsFunc(of.ClassNames, func(name string) bool { return !t.named(name) })
	if strings.Join(of.ClassNames, ",") == of.From && len(of.ClassNames) > 1 && !lacks {
		return of.From, false
	}
	if _, err := t.column("", of.From); err != nil || t.header != nil && !slices.Contains(t.header, of.From) {
		n.skipped = append(n.skipped, fmt.Sprintf("%s: it has no column %s, which is the label in %s, so its nodes have no labels",
			n.path, lines.ClipText(of.From), o.Like.Name))
		return "", true
	}
	if of.Numbers {
		return of.From + valueLabel, false
	}
	return of.From, false
}

// followFeatures returns the columns of features that Like has, in its order. It returns false if
// Like does not name them.
func (n *nodeTable) followFeatures(t *table, o *Options) (columns []int, ok bool, err error) {
	if o.Like == nil || o.Like.Silent || o.Features != "" {
		return nil, false, nil
	}
	of := o.Like.Encodings.Of(&store.Table{Name: "feat", NodeType: "node"})
	if of == nil || of.Made != "" {
		if len(o.Columns) > 0 {
			return nil, false, o.Like.Errorf("%s: {feature_columns}: nodes have no columns of features there; leave it out",
				n.path)
		}
		return nil, true, nil
	}
	if !named(of) {
		return nil, false, nil
	}
	taken, all := make([]bool, t.columns), t.names(func(int) bool { return true })
	byName := map[string][]int{} // ascending
	for i, name := range all {
		byName[name] = append(byName[name], i)
	}
	for _, name := range o.Like.Columns(of) {
		found := byName[name]
		if len(found) == 0 {
			return nil, false, o.Like.Errorf("%s: there is no column %s, which is a feature there; there are %s",
				n.path, lines.ClipText(name), lines.List(all))
		}
		at := found[0]
		byName[name] = found[1:]
		if at == n.id || slices.Contains(n.labelColumns(), at) || slices.Contains(n.split.columns(), at) {
			return nil, false, o.Like.Errorf("%s: %s holds ids, labels or a split, and is a feature there; choose others with {id}, {label} and {part}",
				n.path, t.title(at))
		}
		taken[at], columns = true, append(columns, at)
	}
	for _, name := range o.Columns {
		at, err := t.column("{feature_columns}", name)
		if err != nil {
			return nil, false, err
		}
		if !taken[at] {
			return nil, false, o.Like.Errorf("%s: {feature_columns}: %s is no feature there; there are %s; leave {feature_columns} out",
				n.path, t.title(at), lines.List(o.Like.Columns(of)))
		}
		taken[at] = false
	}
	for at, left := range taken {
		if left && len(o.Columns) > 0 {
			return nil, false, o.Like.Errorf("%s: {feature_columns}: it lacks %s, which is a feature there; leave {feature_columns} out",
				n.path, t.title(at))
		}
	}
	return columns, true, nil
}
