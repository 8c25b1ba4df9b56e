package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/zeebo/xxh3"
	"go.yaml.in/yaml/v4"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// joined holds the label or the split of nodes, read from other files. A row of these files names a
// node by its id, and rows are in any order. joined is in memory while the source is open.
type joined struct {
	nodes
	memory int64 // most bytes of rows
	rows   []joinedRow
	read   bool // some reading has marked the rows that it found
}

// joinedRow holds the label and the part of one node: 32 bytes.
type joinedRow struct {
	key   [2]uint64 // an integer, or a text's hash of 128 bits
	class int32
	part  int8
	found bool
}

const joinedBytes = 32

var joinKeys = []string{
	"files", "format", "delimiter", "header", "decimal", "thousands", "encoding",
	"id", "label", "value", "split", "masks", "missing_words", "where",
}

// joins reads the entries of join, whose labels and splits become the labels and splits of n.
func (d *document) joins(o *object, n *nodes) {
	o.list("join", func(item *yaml.Node) {
		jo := d.object(item, "an entry of join", joinKeys...)
		j := &joined{nodes: nodes{entry: d.entry(jo), name: n.name}}
		if j.id = jo.column("id"); !j.id.set() {
			j.id = column{jo.need("id", "the column of the ids that name the nodes"), "id"}
		}
		if !jo.has("files") {
			d.errorf(jo.line, "an entry of join needs files: tables that name nodes by their ids")
		}
		d.learnt(jo, &j.nodes)
		if j.splitFiles != [3]*entry{} {
			d.errorf(jo.line, "split in join: name a column; lists of nodes stand in split of the node type itself")
		}
		if !j.label.set() && !j.value.set() && !j.hasSplit {
			d.errorf(jo.line, "an entry of join gives nodes a label, a value, a split or masks; name its column")
		}
		if j.label.set() || j.value.set() {
			if n.label.set() || n.value.set() {
				d.errorf(jo.line, "node type %s has two labels; name one of them", n.name)
			}
			n.label, n.value, n.labelFrom = j.label, j.value, j
		}
		if j.hasSplit {
			if n.hasSplit {
				d.errorf(jo.line, "node type %s has two splits; name one of them", n.name)
			}
			n.hasSplit, n.splitFrom = true, j
		}
		n.joins = append(n.joins, j)
	})
}

// settleJoins reads the files that are joined; what ids are is known by now.
func (n *nodes) settleJoins(ctx context.Context, forgive forgiver) error {
	for _, j := range n.joins {
		if j.ids = n.ids; j.ids == rowIDs {
			j.ids = intIDs
		}
		if n.labelFrom == j && n.label.set() {
			j.classes = n.newClasses()
			if err := j.reader(true, j.tables).each(ctx, forgive, func(string) error { return nil }); err != nil {
				return err
			}
			if n.knownClasses == nil {
				if err := j.settleClasses(); err != nil {
					return err
				}
			}
			n.classes = j.classes
		}
		if err := j.load(ctx, forgive); err != nil {
			return err
		}
	}
	return nil
}

func (j *joined) load(ctx context.Context, forgive forgiver) error {
	r := j.reader(false, j.tables)
	j.rows, j.read = nil, false
	err := r.each(ctx, forgive, func(path string) error {
		if int64(len(j.rows)+1)*joinedBytes > j.memory {
			return fmt.Errorf("%s: more than %d rows to join, %d bytes each, take more than a quarter of {memory}; raise it, or write the "+
				"columns into the table of the nodes", path, len(j.rows), joinedBytes)
		}
		j.rows = append(j.rows, joinedRow{key: keyOf(r), class: r.class, part: int8(r.part)})
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(j.rows, func(a, b joinedRow) int { return compareKeys(a.key, b.key) })
	for i := 1; i < len(j.rows); i++ {
		if j.rows[i].key == j.rows[i-1].key {
			return j.twice(ctx, forgive, j.rows[i].key)
		}
	}
	return nil
}

func compareKeys(a, b [2]uint64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }

// keyOf is the key of the row that r read.
func keyOf(r *nodeReader) [2]uint64 {
	if r.text == nil {
		return [2]uint64{uint64(r.number), 0}
	}
	h := xxh3.Hash128(r.text)
	return [2]uint64{h.Hi, h.Lo}
}

// twice is the error for an id of two rows.
func (j *joined) twice(ctx context.Context, forgive forgiver, key [2]uint64) error {
	r := j.reader(false, j.tables)
	seen := false
	err := r.each(ctx, forgive, func(path string) error {
		if keyOf(r) != key {
			return nil
		}
		if !seen {
			seen = true
			return nil
		}
		id := strconv.FormatInt(r.number, 10)
		if r.text != nil {
			id = lines.ClipText(string(r.text))
		}
		return fmt.Errorf("%s: row %d (counting from 1): id %s is there twice, and a node has one label and is in one part of a split", path, r.row, id)
	})
	return cmp.Or(err, errors.New(j.files[0]+": the file changed while it was read"))
}

// find returns the row of a node; false when the files do not name it.
func (j *joined) find(key [2]uint64) (joinedRow, bool) {
	j.read = true
	i, ok := slices.BinarySearchFunc(j.rows, key, func(row joinedRow, key [2]uint64) int {
		return compareKeys(row.key, key)
	})
	if !ok {
		return joinedRow{class: -1, part: ingest.NoPart}, false
	}
	j.rows[i].found = true
	return j.rows[i], true
}

// join gives the row that r read its label and its part.
func (r *nodeReader) join() {
	for _, j := range r.joins {
		row, ok := j.find(keyOf(r))
		if r.labelFrom == j {
			if r.class = row.class; !ok && j.value.set() {
				r.class = int32(math.Float32bits(float32(math.NaN())))
			}
		}
		if r.splitFrom == j {
			r.part = int(row.part)
		}
	}
}

// strays notes the joined rows that name no node.
func (n *nodes) strays() (notes []string) {
	for _, j := range n.joins {
		left := 0
		for i := range j.rows {
			if !j.rows[i].found {
				left++
			}
		}
		if j.read && left > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d of its %d rows name no node of %s", j.files[0], left, len(j.rows), n.files[0]))
		}
	}
	return notes
}
