package interp

import (
	"math/bits"
	"slices"
	"strings"
)

// synchronize compiles the instructions at which lanes wait for each other. The closure of one of
// them runs with all lanes that have arrived in the mask.
func (c *compiler) synchronize(name string, mods []string) bool {
	form := strings.Join(mods, ".")
	switch name {
	case "shfl":
		return len(mods) == 3 && mods[0] == "sync" && mods[2] == "b32" && c.shuffle(mods[1])
	case "vote":
		return c.vote(form)
	case "match":
		return c.match(form)
	case "redux":
		return len(mods) == 3 && mods[0] == "sync" && c.reduceLanes(mods[1], types[mods[2]])
	case "activemask":
		if form != "b32" || len(c.s.args) != 1 {
			return false
		}
		d := c.register(c.s.args[0], b32, false)
		return c.plain(func(w *warp) { w.setAll(d, uint64(w.mask)) })
	}
	return c.barrier(name, form)
}

// setAll sets register d to v in the lanes of the mask.
func (w *warp) setAll(d int32, v uint64) {
	w.defined[d] |= w.mask
	for l := range warpLanes {
		if w.mask>>l&1 == 1 {
			w.regs[d][l] = v
		}
	}
}

// meet appends an instruction that waits for the lanes that an operand names.
func (c *compiler) meet(members argument, run func(*warp)) bool {
	c.emit(instruction{kind: meeting, register: c.source(members, u32), run: run})
	return true
}

// shuffle compiles shfl.sync.mode.b32 d{|p}, a, b, c, members. c has the clamp in its low bits, and
// in bits 8 to 12 a mask that cuts the warp into segments (PTX ISA, shfl.sync).
func (c *compiler) shuffle(mode string) bool {
	args := c.s.args
	if len(args) != 5 {
		return false
	}
	to, p := args[0], int32(-1)
	if to.kind == argPair {
		if to.parts[1].kind != argSink {
			p = c.predicate(to.parts[1])
		}
		to = to.parts[0]
	}
	d := int32(-1)
	if to.kind != argSink {
		d = c.register(to, b32, false)
	}
	a, b, clamp := c.source(args[1], b32), c.source(args[2], u32), c.source(args[3], u32)
	var source func(lane, by, least, most int) (from int, inside bool)
	switch mode {
	case "up":
		source = func(lane, by, _, most int) (int, bool) { return lane - by, lane-by >= most }
	case "down":
		source = func(lane, by, _, most int) (int, bool) { return lane + by, lane+by <= most }
	case "bfly":
		source = func(lane, by, _, most int) (int, bool) { return lane ^ by, lane^by <= most }
	case "idx":
		source = nil
	default:
		return false
	}
	return c.meet(args[4], func(w *warp) {
		m := w.mask
		if !w.has(m, b) || !w.has(m, clamp) {
			return
		}
		values, known := w.regs[a], w.defined[a] // copies, since a may be d
		var inside uint32
		for l := range warpLanes {
			if m>>l&1 == 0 {
				continue
			}
			by, limits := int(w.regs[b][l]&31), int(w.regs[clamp][l])
			segment := limits >> 8 & 31
			most := l&segment | limits&31&^segment
			least := l & segment
			var from int
			var ok bool
			if source != nil {
				from, ok = source(l, by, least, most)
			} else {
				from = least | by&^segment
				ok = from <= most
			}
			if !ok {
				from = l
			} else {
				inside |= 1 << l
			}
			if d < 0 {
				continue
			}
			if known&m>>from&1 == 0 {
				// A lane that ended or is left out has no value to give; reading the result fails.
				w.defined[d] &^= 1 << l
				continue
			}
			w.defined[d] |= 1 << l
			w.regs[d][l] = values[from]
		}
		if p >= 0 {
			w.setPredicate(p, inside)
		}
	})
}

// vote compiles vote.sync.{all,any,uni}.pred and vote.sync.ballot.b32.
func (c *compiler) vote(form string) bool {
	args := c.s.args
	if len(args) != 3 {
		return false
	}
	p, negated := c.predicate(args[1]), args[1].negated
	yes := func(w *warp) uint32 {
		v := w.preds[p]
		if negated {
			v = ^v
		}
		return v & w.mask
	}
	if form == "sync.ballot.b32" {
		d := c.register(args[0], b32, false)
		return c.meet(args[2], func(w *warp) {
			if w.hasPredicate(w.mask, p) {
				w.setAll(d, uint64(yes(w)))
			}
		})
	}
	decide, ok := map[string]func(yes, all uint32) bool{
		"sync.all.pred": func(yes, all uint32) bool { return yes == all },
		"sync.any.pred": func(yes, _ uint32) bool { return yes != 0 },
		"sync.uni.pred": func(yes, all uint32) bool { return yes == all || yes == 0 },
	}[form]
	if !ok {
		return false
	}
	d := c.predicate(args[0])
	return c.meet(args[2], func(w *warp) {
		if w.hasPredicate(w.mask, p) {
			var v uint32
			if decide(yes(w), w.mask) {
				v = allLanes
			}
			w.setPredicate(d, v)
		}
	})
}

// match compiles match.any.sync and match.all.sync of b32 and b64.
func (c *compiler) match(form string) bool {
	args := c.s.args
	mode, rest, _ := strings.Cut(form, ".sync.")
	t := types[rest]
	if len(args) != 3 || t != b32 && t != b64 || mode != "any" && mode != "all" {
		return false
	}
	to, p := args[0], int32(-1)
	if to.kind == argPair {
		if mode == "any" {
			return false
		}
		p, to = c.predicate(to.parts[1]), to.parts[0]
	}
	d, a := c.register(to, b32, false), c.source(args[1], t)
	return c.meet(args[2], func(w *warp) {
		m := w.mask
		if !w.has(m, a) {
			return
		}
		var same [warpLanes]uint32
		for l := range warpLanes {
			for k := range warpLanes {
				if m>>l&1 == 1 && m>>k&1 == 1 && w.regs[a][l] == w.regs[a][k] {
					same[l] |= 1 << k
				}
			}
		}
		all := same[bits.TrailingZeros32(m)] == m
		for l := range warpLanes {
			if m>>l&1 == 0 {
				continue
			}
			if mode == "all" && !all {
				same[l] = 0
			}
			w.regs[d][l] = uint64(same[l])
		}
		w.defined[d] |= m
		if p >= 0 {
			var v uint32
			if all {
				v = allLanes
			}
			w.setPredicate(p, v)
		}
	})
}

// reduceLanes compiles redux.sync, which sm_80 has for 32-bit integers.
func (c *compiler) reduceLanes(name string, t ptype) bool {
	args := c.s.args
	f := update(name, t)
	if len(args) != 3 || f == nil || t.bits != 32 || t.kind == 'f' ||
		slices.Contains([]string{"cas", "exch", "inc", "dec"}, name) {
		return false
	}
	d, a := c.register(args[0], t, false), c.source(args[1], t)
	return c.meet(args[2], func(w *warp) {
		if !w.has(w.mask, a) {
			return
		}
		first := bits.TrailingZeros32(w.mask)
		v := w.regs[a][first]
		for l := first + 1; l < warpLanes; l++ {
			if w.mask>>l&1 == 1 {
				v = f(v, w.regs[a][l], 0)
			}
		}
		w.setAll(d, v)
	})
}

// barrier compiles bar.warp.sync, and the barriers of a block: all its threads take part in each.
func (c *compiler) barrier(name, form string) bool {
	args := c.s.args
	if form == "warp.sync" && name == "bar" {
		return len(args) == 1 && c.meet(args[0], func(w *warp) {
			// Shuffles and votes order no memory (CUDA C++ Programming Guide, "Warp Shuffle
			// Functions"), and this does. For less than all lanes it orders nothing here, which
			// may report a race that there is not, and hides none.
			if w.mask == w.live {
				w.syncs++
			}
		})
	}
	form = strings.TrimPrefix(strings.TrimPrefix(form, "cta."), "aligned.")
	form = strings.TrimSuffix(form, ".aligned")
	if form == "sync" {
		if len(args) != 1 || !c.isBarrier(args[0]) {
			return false
		}
		c.emit(instruction{kind: barrier})
		return true
	}
	// bar.red: of a predicate of all threads.
	if len(args) != 3 || !c.isBarrier(args[1]) {
		return false
	}
	p, negated := c.predicate(args[2]), args[2].negated
	count := func(r *run) (yes, all int, err error) {
		for _, w := range r.warps {
			w.mask = w.live
			if !w.hasPredicate(w.live, p) {
				return 0, 0, w.err
			}
			v := w.preds[p]
			if negated {
				v = ^v
			}
			yes += bits.OnesCount32(v & w.live)
			all += bits.OnesCount32(w.live)
		}
		return yes, all, nil
	}
	switch form {
	case "red.popc.u32":
		d := c.register(args[0], u32, false)
		c.emit(instruction{kind: barrier, reduce: func(r *run) error {
			yes, _, err := count(r)
			for _, w := range r.warps {
				w.setAll(d, uint64(yes))
			}
			return err
		}})
	case "red.and.pred", "red.or.pred":
		d := c.predicate(args[0])
		c.emit(instruction{kind: barrier, reduce: func(r *run) error {
			yes, all, err := count(r)
			var v uint32
			if yes == all || yes > 0 && form == "red.or.pred" {
				v = allLanes
			}
			for _, w := range r.warps {
				w.setPredicate(d, v)
			}
			return err
		}})
	default:
		return false
	}
	return true
}

// isBarrier reports whether a is the number of a barrier. Which of the 16 is all the same, since
// no two are in use at once.
func (c *compiler) isBarrier(a argument) bool {
	return a.kind == argImmediate && a.float == 0 && a.value < 16
}
