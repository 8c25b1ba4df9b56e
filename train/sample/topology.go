package sample

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
)

// Topology is the neighbour lists of one relation: degrees and some lists are in memory, the others
// are read many at a time. A topology.Tier is one; [AtHand] makes one of lists that need no
// reading. Several goroutines at once may call all methods but Read.
type Topology interface {
	// Nodes is the number of destinations: ids of nodes with a list are below it.
	Nodes() int
	// Neighbors returns v's in-neighbours, ascending, for v below Resident; the slice is only read,
	// and not kept.
	Neighbors(v uint32) []uint32
	// Degree is the number of v's in-neighbours.
	Degree(v uint32) int
	// Resident is the number of nodes, the first ones, whose lists are in memory.
	Resident() uint32
	// Read reads the lists of nodes, which ascend, are not below Resident and have neighbours.
	// serve gets each list, whole or in parts that begin at neighbour from; several calls run at
	// once. serve only reads the part, and does not keep it. The end of ctx is an error.
	Read(ctx context.Context, nodes []uint32, serve func(i, from int, part []uint32) error) error
	// SelfLoops returns a function that counts how often v is its own neighbour.
	SelfLoops(ctx context.Context) (count func(v uint32) int, err error)
	// Count counts lists that were drawn from: hits were resident, misses were not.
	Count(hits, misses int64)
}

// WeightedTopology is a Topology whose edges have weights.
type WeightedTopology interface {
	Topology
	// Weights returns the weights of v's edges, v being below Resident, in the order of Neighbors.
	Weights(v uint32) []float32
	// ReadWeights does for weights what Read does for lists.
	ReadWeights(ctx context.Context, nodes []uint32, serve func(i, from int, part []float32) error) error
}

// Lists are neighbour lists that are all at hand: in memory, or mapped. A store.Graph is one.
type Lists interface {
	Nodes() int
	Neighbors(v uint32) []uint32 // of any v; ascending, only read, and not kept
}

// AtHand makes a Topology of lists. It is a WeightedTopology if lists have a method Weights(v) that
// returns the weights of v's edges.
func AtHand(lists Lists) Topology {
	if weighted, ok := lists.(interface{ Weights(v uint32) []float32 }); ok {
		return weightedAtHand{atHand{lists}, weighted.Weights}
	}
	return atHand{lists}
}

type atHand struct{ Lists }

func (a atHand) lists() Lists        { return a.Lists }
func (a atHand) Degree(v uint32) int { return len(a.Neighbors(v)) }
func (a atHand) Resident() uint32    { return math.MaxUint32 }
func (a atHand) Count(_, _ int64)    {}
func (a atHand) Read(context.Context, []uint32, func(i, from int, part []uint32) error) error {
	panic("sample: a list is read that is at hand")
}

func (a atHand) SelfLoops(context.Context) (count func(v uint32) int, err error) {
	return func(v uint32) int { return selfLoops(a.Neighbors(v), v) }, nil
}

type weightedAtHand struct {
	atHand
	weights func(v uint32) []float32
}

func (w weightedAtHand) Weights(v uint32) []float32 { return w.weights(v) }
func (w weightedAtHand) ReadWeights(context.Context, []uint32, func(i, from int, part []float32) error) error {
	panic("sample: weights are read that are at hand")
}

// Values are the numbers that the edges of one relation bring along, in numbered columns. They are
// resident where the relation's lists are, else read many at a time. A topology.Tier has them.
// TakeValues is called by several goroutines at once.
type Values interface {
	Columns() int
	// TakeValues copies to dst the values of v's edges at places of its list, v being below
	// Topology.Resident: one edge behind the other, in the order of columns.
	TakeValues(dst []float32, v uint32, places []uint32)
	// ReadValues does for a column what Topology.Read does for lists.
	ReadValues(ctx context.Context, column int, nodes []uint32, serve func(i, from int, part []float32) error) error
}

// Rows has the number of the row of a table for each edge of one relation. They are resident where
// the relation's lists are, else read many at a time. A topology.Tier has them. TakeRows is called
// by several goroutines at once.
type Rows interface {
	// TakeRows copies to dst the numbers of the rows of v's edges at places of its list, v being
	// below Topology.Resident.
	TakeRows(dst []uint32, v uint32, places []uint32)
	// ReadRows does for them what Topology.Read does for lists.
	ReadRows(ctx context.Context, nodes []uint32, serve func(i, from int, part []uint32) error) error
}

// Unweighted gives each edge of t the weight 1, for a relation without weights beside relations
// with weights.
func Unweighted(t Topology) WeightedTopology { return &unweighted{Topology: t} }

type unweighted struct {
	Topology
	ones atomic.Pointer[[]float32] // as many as were asked for at once
}

func (u *unweighted) lists() Lists {
	if a, ok := u.Topology.(interface{ lists() Lists }); ok {
		return a.lists()
	}
	return u.Topology
}

func (u *unweighted) Weights(v uint32) []float32 { return u.all(u.Degree(v)) }

func (u *unweighted) ReadWeights(_ context.Context, nodes []uint32, serve func(i, from int, part []float32) error) error {
	const most = 1 << 16
	for i, v := range nodes {
		degree := u.Degree(v)
		for from := 0; from < degree; from += most {
			if err := serve(i, from, u.all(min(most, degree-from))); err != nil {
				return err
			}
		}
	}
	return nil
}

// all returns n weights of 1.
func (u *unweighted) all(n int) []float32 {
	if w := u.ones.Load(); w != nil && len(*w) >= n {
		return (*w)[:n]
	}
	w := make([]float32, n+n/2)
	for i := range w {
		w[i] = 1
	}
	u.ones.Store(&w)
	return w[:n]
}

// selfLoops counts u in its own list.
func selfLoops(list []uint32, u uint32) int {
	lo, _ := slices.BinarySearch(list, u)
	n := 0
	for _, w := range list[lo:] {
		if w != u {
			break
		}
		n++
	}
	return n
}

// NeighborError says that a list has a neighbour that the source type does not have.
type NeighborError struct {
	Relation       int // by number
	Node, Neighbor uint32
	Nodes          int // of the source type
}

func (e *NeighborError) Error() string {
	return fmt.Sprintf("node %d has neighbour %d, and there are %d nodes", e.Node, e.Neighbor, e.Nodes)
}

// WeightError is a weight that edges cannot have: negative, infinite or NaN.
type WeightError struct {
	Relation int // by number
	Node     uint32
	Place    int // in the node's list
	Weight   float32
}

func (e *WeightError) Error() string {
	return fmt.Sprintf("neighbour %d of node %d has the weight %v; weights are finite and at least 0", e.Place, e.Node, e.Weight)
}

// ValueError is a value of an edge that is NaN or infinite.
type ValueError struct {
	Relation, Column int // by number
	Node             uint32
	Place            int // in the node's list
	Value            float32
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("neighbour %d of node %d has the value %v in column %d", e.Place, e.Node, e.Value, e.Column)
}

// RowError is an edge with a row that its table does not have.
type RowError struct {
	Relation int // by number
	Node     uint32
	Place    int // in the node's list
	Row      uint32
	Rows     int // of the table
}

func (e *RowError) Error() string {
	return fmt.Sprintf("neighbour %d of node %d has row %d, and the table has %d", e.Place, e.Node, e.Row, e.Rows)
}

// relation is one relation of a Sampler: its number and ends in the Schema, and its lists.
type relation struct {
	Relation
	number   int
	topo     Topology
	weighted WeightedTopology // topo, where weights are wanted
	resident uint32
	near     interface{ Neighbors(v uint32) []uint32 } // topo, or what AtHand wrapped: saves a call for each list
	values   Values                                    // values of edges, columns of them an edge; nil: none
	columns  int
	rows     Rows // of a table, likewise
	table    int
}

// brings reports whether edges bring anything along.
func (r *relation) brings() bool { return r.columns > 0 || r.rows != nil }

func newRelation(number int, ends Relation, topo Topology, c *Config) relation {
	r := relation{Relation: ends, number: number, topo: topo, resident: topo.Resident(), near: topo}
	if a, ok := topo.(interface{ lists() Lists }); ok {
		r.near = a.lists()
	}
	if c.Weighted {
		r.weighted = topo.(WeightedTopology)
	}
	return r
}

// lend sets lists to the lists of nodes, at most ahead of them. A list that is not resident has
// a degree and no ids.
func (r *relation) lend(lists *[ahead]list, nodes []uint32) {
	for i, v := range nodes {
		if v >= r.resident {
			lists[i] = list{degree: r.topo.Degree(v)}
			continue
		}
		ids := r.near.Neighbors(v)
		lists[i] = list{ids: ids, degree: len(ids)}
	}
	if r.weighted == nil {
		return
	}
	for i, v := range nodes { // apart, so that the cache misses of the loop above do not wait for each other
		if v < r.resident {
			lists[i].weights = r.weighted.Weights(v)
		}
	}
}
