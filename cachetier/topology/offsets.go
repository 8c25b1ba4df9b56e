package topology

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
	"sync/atomic"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// offsets holds the edge at which the list of each node begins. Offsets are packed into cache
// lines, lineNodes to a line, so that a degree costs one cache miss. A line holds its first offset
// (u64), and for each offset its distance from the first (u16). A line whose offsets span 65,536
// edges or more does not fit: it holds wideMark plus the number of a wide line, which has all
// offsets in full.
type offsets struct {
	nodes       int
	lines, wide *kernels.HostBuf
	packed      []byte       // the bytes of lines
	full        []byte       // the bytes of wide
	wideUsed    atomic.Int64 // wide lines in use
}

const (
	lineBytes = 64
	lineNodes = (lineBytes - 8) / 2
	wideBytes = lineNodes * 8
	wideMark  = 1 << 63
	fileEntry = 8 // bytes of an offset in the file
)

// offsetBytes returns the memory that the offsets of a graph take: in lines, and at most in wide
// lines.
func offsetBytes(nodes int, edges int64) (lines, wide int64) {
	lines = int64(nodes)/lineNodes + 1 // one offset more than there are nodes
	return lines * lineBytes, min(lines, edges>>16) * wideBytes
}

// readOffsets reads the offsets file of g, file 0 of r, from its start to its end.
func readOffsets(ctx context.Context, g *store.Graph, r *disk.Reader) (_ *offsets, _ disk.Traffic, err error) {
	lines, wide := offsetBytes(g.Nodes(), g.Edges())
	o := &offsets{nodes: g.Nodes()}
	if o.lines, err = kernels.NewHostBuf(int(lines)); err != nil {
		return nil, disk.Traffic{}, err
	}
	if o.wide, err = kernels.NewHostBuf(int(wide)); err != nil {
		o.lines.Close()
		return nil, disk.Traffic{}, err
	}
	o.packed, o.full = o.lines.Bytes(), o.wide.Bytes()
	o.lines.Lend()
	o.wide.Lend()
	defer func() {
		o.lines.Return()
		o.wide.Return()
		if err != nil {
			o.close()
		}
	}()

	// An extent holds a portion of the offsets. Portions end where both a line and a page of the
	// file end, which is every 128 lines, or 7 pages.
	const unit = 128 * lineNodes
	if g.Shares() {
		return o, disk.Traffic{}, o.packShared(ctx, g, unit)
	}
	const portion = (disk.MaxExtent - store.PageSize) / (unit * fileEntry) * unit // in nodes; the page is room for one entry more
	entries, at := g.Nodes()+1, 0
	next := func() (disk.Extent, bool) {
		if at >= entries {
			return disk.Extent{}, false
		}
		lo, hi := at, min(at+portion, entries)
		at = hi
		// The first entry of the next portion is read as well. So a decrease between two portions
		// is seen, in whatever order they come.
		size := fileEntry * (min(hi+1, entries) - lo)
		return disk.Extent{Offset: store.PageSize + fileEntry*int64(lo), Size: size, Lo: lo, Hi: hi}, true
	}
	file, _ := g.Sections()
	t, err := r.Read(ctx, next, func(s disk.Extent, b []byte) error {
		if node, err := checkOffsets(b, s.Lo, entries, uint64(g.Edges())); err != nil {
			at := store.PageSize + fileEntry*int64(node)
			err = fmt.Errorf("%w; run gnnstore verify", err)
			return &store.SectionError{Dataset: file.Dataset, Section: file.Section, Offset: at, Err: err}
		}
		return o.pack(b[:fileEntry*(s.Hi-s.Lo)], s.Lo)
	})
	if err != nil {
		return nil, t, err
	}
	return o, t, nil
}

// packShared fills the lines of a graph that shares its files. No file has an offset for each node
// of such a graph, so packShared asks the graph for n offsets at a time.
func (o *offsets) packShared(ctx context.Context, g *store.Graph, n int) error {
	starts, b := make([]uint64, n), make([]byte, 0, n*fileEntry)
	for at := 0; at <= g.Nodes(); at += n {
		some := starts[:min(n, g.Nodes()+1-at)]
		if err := store.Guard(func() error { g.ListOffsets(at, some); return ctx.Err() }); err != nil {
			return err
		}
		b = b[:0]
		for _, start := range some {
			b = binary.LittleEndian.AppendUint64(b, start)
		}
		if err := o.pack(b, at); err != nil {
			return err
		}
	}
	return nil
}

// checkOffsets checks a portion of the offsets file that begins with node lo, and returns the node
// whose offset is wrong. Portions overlap by one entry. So if none has a wrong offset, the offsets
// begin at 0, never decrease, and end at edges.
func checkOffsets(b []byte, lo, entries int, edges uint64) (node int, err error) {
	last := uint64(0)
	for i := range len(b) / fileEntry {
		at := binary.LittleEndian.Uint64(b[fileEntry*i:])
		switch node = lo + i; {
		case node == 0 && at != 0:
			return node, fmt.Errorf("starts at %d, not 0", at)
		case at < last:
			return node, fmt.Errorf("decreases at node %d (%d > %d)", node, last, at)
		case at > edges || node == entries-1 && at != edges:
			return node, fmt.Errorf("node %d begins at edge %d, and there are %d edges", node, at, edges)
		}
		last = at
	}
	return 0, nil
}

// pack fills the lines of the offsets in b, which are as in the file. The first offset is for node
// lo, which begins a line.
func (o *offsets) pack(b []byte, lo int) error {
	le := binary.LittleEndian
	for ; len(b) > 0; lo += lineNodes {
		n := min(lineNodes, len(b)/fileEntry)
		line := o.packed[lo/lineNodes*lineBytes:][:lineBytes]
		first, last := le.Uint64(b), le.Uint64(b[fileEntry*(n-1):])
		if last-first < 1<<16 {
			le.PutUint64(line, first)
			for i := range n {
				le.PutUint16(line[8+2*i:], uint16(le.Uint64(b[fileEntry*i:])-first))
			}
		} else {
			slot := o.wideUsed.Add(1) - 1
			if (slot+1)*wideBytes > int64(len(o.full)) { // more wide lines than so many edges can make: another portion is wrong
				return errors.New("offsets are out of order")
			}
			le.PutUint64(line, wideMark|uint64(slot))
			copy(o.full[slot*wideBytes:], b[:fileEntry*n])
		}
		b = b[fileEntry*n:]
	}
	return nil
}

// span returns the edges of v's list: [lo, hi).
func (o *offsets) span(v uint32) (lo, hi uint64) {
	line, i := o.packed[int(v/lineNodes)*lineBytes:][:lineBytes], v%lineNodes
	first := binary.LittleEndian.Uint64(line)
	if i == lineNodes-1 || first >= wideMark {
		return o.at(v), o.at(v + 1)
	}
	behind := line[8+2*i:]
	return first + uint64(binary.LittleEndian.Uint16(behind)), first + uint64(binary.LittleEndian.Uint16(behind[2:]))
}

// at returns the edge at which v's list begins. at(nodes) is where the last list ends.
func (o *offsets) at(v uint32) uint64 {
	line, i := o.packed[int(v/lineNodes)*lineBytes:][:lineBytes], v%lineNodes
	first := binary.LittleEndian.Uint64(line)
	if first >= wideMark {
		return binary.LittleEndian.Uint64(o.full[(first-wideMark)*wideBytes+uint64(i)*8:])
	}
	return first + uint64(binary.LittleEndian.Uint16(line[8+2*i:]))
}

// prefix returns the number of nodes, from the first on, whose lists lie wholly in the first edges
// edges.
func (o *offsets) prefix(edges uint64) uint32 {
	return uint32(sort.Search(o.nodes, func(v int) bool { return o.at(uint32(v)+1) > edges }))
}

// owner returns the node whose list holds edge e.
func (o *offsets) owner(e uint64) uint32 {
	return uint32(sort.Search(o.nodes, func(v int) bool { return o.at(uint32(v)+1) > e }))
}

// close frees the memory.
func (o *offsets) close() {
	o.lines.Close()
	o.wide.Close()
	o.packed, o.full = nil, nil
}
