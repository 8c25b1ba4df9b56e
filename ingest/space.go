package ingest

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// sectionOverhead bounds what a section takes beyond its payload: a header page, and padding to the end of a page.
const sectionOverhead = 2 * 4096

// manifestBytes is ample for the manifest of a dataset without many shards.
const manifestBytes = 1 << 20

// checkDeclaredSpace refuses early, from what the source declares, so that nobody waits for hours of reading. Where
// something is not declared it waits for checkSpace.
func (b *builder) checkDeclaredSpace() error {
	edges := int64(0)
	for _, r := range b.schema.Relations {
		if r.Edges < 0 {
			return nil
		}
		edges += r.Edges
	}
	counts := map[string]int64{}
	for _, t := range b.schema.NodeTypes {
		if counts[t.Name] = t.Count; t.IDs != RowIDs && t.Count <= 0 {
			return nil
		}
	}
	return b.checkFree(b.estimate(counts, edges))
}

// checkSpace refuses before the first large write of the dataset, when nodes and edges are counted.
func (b *builder) checkSpace(context.Context) error {
	counts := map[string]int64{}
	for _, n := range b.nodes {
		counts[n.name] = int64(n.count)
	}
	edges := int64(0)
	for _, r := range b.state.Relations {
		edges += max(r.Report.Edges, r.Report.EdgesRead)
	}
	return b.checkFree(b.estimate(counts, edges))
}

// estimate is the bytes of the dataset, a little more than it takes.
func (b *builder) estimate(counts map[string]int64, edges int64) int64 {
	s := b.schema
	sections := 2*len(s.NodeTypes) + 2*len(s.Relations) + len(s.Tables) + len(s.NodeTypes) + len(s.Labels) + 3*max(len(s.Splits), len(s.NodeTypes))
	total := manifestBytes + int64(sections)*sectionOverhead + 4*edges
	for _, t := range s.NodeTypes {
		total += 12 * counts[t.Name]
		if b.makes[t.Name] {
			total += counts[t.Name] * b.rowBytes(b.features.dim)
		}
	}
	for _, r := range s.Relations {
		total += 8 * (counts[r.Dst] + 1)
	}
	for _, t := range s.Tables {
		if !b.replaced(t) {
			total += counts[t.NodeType] * b.rowBytes(t.Dim)
		}
	}
	for _, l := range s.Labels {
		if l.Multi {
			total += counts[l.NodeType] * int64(l.Classes)
		} else {
			total += 4 * counts[l.NodeType]
		}
	}
	if b.split.kind != "given" {
		for _, n := range counts {
			total += 4 * n
		}
	} else {
		for _, p := range s.Splits {
			total += 4 * counts[p.NodeType]
		}
	}
	return total
}

// rowBytes is a row on disk: its stride is a power of two or packed to 16 bytes, at most 5 % more.
func (b *builder) rowBytes(dim int) int64 {
	size := int64(dim) * 2
	if b.DType == F32 {
		size *= 2
	}
	return size + max(size/20, 15)
}

// checkFree compares with the space left where the dataset goes. A file system that does not tell is believed to have it.
func (b *builder) checkFree(need int64) error {
	usage, err := b.FS.GetDiskUsage(b.FS.PathDir(b.out))
	if errors.Is(err, vfs.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("space left for %s: %w", b.out, err)
	}
	if uint64(need) > usage.AvailBytes {
		return fmt.Errorf("%s: the dataset needs about %d bytes and %d are free; make room or write it elsewhere", b.out, need, usage.AvailBytes)
	}
	return nil
}
