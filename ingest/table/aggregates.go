package table

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// aggregateKeys ask for columns that ingest computes from the edges of nodes.
var aggregateKeys = []string{"counts", "sums", "means"}

// aggregate is one that the schema names.
type aggregate struct {
	word
	key string // of aggregateKeys
}

// text is the form that ingest.NodeType's Aggregates have.
func (a aggregate) text() string { return strings.TrimSuffix(a.key, "s") + ":" + a.word.text }

// aggregates reads counts, sums and means.
func (d *document) aggregates(o *object, e *nodes) {
	for _, key := range aggregateKeys {
		if n := o.keys[key]; key == "counts" && n != nil && n.Kind == yaml.ScalarNode {
			switch n.Value {
			case "all":
				e.aggregates = append(e.aggregates, aggregate{word{"*", n.Line}, key})
				continue
			case "none":
				continue
			}
		}
		for _, w := range o.words(key) {
			e.aggregates = append(e.aggregates, aggregate{w, key})
		}
	}
}

// checkAggregates refuses relations and columns that the schema does not have.
func (s *schema) checkAggregates(d *document) {
	for _, n := range s.nodes {
		for _, a := range n.aggregates {
			of, column, dotted := strings.Cut(a.word.text, ".")
			of, direction, directed := strings.Cut(of, ":")
			if dotted && !directed {
				column, direction, directed = strings.Cut(column, ":")
			}
			if dotted != (a.key != "counts") || directed && direction != "in" && direction != "out" {
				form := "RELATION, as in buys, or buys:in or buys:out for one direction; or all or none"
				if a.key != "counts" {
					form = "RELATION.COLUMN, as in buys.weight, with a column of the edges"
				}
				d.errorf(a.line, "%s %q: write %s", a.key, a.word.text, form)
				continue
			}
			s.checkAggregate(d, n, a, of, column)
		}
	}
}

// checkAggregate refuses a relation that does not touch the type, and a column that the relation
// does not have.
func (s *schema) checkAggregate(d *document, n *nodes, a aggregate, of, column string) {
	var there []string
	for _, e := range s.edges {
		switch {
		case e.src != n.name && e.dst != n.name:
			continue
		case e.by.set():
			return // relations are named by values
		}
		there = append(there, e.relation)
		if of != "*" && of != e.relation && of != e.src+"__"+e.relation+"__"+e.dst {
			continue
		}
		if column != "" && !slices.ContainsFunc(e.columns, func(c edgeColumn) bool { return c.name == column }) {
			var columns []string
			for _, c := range e.columns {
				columns = append(columns, c.name)
			}
			d.errorf(a.line, "%s %s: edges of relation %s have no column %s%s", a.key, a.word.text, e.relation, column,
				someOr(columns, "; there are ", "; list it there under columns, or as weight"))
		}
		return
	}
	if of != "*" {
		d.errorf(a.line, "%s %s: no relation %s begins or ends at node type %s%s", a.key, a.word.text, of, n.name,
			someOr(there, "; there are ", "; leave it out"))
	}
}

// someOr lists names behind a text, or returns none where there are no names.
func someOr(names []string, before, none string) string {
	if len(names) == 0 {
		return none
	}
	return before + strings.Join(names, ", ")
}
