package history

import (
	"github.com/gnnstore/gnnstore/train/sample"
)

// slot names the embedding in a slot: its node and the step that computed it.
type slot struct {
	node  uint32
	stamp uint32 // the step that writes it
}

// BytesPerSlot is what a Cache and a Snapshot take for each slot: 8 bytes each for what the slot
// holds, 4 in ages, and the index; half a byte of bits is not counted. The number of slots of a run
// depends on BytesPerSlot, and so do results.
const BytesPerSlot = 20 + 8*placesPerSlot

// Version is an embedding as one step computed it: its slot, and as its stamp the step.
type Version struct{ Slot, Stamp uint32 }

// pool holds the slots for one layer and type. A slot is either free or reached through the index.
// The lowest free slot is given out first, which keeps the slots in use together.
type pool struct {
	rule   *rule
	coins  uint64 // key of the coins
	admits func(v uint32) bool
	slots  []slot
	free   freeSlots
	index  index
	ages   ages
	// rejected has a bit a slot: its embedding was rejected. Only WriteBack's goroutine uses it.
	rejected []uint64

	leased  []uint32 // the slots that the plan being made uses for the last time
	touched uint32   // unused; it keeps the compiler from removing touch
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

// coinTag begins the words of a coin. Other numbers of a run's seed begin with others: packages sample and task.
const coinTag = 21

func newPool(o Options, k Kept, r *rule) *pool {
	admits := k.Admits
	if admits == nil {
		admits = func(uint32) bool { return true }
	}
	return &pool{
		rule: r, admits: admits, slots: make([]slot, k.Slots), free: newFreeSlots(k.Slots), index: newIndex(k.Slots, k.Nodes), ages: newAges(o.TStale),
		rejected: make([]uint64, (k.Slots+63)/64), coins: sample.Hash(o.Seed, coinTag, uint64(k.Layer), uint64(k.Type)),
	}
}

// coin reports whether an embedding may be used before its verdict. All steps get the same answer
// for a version.
func (r *pool) coin(node, stamp uint32) bool {
	return r.rule.always || sample.Fold(sample.Fold(r.coins, uint64(node)), uint64(stamp)) < r.rule.chance
}

// Part is what a step does with the embeddings of one layer and type.
type Part struct {
	Layer, Type int
	// Live is how many nodes of the type the layer reads, computed and used.
	Live int
	// Rows are those of the computed embeddings that are kept, as rows of the layer below, ascending. Rows[i] goes to Slots[i] once
	// the step has read all that it uses. No slot comes twice.
	Rows, Slots []uint32
	// Used is what the step reads of earlier steps, by place. No slot comes twice, and none is written as well.
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

// Idle tells whether the step neither keeps nor uses an embedding here. Then nobody asks for gradients.
func (p *Part) Idle() bool { return len(p.Rows) == 0 && len(p.Used) == 0 }

// undo is how a pool was before a plan.
type undo struct {
	freed []uint32 // slots that were in use
	old   []slot   // what each of Part.Slots held
}

// reset empties p and keeps its memory.
func (p *Part) reset() {
	p.Live, p.Rows, p.Slots, p.Used = 0, p.Rows[:0], p.Slots[:0], p.Used[:0]
	p.planned, p.counts = false, Counts{}
	p.undo.freed, p.undo.old = p.undo.freed[:0], p.undo.old[:0]
}

// plan decides a step of p: which of live, the nodes that the layer reads, are used, and which of the others are kept. The steps of a
// pool are planned in order. rejected is the verdict of step - Lag, if there is one. plan appends
// the computed nodes to next, and where each
// row comes from to origins.
func (r *pool) plan(step int, rejected []Version, p *Part, live, next []uint32, origins []sample.Origin) ([]uint32, []sample.Origin) {
	p.planned, p.Live = true, len(live)
	started := step >= r.rule.start
	if started {
		r.reject(rejected, p)
	}
	used, provisional, ages := p.Used, 0, 0
	r.leased = r.leased[:0]
	for lo := 0; lo < len(live); lo += ahead {
		some := live[lo:min(lo+ahead, len(live))]
		r.touch(some, true)
		for i, v := range some {
			if x, ok := r.index.find(v, r.slots); ok && started && r.mayUse(step, v, x) {
				age := step - int(x.Stamp)
				if ages += age; age < r.rule.lag {
					provisional++
				}
				if age == r.rule.stale {
					r.leased = append(r.leased, x.Slot)
				}
				used = append(used, Use{uint32(lo + i), x})
				origins = append(origins, sample.Origin{From: sample.Slot, Index: x.Slot})
				continue
			}
			origins = append(origins, sample.Origin{From: sample.Below, Index: uint32(len(next))})
			next = append(next, v)
		}
	}
	p.Used, p.counts.Hits, p.counts.ProvisionalHits, p.counts.Ages = used, int64(len(used)), int64(provisional), int64(ages)
	if started {
		p.counts.Computed = int64(len(next))
		r.expire(step, p)
		for _, s := range r.leased { // these stay in use until the step is planned
			r.free.remove(s)
		}
		r.keep(step, next, p)
		for _, s := range r.leased {
			r.free.add(s)
		}
	}
	return next, origins
}

// reject removes what a verdict rejects and is still there.
func (r *pool) reject(rejected []Version, p *Part) {
	for lo := 0; lo < len(rejected); lo += ahead {
		some := rejected[lo:min(lo+ahead, len(rejected))]
		var nodes [ahead]uint32
		for i, v := range some {
			nodes[i] = r.slots[v.Slot].node
		}
		r.touch(nodes[:len(some)], false)
		for _, v := range some {
			if t := r.slots[v.Slot]; t.stamp == v.Stamp && !r.free.has(v.Slot) {
				r.index.remove(t.node)
				r.release(v.Slot, p)
				p.counts.EvictedGrad++
			}
		}
	}
}

// release makes a slot free.
func (r *pool) release(s uint32, p *Part) {
	r.free.add(s)
	p.undo.freed = append(p.undo.freed, s)
}

// mayUse tells whether a step may read the embedding x of a node.
func (r *pool) mayUse(step int, node uint32, x Version) bool {
	age := step - int(x.Stamp)
	return age <= r.rule.stale && (age >= r.rule.lag || r.coin(node, x.Stamp))
}

// expire frees the slots of embeddings that no later step may use.
func (r *pool) expire(step int, p *Part) {
	last := step - r.rule.stale
	old := r.ages.of(last, step, r.slots)
	for lo := 0; lo < len(old); lo += ahead {
		some := old[lo:min(lo+ahead, len(old))]
		if len(r.index.places) > 0 {
			var nodes [ahead]uint32
			for i, s := range some {
				nodes[i] = r.slots[s].node
			}
			r.touch(nodes[:len(some)], false)
		}
		for _, s := range some {
			if t := r.slots[s]; int(t.stamp) == last && !r.free.has(s) {
				r.index.outlive(t.node)
				r.release(s, p)
				p.counts.EvictedStale++
			}
		}
	}
}

// keep gives slots to the computed nodes that the pool admits. If a node's older embedding still
// has a slot, that slot is freed first.
func (r *pool) keep(step int, computed []uint32, p *Part) {
	rows, slots, were := p.Rows, p.Slots, p.undo.old
	for row, v := range computed {
		if row%ahead == 0 {
			r.touch(computed[row:min(row+ahead, len(computed))], false)
		}
		if !r.admits(v) {
			continue
		}
		// an older one was freed when its time was over
		if x, ok := r.index.find(v, r.slots); ok && step-int(x.Stamp) < r.rule.stale {
			r.release(x.Slot, p)
			p.counts.Replaced++
		}
		s, ok := r.free.take()
		if !ok {
			p.counts.Refused++
			continue
		}
		t := &r.slots[s]
		rows, slots, were = append(rows, uint32(row)), append(slots, s), append(were, *t)
		*t = slot{v, uint32(step)}
		r.index.put(v, Version{s, uint32(step)})
	}
	p.Rows, p.Slots, p.undo.old = rows, slots, were
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
	for i, s := range p.Slots {
		r.index.remove(r.slots[s].node)
		r.free.add(s)
		r.slots[s] = p.undo.old[i]
	}
	for _, s := range p.undo.freed {
		t := r.slots[s]
		r.free.remove(s)
		r.index.put(t.node, Version{s, t.stamp})
	}
	r.ages.undone(step)
}

// ahead counts the nodes that touch reads at once. On 2.5 million slots a plan took 118 ns a node,
// and 290 without touch.
const ahead = 16

// touch reads the index entries of up to ahead nodes before they are looked up, and with slots also
// the slots. The processor then waits for all reads at once.
func (r *pool) touch(nodes []uint32, slots bool) {
	r.touched += r.near(nodes, slots)
}

func (r *pool) near(nodes []uint32, slots bool) (sum uint32) {
	if list := r.index.byNode; list != nil {
		for _, v := range nodes {
			if int(v) < len(list) {
				sum += uint32(list[v])
			}
		}
		return sum
	}
	if len(r.slots) == 0 {
		return 0
	}
	var at [ahead]uint32
	for i, v := range nodes {
		at[i] = r.index.places.near(v)
		sum += at[i]
	}
	if slots {
		for _, s := range at[:len(nodes)] {
			sum += r.slots[s-(s|-s)>>31].stamp // slot s-1, or 0 where there is none: without a branch, which would wait
		}
	}
	return sum
}
