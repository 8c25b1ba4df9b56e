package trace

import (
	"slices"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
)

// asked has the rows and lists that a step would read from disk, if nothing were in memory.
type asked struct {
	rows  [][]uint32 // by table
	lists [][]uint32 // the nodes whose neighbours are drawn from, by hop and relation
}

// slab plans the windows of a run, step by step, with a fixed number of bytes for feature rows. A
// window has as many steps as fit with their different rows. It reads the rows that earlier windows
// did not leave there; belady keeps the rows that the next window needs. All neighbour lists are
// read, once for each window and hop.
//
// It holds the rows and lists of the steps of two windows, 4 bytes each, and the bookkeeping of a
// cachetier.Simulation for each table.
type slab struct {
	most   int // steps a window
	tables []slabTable
	graphs []*store.Graph // of asked.lists
	reader *disk.Reader

	steps   int
	windows [][]*asked // closed and not planned yet: one, so that belady sees it
	open    []*asked
	planned []window
}

// slabTable is the state of a slab for one table.
type slabTable struct {
	*cachetier.Simulation
	hot  uint32 // rows below are in the prefix
	room int    // rows of a window
	seen policy.Set
	held int // rows in seen
}

// window is a planned window.
type window struct {
	first, steps int
	rows         cachetier.Cost
	lists        disk.Traffic
}

// mostWindow bounds the steps of a window, so that a large slab does not hold the requests of a
// whole trace.
const mostWindow = 256

// newSlab divides bytes among tables in proportion to parts; prefix of them are for the rows that
// stand first. Windows have at most most steps.
func newSlab(tables []*data.Type, parts []float64, graphs []*store.Graph, bytes, prefix int64, most int, foresees bool, costs disk.Costs) (*slab, error) {
	s := &slab{most: min(most, mostWindow), graphs: graphs, reader: disk.Dry(costs)}
	for i, t := range tables {
		o := cachetier.Options{HostBytes: int64(float64(bytes) * parts[i]), StaticBytes: int64(float64(prefix) * parts[i]), Costs: costs}
		if foresees {
			o.Lookahead = 1
		}
		m, err := cachetier.Simulate(t.Features, o)
		if err != nil {
			s.close()
			return nil, err
		}
		s.tables = append(s.tables, slabTable{
			Simulation: m, hot: uint32(m.HotRows()), room: m.WindowRows(), seen: make(policy.Set, policy.SetWords(t.Features.Rows())),
		})
	}
	return s, nil
}

func (s *slab) close() {
	for _, t := range s.tables {
		t.Close()
	}
}

// add takes the next step.
func (s *slab) add(a *asked) {
	if !s.takes(a) || len(s.open) == s.most {
		s.cut()
		s.takes(a)
	}
	s.open = append(s.open, a)
}

// takes adds the rows of a step to the rows of the open steps, and reports whether all of them
// fit.
func (s *slab) takes(a *asked) bool {
	fits := true
	for i := range s.tables {
		t := &s.tables[i]
		any := false
		for _, v := range a.rows[i] {
			if v >= t.hot {
				any = true
				if t.seen.Add(v) {
					t.held++
				}
			}
		}
		fits = fits && (t.held <= t.room || !any)
	}
	return fits || len(s.open) == 0
}

// cut closes the window that is open, and plans the one before it.
func (s *slab) cut() {
	if len(s.open) == 0 {
		return
	}
	for i := range s.tables {
		t := &s.tables[i]
		clear(t.seen)
		t.held = 0
		var rows [][]uint32
		for _, a := range s.open {
			rows = append(rows, a.rows[i])
		}
		t.Expect(rows)
	}
	s.windows, s.open = append(s.windows, s.open), nil
	if len(s.windows) == 2 {
		s.plan()
	}
}

// plan plans the first closed window. If the slab fits fewer of its steps, it becomes several
// windows.
func (s *slab) plan() {
	for left := s.windows[0]; len(left) > 0; {
		n := len(left)
		for _, t := range s.tables {
			n = min(n, t.Fit())
		}
		w := window{first: s.steps, steps: n}
		for _, t := range s.tables {
			w.rows.Add(t.Next(n))
		}
		for i := range s.graphs {
			w.lists.Add(s.listsOf(i, left[:n]))
		}
		s.planned, s.steps, left = append(s.planned, w), s.steps+n, left[n:]
	}
	s.windows = s.windows[1:]
}

// listsOf returns the traffic of reading the lists of a hop and relation, for some steps together.
func (s *slab) listsOf(i int, steps []*asked) (t disk.Traffic) {
	var nodes []uint32
	for _, a := range steps {
		nodes = append(nodes, a.lists[i]...)
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	next := s.reader.Merge(len(nodes), func(k int) disk.Request {
		lo, hi := s.graphs[i].EdgesOf(nodes[k])
		return disk.Request{Offset: store.PageSize + 4*(s.graphs[i].FirstEdge()+int64(lo)), Size: 4 * int(hi-lo)}
	})
	for extent, ok := next(); ok; extent, ok = next() {
		t.Add(s.reader.Takes(extent))
	}
	return t
}

// finish plans the rest, and returns the reads of the windows that began at step from or later. It
// leaves out the last window, which the end of the trace cuts short, unless it is the only one.
func (s *slab) finish(from int) *Windows {
	s.cut()
	for len(s.windows) > 0 {
		s.plan()
	}
	counted := s.planned
	if i := slices.IndexFunc(counted, func(w window) bool { return w.first >= from }); i >= 0 {
		counted = counted[i:]
	} else {
		counted = counted[len(counted)-1:]
	}
	if n := len(counted); n > 1 {
		counted = counted[:n-1]
	}
	var sum window
	for _, w := range counted {
		sum.steps += w.steps
		sum.rows.Add(w.rows)
		sum.lists.Add(w.lists)
	}
	n := float64(sum.steps)
	w := &Windows{
		Windows: len(counted), Steps: n / float64(len(counted)), ColdRows: float64(sum.rows.Rows) / n,
		RowReads: float64(sum.rows.Reads) / n, RowBytes: float64(sum.rows.Bytes) / n, RowMS: 1e3 * sum.rows.Seconds / n,
		ListReads: float64(sum.lists.Reads) / n, ListBytes: float64(sum.lists.Bytes) / n, ListMS: 1e3 * s.reader.Costs().Seconds(sum.lists) / n,
	}
	w.DeviceMS = w.RowMS + w.ListMS
	return w
}
