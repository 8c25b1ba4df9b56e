package table

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
)

// findMasks finds the columns that are called as the masks of a split.
func (t *inferred) findMasks() {
	if !t.form.header {
		return
	}
	var names []string
	for _, c := range t.columns {
		names = append(names, c.name)
	}
	for part, i := range ingest.MaskColumns(names) {
		if i >= 0 {
			t.masks[part] = t.columns[i]
		}
	}
}

// addMasks looks at the masks of a row.
func (t *inferred) addMasks(cells []value) {
	var buf [24]byte
	var in [3]bool
	for part, c := range t.masks {
		if c == nil {
			continue
		}
		var ok bool
		in[part], ok = ingest.MaskOf(textOf(&cells[slices.Index(t.columns, c)], buf[:0]))
		t.noMask[part] = t.noMask[part] || !ok
	}
	for part := range in {
		t.overlap[part] = t.overlap[part] || in[part] && in[(part+1)%3]
	}
}

// settleMasks drops the columns that are called train, valid or test and hold something else than
// zeros and ones, such as counts.
func (t *inferred) settleMasks() {
	for part, c := range t.masks {
		if c != nil && t.noMask[part] && !ingest.IsMaskName(c.name) {
			t.masks[part] = nil
		}
	}
}

// isMask reports whether a column is called as a mask, and not only train, valid or test.
func (t *inferred) isMask(c *guessed) bool {
	return slices.Contains(t.masks[:], c) && ingest.IsMaskName(c.name)
}

// masked reports whether the masks are a split: zeros and ones that no row has twice, of training
// nodes and of others.
func (t *inferred) masked() bool {
	for part, c := range t.masks {
		next := (part + 1) % 3
		if c != nil && (t.noMask[part] || t.masks[next] != nil && t.overlap[part]) {
			return false
		}
	}
	return t.masks[0] != nil && (t.masks[1] != nil || t.masks[2] != nil)
}

// refersTo returns the node type that a column refers to by its name, or "". If the table of that
// type was sampled whole, at least half of the column's values must be ids in it. Some cells may be
// empty.
func (g *guess) refersTo(c *guessed) string {
	name := g.typeCalled(c)
	if name == "" || c.floats+c.lists > 0 || len(c.values) == 0 {
		return ""
	}
	i := slices.IndexFunc(g.nodes, func(n *inferredNodes) bool { return n.name == name })
	if n := g.nodes[i]; n.rows < sampleRows && 2*c.within(n.id) < len(c.values)-len(c.words) {
		return ""
	}
	return name
}

// referByValues has columns that are called otherwise refer to the node type whose ids they hold.
// These are texts, or integers that are far apart; others are equal by chance. Where the table of
// the type was sampled whole, all values must be ids in it. Of a larger table only some ids are
// known: then some values must be among them, and all must look like them. It returns all columns
// of the table that refer to a type.
func (g *guess) referByValues(t *inferred) (refers []*guessed) {
	for _, c := range t.columns {
		if c.refers != "" {
			refers = append(refers, c)
			continue
		}
		if c.floats+c.lists > 0 || len(c.values) == 0 || !c.scattered() {
			continue
		}
		var found []string
		for _, n := range g.nodes {
			common := c.within(n.id)
			whole := n.rows < sampleRows
			switch {
			case n.id == c || common < 3:
			case whole && common < len(c.values)-len(c.words):
			case !whole && !c.looksLike(n.id):
			default:
				found = append(found, n.name)
			}
		}
		if len(found) == 1 {
			c.refers, c.byValues = found[0], true
			refers = append(refers, c)
		}
	}
	return refers
}

// looksLike reports whether each value of c has the shape of a value of another column: the same
// signs and letters between runs of digits.
func (c *guessed) looksLike(other *guessed) bool {
	shapes := map[string]bool{}
	for v := range other.values {
		shapes[shapeOf(v)] = true
	}
	if 10*len(shapes) > len(other.values) {
		return false // words, which have no shape in common
	}
	for v := range c.values {
		if !shapes[shapeOf(v)] {
			return false
		}
	}
	return true
}

// shapeOf returns a text with one 0 in place of each run of digits.
func shapeOf(text string) string {
	var b strings.Builder
	for i, r := range text {
		digit := r >= '0' && r <= '9'
		switch {
		case !digit:
			b.WriteRune(r)
		case i == 0 || text[i-1] < '0' || text[i-1] > '9':
			b.WriteByte('0')
		}
	}
	return b.String()
}

// whyEnds explains why two columns are the ends of edges.
func whyEnds(src, dst *guessed) string {
	if !src.byValues && !dst.byValues {
		return fmt.Sprintf("columns %s and %s are called as the ids of nodes", src.name, dst.name)
	}
	var parts []string
	for _, c := range []*guessed{src, dst} {
		if c.byValues {
			parts = append(parts, fmt.Sprintf("column %s has values that are ids of %s", c.name, c.refers))
		} else {
			parts = append(parts, fmt.Sprintf("column %s is called as the ids of %s", c.name, c.refers))
		}
	}
	return strings.Join(parts, ", and ")
}

// within counts the different values that another column has as well.
func (c *guessed) within(other *guessed) (n int) {
	for v := range c.values {
		if other.values[v] > 0 {
			n++
		}
	}
	return n
}

// roleWords end the names of tables that hold a part of what is known of some nodes.
var roleWords = []string{
	"features", "feature", "feats", "feat", "attributes", "attrs", "labels", "label", "classes", "class", "targets", "target",
	"splits", "split", "masks", "mask", "nodes", "node", "x", "y",
}

// isRole reports whether the last word of a table's name is one of roleWords.
func isRole(stem string) bool {
	return slices.Contains(roleWords, stem[strings.LastIndexAny(stem, "_-")+1:])
}

// scattered reports whether equal ids in two tables mean equal nodes. This holds for texts, and for
// integers that are far apart. Ids that count from 0 are in every table.
func (c *guessed) scattered() bool {
	largest := int64(0)
	for v := range c.values {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return true
		}
		largest = max(largest, n)
	}
	return largest > 4*int64(len(c.values))+100
}

// same reports whether two tables list the same nodes.
func (n *inferredNodes) same(other *inferredNodes) bool {
	both, fewer := n.id.within(other.id), min(len(n.id.values), len(other.id.values))
	if n.id.scattered() {
		return 2*both > fewer
	}
	generic := n.id.is("id", "node_id", "node", "key", "")
	named := !generic && strings.EqualFold(n.id.name, other.id.name)
	return 10*both >= 9*fewer && (named || isRole(n.stem) || isRole(other.stem))
}

// idsOf returns the column of a table that holds a different, scattered id in each row, if most of
// these are ids of another table. It returns nil if there is none.
func (g *guess) idsOf(t *inferred) *guessed {
	if len(g.references(t)) > 1 {
		return nil
	}
	for _, c := range t.columns {
		if !c.unique || c.missing > 0 || c.floats+c.lists > 0 || !c.scattered() {
			continue
		}
		for _, n := range g.nodes {
			if n.passed == nil && 2*c.within(n.id) > min(len(c.values), len(n.id.values)) {
				return c
			}
		}
	}
	return nil
}

// joinTables makes one node type of the tables that list the same nodes: features in one, labels in
// another.
func (g *guess) joinTables() {
	for i := 0; i < len(g.nodes); i++ {
		base := g.nodes[i]
		if base.passed != nil {
			continue
		}
		var stems []string
		for k := i + 1; k < len(g.nodes); k++ {
			other := g.nodes[k]
			if other.passed != nil || !base.same(other) {
				continue
			}
			g.nodes = slices.Delete(g.nodes, k, k+1)
			k--
			if other.numbers() > base.numbers() {
				other.joins, base.joins = base.joins, nil
				base, other = other, base
			}
			base.joins = append(base.joins, other)
			stems = append(stems, other.stem)
		}
		if g.nodes[i] = base; len(stems) > 0 && isRole(base.stem) {
			base.name = g.freeName(base, commonWords(append(stems, base.stem)))
		}
	}
}

// numbers counts the columns that can be features.
func (t *inferred) numbers() (n int) {
	for _, c := range t.columns {
		if c.numeric(t.rows) {
			n++
		}
	}
	return n
}

// freeName is a name that no other type has.
func (g *guess) freeName(n *inferredNodes, name string) string {
	if name = cleanName(singular(name)); name == "unnamed" {
		name = "node"
	}
	if slices.ContainsFunc(g.nodes, func(o *inferredNodes) bool { return o != n && o.name == name }) {
		return n.name
	}
	return name
}

// commonWords are the first words that all names have, parted by _.
func commonWords(stems []string) string {
	words := strings.Split(stems[0], "_")
	for _, stem := range stems[1:] {
		other := strings.Split(stem, "_")
		n := 0
		for n < len(words) && n < len(other) && words[n] == other[n] {
			n++
		}
		words = words[:n]
	}
	return strings.Join(words, "_")
}

// writeJoins writes the tables that have the label or the split of nodes that another lists.
func (n *inferredNodes) writeJoins(b *bytes.Buffer, labelled, parted bool) {
	begun := false
	for _, j := range n.joins {
		var out bytes.Buffer
		label := j.label(nil)
		if label != nil && !labelled {
			fmt.Fprintf(&out, "label: %s # %s\n", quote(label.key()), label.why())
			labelled = true
		} else {
			label = nil
		}
		if !parted {
			if text := j.splitText(); text != "" {
				out.WriteString(text)
				parted = true
			}
		}
		if out.Len() == 0 {
			fmt.Fprintf(b, "    # not used: %s, which names the same nodes and has no other label or split\n", plain(strings.Join(j.files, ", ")))
			continue
		}
		if !begun {
			b.WriteString("    join:\n")
			begun = true
		}
		var entry bytes.Buffer
		j.writeFiles(&entry)
		fmt.Fprintf(&entry, "    id: %s # unique in the first %d rows\n", quote(j.id.key()), j.rows)
		for line := range strings.Lines(out.String()) {
			entry.WriteString("    " + line)
		}
		writeWords(&entry, label)
		var others []string
		for _, c := range j.columns {
			if c != j.id && c != label && c.numeric(j.rows) && !slices.Contains(j.masks[:], c) {
				others = append(others, c.key())
			}
		}
		if len(others) > 0 {
			fmt.Fprintf(&entry, "    # not used: %s; to have them as features, write them into one table with the others\n", plain(strings.Join(others, ", ")))
		}
		text := strings.ReplaceAll(strings.TrimPrefix(entry.String(), "    "), "\n    ", "\n        ")
		b.WriteString("      - " + text)
	}
}

// why is the reason to take a column for the label.
func (c *guessed) why() string {
	if c.is(labelNames...) {
		return "by its name"
	}
	return fmt.Sprintf("perhaps, by its name and %d different values", len(c.values))
}

// writeWords writes the words of columns that may stand for nothing.
func writeWords(b *bytes.Buffer, columns ...*guessed) {
	words := map[string]bool{}
	for _, c := range columns {
		if c != nil {
			for w := range c.words {
				words[w] = true
			}
		}
	}
	if len(words) > 0 {
		fmt.Fprintf(b, "    missing_words: %s # leave them out if they are values\n", quotes(slices.Sorted(maps.Keys(words))))
	}
}

// splitText writes the split of a table: masks, or a column of words. It is empty without one.
func (n *inferredNodes) splitText() string {
	if n.masked() {
		var parts []string
		for part, c := range n.masks {
			if c != nil {
				parts = append(parts, fmt.Sprintf("%s: %s", [3]string{"train", "valid", "test"}[part], quote(c.key())))
			}
		}
		return fmt.Sprintf("masks: {%s} # by their names; no row is in two\n", strings.Join(parts, ", "))
	}
	if c := n.splitColumn(); c != nil {
		return fmt.Sprintf("split: %s # its values are train, valid and test\n", quote(c.key()))
	}
	return ""
}

// splitColumn is the column that is called as a split and has its words; nil without one.
func (t *inferred) splitColumn() *guessed {
	for _, name := range ingest.SplitNames {
		for _, c := range t.columns {
			if ingest.SnakeName(c.name) == name && c.isSplit() {
				return c
			}
		}
	}
	return nil
}
