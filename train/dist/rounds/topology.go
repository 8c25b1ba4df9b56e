package rounds

import (
	"fmt"
	"math"
	"slices"
)

// Limits of a topology.
const (
	maxWorkers = 256
	maxLinks   = 4096
)

// Topology has the links between workers, and the path of links from each worker to each other.
type Topology struct {
	name    string
	workers []string
	links   []Link
	paths   [][][]int // of lanes, by sender and receiver
}

// Link joins two places: workers, switches, sockets, machines.
type Link struct {
	Name           string
	Ends           [2]string
	BytesPerSecond float64 // in each direction
	// HalfDuplex: the link carries messages in one direction at a time. Default: each direction has
	// the whole rate.
	HalfDuplex bool
}

// Name returns the file of the topology, or what it is a model of.
func (t *Topology) Name() string { return t.name }

// Size returns the number of workers.
func (t *Topology) Size() int { return len(t.workers) }

// Path returns the lanes from one worker to another, in their order. Lanes 2k and 2k+1 are the
// directions of link k; a half-duplex link has lane 2k alone. Do not change it.
func (t *Topology) Path(from, to int) []int { return t.paths[from][to] }

func (t *Topology) lanes() int { return 2 * len(t.links) }

// speed returns the bytes a second of a lane.
func (t *Topology) speed(lane int) float64 { return t.links[lane/2].BytesPerSecond }

// builder collects the parts of a topology. Its methods return errors that name the part.
type builder struct {
	Topology
	linkAt map[string]int
	places map[string]*place
	rank   map[string]int // of workers
}

// place is where links end.
type place struct {
	name  string
	exits []exit
}

// exit is a lane from a place to another.
type exit struct {
	lane int
	to   string
}

func newBuilder(name string) *builder {
	return &builder{
		Topology: Topology{name: name},
		linkAt:   map[string]int{}, places: map[string]*place{}, rank: map[string]int{},
	}
}

// worker adds a worker.
func (b *builder) worker(name string) error {
	_, again := b.rank[name]
	switch {
	case name == "":
		return fmt.Errorf("a worker has no name; give it one")
	case again:
		return fmt.Errorf("worker %.40q is there twice; give each its own name", name)
	case len(b.workers) == maxWorkers:
		return fmt.Errorf("there are more than %d workers; rounds are for fewer", maxWorkers)
	}
	b.rank[name] = len(b.workers)
	b.workers = append(b.workers, name)
	return nil
}

// link adds a link. A link without a name is called by its ends, such as a-b.
func (b *builder) link(l Link) error {
	if l.Name == "" {
		l.Name = l.Ends[0] + "-" + l.Ends[1]
	}
	_, again := b.linkAt[l.Name]
	switch {
	case l.Ends[0] == "" || l.Ends[1] == "":
		return fmt.Errorf("link %.40q has an end without a name; name two places", l.Name)
	case l.Ends[0] == l.Ends[1]:
		return fmt.Errorf("link %.40q leads from %.40q to itself; name two places", l.Name, l.Ends[0])
	case again:
		return fmt.Errorf("link %.40q is there twice; give each its own name", l.Name)
	case len(b.links) == maxLinks:
		return fmt.Errorf("there are more than %d links; leave out places that no worker needs", maxLinks)
	case !(l.BytesPerSecond >= 1) || math.IsInf(l.BytesPerSecond, 1):
		return fmt.Errorf("link %.40q carries %v bytes a second; at least 1", l.Name, l.BytesPerSecond)
	}
	there := 2 * len(b.links)
	back := there + 1
	if l.HalfDuplex {
		back = there
	}
	b.linkAt[l.Name] = len(b.links)
	b.links = append(b.links, l)
	b.place(l.Ends[0]).exits = append(b.place(l.Ends[0]).exits, exit{there, l.Ends[1]})
	b.place(l.Ends[1]).exits = append(b.place(l.Ends[1]).exits, exit{back, l.Ends[0]})
	return nil
}

func (b *builder) place(name string) *place {
	if b.places[name] == nil {
		b.places[name] = &place{name: name}
	}
	return b.places[name]
}

// path sets the path from one worker to another, by the names of its links. Add all workers and
// links before.
func (b *builder) path(from, to string, over []string) error {
	b.makeRoom()
	for _, name := range []string{from, to} {
		if _, ok := b.rank[name]; !ok {
			return fmt.Errorf("a path names %.40q, which is no worker; name two workers", name)
		}
	}
	whole := fmt.Sprintf("the path from %.40q to %.40q", from, to)
	switch {
	case from == to:
		return fmt.Errorf("%s ends where it begins; name two workers", whole)
	case b.paths[b.rank[from]][b.rank[to]] != nil:
		return fmt.Errorf("%s is there twice; leave one out", whole)
	}
	at, been := from, map[string]bool{from: true}
	var lanes []int
	for _, name := range over {
		k, ok := b.linkAt[name]
		if !ok {
			return fmt.Errorf("%s goes over link %.40q, which is not there; name links of the list", whole, name)
		}
		i := slices.IndexFunc(b.place(at).exits, func(x exit) bool { return x.lane/2 == k })
		if i < 0 {
			return fmt.Errorf("%s goes from %.40q over link %.40q, which does not end there; list links in their order",
				whole, at, name)
		}
		out := b.place(at).exits[i]
		if at = out.to; been[at] {
			return fmt.Errorf("%s passes %.40q twice; leave the links of the circle out", whole, at)
		}
		been[at] = true
		lanes = append(lanes, out.lane)
	}
	if at != to {
		return fmt.Errorf("%s ends at %.40q; add the links that are missing", whole, at)
	}
	b.paths[b.rank[from]][b.rank[to]] = lanes
	return nil
}

func (b *builder) makeRoom() {
	for len(b.paths) < len(b.workers) {
		b.paths = append(b.paths, make([][]int, len(b.workers)))
	}
}

// finish returns the topology. A pair without a path of its own gets a path of as few links as
// possible; of several, the one whose links were added first. The path back is over the same links,
// unless it was set.
func (b *builder) finish() (*Topology, error) {
	if len(b.workers) < 2 {
		return nil, fmt.Errorf("there are %d workers; name two or more", len(b.workers))
	}
	for _, l := range b.links {
		for _, name := range l.Ends {
			if _, ok := b.rank[name]; !ok && len(b.place(name).exits) == 1 {
				return nil, fmt.Errorf("link %.40q alone ends at %.40q, which is no worker; is the name spelt right?",
					l.Name, name)
			}
		}
	}
	b.makeRoom()
	for p, from := range b.workers {
		back := b.search(from)
		for q := p + 1; q < len(b.workers); q++ {
			there, home, err := b.trace(back, from, b.workers[q])
			if err != nil {
				return nil, err
			}
			if b.paths[p][q] == nil {
				b.paths[p][q] = there
			}
			if b.paths[q][p] == nil {
				b.paths[q][p] = home
			}
		}
	}
	return &b.Topology, nil
}

// step is the last step of a search to a place: the place before it, and the lane.
type step struct {
	from string
	lane int
}

// search visits all places, nearest to from first, and returns how it came to each.
func (b *builder) search(from string) map[string]step {
	came := map[string]step{from: {}}
	queue := []string{from}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, x := range b.place(at).exits {
			if _, ok := came[x.to]; !ok {
				came[x.to] = step{at, x.lane}
				queue = append(queue, x.to)
			}
		}
	}
	return came
}

// trace returns the path that a search has found, and the path back over the same links.
func (b *builder) trace(came map[string]step, from, to string) (there, back []int, err error) {
	if _, ok := came[to]; !ok {
		return nil, nil, fmt.Errorf("no links lead from worker %.40q to worker %.40q; add what is missing between them",
			from, to)
	}
	for at := to; at != from; at = came[at].from {
		lane := came[at].lane
		there = append(there, lane)
		if !b.links[lane/2].HalfDuplex {
			lane ^= 1
		}
		back = append(back, lane)
	}
	slices.Reverse(there)
	return there, back, nil
}
