package interp

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Limits of a launch on a device of sm_80 (CUDA C++ Programming Guide, table of technical
// specifications).
const (
	maxThreads      = 1024       // of a block
	maxGridYZ       = 65535      // blocks
	maxBlockZ       = 64         // threads
	maxLaunchShared = 163 << 10  // bytes, static and dynamic
	defaultLimit    = 2000000000 // warp instructions
)

// A Config has what a launch needs beside the kernel and the memory.
type Config struct {
	Grid, Block [3]uint32
	Shared      int    // bytes of dynamic shared memory
	Params      []byte // packed by Kernel.Params
	// Seed draws the order of blocks, and the order of warps between two barriers. 0 takes both in
	// ascending order.
	Seed uint64
	// Limit is the number of warp instructions after which the launch fails; 0 takes 2e9.
	Limit int64
}

// Counters counts what a launch did.
type Counters struct {
	Instructions int64 // of warps
	Lanes        int64 // the same, times the lanes that executed them
	Blocks       int64
	Barriers     int64 // of blocks
}

// Add adds d to c.
func (c *Counters) Add(d Counters) {
	c.Instructions += d.Instructions
	c.Lanes += d.Lanes
	c.Blocks += d.Blocks
	c.Barriers += d.Barriers
}

// Launch runs the kernel with blocks and warps in an order of its own, always the same.
func (k *Kernel) Launch(mem *Memory, grid, block [3]uint32, sharedBytes int, params []byte) error {
	_, err := k.Run(mem, Config{Grid: grid, Block: block, Shared: sharedBytes, Params: params, Seed: 1})
	return err
}

// Run runs the kernel to its end, or to its first error, an [Error]. Memory is then as the kernel
// left it.
func (k *Kernel) Run(mem *Memory, c Config) (Counters, error) {
	r, err := k.prepare(mem, c)
	if err != nil {
		return Counters{}, err
	}
	err = r.blocks()
	return r.counters, err
}

// A run is a launch under way.
type run struct {
	kernel   *Kernel
	config   Config
	limit    int64
	counters Counters
	ranges   []*allocation
	near     []neighbourhood // of each instruction, where its last access was
	warps    []*warp
	shared   []byte // of the block that runs
	touched  *shadow
	global   map[*allocation]*shadow // nil where races in global memory are not looked for
	// phase counts blocks and barriers, from 1. blockPhase is its value when the block began.
	phase, blockPhase uint32
	random            *rand.Rand // nil: ascending order
}

// A neighbourhood is an allocation and, where races are looked for, its shadow.
type neighbourhood struct {
	allocation *allocation
	shadow     *shadow
}

func (k *Kernel) prepare(mem *Memory, c Config) (*run, error) {
	refuse := func(format string, args ...any) (*run, error) {
		return nil, &Error{Err: ErrLaunch, Kernel: k.Name, Detail: fmt.Sprintf(format, args...)}
	}
	threads := uint64(c.Block[0]) * uint64(c.Block[1]) * uint64(c.Block[2])
	switch {
	case slices.Contains(c.Grid[:], 0) || c.Grid[0] > 1<<31-1 || max(c.Grid[1], c.Grid[2]) > maxGridYZ:
		return refuse("a grid of %v blocks", c.Grid)
	case threads == 0 || max(c.Block[0], c.Block[1]) > maxThreads || c.Block[2] > maxBlockZ || threads > maxThreads:
		return refuse("blocks of %v threads", c.Block)
	case k.ExactThreads[0] != 0 && c.Block != k.ExactThreads:
		return refuse("blocks of %v threads, and .reqntid is %v", c.Block, k.ExactThreads)
	case k.MaxThreads[0] != 0 && threads > uint64(k.MaxThreads[0])*uint64(k.MaxThreads[1])*uint64(k.MaxThreads[2]):
		return refuse("blocks of %v threads, and .maxntid is %v", c.Block, k.MaxThreads)
	case c.Shared < 0 || k.SharedBytes+c.Shared > maxLaunchShared:
		return refuse("%d + %d bytes of shared memory, and a block has %d", k.SharedBytes, c.Shared, maxLaunchShared)
	case len(c.Params) != k.ParamBytes:
		return refuse("%d bytes of parameters, and it wants %d", len(c.Params), k.ParamBytes)
	}
	addresses, err := mem.load(k.module)
	if err != nil {
		return nil, err
	}
	r := &run{kernel: k, config: c, limit: c.Limit, ranges: mem.snapshot(), near: make([]neighbourhood, len(k.code))}
	if r.limit == 0 {
		r.limit = defaultLimit
	}
	if c.Seed != 0 {
		r.random = rand.New(rand.NewPCG(c.Seed, 0))
	}
	nowhere := &allocation{}
	for i := range r.near {
		r.near[i].allocation = nowhere
	}
	r.shared = make([]byte, k.SharedBytes+c.Shared)
	r.touched = newShadow(len(r.shared), k.sharedGranule, false)
	if mem.Races {
		r.global = map[*allocation]*shadow{}
	}
	for first := 0; first < int(threads); first += warpLanes {
		w := &warp{run: r, index: first / warpLanes, lanes: allLanes}
		if rest := int(threads) - first; rest < warpLanes {
			w.lanes = 1<<rest - 1
		}
		w.regs, w.defined = make([]values, len(k.slots)), make([]uint32, len(k.slots))
		w.preds, w.definedPreds = make([]uint32, len(k.predicates)), make([]uint32, len(k.predicates))
		w.local = make([]byte, warpLanes*k.localBytes)
		for i, s := range k.slots {
			value := s.value
			if s.kind == slotAddress {
				value += addresses[s.name]
			}
			for l := range w.regs[i] {
				w.regs[i][l] = value
			}
		}
		r.warps = append(r.warps, w)
	}
	return r, nil
}

// threadAt returns the coordinates of the nth thread of a block.
func (r *run) threadAt(n int) [3]uint32 {
	x, y := int(r.config.Block[0]), int(r.config.Block[1])
	return [3]uint32{uint32(n % x), uint32(n / x % y), uint32(n / x / y)}
}

// blocks runs all blocks, one after the other.
func (r *run) blocks() error {
	g := r.config.Grid
	n := uint64(g[0]) * uint64(g[1]) * uint64(g[2])
	order := func(i uint64) uint64 { return i }
	if r.random != nil {
		order = permutation(n, r.random)
	}
	for i := range n {
		b := order(i)
		x, y := uint64(g[0]), uint64(g[1])
		if err := r.block([3]uint32{uint32(b % x), uint32(b / x % y), uint32(b / x / y)}); err != nil {
			return err
		}
	}
	return nil
}

// permutation returns a permutation of n numbers that needs no table: multiplication by a factor
// that has no divisor in common with n, and an offset.
func permutation(n uint64, random *rand.Rand) func(uint64) uint64 {
	factor, offset := uint64(1), random.Uint64N(n)
	if n > 2 {
		for factor = random.Uint64N(min(n, 1<<20)); gcd(factor, n) != 1; {
			factor = random.Uint64N(min(n, 1<<20))
		}
	}
	return func(i uint64) uint64 { return (i%n*factor + offset) % n }
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// block runs one block: its warps in turn up to a barrier, and again, until none lives.
func (r *run) block(ctaid [3]uint32) error {
	r.counters.Blocks++
	r.phase++
	r.blockPhase = r.phase
	for i := range r.shared {
		r.shared[i] = 0xff
	}
	for _, w := range r.warps {
		w.reset(ctaid)
	}
	turn := make([]int, len(r.warps))
	for i := range turn {
		turn[i] = i
	}
	for {
		if r.random != nil {
			r.random.Shuffle(len(turn), func(i, j int) { turn[i], turn[j] = turn[j], turn[i] })
		}
		var first *warp // that waits
		for _, i := range turn {
			w := r.warps[i]
			if w.advance(); w.err != nil {
				return w.err
			}
			if w.live == 0 {
				continue
			}
			if first == nil {
				first = w
			}
			if at, here := first.parked[0].pc, w.parked[0].pc; at != here {
				w.pc = here
				w.fail(ErrDivergent, -1, "warp %d waits here, and warp %d at line %d (%s)",
					w.index, first.index, r.kernel.code[at].line, r.kernel.code[at].text)
				return w.err
			}
		}
		if first == nil {
			return nil
		}
		if err := r.pass(first.parked[0].pc); err != nil {
			return err
		}
	}
}

// pass lets all warps go on behind the barrier at pc.
func (r *run) pass(pc int32) error {
	r.counters.Barriers++
	r.phase++
	for _, w := range r.warps {
		w.pc = pc
	}
	if reduce := r.kernel.code[pc].reduce; reduce != nil {
		if err := reduce(r); err != nil {
			return err
		}
	}
	for _, w := range r.warps {
		if w.live != 0 {
			w.parked = w.parked[:0]
			w.put(pc+1, w.live)
		}
	}
	return nil
}
