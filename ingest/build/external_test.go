package build

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// tiny has room for next to nothing, so that tens of edges take every way that billions take.
var tiny = hooks{
	records: 7, lists: 3, buckets: 4, placed: 4 << 10, parts: 3, texts: 300, means: 500, packed: 90, block: 4 << 10,
}

// drawAny is a random graph of what a Schema can say: node types with every kind of ids, listed and
// gathered, relations between any two with columns, tables of nodes and of edges, labels, splits.
func drawAny(t *rapid.T, bad bool) *fake {
	f := &fake{
		schema: ingest.Schema{Name: "any", Identity: "any"},
		ids:    map[int][]int64{}, edges: map[int][][2]int64{}, rows: map[int][]float32{}, labels: map[int][]int32{},
		splits: map[int][3][]int64{}, values: map[int][][]uint64{},
		chunk: rapid.IntRange(1, 9).Draw(t, "chunk"),
		text: func(id int64) string { // distinct, neither ordered as numbers are nor UTF-8
			return []string{"", "\x00", "\xff", strings.Repeat("long ", 9)}[uint64(id)%4] + fmt.Sprint(id)
		},
	}
	s := &f.schema
	pools := map[string][]int64{} // ids that may be named
	for i := range rapid.IntRange(1, 3).Draw(t, "types") {
		n := ingest.NodeType{Name: fmt.Sprint(i), IDs: rapid.SampledFrom([]ingest.IDs{ingest.RowIDs, ingest.IntIDs, ingest.TextIDs}).Draw(t, "ids")}
		count := rapid.IntRange(0, 30).Draw(t, "nodes")
		var pool []int64
		if n.IDs == ingest.RowIDs {
			n.Count = int64(count)
			for id := range n.Count {
				pool = append(pool, id)
			}
		} else {
			pool = rapid.SliceOfNDistinct(rapid.OneOf(rapid.Int64Range(-99, 99), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64})),
				count, count, rapid.ID[int64]).Draw(t, "ids")
			if n.Gathered = rapid.Bool().Draw(t, "gathered"); !n.Gathered {
				f.ids[i] = pool
				if rapid.Bool().Draw(t, "declared") {
					n.Count = int64(count)
				}
			}
		}
		s.NodeTypes, pools[n.Name] = append(s.NodeTypes, n), pool
		if rapid.Bool().Draw(t, "split") && !n.Gathered {
			var parts [3][]int64
			for _, id := range pool {
				if p := rapid.IntRange(0, 3).Draw(t, "part"); p < 3 {
					parts[p] = append(parts[p], id)
				}
			}
			f.splits[len(s.Splits)] = parts
			s.Splits = append(s.Splits, ingest.Split{Name: "s" + n.Name, NodeType: n.Name})
		}
		if n.Gathered {
			continue
		}
		if rapid.Bool().Draw(t, "label") {
			f.labels[len(s.Labels)] = rapid.SliceOfN(rapid.Int32Range(-1, 3), count, count).Draw(t, "classes")
			s.Labels = append(s.Labels, ingest.Label{Name: "l", NodeType: n.Name, Classes: 4})
		}
		if rapid.Bool().Draw(t, "table") {
			dim := rapid.SampledFrom([]int{1, 3, 300}).Draw(t, "dim")
			for k := range count * dim {
				f.rows[len(s.Tables)] = append(f.rows[len(s.Tables)], float32(k%2000+i))
			}
			s.Tables = append(s.Tables, ingest.Table{Name: "t", NodeType: n.Name, Dim: dim})
		}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "relations") {
		name := rapid.Custom(func(t *rapid.T) string { return rapid.SampledFrom(s.NodeTypes).Draw(t, "type").Name })
		r := ingest.Relation{Src: name.Draw(t, "src"), Name: fmt.Sprint("r", i), Dst: name.Draw(t, "dst"), Edges: -1}
		src, dst := slices.Clone(pools[r.Src]), slices.Clone(pools[r.Dst])
		if bad {
			src, dst = append(src, 1<<40), append(dst, 1<<40)
		}
		if len(src) > 0 && len(dst) > 0 {
			edge := rapid.Custom(func(t *rapid.T) [2]int64 {
				return [2]int64{rapid.SampledFrom(src).Draw(t, "u"), rapid.SampledFrom(dst).Draw(t, "v")}
			})
			f.edges[i] = rapid.SliceOfN(edge, 0, 60).Draw(t, "edges")
		}
		if rapid.Bool().Draw(t, "declared") {
			r.Edges = int64(len(f.edges[i]))
		}
		for k, e := range rapid.SliceOfN(rapid.SampledFrom([]store.Elem{store.U8, store.F32, store.I64}), 0, 2).Draw(t, "columns") {
			r.Columns = append(r.Columns, ingest.EdgeColumn{Name: fmt.Sprint("c", k), Elem: e})
			column := make([]uint64, len(f.edges[i]))
			for j := range column {
				switch column[j] = uint64(100*k + j); e {
				case store.U8:
					column[j] = uint64(j % 3)
				case store.F32: // of some orders of magnitude, so that sums depend on their order
					column[j] = uint64(math.Float32bits(float32(math.Exp(float64(j % 23)))))
				}
			}
			f.values[i] = append(f.values[i], column)
		}
		s.Relations = append(s.Relations, r)
		if rapid.IntRange(0, 3).Draw(t, "table of edges") == 0 {
			for k := range 2 * len(f.edges[i]) {
				f.rows[len(s.Tables)] = append(f.rows[len(s.Tables)], float32(k))
			}
			s.Tables = append(s.Tables, ingest.Table{Name: "e", Relation: r.Key(), Dim: 2})
		}
	}
	return f
}

// edge is one that is stored, by rows.
type edge struct {
	u, v   int
	number int64   // as read; -1: an added loop
	joined []int64 // the numbers of all edges that it is made of, the given ones first
}

// expected is the dataset that a graph must become, found the obvious way.
type expected struct {
	rows      []map[int64]int   // by type, the row of an id
	ids       [][]int64         // and the other way
	relations []ingest.Relation // of the dataset
	from      []int             // the source's relation of each
	edges     [][]edge          // by relation
	rep       []RelationReport
	symmetric map[int]bool // relations that were found to be
}

func (f *fake) index(name string) int {
	return slices.IndexFunc(f.schema.NodeTypes, func(t ingest.NodeType) bool { return t.Name == name })
}

func expect(f *fake, o Options) *expected {
	x := &expected{}
	for i, t := range f.schema.NodeTypes {
		ids := slices.Clone(f.ids[i])
		if t.IDs == ingest.RowIDs {
			for id := range t.Count {
				ids = append(ids, id)
			}
		}
		if t.Gathered {
			for k, r := range f.schema.Relations {
				for _, e := range f.edges[k] {
					if r.Src == t.Name {
						ids = append(ids, e[0])
					}
					if r.Dst == t.Name {
						ids = append(ids, e[1])
					}
				}
			}
			slices.SortFunc(ids, func(a, b int64) int {
				if t.IDs == ingest.TextIDs {
					return cmp.Compare(f.text(a), f.text(b))
				}
				return cmp.Compare(a, b)
			})
			ids = slices.Compact(ids)
		}
		rows := map[int64]int{}
		for row, id := range ids {
			rows[id] = row
		}
		x.rows, x.ids = append(x.rows, rows), append(x.ids, ids)
	}
	for i, r := range f.schema.Relations {
		src, dst := f.index(r.Src), f.index(r.Dst)
		rep := RelationReport{Key: r.Key(), EdgesRead: int64(len(f.edges[i])), Columns: []string{}, Left: []string{}}
		for _, c := range r.Columns {
			rep.Columns = append(rep.Columns, c.Name)
		}
		var kept []edge
		first := map[[2]int]bool{}
		reverse := o.Undirected && src == dst
		merge := reverse || o.Duplicates != DuplicatesKeep
		add := func(e edge) {
			if first[[2]int{e.u, e.v}] {
				rep.Duplicates++
				if merge {
					rep.DuplicatesMerged++
					join(kept, e, o)
					return
				}
			}
			first[[2]int{e.u, e.v}] = true
			e.joined = []int64{e.number}
			kept = append(kept, e)
		}
		for k, e := range f.edges[i] {
			u, ok := x.rows[src][e[0]]
			v, ok2 := x.rows[dst][e[1]]
			if !ok || !ok2 {
				rep.Skipped++
				continue
			}
			if src == dst && u == v {
				rep.SelfLoops++
				if o.SelfLoops == SelfLoopsDrop || o.SelfLoops == SelfLoopsAdd {
					rep.SelfLoopsDropped++
					continue
				}
			}
			add(edge{u: u, v: v, number: int64(k)})
		}
		if o.SelfLoops == SelfLoopsAdd && src == dst {
			for v := range x.ids[dst] {
				add(edge{u: v, v: v, number: -1})
				rep.SelfLoopsAdded++
			}
		}
		if reverse {
			for k, e := range f.edges[i] { // all of them, in order: the first to be turned round gives its number
				u, ok := x.rows[src][e[0]]
				v, ok2 := x.rows[dst][e[1]]
				switch turned := (edge{v, u, int64(k), []int64{int64(k)}}); {
				case !ok || !ok2 || u == v:
				case first[[2]int{v, u}]:
					join(kept, turned, o)
				default:
					first[[2]int{v, u}] = true
					kept = append(kept, turned)
					rep.ReverseAdded++
				}
			}
		}
		rep.Edges = int64(len(kept))
		x.edges, x.rep = append(x.edges, kept), append(x.rep, rep)
		x.relations, x.from = append(x.relations, r), append(x.from, i)
	}
	x.reverse(f, o)
	return x
}

// join adds an edge to the equal one that was kept.
func join(kept []edge, e edge, o Options) {
	i := slices.IndexFunc(kept, func(k edge) bool { return k.u == e.u && k.v == e.v })
	kept[i].joined = append(kept[i].joined, e.number)
	if o.Duplicates != DuplicatesKeep && o.Duplicates != DuplicatesMerge { // a rule
		kept[i].number = min(kept[i].number, e.number)
	}
}

// value is the value of an edge in a column, by the rule of o for those that were joined.
func (e *edge) value(column []uint64, elem store.Elem, o Options) uint64 {
	var of []uint64
	for _, n := range e.joined {
		of = append(of, column[n])
	}
	switch o.Duplicates {
	case DuplicatesMax: // the values are not negative, and their bits are in their order
		return slices.Max(of)
	case DuplicatesSum, DuplicatesMean:
		sum, total := 0.0, uint64(0)
		for _, bits := range of {
			sum += float64(math.Float32frombits(uint32(bits)))
			total += bits
		}
		if elem != store.F32 {
			return total
		}
		if o.Duplicates == DuplicatesMean {
			sum /= float64(len(of))
		}
		return uint64(math.Float32bits(float32(sum)))
	}
	return column[e.number]
}

// reverse adds what Options.Reverse asks for.
func (x *expected) reverse(f *fake, o Options) {
	x.symmetric = map[int]bool{}
	if !o.Reverse {
		return
	}
	tables := func(i int) bool {
		return slices.ContainsFunc(f.schema.Tables, func(t ingest.Table) bool { return t.Relation == x.relations[i].Key() })
	}
	count := func(i int, turn bool) map[[2]int]int {
		n := map[[2]int]int{}
		for _, e := range x.edges[i] {
			if turn {
				e.u, e.v = e.v, e.u
			}
			n[[2]int{e.u, e.v}]++
		}
		return n
	}
	given := len(x.relations)
	of := map[int]int{}
	for i, r := range x.relations[:given] {
		if o.Undirected && r.Src == r.Dst {
			continue
		}
		found := -1
		for k, s := range x.relations[:given] {
			if s.Src == r.Dst && s.Dst == r.Src && (found < 0 || k == i) && maps.Equal(count(i, true), count(k, false)) {
				found = k
			}
		}
		if found == i {
			x.symmetric[i] = true
			continue
		}
		if found >= 0 {
			first, second := min(i, found), max(i, found)
			if tables(first) && !tables(second) {
				first, second = second, first
			}
			_, chained := of[first]
			if _, named := of[second]; !named && !chained && !slices.Contains(slices.Collect(maps.Values(of)), second) {
				of[second] = first
				x.rep[second].ReverseOf = x.relations[first].Key()
			}
			continue
		}
		made := ingest.Relation{Src: r.Dst, Name: "rev_" + r.Name, Dst: r.Src, Columns: r.Columns}
		n := int64(len(x.edges[i]))
		x.rep = append(x.rep, RelationReport{Key: made.Key(), ReverseOf: r.Key(), ReverseAdded: n, Edges: n, Columns: x.rep[i].Columns, Left: []string{}})
		x.relations, x.from = append(x.relations, made), append(x.from, i)
		var edges []edge
		for _, e := range x.edges[i] {
			edges = append(edges, edge{e.v, e.u, e.number, e.joined})
		}
		x.edges = append(x.edges, edges)
	}
}

// visits are expected visits in floating point: see order.go.
func (x *expected) visits(f *fake, training func(nodeType, row int) bool) [][]float64 {
	all := func() [][]float64 {
		var a [][]float64
		for _, ids := range x.ids {
			a = append(a, make([]float64, len(ids)))
		}
		return a
	}
	now, sum := all(), all()
	for t := range now {
		for row := range now[t] {
			if training(t, row) {
				now[t][row], sum[t][row] = 1, 1
			}
		}
	}
	for _, fanout := range accessFanouts {
		next := all()
		for i, r := range x.relations {
			for _, e := range x.edges[i] {
				next[f.index(r.Src)][e.u] += now[f.index(r.Dst)][e.v] * min(1, float64(fanout)/x.degree(f, r.Dst, e.v))
			}
		}
		for t := range next {
			for row, v := range next[t] {
				sum[t][row] += v
			}
		}
		now = next
	}
	return sum
}

// degree is the number of a row's in-neighbours in all relations together.
func (x *expected) degree(f *fake, nodeType string, row int) float64 {
	n := 0.0
	for i, r := range x.relations {
		for _, e := range x.edges[i] {
			if r.Dst == nodeType && e.v == row {
				n++
			}
		}
	}
	return n
}

// drawOptions are any that go with f.
func drawOptions(t *rapid.T, f *fake) Options {
	o := Options{
		FS: storetest.NoSync, Order: rapid.SampledFrom([]Order{OrderOriginal, OrderDegree, OrderAccess}).Draw(t, "order"),
		SelfLoops:  rapid.SampledFrom([]SelfLoops{SelfLoopsKeep, SelfLoopsDrop, SelfLoopsAdd}).Draw(t, "loops"),
		Duplicates: rapid.SampledFrom([]Duplicates{DuplicatesKeep, DuplicatesMerge}).Draw(t, "duplicates"),
		EdgeIDs:    rapid.Bool().Draw(t, "edge ids"), DType: F32,
		Undirected: rapid.Bool().Draw(t, "undirected"),
	}
	values, floats, tables := false, true, slices.ContainsFunc(f.schema.Tables, func(t ingest.Table) bool { return t.Relation != "" })
	for _, r := range f.schema.Relations {
		for _, c := range r.Columns {
			values, floats = true, floats && c.Elem == store.F32
		}
	}
	if rules := []Duplicates{DuplicatesFirst}; values || tables {
		if !tables {
			rules = append(rules, DuplicatesSum, DuplicatesMax)
		}
		if !tables && floats {
			rules = append(rules, DuplicatesMean)
		}
		if o.Undirected || o.Duplicates == DuplicatesMerge {
			o.Duplicates = rapid.SampledFrom(rules).Draw(t, "rule")
		}
	}
	own, plain := 0, true
	for _, r := range f.schema.Relations {
		if r.Src == r.Dst {
			own++
			plain = plain && len(r.Columns) == 0 && !slices.ContainsFunc(f.schema.Tables, func(t ingest.Table) bool { return t.Relation == r.Key() })
		}
	}
	o.Undirected = o.Undirected && own > 0
	if len(f.schema.Relations) > 0 && (!o.Undirected || own < len(f.schema.Relations)) {
		o.Reverse = rapid.Bool().Draw(t, "reverse")
	}
	if o.SelfLoops == SelfLoopsAdd && (!plain || o.EdgeIDs) {
		o.SelfLoops = SelfLoopsDrop
	}
	if rapid.Bool().Draw(t, "made") || !slices.ContainsFunc(f.schema.Tables, func(t ingest.Table) bool { return t.Relation == "" }) {
		o.Features = "degree"
	}
	return o
}

// fewer is [storetest.Fewer].
func fewer(t *testing.T, n int) { storetest.Fewer(t, n) }

// TestBuildAnything: any graph, by any options, becomes the expected dataset, the same to the last
// byte however little room there is and however the source cuts its chunks.
func TestBuildAnything(t *testing.T) {
	fewer(t, 15)
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		bad := rapid.IntRange(0, 3).Draw(t, "bad edges") == 0
		f := drawAny(t, bad)
		o := drawOptions(t, f)
		x := expect(f, o)
		skipped := int64(0)
		for _, r := range x.rep {
			skipped += r.Skipped
		}
		o.SkipBad = skipped
		n++
		path := filepath.Join(dir, fmt.Sprint(n))
		rep, err := Build(context.Background(), f, path, o)
		require.NoError(t, err)
		defer os.RemoveAll(path)
		d, err := store.Open(path)
		require.NoError(t, err)
		defer d.Close()
		problems, err := d.Verify(context.Background(), nil)
		require.NoError(t, err)
		require.Empty(t, problems)
		x.check(t, f, o, d, rep)

		for i, small := range []hooks{tiny, {records: 50, lists: 9, parts: 2, block: 8 << 10, journal: true}} {
			o.test, o.FS = small, vfs.NewMem()
			f.chunk = 1 + 5*i
			again, err := Build(context.Background(), f, "x.gnn", o)
			require.NoError(t, err)
			require.Equal(t, rep.Seal, again.Seal)
			require.Equal(t, rep.Relations, again.Relations)
		}
		if skipped > 0 {
			o.SkipBad = skipped - 1
			_, err := Build(context.Background(), f, "bad.gnn", o)
			require.ErrorContains(t, err, "edge.csv: edge ")
			require.ErrorContains(t, err, "1099511627776")
			if skipped > 1 {
				require.ErrorContains(t, err, fmt.Sprintf("%d bad edges were passed over before it, which is all that {skip_bad} allows", skipped-1))
			}
			require.NotContains(t, err.Error(), "\n")
		}
	})
}

func (x *expected) check(t *rapid.T, f *fake, o Options, d *store.Dataset, rep *Report) {
	relations := append([]RelationReport(nil), rep.Relations...)
	for i := range relations { // a sample; TestPairSampleIsOfThePairs checks it
		relations[i].PairsCompared, relations[i].PairsBothWays, relations[i].EdgesAscending = 0, 0, 0
	}
	require.Equal(t, x.rep, relations)
	for _, r := range rep.Relations {
		require.Equal(t, r.EdgesRead-r.Skipped-r.SelfLoopsDropped+r.SelfLoopsAdded-r.DuplicatesMerged+r.ReverseAdded, r.Edges)
	}
	row := make([][]int, len(x.ids)) // by type and stored id
	for i, nt := range f.schema.NodeTypes {
		ids := d.IDs(i)
		require.EqualValues(t, len(x.ids[i]), d.Manifest().NodeTypes[i].Count)
		for v := range x.ids[i] {
			v := store.NodeID(v)
			original := ids.Original(v)
			at := int(original)
			switch nt.IDs {
			case ingest.IntIDs:
				at = x.rows[i][original]
				require.Equal(t, original, x.ids[i][at])
			case ingest.TextIDs:
				name, err := ids.Name(v)
				require.NoError(t, err)
				require.Equal(t, f.text(x.ids[i][at]), name)
				found, ok, err := ids.Find([]byte(name))
				require.NoError(t, err)
				require.True(t, ok)
				require.Equal(t, v, found)
			}
			row[i] = append(row[i], at)
		}
	}
	listed := make([]map[int]int, len(x.ids))
	for i := range listed {
		listed[i] = map[int]int{}
	}
	require.Len(t, d.Manifest().Relations, len(x.relations))
	for i, r := range x.relations {
		g, src, dst := d.Graph(i), f.index(r.Src), f.index(r.Dst)
		require.Equal(t, r.Key(), g.Relation.Key())
		require.Equal(t, x.rep[i].ReverseOf, g.Relation.ReverseOf)
		require.Equal(t, o.Undirected && r.Src == r.Dst || x.symmetric[i], g.Relation.Symmetric)
		var got []string
		for v := range g.Nodes() {
			list := g.Neighbors(store.NodeID(v))
			require.True(t, slices.IsSorted(list))
			for k, u := range list {
				line := fmt.Sprint(row[src][u], " ", row[dst][v])
				for _, c := range g.Relation.Columns {
					size := c.Elem.Size()
					line += fmt.Sprintf(" %s=%x", c.Name, g.Column(c.Name).Bytes(store.NodeID(v))[k*size:(k+1)*size])
				}
				got = append(got, line)
			}
		}
		var want []string
		for _, e := range x.edges[i] {
			listed[src][e.u]++
			line := fmt.Sprint(e.u, " ", e.v)
			if o.EdgeIDs || slices.ContainsFunc(f.schema.Tables, func(t ingest.Table) bool { return t.Relation == x.relations[x.from[i]].Key() }) {
				line += fmt.Sprintf(" id=%x", binary.LittleEndian.AppendUint64(nil, uint64(e.number)))
			}
			for k, c := range r.Columns {
				value := binary.LittleEndian.AppendUint64(nil, e.value(f.values[x.from[i]][k], c.Elem, o))
				line += fmt.Sprintf(" %s=%x", c.Name, value[:c.Elem.Size()])
			}
			want = append(want, line)
		}
		slices.Sort(got)
		slices.Sort(want)
		require.Equal(t, want, got)
	}
	training := make([]map[int]bool, len(x.ids))
	for i, s := range d.Manifest().Splits {
		at := f.index(s.NodeType)
		parts := d.Split(i)
		if training[at] == nil {
			training[at] = map[int]bool{}
			for _, v := range parts.Train {
				training[at][row[at][v]] = true
			}
		}
		if len(f.schema.Splits) > 0 {
			for p, part := range [][]store.NodeID{parts.Train, parts.Valid, parts.Test} {
				var got, want []int
				for _, v := range part {
					got = append(got, row[at][v])
				}
				for _, id := range f.splits[i][p] {
					want = append(want, x.rows[at][id])
				}
				slices.Sort(got)
				slices.Sort(want)
				require.Equal(t, want, got)
			}
		}
	}
	visits := x.visits(f, func(nodeType, row int) bool { return training[nodeType][row] })
	for i := range x.ids {
		for v := 1; v < len(row[i]); v++ {
			before, after := row[i][v-1], row[i][v]
			switch o.Order {
			case OrderOriginal:
				require.Less(t, before, after)
			case OrderDegree:
				require.LessOrEqual(t, cmp.Or(cmp.Compare(listed[i][after], listed[i][before]), cmp.Compare(before, after)), 0)
			default: // a sum of truncated numbers is a little less
				require.GreaterOrEqual(t, visits[i][before]+visitError*(1+visits[i][before]), visits[i][after])
			}
		}
	}
	f.checkRows(t, x, o, d, row)
}

// visitError bounds what fixed-point numbers lose on graphs of some tens of edges.
const visitError = 0.05

// checkRows looks at features and labels.
func (f *fake) checkRows(t *rapid.T, x *expected, o Options, d *store.Dataset, row [][]int) {
	for i, table := range d.Manifest().Tables {
		features := d.Features(i)
		at := slices.IndexFunc(f.schema.Tables, func(t ingest.Table) bool {
			return t.Name == table.Name && t.NodeType == table.NodeType && t.Relation == table.Relation
		})
		for k := range features.Rows() {
			var want []float32
			switch {
			case table.Relation != "":
				want = f.rows[at][2*k : 2*k+2]
			case at < 0:
				in, out, me := 0.0, 0.0, row[f.index(table.NodeType)][k]
				for j, r := range x.relations {
					for _, e := range x.edges[j] {
						if r.Dst == table.NodeType && e.v == me {
							in++
						}
						if r.Src == table.NodeType && e.u == me {
							out++
						}
					}
				}
				want = []float32{1, float32(math.Log1p(in)), float32(math.Log1p(out))}
			default:
				me, dim := row[f.index(table.NodeType)][k], int(table.Dim)
				want = f.rows[at][me*dim : (me+1)*dim]
			}
			var bits []byte
			for _, y := range want {
				bits = binary.LittleEndian.AppendUint32(bits, math.Float32bits(y))
			}
			require.True(t, bytes.Equal(bits, features.RowAt(uint64(k))), "%s row %d", table.Name, k)
		}
	}
	for i, l := range f.schema.Labels {
		for v, r := range row[f.index(l.NodeType)] {
			require.Equal(t, f.labels[i][r], d.Labels(i).Class(store.NodeID(v)))
		}
	}
}
