package partition

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/store"
)

// numbering has the owners of the nodes of each type, and the ids that nodes have in the parts.
type numbering struct {
	owners []store.Owners // by type
	ids    [][]uint32     // by type: the id of each node in the parts; nil: its id in the whole
	ends   [][]uint32     // by type: of the parts' ranges; nil by rule
	seal   string         // of the whole that the parts are of
}

// byRule leaves nodes their ids, and deals them out by rule.
func byRule(m *store.Manifest, parts int) *numbering {
	n := &numbering{seal: m.Seal}
	for range m.NodeTypes {
		n.owners = append(n.owners, store.OwnersByRule(parts))
	}
	return n
}

// byRange numbers nodes anew, so that each part owns a range of the nodes of each type. Nodes of a
// part stay in their order. part has the part of each node, by type.
func byRange(m *store.Manifest, parts int, part [][]uint16) *numbering {
	n := &numbering{}
	var h xxh3.Hasher
	_, _ = fmt.Fprintf(&h, "renumbered %s\n", m.Seal) // it does not fail, nor does Write
	for t := range part {
		ends, next := make([]uint32, parts), make([]uint32, parts)
		for _, q := range part[t] {
			ends[q]++
		}
		for q := 1; q < parts; q++ {
			next[q] = ends[q-1]
			ends[q] += ends[q-1]
		}
		ids := make([]uint32, len(part[t]))
		for v, q := range part[t] {
			ids[v] = next[q]
			next[q]++
		}
		n.owners = append(n.owners, store.OwnersByRange(ends))
		n.ids, n.ends = append(n.ids, ids), append(n.ends, ends)
		var b []byte
		for v, id := range ids {
			if b = binary.LittleEndian.AppendUint32(b, id); len(b) >= 1<<16 || v == len(ids)-1 {
				_, _ = h.Write(b)
				b = b[:0]
			}
		}
	}
	sum := h.Sum128().Bytes()
	n.seal = hex.EncodeToString(sum[:])
	return n
}

// kind returns the Part.Owner of the parts.
func (n *numbering) kind() string {
	if n.ids == nil {
		return store.ByRule
	}
	return store.ByRange
}

// order returns how the nodes of the parts are numbered. Numbered anew, small ids are no hotter
// than others, as they are by degree: each part has its hot nodes first.
func (n *numbering) order(m *store.Manifest) string {
	if n.ids == nil {
		return m.Order
	}
	return "original"
}

// id returns the id of node v of type t in the parts.
func (n *numbering) id(t int, v uint32) uint32 {
	if n.ids == nil {
		return v
	}
	return n.ids[t][v]
}

// some returns the ids of nodes in the parts. The result may be nodes itself.
func (n *numbering) some(t int, nodes []uint32) []uint32 {
	if n.ids == nil {
		return nodes
	}
	ids := make([]uint32, len(nodes))
	for i, v := range nodes {
		ids[i] = n.ids[t][v]
	}
	return ids
}

// inverse returns the ids in the whole of all nodes, in the order of the parts; nil by rule: they
// are the same.
func (n *numbering) inverse(t int) []uint32 {
	if n.ids == nil {
		return nil
	}
	nodes := make([]uint32, len(n.ids[t]))
	for v, id := range n.ids[t] {
		nodes[id] = uint32(v)
	}
	return nodes
}

// nodeBytes is the most memory that ranges take for a node: its id (4 bytes), its place in the
// inverse (4), and a bit for the nodes that train. The part (2) is dropped before the inverse.
const nodeBytes = 9

// checkMemory refuses ranges for more nodes than there is memory for.
func (w *writer) checkMemory() error {
	nodes := int64(0)
	for i := range w.m.NodeTypes {
		nodes += w.m.NodeTypes[i].Count
	}
	if need := nodes * nodeBytes; w.Memory > 0 && need > w.Memory {
		return fmt.Errorf("%s: {by} %s takes %d MiB of memory for %d nodes, and there are %d MiB; take {by} rule, "+
			"which takes none for them", w.ds.Path(), w.By[0], need>>20, nodes, w.Memory>>20)
	}
	return nil
}

// byFile is the Report.By of parts that files have.
const byFile = "file"

// checkBy refuses what By cannot be. files has the file of each node type; nil: there are none.
func (w *writer) checkBy() (files []string, err error) {
	switch by := w.By; {
	case slices.Equal(by, []string{ByRule}):
		w.report.By = ByRule
		return nil, nil
	case slices.Equal(by, []string{ByGreedy}):
		w.report.By = ByGreedy
	case slices.Contains(by, ByRule) || slices.Contains(by, ByGreedy):
		return nil, fmt.Errorf("{by} %s: %s and %s stand alone; give a file of such a name as ./%s",
			strings.Join(by, ", "), ByRule, ByGreedy, by[0])
	default:
		w.report.By = byFile
		if files, err = w.filesOf(); err != nil {
			return nil, err
		}
	}
	return files, w.checkMemory()
}

// number deals out the nodes.
func (w *writer) number(files []string) error {
	var parts [][]uint16
	var err error
	switch w.report.By {
	case ByRule:
		w.numbering = byRule(w.m, w.Parts)
	case ByGreedy:
		parts, err = w.greedily()
	default:
		parts, err = w.fromFiles(files)
	}
	if err == nil && parts != nil {
		err = checkParts(parts, w.Parts, strings.Join(w.By, ", "))
	}
	if err != nil {
		return err
	}
	if parts != nil {
		w.numbering = byRange(w.m, w.Parts, parts)
	}
	w.report.Of, w.report.Owner = w.numbering.seal, w.numbering.kind()
	w.countTrain()
	w.noteLoads()
	return nil
}

// countTrain adds the nodes that train to the report.
func (w *writer) countTrain() {
	counts := make([]int64, w.Parts)
	for t, set := range w.trains() {
		for i, word := range set {
			for ; word != 0; word &= word - 1 {
				v := uint32(64*i + bits.TrailingZeros64(word))
				counts[w.numbering.owners[t].Owner(w.numbering.id(t, v))]++
			}
		}
	}
	for q, n := range counts {
		w.report.TrainNodes.add(q, n)
	}
}

// noteLoads notes that weights will differ, and which parts are large.
func (w *writer) noteLoads() {
	if w.numbering.ids == nil {
		return
	}
	note := func(format string, args ...any) {
		w.report.Notes = append(w.report.Notes, fmt.Sprintf(format, args...))
	}
	note("nodes are numbered anew, so networks draw other neighbours, and get other weights, than from the whole " +
		"dataset")
	if w.report.By != byFile {
		return // greedy keeps within the cap
	}
	var nodes Load
	for q := range w.Parts {
		n := int64(0)
		for t := range w.m.NodeTypes {
			n += w.numbering.owners[t].Count(w.m.NodeTypes[t].Count, q)
		}
		nodes.add(q, n)
	}
	for _, of := range []struct {
		what string
		load Load
	}{{"nodes", nodes}, {"nodes that train", w.report.TrainNodes}} {
		if skew := of.load.Skew(w.Parts); of.load.Largest > capOf(of.load.Total, w.Parts) {
			note("part %d has %.2f times the mean of the %s; its worker is slower, and takes more memory",
				of.load.Part, skew, of.what)
		}
	}
}

// typeOf returns the number of a node type; -1: no type has that name.
func (w *writer) typeOf(name string) int {
	return slices.IndexFunc(w.m.NodeTypes, func(t store.NodeType) bool { return t.Name == name })
}

// trains returns a bit for each node, by type: whether it trains by the first split of its type.
func (w *writer) trains() [][]uint64 {
	all, known := make([][]uint64, len(w.m.NodeTypes)), make([]bool, len(w.m.NodeTypes))
	for t := range all {
		all[t] = make([]uint64, (w.m.NodeTypes[t].Count+63)/64)
	}
	for i := range w.m.Splits {
		t := w.typeOf(w.m.Splits[i].NodeType)
		if known[t] {
			continue
		}
		known[t] = true
		for _, v := range w.ds.Split(i).Train {
			if int64(v) < w.m.NodeTypes[t].Count { // else labels refuses it
				all[t][v/64] |= 1 << (v % 64)
			}
		}
	}
	return all
}

// ones counts the bits of a set.
func ones(set []uint64) (n int) {
	for _, word := range set {
		n += bits.OnesCount64(word)
	}
	return n
}
