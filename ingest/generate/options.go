package generate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Options change a kind. The zero value is the kind as it is, at full size.
type Options struct {
	Nodes     int64   // of all types together; default the kind's, or in proportion to Edges
	Edges     int64   // of all relations together; default the kind's, or in proportion to Nodes
	Scale     float64 // multiplies Nodes and Edges, given or not; default 1
	Dim       int     // feature columns; default the kind's
	Classes   int     // default the kind's
	Homophily float64 // share of edges that stay in the community for sure; default the kind's
	Signal    float64 // length of the classes' means, where noise has 1 a column; default the kind's
	Seed      uint64  // default 1
	Span      float64 // of kind temporal: seconds from the first event to the last, about; default 31 days
	// Shares of the nodes that can be labelled. Default: the kind's, when all three are 0; the rest
	// has no label.
	Train, Valid, Test float64
	Leak               bool // of kind churn: users have a column that tells their label
}

const (
	maxDim     = 1 << 14
	maxClasses = 1 << 15
	maxMeans   = 1 << 24 // values of the classes' means: 64 MiB
	maxNodes   = math.MaxUint32
	maxEdges   = 1 << 42
)

// kind is a benchmark's shape.
type kind struct {
	about     string
	name      string // of the dataset
	types     []typeShape
	relations []relationShape
	dim       int // of the first type, the one that is labelled
	classes   int
	parts     [3]int64 // of the split: train, valid, test
	split     string
	hidden    bool // test labels are
	homophily float64
	signal    float64
	traits    bool // classes are no communities: see traits
	triples   bool // a knowledge graph: nodes have no features, labels and split
	leaves    leaves
	stream    bool // of events, in its only relation
	drifts    bool // a stream whose users change what they like: see drifting
	tables    bool // tables, and never a dataset: see churnTables
}

type typeShape struct {
	name  string
	nodes int64
}

type relationShape struct {
	src, name, dst string
	edges          int64
	in, out        float64 // the largest in-degree and out-degree, as multiples of the mean
	shift          int     // of communities: see relation.home
}

// kinds have the counts of the datasets that they are named after: from OGB's and OGB-LSC's pages,
// and for reddit Hamilton, Ying and Leskovec, Inductive Representation Learning on Large Graphs,
// 2017, as GraphSAINT distributes it.
var kinds = map[string]kind{
	"papers100m": {
		about:     "ogbn-papers100M: 111 M nodes, 1.6 G edges, 128 features, 172 classes, labels for 1.4 %",
		name:      "ogbn_papers100M",
		types:     []typeShape{{"node", 111_059_956}},
		relations: []relationShape{{"node", "to", "node", 1_615_685_872, 10_000, 10_000, 0}},
		dim:       128, classes: 172, parts: [3]int64{1_207_179, 125_265, 214_338}, split: "time",
		homophily: 0.65, signal: 2,
	},
	"mag240m": {
		about: "MAG240M: papers, authors, institutions (244 M), 1.7 G edges, 768 features and 153 classes of papers",
		name:  "mag240m",
		types: []typeShape{{"paper", 121_751_666}, {"author", 122_383_112}, {"institution", 25_721}},
		relations: []relationShape{
			{"author", "writes", "paper", 386_022_720, 100, 1000, 0},
			{"author", "affiliated_with", "institution", 44_592_586, 100, 100, 0},
			{"paper", "cites", "paper", 1_297_748_926, 10_000, 1000, 0},
		},
		dim: 768, classes: 153, parts: [3]int64{1_112_392, 138_949, 146_818}, split: "time", hidden: true,
		homophily: 0.65, signal: 2,
	},
	"reddit": {
		about:     "Reddit posts: 233 k nodes of degree 492, 602 features, 41 classes, all labelled",
		name:      "reddit",
		types:     []typeShape{{"node", 232_965}},
		relations: []relationShape{{"node", "to", "node", 114_615_892, 44, 44, 0}},
		dim:       602, classes: 41, parts: [3]int64{153_431, 23_831, 55_703}, split: "role",
		homophily: 0.4, signal: 1.3,
	},
	"products": {
		about:     "ogbn-products: 2.4 M nodes, 61.9 M edges, 100 features, 47 classes, all labelled",
		name:      "ogbn_products",
		types:     []typeShape{{"node", 2_449_029}},
		relations: []relationShape{{"node", "to", "node", 61_859_140, 350, 350, 0}},
		dim:       100, classes: 47, parts: [3]int64{196_615, 39_323, 2_213_091}, split: "sales_ranking",
		homophily: 0.5, signal: 1.3,
	},
	"citations": {
		about:     "a harder graph: 10 M nodes, 150 M edges, 128 features, 40 classes that are no communities, half leaves, drift",
		name:      "citations",
		types:     []typeShape{{"node", 10_000_000}},
		relations: []relationShape{{"node", "to", "node", 150_000_000, 10_000, 100, 0}},
		dim:       128, classes: 40, parts: [3]int64{5_000_000, 1_000_000, 2_000_000}, split: "time",
		homophily: 0.7, signal: 1.5, traits: true, leaves: leaves{none: 0.15, one: 0.3},
	},
	triples: {
		about: "a knowledge graph: 10 M entities, 100 M triples of 16 relations, each of which joins a community to another; no features " +
			"and labels",
		name:      "kg",
		types:     []typeShape{{"entity", 10_000_000}},
		relations: tripleRelations(),
		dim:       1, classes: 64, homophily: 0.9, triples: true,
	},
	temporal: {
		about:     "a stream of events between users and items, as JODIE's wikipedia: 9 k nodes, 157 k events over {span}",
		name:      "GENERATED",
		types:     []typeShape{{"user", 8_227}, {"item", 1_000}},
		relations: []relationShape{{"user", "event", "item", 157_474, 30, 30, 0}},
		dim:       172, classes: 10, parts: [3]int64{110_232, 23_621, 23_621}, split: "time",
		homophily: 0.6, signal: 1.5, stream: true,
	},
	churn: {
		about:     "tables of 20 k users and 1 k products, whose users leave with a known probability: see truth.csv",
		name:      "churn",
		types:     []typeShape{{"user", 20_000}, {"product", 1_000}},
		relations: []relationShape{{"user", "buys", "product", 160_000, 50, 50, 0}, {"user", "knows", "user", 60_000, 50, 50, 0}},
		dim:       1, classes: 2, parts: [3]int64{12_000, 4_000, 4_000}, split: "part", tables: true,
	},
	"drift-s": driftKind("20 k events of 150 users and 60 items in 4 groups", 20_000, 150, 60, 4, 8),
	"drift-m": driftKind("40 k events of 300 users and 120 items in 6 groups", 40_000, 300, 120, 6, 12),
	"drift-l": driftKind("100 k events of 6,000 users and 1,000 items in 8 groups", 100_000, 6_000, 1_000, 8, 12),
}

// driftKind is a size of a stream that only a long memory tells much of.
func driftKind(about string, events, users, items int64, groups, dim int) kind {
	return kind{
		about: "a stream for memories, whose users change what they like: " + about, name: "drift",
		types: []typeShape{{"user", users}, {"item", items}}, relations: []relationShape{{"user", "event", "item", events, 30, 30, 0}},
		dim: dim, classes: groups, signal: 1, stream: true, drifts: true,
	}
}

const (
	temporal = "temporal"
	triples  = "kg"
)

// tripleRelations returns the relations of a knowledge graph. Their edges fall as 1/(n+2), and sum
// to 100 M.
func tripleRelations() (all []relationShape) {
	const n, edges = 16, 100_000_000
	sums := make([]float64, n+1)
	for i := range n {
		sums[i+1] = sums[i] + 1/float64(i+2)
	}
	before := int64(0)
	for i := range n {
		upTo := int64(math.Round(edges * (sums[i+1] / sums[n])))
		all = append(all, relationShape{"entity", fmt.Sprintf("r%02d", i), "entity", upTo - before, 2000, 2000, 37 * i % 64})
		before = upTo
	}
	return all
}

// Triples reports whether a kind is a knowledge graph, which is of use with an edge split.
func Triples(name string) bool { return kinds[name].triples }

// Kinds returns the names of all kinds, sorted.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }

// About describes a kind in a line.
func About(name string) string { return kinds[name].about }

// Raw reports whether a kind can become raw files.
func Raw(name string) bool { return !kinds[name].drifts }

// Tables reports whether a kind becomes tables with a schema, and no dataset.
func Tables(name string) bool { return kinds[name].tables }

// shape is a kind as the options change it: sizes are final.
type shape struct {
	kind
	key     string // the kind's
	seed    uint64
	nodes   int64
	edges   int64
	span    float64 // seconds of a stream
	options Options
}

// Validate reports every problem of the options for a kind, a line each.
func (o *Options) Validate(kind string) error {
	_, err := o.shape(kind)
	return err
}

// proportion scales n as full is scaled to given: 1 at least.
func proportion(n, given, full int64) int64 {
	return max(1, int64(math.Round(math.Min(float64(n)*(float64(given)/float64(full)), math.MaxInt64/2))))
}

// shape fills the defaults.
func (o *Options) shape(name string) (*shape, error) {
	k, ok := kinds[name]
	if !ok {
		return nil, fmt.Errorf("unknown kind %q; there are %s", name, strings.Join(Kinds(), ", "))
	}
	s := &shape{kind: k, key: name, seed: cmp.Or(o.Seed, 1), span: cmp.Or(o.Span, eventSpan), options: *o}
	s.homophily, s.signal = cmp.Or(o.Homophily, k.homophily), cmp.Or(o.Signal, k.signal)
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	scale := cmp.Or(o.Scale, 1)
	if !(scale > 0) || math.IsInf(scale, 0) {
		bad("{scale} %v: it multiplies nodes and edges, so it is above 0, as in 0.01", o.Scale)
		scale = 1
	}
	var fullNodes, fullEdges int64
	for _, t := range k.types {
		fullNodes += t.nodes
	}
	for _, r := range k.relations {
		fullEdges += r.edges
	}
	count := func(flag string, given, full int64, most float64) int64 {
		if given < 0 {
			bad("{%s} %d: a number from 1 on is wanted", flag, given)
		}
		if given <= 0 {
			given = full
		}
		n := math.Round(float64(given) * scale)
		if n > most {
			bad("{%s}: %.0f of them with the scale, and %.0f are the most", flag, n, most)
			n = float64(full)
		}
		return max(1, int64(n))
	}
	ownNodes, ownEdges := fullNodes, fullEdges
	switch { // one alone brings the other with it: a graph of another degree is asked for by both
	case o.Nodes > 0 && o.Edges == 0:
		ownEdges = proportion(fullEdges, o.Nodes, fullNodes)
	case o.Edges > 0 && o.Nodes == 0:
		ownNodes = proportion(fullNodes, o.Edges, fullEdges)
	}
	s.nodes = count("nodes", o.Nodes, ownNodes, float64(len(k.types))*maxNodes)
	s.edges = count("edges", o.Edges, ownEdges, maxEdges)
	number := func(flag string, given, own, most int) int {
		if given < 0 || given > most {
			bad("{%s} %d: want 1 to %d", flag, given, most)
		}
		if given <= 0 || given > most {
			return own
		}
		return given
	}
	s.dim = number("dim", o.Dim, k.dim, maxDim)
	s.classes = number("classes", o.Classes, k.classes, maxClasses)
	if int64(s.dim)*int64(s.classes) > maxMeans {
		bad("{dim} %d and {classes} %d: their product is at most %d", s.dim, s.classes, maxMeans)
	}
	s.share(fullNodes, fullEdges, bad)
	if k.triples && (o.Dim != 0 || o.Signal != 0 || o.Train != 0 || o.Valid != 0 || o.Test != 0) {
		bad("{dim}, {signal}, {train}, {valid} and {test}: entities of kind %s have no features and labels; leave them out", name)
	}
	if k.tables && (o.Dim != 0 || o.Classes != 0 || o.Signal != 0 || o.Homophily != 0) {
		bad("{dim}, {classes}, {signal} and {homophily}: kind %s has columns and classes of its own; leave them out", name)
	}
	if o.Leak && !k.tables {
		bad("{leak}: it is for kind %s; leave it out", churn)
	}
	if k.drifts && (o.Homophily != 0 || o.Train != 0 || o.Valid != 0 || o.Test != 0) {
		bad("{homophily}, {train}, {valid} and {test}: kind %s has none, and is split by {split} time:a/b/c; leave them out", name)
	}
	if k.drifts && s.dim < s.classes {
		bad("{dim} %d and {classes} %d: events of kind %s have a column for each class at least", s.dim, s.classes, name)
	}
	if k.drifts && s.types[1].nodes < int64(s.classes) {
		bad("{nodes}: %d of type %s for %d classes; ask for more nodes, or for fewer {classes}", s.types[1].nodes, s.types[1].name, s.classes)
	}
	if o.Span != 0 && (!(o.Span > 0 && o.Span < 1<<53) || name != temporal) {
		bad("{span} %v: it is the seconds that kind temporal takes, above 0", o.Span)
	}
	if !(s.homophily >= 0 && s.homophily <= 1) {
		bad("{homophily} %v: it is a share of the edges, from 0 to 1", o.Homophily)
	}
	if !(s.signal >= 0 && s.signal <= 1000) {
		bad("{signal} %v: want 0 to 1000", o.Signal)
	}
	s.setParts(k, fullNodes, bad)
	return s, errors.Join(errs...)
}

// share gives each type and relation its part of the nodes and edges: exactly all of them, and at
// full size the kind's.
func (s *shape) share(fullNodes, fullEdges int64, bad func(string, ...any)) {
	s.types, s.relations = slices.Clone(s.types), slices.Clone(s.relations)
	sum, before := int64(0), int64(0)
	for i := range s.types {
		t := &s.types[i]
		sum += t.nodes
		upTo := scaled(s.nodes, uint64(sum), uint64(fullNodes))
		t.nodes, before = upTo-before, upTo
		if t.nodes > maxNodes {
			bad("{nodes}: %d of type %s, and %d are the most", t.nodes, t.name, maxNodes)
			t.nodes = maxNodes
		}
		if t.nodes < 1 {
			bad("{nodes}: %d leave none for type %s; ask for more", s.nodes, t.name)
			t.nodes = 1
		}
	}
	if s.types[0].nodes < int64(s.classes) {
		bad("{nodes}: %d of type %s for %d classes; ask for more nodes, or for fewer {classes}", s.types[0].nodes, s.types[0].name, s.classes)
	}
	sum, before = 0, 0
	for i := range s.relations {
		r := &s.relations[i]
		sum += r.edges
		upTo := scaled(s.edges, uint64(sum), uint64(fullEdges))
		r.edges, before = upTo-before, upTo
	}
}

// setParts sizes the split: at least one node a part that is to have any.
func (s *shape) setParts(k kind, fullNodes int64, bad func(string, ...any)) {
	of := s.types[0].nodes
	if s.key == temporal {
		of = s.edges
	}
	given := [3]float64{s.options.Train, s.options.Valid, s.options.Test}
	sum := 0.0
	for i, f := range given {
		if !(f >= 0 && f <= 1) {
			bad("{%s} %v: a share of the nodes, from 0 to 1", [...]string{"train", "valid", "test"}[i], f)
		}
		sum += f
	}
	if sum > 1+1e-9 {
		bad("{train}, {valid} and {test}: the shares sum to %v, and 1 is all", sum)
		return
	}
	full := k.types[0].nodes
	if s.key == temporal {
		full = k.relations[0].edges
	}
	all := int64(0)
	for i := range s.parts {
		share := given[i]
		if sum == 0 {
			share = float64(s.parts[i]) / float64(full)
		}
		s.parts[i] = min(int64(math.Round(share*float64(of))), of-all)
		if share > 0 && s.parts[i] == 0 && all < of {
			s.parts[i] = 1
		}
		all += s.parts[i]
	}
}
