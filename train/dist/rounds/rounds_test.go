package rounds

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// valid checks rounds by the definition: every pair that has bytes is there once, and no lane is in
// two paths of a round.
func valid(t *testing.T, topology *Topology, rounds []Round, bytes [][]int64) {
	t.Helper()
	sent := Equal(topology.Size(), 0)
	for r, round := range rounds {
		require.NotEmpty(t, round)
		by := map[int]Pair{}
		for _, pair := range round {
			require.NotEqual(t, pair.From, pair.To)
			require.Zero(t, sent[pair.From][pair.To], "pair %v is there twice", pair)
			sent[pair.From][pair.To] = bytes[pair.From][pair.To]
			require.NotZero(t, sent[pair.From][pair.To], "pair %v has no bytes", pair)
			for _, lane := range topology.Path(pair.From, pair.To) {
				other, taken := by[lane]
				require.False(t, taken, "round %d: %v and %v pass lane %d", r, other, pair, lane)
				by[lane] = pair
			}
		}
	}
	for p := range bytes {
		for q, n := range bytes[p] {
			if p != q {
				require.Equal(t, n, sent[p][q])
			}
		}
	}
}

// first is the reference for Place: it looks at every earlier round, lane by lane.
func first(t *Topology, pairs []Pair) (rounds []Round) {
	for _, pair := range pairs {
		r := slices.IndexFunc(rounds, func(round Round) bool {
			return !slices.ContainsFunc(round, func(other Pair) bool {
				return slices.ContainsFunc(t.Path(other.From, other.To), func(lane int) bool {
					return slices.Contains(t.Path(pair.From, pair.To), lane)
				})
			})
		})
		if r < 0 {
			r, rounds = len(rounds), append(rounds, nil)
		}
		rounds[r] = append(rounds[r], pair)
	}
	return rounds
}

// least returns the number of rounds that any schedule needs: the messages of the busiest lane.
func least(t *Topology, bytes [][]int64) (rounds int) {
	for _, l := range t.loads(bytes) {
		rounds = max(rounds, l.messages)
	}
	return rounds
}

// anyTopology returns a connected topology with links and paths at random.
func anyTopology(r *rand.Rand) *Topology {
	b := newBuilder("any")
	for w := range 2 + r.IntN(9) {
		check(b.worker(fmt.Sprint("w", w)))
	}
	places := slices.Clone(b.workers)
	join := func(a, c string) {
		l := Link{Ends: [2]string{a, c}, BytesPerSecond: 1 + r.Float64()*1e9, HalfDuplex: r.IntN(4) == 0}
		l.Name = fmt.Sprint("l", len(b.links))
		check(b.link(l))
	}
	for i, w := range places[1:] { // a tree
		join(places[r.IntN(i+1)], w)
	}
	for s := range r.IntN(4) {
		place := fmt.Sprint("s", s)
		for _, i := range r.Perm(len(places))[:2] {
			join(place, places[i])
		}
		places = append(places, place)
	}
	return model{b}.done()
}

// anyBytes returns bytes at random, some of them 0 and many equal.
func anyBytes(r *rand.Rand, n int) [][]int64 {
	bytes := Equal(n, 0)
	for p := range bytes {
		for q := range bytes[p] {
			if p != q && r.IntN(5) > 0 {
				bytes[p][q] = []int64{1, 1 << 20, r.Int64N(1 << 30)}[r.IntN(3)]
			}
		}
	}
	return bytes
}

// TestSchedule: rounds are valid, equal to the reference, and the same each time. No lower bound of
// all schedules is passed, in number or in time.
func TestSchedule(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		topology := anyTopology(r)
		bytes := anyBytes(r, topology.Size())
		rounds := Schedule(topology, bytes)
		valid(t, topology, rounds, bytes)
		require.Equal(t, rounds, Schedule(topology, bytes))
		require.GreaterOrEqual(t, len(rounds), least(topology, bytes))
		seconds := topology.Seconds(rounds, bytes)
		require.GreaterOrEqual(t, seconds*(1+1e-12), topology.OneShot(bytes, 0))
		if at := topology.BreakEven(bytes, seconds); !math.IsInf(at, 1) {
			require.InEpsilon(t, seconds, topology.OneShot(bytes, at), 1e-9)
		}
		pairs := Pairs(bytes)
		slices.SortStableFunc(pairs, func(a, b Pair) int {
			return cmp.Compare(topology.alone(b, bytes), topology.alone(a, bytes))
		})
		require.Equal(t, first(topology, pairs), rounds)
		r.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
		require.Equal(t, first(topology, pairs), Place(topology, pairs))
		valid(t, topology, Fixed(topology), Equal(topology.Size(), 1))
	}
}

// models has topologies of this package, with numbers of rounds for equal bytes: by Schedule, by
// Fixed, and the fewest that any schedule can have.
var models = []struct {
	*Topology
	scheduled, fixed, least int
}{
	{PCIe(2, 2, 12e9), 5, 4, 4}, // FreshGNN's five
	{PCIe(2, 4, 12e9), 19, 16, 16},
	{CubeMesh(20e9), 4, 4, 4},
	{Mesh(8, 20e9), 1, 1, 1},
	{Switch(16, 150e9), 15, 15, 15},
	{Sockets(4, 12e9, 20e9), 19, 16, 16},
	{Sockets(9, 1e9, 1e9), 81, 81, 81}, // more than a word of rounds
	{FatTree(4, 4, 2, 1.25e9), 27, 24, 24},
	{FatTree(4, 4, 4, 1.25e9), 15, 15, 15},
}

func TestModels(t *testing.T) {
	for _, m := range models {
		bytes := Equal(m.Size(), 1<<20)
		rounds := Schedule(m.Topology, bytes)
		valid(t, m.Topology, rounds, bytes)
		require.Len(t, rounds, m.scheduled, m.Name())
		require.Len(t, Fixed(m.Topology), m.fixed, m.Name())
		require.Equal(t, m.least, least(m.Topology, bytes), m.Name())
	}
	four := PCIe(2, 2, 1<<20)
	require.Equal(t, 5.0, four.Seconds(Schedule(four, Equal(4, 1<<20)), Equal(4, 1<<20)))
	require.Equal(t, 4.0, four.OneShot(Equal(4, 1<<20), 0))
	require.Equal(t, 4*1.3, four.OneShot(Equal(4, 1<<20), 0.1), "four messages pass the root")
	require.InEpsilon(t, 0.25/3, four.BreakEven(Equal(4, 1<<20), 5), 1e-12)
}

// TestRandomOrder: where bytes differ, pairs placed in a random order take longer on average.
func TestRandomOrder(t *testing.T) {
	for _, m := range models {
		var ordered, random float64
		for seed := range uint64(100) {
			r := rand.New(rand.NewPCG(seed, 2))
			bytes := Equal(m.Size(), 0)
			for p := range bytes {
				for q := range bytes[p] {
					bytes[p][q] = 1 + r.Int64N(1<<20)
				}
			}
			pairs := Pairs(bytes)
			ordered += m.Seconds(Schedule(m.Topology, bytes), bytes)
			r.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
			random += m.Seconds(Place(m.Topology, pairs), bytes)
		}
		if m.scheduled == 1 {
			require.Equal(t, random, ordered, m.Name())
		} else {
			require.Greater(t, random, 1.1*ordered, m.Name())
		}
	}
}

// TestPaths: a path has the fewest links, the path back has the same links, and a path that is set
// replaces them.
func TestPaths(t *testing.T) {
	text, err := os.ReadFile("testdata/racks.yaml")
	require.NoError(t, err)
	racks, err := Parse("racks.yaml", text)
	require.NoError(t, err)
	require.Equal(t, "racks.yaml", racks.Name())
	require.Equal(t, []string{"m0", "m1", "m2", "m3"}, racks.workers)
	trunk := Link{Name: "trunk", Ends: [2]string{"rack0", "rack1"}, BytesPerSecond: 125e6, HalfDuplex: true}
	require.Equal(t, trunk, racks.links[4])
	for _, c := range []struct {
		from, to int
		want     []int
	}{
		{0, 1, []int{0, 3}}, {1, 0, []int{2, 1}},
		{1, 2, []int{2, 8, 5}}, {2, 1, []int{4, 8, 3}}, // over the trunk, which has one lane
		{0, 3, []int{0, 10, 7}}, {3, 0, []int{6, 8, 1}}, // only the way there is over the spare
	} {
		require.Equal(t, c.want, racks.Path(c.from, c.to), "from %d to %d", c.from, c.to)
	}
	cube := CubeMesh(1)
	require.Len(t, cube.Path(0, 7), 2)
	require.Equal(t, []int{0}, cube.Path(0, 4))
	require.Equal(t, []int{1}, cube.Path(4, 0))
}

// plain is the text of a small topology, and ends with its list of links.
const plain = "workers: [a, b]\nlinks:\n  - {between: [a, b], rate: 1GB}\n"

// TestParseRefuses: a message has the file, the line, the reason and a remedy.
func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "there is nothing in it; list workers and links"},
		{"# only a comment\n", "there is nothing in it; list workers and links"},
		{"a: [", "not YAML: "},
		{"[a]", "line 1: a topology is expected here, with some of the keys workers, links, paths"},
		{plain + "---\n" + plain, "there is a second document in it; leave one out"},
		{plain + "loops: []", `line 4: a topology has no key "loops"; there are workers, links, paths`},
		{plain + "links: []", "line 4: key links is there twice; leave one out"},
		{"workers: a", "line 1: a list is expected here; write [a, b], or begin each entry with a dash"},
		{"workers: [a, [b]]", "line 1: a name or a number is expected here, which is one word"},
		{"workers: [a, '']", "line 1: a name or a number is expected here, which is one word"},
		{"workers: [a, &x b, *x]", "line 1: a name or a number is expected here, which is one word"},
		{"workers: [a, a]", `line 1: worker "a" is there twice; give each its own name`},
		{"workers: [a]", "there are 1 workers; name two or more"},
		{"links: []", "there are 0 workers; name two or more"},
		{"workers: [a, b]", `no links lead from worker "a" to worker "b"; add what is missing between them`},
		{
			plain + "  - {between: [a, b], rate: 1GB}",
			`line 4: link "a-b" is there twice; give each its own name`,
		},
		{
			plain + "  - {between: [a, a], rate: 1GB}",
			`line 4: link "a-a" leads from "a" to itself; name two places`,
		},
		{plain + "  - {between: [a], rate: 1GB}", "line 4: a link joins two places; write between: [a, b]"},
		{
			plain + "  - {between: [a, c], rate: 1GB}",
			`link "a-c" alone ends at "c", which is no worker; is the name spelt right?`,
		},
		{
			plain + "  - {name: x, between: [a, b]}",
			"line 4: a link has a rate a second; write rate: 10Gbit, or rate: 12GB",
		},
		{
			plain + "  - {name: x, between: [a, b], rate: 12}",
			"line 4: a link has a rate a second; write rate: 10Gbit, or rate: 12GB",
		},
		{
			plain + "  - {name: x, between: [a, b], rate: 0GB}",
			`line 4: link "x" carries 0 bytes a second; at least 1`,
		},
		{
			plain + "  - {name: x, between: [a, b], rate: nanGB}",
			`line 4: link "x" carries NaN bytes a second; at least 1`,
		},
		{
			plain + "  - {name: x, between: [a, b], rate: 1e400GB}",
			"line 4: a link has a rate a second; write rate: 10Gbit, or rate: 12GB",
		},
		{
			plain + "  - {name: x, between: [a, b], rate: 1GB, duplex: both}",
			`line 4: duplex: "both"; write full, the default, or half`,
		},
		{
			plain + "paths:\n  - {from: a, to: c, over: []}",
			`line 5: a path names "c", which is no worker; name two workers`,
		},
		{
			plain + "paths:\n  - {from: a, to: a, over: []}",
			`line 5: the path from "a" to "a" ends where it begins; name two workers`,
		},
		{
			plain + "paths:\n  - {from: a, to: b, over: [x]}",
			`line 5: the path from "a" to "b" goes over link "x", which is not there; name links of the list`,
		},
		{
			plain + "paths:\n  - {from: a, to: b}",
			`line 5: the path from "a" to "b" ends at "a"; add the links that are missing`,
		},
		{
			"workers: [a, b, c]\nlinks: [{between: [a, b], rate: 1GB}, {between: [b, c], rate: 1GB}]\n" +
				"paths: [{from: a, to: c, over: [b-c]}]",
			`line 3: the path from "a" to "c" goes from "a" over link "b-c", which does not end there; ` +
				`list links in their order`,
		},
		{
			plain + "  - {name: x, between: [a, b], rate: 1GB}\npaths: [{from: a, to: b, over: [a-b, x, a-b]}]",
			`line 5: the path from "a" to "b" passes "a" twice; leave the links of the circle out`,
		},
		{
			plain + "paths: [{from: a, to: b, over: [a-b]}, {from: a, to: b, over: [a-b]}]",
			`line 4: the path from "a" to "b" is there twice; leave one out`,
		},
		{string(make([]byte, MaxBytes+1)), "longer than 1048576 bytes; is this a topology?"},
	} {
		_, err := Parse("net.yaml", []byte(c.text))
		require.Error(t, err, c.text)
		require.Contains(t, err.Error(), "net.yaml: "+c.want)
		require.NotContains(t, err.Error(), "\n")
	}
	many := newBuilder("many")
	for i := range maxWorkers {
		require.NoError(t, many.worker(fmt.Sprint(i)))
	}
	require.EqualError(t, many.worker("more"), "there are more than 256 workers; rounds are for fewer")
	for i := range maxLinks {
		require.NoError(t, many.link(Link{Name: fmt.Sprint(i), Ends: [2]string{"0", "1"}, BytesPerSecond: 1}))
	}
	require.ErrorContains(t, many.link(Link{Ends: [2]string{"0", "1"}, BytesPerSecond: 1}), "there are more than 4096 links")
}

// FuzzParse: every file is a topology with a path for each pair, or an error in a line.
func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("testdata/racks.yaml")
	require.NoError(f, err)
	f.Add(text)
	f.Add([]byte(plain))
	f.Add([]byte("workers: [a, &x b, *x]\nlinks: {<<: *x}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		topology, err := Parse("f", text)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		valid(t, topology, Fixed(topology), Equal(topology.Size(), 1))
	})
}

func Example() {
	four := PCIe(2, 2, 12e9) // GPUs 0 and 1 under one switch, 2 and 3 under another
	bytes := Equal(4, 120e6)
	rounds := Schedule(four, bytes)
	for _, round := range rounds {
		fmt.Println(round)
	}
	fmt.Printf("%.0f ms; at once %.0f ms\n", 1e3*four.Seconds(rounds, bytes), 1e3*four.OneShot(bytes, 0.1))
	// Output:
	// [{0 1} {1 0} {2 3} {3 2}]
	// [{0 2} {2 0}]
	// [{0 3} {2 1}]
	// [{1 2} {3 0}]
	// [{1 3} {3 1}]
	// 50 ms; at once 52 ms
}
