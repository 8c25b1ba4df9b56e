package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/zeebo/xxh3"
)

// Problem is one error that Verify found.
type Problem = *SectionError

// Verify reads the whole dataset and checks every checksum, and every invariant that readers rely
// on. It returns the first problem of each section, but none that only follows from another
// section's. The error is ctx's alone. progress, if not nil, is called with the bytes read so far.
func (d *Dataset) Verify(ctx context.Context, progress func(done, total int64)) (problems []Problem, err error) {
	return d.verify(ctx, func(string) bool { return true }, progress)
}

// CheckParts is Verify for only the files whose paths are wanted, for a caller that reads only
// these. If a relation's edges are wanted, its offsets must be too. The error is the first problem,
// or ctx's.
func (d *Dataset) CheckParts(ctx context.Context, wanted func(path string) bool, progress func(done, total int64)) error {
	problems, err := d.verify(ctx, wanted, progress)
	if err == nil && len(problems) > 0 {
		err = problems[0]
	}
	return err
}

func (d *Dataset) verify(ctx context.Context, wanted func(path string) bool, progress func(done, total int64)) ([]Problem, error) {
	v := verifier{d: d, ctx: ctx, wanted: wanted, progress: progress, failed: map[*File]bool{}}
	m := d.manifest
	for path, size := range m.sizes() {
		if wanted(path) {
			v.total += size
		}
	}
	for i := range m.NodeTypes {
		t := &m.NodeTypes[i]
		v.check(&t.Original, nil)
		v.check(&t.Order, func() error { return checkIDs(d.IDs(i)) }, &t.Original)
		if t.Names != nil && wanted(t.Names.ByName[0].Path) {
			v.checkNames(d.IDs(i))
		}
	}
	v.checkShared()
	for i := range m.Relations {
		g := d.Graph(i)
		if g.Shares() {
			continue
		}
		src, _ := d.NodeType(g.Relation.Src)
		v.check(&g.Relation.Offsets, g.checkOffsets)
		v.check(&g.Relation.Neighbors, func() error { return g.checkNeighbors(uint32(src.Count)) }, &g.Relation.Offsets)
		if f := g.Relation.Blocks; f != nil {
			v.check(f, g.checkBlocks, &g.Relation.Offsets)
		}
		rows := d.edgeRows(g.Relation)
		for j := range g.columns {
			c := &g.columns[j]
			v.check(&c.Column.Values, func() error { return c.check(rows) })
		}
		v.checkEdgeSplit(i, rows)
	}
	v.checkReverses()
	for i := range m.Streams {
		v.checkStream(i)
	}
	for i := range m.Tables {
		f := d.Features(i)
		for j := range m.Tables[i].Shards {
			v.check(&m.Tables[i].Shards[j], func() error { return f.checkShard(j) })
		}
	}
	for i := range m.Labels {
		v.check(&m.Labels[i].Values, d.Labels(i).check)
	}
	for i := range m.Splits {
		s := &m.Splits[i]
		nodes, _ := d.NodeType(s.NodeType)
		seen := make([]uint8, nodes.Count)
		for p, part := range s.parts() {
			v.check(part, func() error { return checkPart(cast[NodeID](d.sections[part.Path].payload()), seen, uint8(p+1)) })
		}
	}
	v.checkEncodings()
	return v.problems, ctx.Err()
}

type verifier struct {
	d           *Dataset
	ctx         context.Context
	wanted      func(path string) bool
	progress    func(done, total int64)
	done, total int64
	problems    []Problem
	failed      map[*File]bool // sections with problems
}

// check checks f's checksums, then its invariant, which also reads the sections through. It skips
// the invariant if one of these failed.
func (v *verifier) check(f *File, invariant func() error, through ...*File) {
	if v.ctx.Err() != nil || !v.wanted(f.Path) {
		return
	}
	if se := v.problem(f.Path, Guard(func() error {
		if err := v.checkSums(f); err != nil || v.ctx.Err() != nil {
			return err
		}
		if invariant == nil || slices.ContainsFunc(through, func(t *File) bool { return v.failed[t] }) {
			return nil
		}
		return invariant()
	})); se != nil {
		v.failed[f] = true
	}
}

// checkSums checks the checksum of each page, then the checksum of the whole section.
func (v *verifier) checkSums(f *File) error {
	s := v.d.sections[f.Path]
	payload := s.m.Bytes()[PageSize:f.sumsAt()]
	var h xxh3.Hasher
	for at := int64(0); at < int64(len(payload)) && v.ctx.Err() == nil; {
		n := min(int64(len(payload))-at, 1<<22)
		_, _ = h.Write(payload[at : at+n]) // it does not fail
		if err := s.sums.check(at/PageSize, payload[at:at+n]); err != nil {
			return err
		}
		at += n
		v.done += n
		if v.progress != nil {
			v.progress(v.done, v.total)
		}
	}
	if v.ctx.Err() != nil {
		return nil
	}
	rest := s.m.Bytes()[f.sumsAt():]
	_, _ = h.Write(rest)
	v.done += PageSize + int64(len(rest))
	if v.progress != nil {
		v.progress(v.done, v.total)
	}
	if sum := hex64(h.Sum64()); sum != f.XXH3 {
		return fmt.Errorf("checksum is %s, and the manifest says %s: %s", sum, f.XXH3, restore)
	}
	if s.sums != nil {
		_, err := s.sums.load() // even if the section has no pages
		return err
	}
	return nil
}

// problem records err, which was met in a section, and returns it as a Problem; nil for a nil err.
func (v *verifier) problem(section string, err error) (se Problem) {
	if err != nil && !errors.As(err, &se) {
		se = &SectionError{v.d.path, section, -1, err}
	}
	if se != nil {
		v.problems = append(v.problems, se)
	}
	return se
}

// checkNames reads the tables of names: first checksums, then order and number, then whether both
// orders hold the same names.
func (v *verifier) checkNames(m IDs) {
	sound := true
	for _, table := range m.names.tables() {
		if v.ctx.Err() == nil && v.problem(table.spec.Path, v.checkBlob(table)) != nil {
			sound = false
		}
	}
	if !sound || v.ctx.Err() != nil {
		return
	}
	sums, counts := [2]uint64{}, [2]int64{}
	pairs := func(i int, name []byte, node uint32) {
		sums[i] += xxh3.HashSeed(name, uint64(node)) // a sum, since it does not depend on the order
		counts[i]++
	}
	var last []byte
	err := m.names.each(v.ctx, m.names.byName, func(key, value []byte) error {
		node, err := m.node(value)
		if err != nil {
			return err
		}
		if len(key) == 0 || counts[0] > 0 && bytes.Compare(last, key) >= 0 {
			return fmt.Errorf("name %d, %.100q, does not follow %.100q", counts[0], key, last)
		}
		last = append(last[:0], key...)
		pairs(0, key, node)
		return nil
	})
	if err == nil {
		err = m.EachName(v.ctx, func(node NodeID, name []byte) error {
			pairs(1, name, node)
			return nil
		})
	}
	if err == nil && (sums[0] != sums[1] || counts[0] != counts[1]) {
		err = fmt.Errorf("holds other names than %s", m.names.byNode[0].spec.Path)
	}
	if v.ctx.Err() == nil {
		v.problem(m.names.byName[0].spec.Path, err)
	}
}

// checkEncodings reads the encodings and compares them with the manifest.
func (v *verifier) checkEncodings() {
	spec := v.d.manifest.Encodings
	if spec == nil || v.ctx.Err() != nil || !v.wanted(spec.Path) {
		return
	}
	_, err := v.d.Encodings()
	v.problem(spec.Path, err)
	v.done += spec.Bytes
	if v.progress != nil {
		v.progress(v.done, v.total)
	}
}

func (v *verifier) checkBlob(table *textTable) error {
	r := io.NewSectionReader(table.file, 0, table.spec.Bytes)
	buf := make([]byte, 1<<20)
	var h xxh3.Hasher
	for v.ctx.Err() == nil {
		n, err := r.Read(buf)
		h.Write(buf[:n])
		v.done += int64(n)
		if v.progress != nil && n > 0 {
			v.progress(v.done, v.total)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if sum := hex64(h.Sum64()); v.ctx.Err() == nil && sum != table.spec.XXH3 {
		return fmt.Errorf("checksum is %s, and the manifest says %s: %s", sum, table.spec.XXH3, restore)
	}
	return nil
}

func checkIDs(m IDs) error {
	for k, v := range m.order {
		if int(v) >= len(m.original) {
			return fmt.Errorf("entry %d is node %d of %d", k, v, len(m.original))
		}
		if k > 0 && m.original[m.order[k-1]] >= m.original[v] {
			return fmt.Errorf("entry %d: original id %d does not follow %d", k, m.original[v], m.original[m.order[k-1]])
		}
	}
	return nil
}

func (g *Graph) checkOffsets() error { return checkOffsets(g.offsets, uint64(len(g.edges)), "edges") }

// checkOffsets checks that offsets start at 0, never decrease, and end at n, the number of entries.
// what names the entries, for the error.
func checkOffsets(offsets []uint64, n uint64, what string) error {
	if offsets[0] != 0 {
		return fmt.Errorf("starts at %d, not 0", offsets[0])
	}
	for v := 1; v < len(offsets); v++ {
		if offsets[v] < offsets[v-1] {
			return fmt.Errorf("decreases at node %d (%d > %d)", v, offsets[v-1], offsets[v])
		}
	}
	if last := offsets[len(offsets)-1]; last != n {
		return fmt.Errorf("ends at %d, and there are %d %s", last, n, what)
	}
	return nil
}

func (g *Graph) checkNeighbors(sources uint32) error {
	for v := range g.Nodes() {
		if err := checkList(NodeID(v), g.Neighbors(NodeID(v)), sources); err != nil {
			return err
		}
	}
	return nil
}

// checkList checks that v's neighbours ascend and are below sources.
func checkList(v NodeID, list []NodeID, sources uint32) error {
	for i, u := range list {
		if u >= sources {
			return fmt.Errorf("node %d has neighbour %d, and there are %d nodes", v, u, sources)
		}
		if i > 0 && list[i-1] > u {
			return fmt.Errorf("neighbours of node %d are not ascending (%d > %d)", v, list[i-1], u)
		}
	}
	return nil
}

// edgeRows returns the number of rows in the tables that the ids of r's edges index: the least of
// these tables, or MaxUint64 if there are none.
func (d *Dataset) edgeRows(r *Relation) uint64 {
	const none = uint64(math.MaxUint64)
	rows := func(key string) uint64 {
		rows := none
		for i := range d.manifest.Tables {
			if t := &d.manifest.Tables[i]; t.Relation == key {
				rows = min(rows, uint64(d.manifest.RowsOf(i)))
			}
		}
		return rows
	}
	if own := rows(r.Key()); own != none || r.ReverseOf == "" {
		return own
	}
	return rows(r.ReverseOf)
}

// checkReverses compares relations with the relations that they reverse. A part has other edges of
// the two.
func (v *verifier) checkReverses() {
	if v.d.manifest.Part != nil {
		return
	}
	number := map[string]int{}
	for i := range v.d.manifest.Relations {
		number[v.d.manifest.Relations[i].Key()] = i
	}
	for i := range v.d.manifest.Relations {
		if of, ok := number[v.d.manifest.Relations[i].ReverseOf]; ok && v.ctx.Err() == nil {
			v.checkReverse(v.d.Graph(i), v.d.Graph(of))
		}
	}
}

// checkReverse compares r with o, which it reverses, if both are undamaged.
func (v *verifier) checkReverse(r, o *Graph) {
	for _, f := range slices.Concat(r.specs(), o.specs()) {
		if v.failed[f] || !v.wanted(f.Path) {
			return
		}
	}
	v.problem(r.files[1].Section, Guard(func() error {
		var own, other EdgeSum
		for node, list := range r.Lists() {
			for _, u := range list {
				own.Add(node, u)
			}
			if node%(1<<16) == 0 && v.ctx.Err() != nil {
				return nil
			}
		}
		for node, list := range o.Lists() {
			for _, u := range list {
				other.Add(u, node)
			}
			if node%(1<<16) == 0 && v.ctx.Err() != nil {
				return nil
			}
		}
		if own != other {
			return fmt.Errorf("its edges are not those of %s the other way round", r.Relation.ReverseOf)
		}
		return nil
	}))
}

// checkEdgeSplit verifies the held-out edges of relation i. rows is the number of rows of its edge
// tables, as from edgeRows.
func (v *verifier) checkEdgeSplit(i int, rows uint64) {
	for p := range HeldTest + 1 {
		h, ok := v.d.HeldEdges(i, p)
		if !ok || h.place.of != nil { // see checkShared
			return
		}
		for _, e := range h.Part.ends() {
			if e.file != nil {
				nodes := h.targets
				if e.source {
					nodes = h.sources
				}
				v.check(e.file, func() error {
					h.inRange(e.file, 0, cast[NodeID](v.d.sections[e.file.Path].payload()), nodes)
					return nil
				})
			}
		}
		for j := range h.Part.Columns {
			c := &h.Part.Columns[j]
			v.check(&c.Values, func() error { return c.check(v.d.sections[c.Values.Path].payload(), rows) })
		}
	}
}

func (c *EdgeColumn) check(rows uint64) error { return c.Column.check(c.data, rows) }

// check refuses values that are not finite, and ids beyond the rows of the edge tables.
func (c *Column) check(data []byte, rows uint64) error {
	switch {
	case c.Elem == F32:
		for i, x := range cast[float32](data) {
			if x-x != 0 {
				return fmt.Errorf("edge %d is not finite", i)
			}
		}
	case c.Name == EdgeID && c.Elem == U32:
		return checkEdgeIDs(cast[uint32](data), rows)
	case c.Name == EdgeID:
		return checkEdgeIDs(cast[uint64](data), rows)
	}
	return nil
}

func checkEdgeIDs[T uint32 | uint64](ids []T, rows uint64) error {
	for i, id := range ids {
		if uint64(id) >= rows {
			return fmt.Errorf("edge %d has id %d, and its table has %d rows", i, id, rows)
		}
	}
	return nil
}

// checkShard refuses values that are not finite.
func (f *Features) checkShard(j int) error {
	s := f.shards[j]
	for v := s.FirstRow; v < s.FirstRow+s.Rows; v++ {
		row := f.RowAt(uint64(v))
		if f.Table.Elem == F16 {
			for c, h := range cast[uint16](row) {
				if h&0x7c00 == 0x7c00 {
					return fmt.Errorf("row %d, column %d is not finite", v, c)
				}
			}
			continue
		}
		for c, x := range cast[float32](row) {
			if x-x != 0 {
				return fmt.Errorf("row %d, column %d is not finite", v, c)
			}
		}
	}
	return nil
}

func (l *Labels) check() error {
	for v, c := range l.class {
		if c < -1 || int(c) >= l.Classes() {
			return fmt.Errorf("node %d has class %d of %d", v, c, l.Classes())
		}
	}
	for v, x := range l.number {
		if math.IsInf(float64(x), 0) {
			return fmt.Errorf("node %d has the number %v; numbers are finite, and NaN is missing", v, x)
		}
	}
	for i, b := range l.multi {
		if b > 1 && b != MissingBit {
			return fmt.Errorf("node %d, class %d: %d is neither 0, 1 nor missing", i/l.stride, i%l.stride, b)
		}
	}
	return nil
}

// checkPart marks ids in seen as belonging to part. It returns an error for an id that is out of
// order, out of range, or already in a part.
func checkPart(ids []NodeID, seen []uint8, part uint8) error {
	for i, v := range ids {
		if int(v) >= len(seen) {
			return fmt.Errorf("entry %d is node %d of %d", i, v, len(seen))
		}
		if i > 0 && ids[i-1] >= v {
			return fmt.Errorf("entry %d: node %d does not follow %d", i, v, ids[i-1])
		}
		if seen[v] != 0 {
			return fmt.Errorf("node %d is in two parts of the split", v)
		}
		seen[v] = part
	}
	return nil
}
