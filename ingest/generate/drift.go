package generate

import (
	"math"
	"math/rand/v2"
	"sort"

	"github.com/gnnstore/gnnstore/ingest"
)

// drifting makes a stream whose users have a group of items that they like, and change it now and
// then. One event says little of the group, since its features are mostly noise, and the last few
// say little more; a memory over a hundred says it well, as long as it forgets. Nodes have nothing
// else that would tell them. The label of an event is 1 where its user has just changed the group
// for another.
//
// Shares of events and exponents of the popularity of users and items:
const (
	driftRecent  = 0.3   // the user is one of the last events'
	driftWindow  = 20    // which are as many
	driftSwitch  = 0.005 // the user changes the group, and forgets its items
	driftRepeat  = 0.3   // the item is one of the user's last
	driftHistory = 5     // which are as many
	driftStray   = 0.02  // else the item is any
	driftSkew    = 0.8
	driftNoise   = 2 // a feature's deviation, where a group's mean has length Signal
)

type drifting struct {
	rng         *rand.Rand
	groups      int
	users       []uint32  // by popularity
	popular     []float64 // sums of their shares
	groupOf     []int     // of a user
	items       [][]uint32
	itemGroup   []int       // of an item
	popularItem [][]float64 // by group
	history     [][]uint32  // of a user
	recent      [driftWindow]uint32
	made        int
	time        float64
}

func newDrift(s *shape) *drifting {
	users, items := int(s.types[0].nodes), int(s.types[1].nodes)
	d := &drifting{
		rng: rand.New(rand.NewPCG(s.seed, key(s.seed, forEvents, 1))), groups: s.classes, groupOf: make([]int, users), items: make([][]uint32, s.classes),
		itemGroup: make([]int, items), history: make([][]uint32, users), popular: shares(users),
	}
	for k, item := range d.rng.Perm(items) {
		g := k % d.groups
		d.items[g], d.itemGroup[item] = append(d.items[g], uint32(item)), g
	}
	for _, of := range d.items {
		d.popularItem = append(d.popularItem, shares(len(of)))
	}
	for u := range d.groupOf {
		d.groupOf[u] = d.rng.IntN(d.groups)
	}
	for _, u := range d.rng.Perm(users) {
		d.users = append(d.users, uint32(u))
	}
	return d
}

// shares are sums of 1/(r+1)^driftSkew.
func shares(n int) []float64 {
	sums, sum := make([]float64, n), 0.0
	for r := range sums {
		sum += math.Pow(float64(r+1), -driftSkew)
		sums[r] = sum
	}
	return sums
}

// ranked draws a rank by its share.
func (d *drifting) ranked(sums []float64) int {
	return min(sort.SearchFloat64s(sums, d.rng.Float64()*sums[len(sums)-1]), len(sums)-1)
}

// next makes the next event.
func (d *drifting) next() moment {
	d.time += d.rng.ExpFloat64()
	m := moment{time: d.time, part: ingest.Train}
	if d.made > 0 && d.rng.Float64() < driftRecent {
		m.user = d.recent[d.rng.IntN(min(d.made, driftWindow))]
	} else {
		m.user = d.users[d.ranked(d.popular)]
	}
	d.recent[d.made%driftWindow] = m.user
	d.made++
	if d.rng.Float64() < driftSwitch {
		group := d.rng.IntN(d.groups)
		if group != d.groupOf[m.user] {
			m.label = 1
		}
		d.groupOf[m.user], d.history[m.user] = group, d.history[m.user][:0]
	}
	history, group := d.history[m.user], d.groupOf[m.user]
	switch {
	case len(history) > 0 && d.rng.Float64() < driftRepeat:
		m.item = history[d.rng.IntN(len(history))]
	case d.rng.Float64() < driftStray:
		m.item = uint32(d.rng.IntN(len(d.itemGroup)))
	default:
		m.item = d.items[group][d.ranked(d.popularItem[group])]
	}
	if len(history) == driftHistory {
		copy(history, history[1:])
		history = history[:driftHistory-1]
	}
	d.history[m.user] = append(history, m.item)
	m.group = d.itemGroup[m.item]
	return m
}
