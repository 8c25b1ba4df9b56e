package history

import (
	"slices"

	"github.com/gnnstore/gnnstore/train/sample"
)

// slot names the embedding in a slot: its node and the step that computed it.
type slot struct {
	node  uint32
	stamp uint32 // the step that writes it
}

// BytesPerSlot is the bytes that a Cache and a Snapshot take for each slot: 8 in each for the
// slot's content, 4 in ages, and the index. Half a byte of bits is not counted. The number of slots
// of a run depends on BytesPerSlot, and so do results.
const BytesPerSlot = 20 + 8*placesPerSlot

// Version is an embedding as one step computed it: its slot, and as its stamp the step.
type Version struct{ Slot, Stamp uint32 }

// pool holds the slots for one layer and type. A slot is either free or reached through the index.
// The lowest free slot is given out first, which keeps the slots in use together.
type pool struct {
	rule   *rule
	coins  uint64              // key of the coins
	admits func(v uint32) bool // nil admits all
	slots  []slot
	free   freeSlots
	index  index
	ages   ages
	// rejected has a bit a slot: its embedding was rejected. Only WriteBack's goroutine uses it.
	rejected []uint64

	leased  []uint32 // the slots that the plan being made uses for the last time
	touched uint64   // unused; it keeps the compiler from removing touch
}

// rule decides which embeddings of all pools may be used.
type rule struct {
	stale, lag, start int
	always            bool   // every coin says yes
	chance            uint64 // else those whose number is below do
}

func newRule(o Options) *rule {
	r := &rule{stale: o.TStale, lag: o.Lag, start: o.Start}
	if r.always = o.PGrad == 1; !r.always {
		r.chance = uint64(o.PGrad * 0x1p64) // scaling by a power of two is exact
	}
	return r
}

// coinTag begins the words of a coin. Other numbers of a run's seed begin with others: packages
// sample and task.
const coinTag = 21

func newPool(o Options, k Kept, r *rule) *pool {
	return &pool{
		rule: r, admits: k.Admits, slots: make([]slot, k.Slots), free: newFreeSlots(k.Slots), index: newIndex(k.Slots, k.Nodes), ages: newAges(o.TStale, k.Slots),
		rejected: make([]uint64, (k.Slots+63)/64), coins: sample.Hash(o.Seed, coinTag, uint64(k.Layer), uint64(k.Type)),
	}
}

// coin reports whether an embedding may be used before its verdict. All steps get the same answer
// for a version.
func (r *pool) coin(node, stamp uint32) bool {
	return r.rule.always || sample.Fold(sample.Fold(r.coins, uint64(node)), uint64(stamp)) < r.rule.chance
}

// Part is a step's use of the embeddings of one layer and type.
type Part struct {
	Layer, Type int
	// Live is how many nodes of the type the layer reads, computed and used.
	Live int
	// Rows are the computed embeddings to keep, as rows of the layer below, ascending. Rows[i] goes
	// to Slots[i] once the step has read all that it uses. No slot comes twice.
	Rows, Slots []uint32
	// Used lists the embeddings of earlier steps that the step reads, by place. No slot comes
	// twice, and none is written as well.
	Used []Use

	planned bool
	undo    undo
	counts  Counts
}

// Use is an embedding that a step reads, as the source At of the layer.
type Use struct {
	At uint32
	Version
}

// Idle reports whether the step neither keeps nor uses an embedding here. Then nobody asks for
// gradients.
func (p *Part) Idle() bool { return len(p.Rows) == 0 && len(p.Used) == 0 }

// undo has the changes of a plan to a pool, to take them back.
type undo struct {
	freed []freedSlot // slots that were in use
}

// freedSlot is a slot that a plan freed, and what it held.
type freedSlot struct {
	slot uint32
	held slot
}

// reset empties p and keeps its memory.
func (p *Part) reset() {
	p.Live, p.Rows, p.Slots, p.Used = 0, p.Rows[:0], p.Slots[:0], p.Used[:0]
	p.planned, p.counts = false, Counts{}
	p.undo.freed = p.undo.freed[:0]
}

// plan decides what a step does. live are the nodes that the layer reads. plan chooses the nodes
// whose embeddings the step uses. The step computes the others, and plan chooses which of them the
// pool keeps. It writes both choices into p. The steps of a pool are
// planned in order. rejected is the verdict of step - Lag, if there is one. plan appends the
// computed nodes to next, and where each row comes from to origins.
func (r *pool) plan(step int, rejected []Version, p *Part, live, next []uint32, origins []sample.Origin) ([]uint32, []sample.Origin) {
	p.planned, p.Live = true, len(live)
	if step < r.rule.start {
		for _, v := range live {
			origins = append(origins, sample.Origin{From: sample.Below, Index: uint32(len(next))})
			next = append(next, v)
		}
		return next, origins
	}
	r.reject(rejected, p)
	r.leased = r.leased[:0]
	for lo := 0; lo < len(live); lo += ahead {
		next, origins = r.use(step, p, lo, live[lo:min(lo+ahead, len(live))], next, origins)
	}
	p.counts.Hits, p.counts.Computed = int64(len(p.Used)), int64(len(next))
	r.expire(step, p)
	for _, s := range r.leased { // these stay in use until the step is planned
		r.free.remove(s)
	}
	r.keep(step, next, p)
	for _, s := range r.leased {
		r.free.add(s)
	}
	return next, origins
}

// use decides which of some live nodes, at most ahead, a step uses. They are live[at:] of plan. Yes
// and no come in no order that a processor could guess. So the loop does not branch on them. It
// writes each node to both lists, and only one list grows.
func (r *pool) use(step int, p *Part, at int, some, next []uint32, origins []sample.Origin) ([]uint32, []sample.Origin) {
	var (
		found          [ahead]uint64
		used           [ahead]Use
		computed       [ahead]uint32
		from           [ahead]sample.Origin
		nUsed, nOthers uint32
		provisional    uint32
		ages           int
		lag, stale     = r.rule.lag, r.rule.stale
		below          = uint32(len(next))
	)
	r.look(some, &found)
	for i, v := range some {
		slot, stamp := uint32(found[i]>>32)-1, uint32(found[i])
		age := step - int(stamp)
		early := one(age < lag)
		yes := one(found[i] != 0) & one(age <= stale) & (early ^ 1 | one(r.coin(v, stamp)))
		used[nUsed%ahead] = Use{uint32(at + i), Version{slot, stamp}}
		computed[nOthers%ahead] = v
		from[i] = sample.Origin{From: sample.From(yes), Index: slot&-yes | (below+nOthers)&(yes-1)}
		provisional += yes & early
		ages += age & -int(yes)
		if age == stale && yes == 1 {
			r.leased = append(r.leased, slot)
		}
		nUsed += yes
		nOthers += yes ^ 1
	}
	p.Used = append(p.Used, used[:nUsed]...)
	p.counts.ProvisionalHits += int64(provisional)
	p.counts.Ages += int64(ages)
	return append(next, computed[:nOthers]...), append(origins, from[:len(some)]...)
}

// one is 1 for true and 0 for false.
func one(x bool) (n uint32) {
	if x {
		n = 1
	}
	return n
}

// look finds the versions of up to ahead nodes, packed; 0 is none. Each loop reads one kind of
// memory for all nodes, so that the processor waits for these reads together.
func (r *pool) look(some []uint32, found *[ahead]uint64) {
	if list := r.index.byNode; list != nil {
		for i, v := range some {
			if int(v) < len(list) {
				found[i] = list[v]
			}
		}
		return
	}
	if len(r.slots) == 0 {
		return
	}
	var at [ahead]int
	for i, v := range some {
		at[i] = r.index.places.home(v)
		found[i] = r.index.places[at[i]]
	}
	for i, v := range some {
		if e := found[i]; e != 0 && uint32(e>>32) != v {
			found[i] = r.index.places[r.index.places.from(at[i], v)]
		}
	}
	for i := range some {
		s := uint32(found[i])
		there := (s | -s) >> 31 // 0 where there is none: without a branch, which would wait
		found[i] = uint64(s)<<32 | uint64(r.slots[s-there].stamp&-there)
	}
}

// reject removes what a verdict rejects and is still there.
func (r *pool) reject(rejected []Version, p *Part) {
	for lo := 0; lo < len(rejected); lo += ahead {
		some := rejected[lo:min(lo+ahead, len(rejected))]
		var nodes [ahead]uint32
		for i, v := range some {
			nodes[i] = r.slots[v.Slot].node
		}
		r.touch(nodes[:len(some)])
		for _, v := range some {
			if t := r.slots[v.Slot]; t.stamp == v.Stamp && !r.free.has(v.Slot) {
				r.index.remove(t.node)
				r.release(v.Slot, t, p)
				p.counts.EvictedGrad++
			}
		}
	}
}

// release makes a slot free.
func (r *pool) release(s uint32, held slot, p *Part) {
	r.free.add(s)
	r.ages.freed(s)
	p.undo.freed = append(p.undo.freed, freedSlot{s, held})
}

// expire frees the slots of embeddings that no later step may use.
func (r *pool) expire(step int, p *Part) {
	last := step - r.rule.stale
	old := len(p.undo.freed)
	for _, s := range r.ages.of(last, step, r.slots, r.free.words) {
		if r.ages.left(s) {
			r.release(s, slot{stamp: uint32(last)}, p)
		}
	}
	expired := p.undo.freed[old:]
	for i := range expired { // the processor waits for all of these reads together
		expired[i].held.node = r.slots[expired[i].slot].node
	}
	p.counts.EvictedStale += int64(len(expired))
	if r.index.byNode != nil {
		return // the stamp in the list says that it is past use
	}
	for some := range slices.Chunk(expired, ahead) {
		var nodes [ahead]uint32
		for i, f := range some {
			nodes[i] = f.held.node
		}
		r.touch(nodes[:len(some)])
		for _, v := range nodes[:len(some)] {
			r.index.remove(v)
		}
	}
}

// keep gives slots to the computed nodes that the pool admits. If a node's older embedding still
// has a slot, that slot is freed first.
func (r *pool) keep(step int, computed []uint32, p *Part) {
	rows, slots := p.Rows, p.Slots
	for row, v := range computed {
		if row%ahead == 0 {
			r.touch(computed[row:min(row+ahead, len(computed))])
		}
		if r.admits != nil && !r.admits(v) {
			continue
		}
		// an older one was freed when its time was over
		place, x, ok := r.index.look(v, r.slots)
		if ok && step-int(x.Stamp) < r.rule.stale {
			r.release(x.Slot, slot{v, x.Stamp}, p)
			p.counts.Replaced++
		}
		s, ok := r.free.take()
		if !ok {
			p.counts.Refused++
			continue
		}
		rows, slots = append(rows, uint32(row)), append(slots, s)
		r.slots[s] = slot{v, uint32(step)}
		r.index.set(place, v, Version{s, uint32(step)})
	}
	p.Rows, p.Slots = rows, slots
	p.counts.Admitted = int64(len(slots))
}

// countRejected counts the provisional hits of a step that were wrong. Their verdicts are known:
// those steps ran before.
func (r *pool) countRejected(step int, p *Part) {
	for _, u := range p.Used {
		if step-int(u.Stamp) < r.rule.lag && r.rejected[u.Slot/64]>>(u.Slot%64)&1 == 1 {
			p.counts.UsedRejected++
		}
	}
}

// unplan undoes p, the plan of a step, which must be the last plan of the pool.
func (r *pool) unplan(step int, p *Part) {
	for _, s := range p.Slots {
		r.index.remove(r.slots[s].node)
		r.free.add(s)
	}
	for _, f := range p.undo.freed {
		r.slots[f.slot] = f.held
		r.free.remove(f.slot)
		r.ages.back(f.slot, f.held.stamp)
		r.index.put(f.held.node, Version{f.slot, f.held.stamp})
	}
	r.ages.undone(step)
}

// ahead counts the nodes that look and touch read at once. On 2.5 million slots a plan took 118 ns
// a node. With one node at a time it took 290 ns.
const ahead = 16

// touch reads the index entries of up to ahead nodes before they are looked up. The processor then
// waits for all reads at once.
func (r *pool) touch(nodes []uint32) {
	sum := uint64(0)
	switch list, places := r.index.byNode, r.index.places; {
	case list != nil:
		for _, v := range nodes {
			if int(v) < len(list) {
				sum += list[v]
			}
		}
	case len(places) > 0:
		for _, v := range nodes {
			sum += places[places.home(v)]
		}
	}
	r.touched += sum
}
