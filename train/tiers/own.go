package tiers

import (
	"context"

	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/store"
)

// ownLists wraps the Tier of a part. Callers name nodes by their numbers in the whole, and it
// translates them to rows. Asking for a node that another worker owns is a bug, and panics.
type ownLists struct {
	*topology.Tier
	own   store.Own
	nodes int // of the whole
}

func (l ownLists) rows(nodes []uint32) []uint32 {
	rows := make([]uint32, len(nodes))
	for i, v := range nodes {
		rows[i] = l.own.MustRow(v)
	}
	return rows
}

// Has reports whether the part has v's list.
func (l ownLists) Has(v uint32) bool {
	_, own := l.own.Row(v)
	return own
}

func (l ownLists) Nodes() int                  { return l.nodes }
func (l ownLists) Degree(v uint32) int         { return l.Tier.Degree(l.own.MustRow(v)) }
func (l ownLists) Neighbors(v uint32) []uint32 { return l.Tier.Neighbors(l.own.MustRow(v)) }
func (l ownLists) Weights(v uint32) []float32  { return l.Tier.Weights(l.own.MustRow(v)) }

// Resident returns a node: the part's lists of lower nodes are in memory, and its other lists are
// not. Rows ascend with nodes.
func (l ownLists) Resident() uint32 {
	return uint32(min(l.own.NodeAt(uint64(l.Tier.Resident())), uint64(l.nodes)))
}

func (l ownLists) Read(ctx context.Context, nodes []uint32, serve func(i, from int, part []uint32) error) error {
	return l.Tier.Read(ctx, l.rows(nodes), serve)
}

func (l ownLists) ReadWeights(
	ctx context.Context, nodes []uint32, serve func(i, from int, part []float32) error,
) error {
	return l.Tier.ReadWeights(ctx, l.rows(nodes), serve)
}

func (l ownLists) TakeValues(dst []float32, v uint32, places []uint32) {
	l.Tier.TakeValues(dst, l.own.MustRow(v), places)
}

func (l ownLists) ReadValues(
	ctx context.Context, column int, nodes []uint32, serve func(i, from int, part []float32) error,
) error {
	return l.Tier.ReadValues(ctx, column, l.rows(nodes), serve)
}

func (l ownLists) TakeRows(dst []uint32, v uint32, places []uint32) {
	l.Tier.TakeRows(dst, l.own.MustRow(v), places)
}

func (l ownLists) ReadRows(ctx context.Context, nodes []uint32, serve func(i, from int, part []uint32) error) error {
	return l.Tier.ReadRows(ctx, l.rows(nodes), serve)
}

func (l ownLists) SelfLoops(ctx context.Context) (count func(v uint32) int, err error) {
	loops, err := l.Tier.SelfLoops(ctx)
	if err != nil {
		return nil, err
	}
	return func(v uint32) int { return loops(l.own.MustRow(v)) }, nil
}
