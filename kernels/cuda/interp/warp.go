package interp

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

const (
	warpLanes = 32
	allLanes  = ^uint32(0)
)

// values holds a register of a warp, or anything that an instruction reads like one: a lane has 64
// bits. A narrower value takes the low ones and leaves the others 0.
type values = [warpLanes]uint64

// A warp is 32 lanes of a block, and the state of each.
type warp struct {
	run          *run
	index        int // in its block
	ctaid        [3]uint32
	lanes        uint32 // that exist: the last warp of a block may have fewer than 32
	live         uint32 // that have not ended
	regs         []values
	defined      []uint32 // of each register, the lanes that have a value
	preds        []uint32 // predicates, a bit a lane
	definedPreds []uint32
	local        []byte // localBytes a lane
	syncs        uint32 // times that all its lanes have met at bar.warp.sync
	meetings     uint32 // the same, or at a shuffle, a vote or the like

	ready  []group  // lanes that may go on
	parked []parked // lanes that wait for others

	mask uint32 // of the instruction that is being executed: the lanes that do it
	pc   int32  // of that instruction
	err  error
}

// A group is lanes that stand at the same instruction.
type group struct {
	pc   int32
	mask uint32
}

// parked is lanes that have arrived at a *.sync, and wait for the others that it names.
type parked struct {
	pc      int32
	members uint32 // allLanes at a barrier of the block
	arrived uint32
}

// fail records the first error of the warp. lane is -1 where no lane is at fault.
func (w *warp) fail(err error, lane int, format string, args ...any) {
	if w.err != nil {
		return
	}
	in := &w.run.kernel.code[w.pc]
	e := &Error{Err: err, Kernel: w.run.kernel.Name, Line: in.line, Text: in.text, Detail: fmt.Sprintf(format, args...)}
	if lane < 0 {
		lane = bits.TrailingZeros32(w.lanes)
	}
	e.InThread, e.Block, e.Thread = true, w.ctaid, w.run.threadAt(w.index*warpLanes+lane)
	w.err = e
}

// undefined fails for the first lane of missing, which reads register s.
func (w *warp) undefined(missing uint32, s int32) {
	w.fail(ErrUndefined, bits.TrailingZeros32(missing), "%s is read and was never written", w.run.kernel.slots[s].name)
}

// reset makes the warp ready for a block.
func (w *warp) reset(ctaid [3]uint32) {
	w.ctaid = ctaid
	k := w.run.kernel
	copy(w.defined, k.defined)
	clear(w.definedPreds)
	for i := range w.local {
		w.local[i] = 0xff
	}
	for i := range k.slots {
		if s := &k.slots[i]; s.kind == slotSpecial {
			specials[s.name](w, &w.regs[i])
		}
	}
	w.live, w.syncs, w.meetings = w.lanes, 0, 0
	w.ready = append(w.ready[:0], group{k.start, w.lanes})
	w.parked = w.parked[:0]
}

// put makes lanes ready to go on at pc.
func (w *warp) put(pc int32, mask uint32) {
	if mask == 0 {
		return
	}
	for i := range w.ready {
		if w.ready[i].pc == pc {
			w.ready[i].mask |= mask
			return
		}
	}
	w.ready = append(w.ready, group{pc, mask})
}

// advance runs lanes until all that live wait at a barrier of the block, or none lives. It takes
// the lowest program counter first, so that lanes that were parted meet again where their paths
// do: clang lays out code with the place where paths join behind the paths.
func (w *warp) advance() {
	for w.err == nil && len(w.ready) > 0 {
		at, limit := 0, int32(len(w.run.kernel.code))
		for i := range w.ready {
			if w.ready[i].pc < w.ready[at].pc {
				at = i
			}
		}
		g := w.ready[at]
		w.ready = slices.Delete(w.ready, at, at+1)
		for _, other := range w.ready {
			limit = min(limit, other.pc)
		}
		w.execute(g, limit)
	}
	if w.err != nil || len(w.parked) == 0 {
		return
	}
	if b := w.parked[0]; len(w.parked) == 1 && w.run.kernel.code[b.pc].kind == barrier && b.arrived == w.live {
		return
	}
	w.stuck()
}

// execute runs a group until it parts, parks, ends or comes to limit, the lowest instruction at
// which others stand.
func (w *warp) execute(g group, limit int32) {
	code := w.run.kernel.code
	pc, mask := g.pc, g.mask
	for pc < limit {
		in := &code[pc]
		w.pc = pc
		m := mask
		if in.guard >= 0 {
			if !w.hasPredicate(mask, in.guard) {
				return
			}
			if in.negated {
				m &^= w.preds[in.guard]
			} else {
				m &= w.preds[in.guard]
			}
		}
		if w.run.counters.Instructions++; w.run.counters.Instructions > w.run.limit {
			w.fail(ErrLimit, -1, "more than %d", w.run.limit)
			return
		}
		w.run.counters.Lanes += int64(bits.OnesCount32(m))
		switch in.kind {
		case plain:
			if m != 0 {
				w.mask = m
				if in.run(w); w.err != nil {
					return
				}
			}
			pc++
		case branch:
			switch m {
			case mask:
				pc = in.target
			case 0:
				pc++
			default:
				w.put(in.target, m)
				w.put(pc+1, mask&^m)
				return
			}
		case exit:
			if m == 0 {
				pc++
				continue
			}
			w.live &^= m
			w.put(pc+1, mask&^m)
			return
		case jump: // to where a register of each lane says: the end of a function
			for rest := m; rest != 0; {
				to := w.regs[in.register][bits.TrailingZeros32(rest)]
				var same uint32
				for l := range warpLanes {
					if rest>>l&1 == 1 && w.regs[in.register][l] == to {
						same |= 1 << l
					}
				}
				w.put(int32(to), same)
				rest &^= same
			}
			w.put(pc+1, mask&^m)
			return
		case meeting, barrier:
			if m == 0 {
				pc++
				continue
			}
			w.put(pc+1, mask&^m)
			w.park(in, m)
			return
		}
	}
	w.put(pc, mask)
}

// park lets the lanes of m wait at in, and runs it if that makes them complete.
func (w *warp) park(in *instruction, m uint32) {
	for m != 0 && w.err == nil {
		lane := bits.TrailingZeros32(m)
		members, same := allLanes, m
		if in.kind == meeting {
			if missing := m &^ w.defined[in.register]; missing != 0 {
				w.undefined(missing, in.register)
				return
			}
			members, same = uint32(w.regs[in.register][lane]), 0
			for l := range warpLanes {
				if m>>l&1 == 1 && uint32(w.regs[in.register][l]) == members {
					same |= 1 << l
				}
			}
			if out := same &^ members; out != 0 {
				lane = bits.TrailingZeros32(out)
				w.fail(ErrDivergent, lane, "its mask %#x leaves out lane %d, which executes it", members, lane)
				return
			}
		}
		m &^= same
		at := slices.IndexFunc(w.parked, func(p parked) bool { return p.pc == w.pc && p.members == members })
		if at < 0 {
			at = len(w.parked)
			w.parked = append(w.parked, parked{w.pc, members, 0})
		}
		p := &w.parked[at]
		p.arrived |= same
		if in.kind == meeting && p.arrived == members&w.lanes {
			arrived := p.arrived
			w.parked = slices.Delete(w.parked, at, at+1)
			w.mask = arrived
			if arrived == w.live {
				w.meetings++
			}
			in.run(w)
			w.put(w.pc+1, arrived)
		}
	}
}

// stuck explains why the lanes that are parked can never go on.
func (w *warp) stuck() {
	var places []string
	for _, p := range w.parked {
		in := &w.run.kernel.code[p.pc]
		place := fmt.Sprintf("%s wait at line %d (%s)", lanesText(p.arrived), in.line, in.text)
		if gone := p.members & w.lanes &^ w.live; in.kind == meeting && gone != 0 {
			place += fmt.Sprintf(" for %s, which ended", lanesText(gone))
		}
		places = append(places, place)
	}
	w.pc = w.parked[0].pc
	w.fail(ErrDivergent, bits.TrailingZeros32(w.parked[0].arrived), "%s", strings.Join(places, "; "))
}

// lanesText writes "lanes 0-15,20".
func lanesText(mask uint32) string {
	var parts []string
	for l := 0; l < warpLanes; l++ {
		if mask>>l&1 == 0 {
			continue
		}
		first := l
		for l+1 < warpLanes && mask>>(l+1)&1 == 1 {
			l++
		}
		if first == l {
			parts = append(parts, itoa(first))
		} else {
			parts = append(parts, itoa(first)+"-"+itoa(l))
		}
	}
	return "lanes " + strings.Join(parts, ",")
}

func itoa(n int) string { return strconv.Itoa(n) }

func coordinates(c [3]uint32) string { return fmt.Sprint(c) }
