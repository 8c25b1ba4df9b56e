package topology

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
)

// loops counts the self loops of every node. bits has a bit for each node, set if it has any;
// several lists the nodes that have more than one.
type loops struct {
	memory  *kernels.HostBuf
	bits    []uint32
	several []further // ascending
}

// further is the number of self loops that node has beyond the first.
type further struct{ node, count uint32 }

// SelfLoops returns a function that counts how often v is its own neighbour. The function is safe
// for concurrent use, and valid until Close. The first call that succeeds goes through all lists
// once, from start to end: reading the lists of single nodes would read nearly all of them for
// every batch. The result takes a bit a node on top of the budget, and 8 bytes for each node with
// several loops.
func (t *Tier) SelfLoops(ctx context.Context) (count func(v uint32) int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.loops == nil {
		if t.mu.loops, err = t.findLoops(ctx); err != nil {
			return nil, fmt.Errorf("topology: self loops: %w", err)
		}
	}
	return t.mu.loops.count, nil
}

// findLoops counts the self loops in all lists. It adds the reads of the cold ones to Stats.Warmup.
func (t *Tier) findLoops(ctx context.Context) (_ *loops, err error) {
	l := &loops{}
	if l.memory, err = kernels.NewHostBuf((t.nodes + 31) / 32 * 4); err != nil {
		return nil, err
	}
	l.bits = l.memory.Uint32s()
	l.memory.Lend()
	defer func() {
		l.memory.Return()
		if err != nil {
			l.memory.Close()
		}
	}()
	var mu sync.Mutex // guards l.several
	find := func(v uint32, _ int, part []uint32) error {
		n, node := uint32(0), v
		if t.node != nil {
			node = t.node(v)
		}
		for _, u := range part {
			if u == node {
				n++
			}
		}
		if n == 0 {
			return nil
		}
		if atomic.OrUint32(&l.bits[v/32], 1<<(v%32))&(1<<(v%32)) == 0 {
			n-- // the bit stands for the first loop; if a list comes in parts, the first to come sets it
		}
		if n > 0 {
			mu.Lock()
			l.several = append(l.several, further{v, n})
			mu.Unlock()
		}
		return nil
	}
	for v := range t.resident {
		_ = find(v, 0, t.Neighbors(v))
	}
	lo, hi := t.offsets.at(t.resident), uint64(t.Edges())
	traffic, err := t.reader.Read(ctx, t.ids.edges(lo, hi), func(s disk.Extent, b []byte) error {
		return each(t, &t.ids, s, b, find)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(l.several, func(a, b further) int { return cmp.Compare(a.node, b.node) })
	n := 0
	for _, f := range l.several { // adds up the parts of one list
		if n > 0 && l.several[n-1].node == f.node {
			l.several[n-1].count += f.count
			continue
		}
		l.several[n] = f
		n++
	}
	l.several = slices.Clip(l.several[:n])
	t.stats.Lock()
	defer t.stats.Unlock()
	t.stats.Warmup.Count(int64(t.nodes)-int64(t.resident), 0, 4*int64(hi-lo), traffic)
	return l, nil
}

// count returns how often v is its own neighbour.
func (l *loops) count(v uint32) int {
	if l.bits[v/32]>>(v%32)&1 == 0 {
		return 0
	}
	i, ok := slices.BinarySearchFunc(l.several, v, func(f further, v uint32) int { return cmp.Compare(f.node, v) })
	if !ok {
		return 1
	}
	return 1 + int(l.several[i].count)
}
