package history

import (
	"fmt"
	"sync"

	"github.com/gnnstore/gnnstore/train/sample"
)

// Cache has all pools of a run, and the plans of steps that have not run yet. The package comment
// gives the order of calls; methods panic if it is broken.
type Cache struct {
	o     Options // with defaults
	at    [][]int // by layer and type: the number of its pool, or -1
	group group   // the last one, of the planner's goroutine
	judge judge   // of WriteBack's goroutine

	mu struct {
		sync.Mutex
		pools   []*pool // of Options.Kept
		counts  []Counts
		written int        // steps below are written back
		planned []*Planned // steps from written on
		// verdicts has the verdicts of the last Lag steps before written, or of all if there are
		// fewer, the oldest first. Plans of some steps know part of them, and may be made again.
		verdicts []verdict
		spare    []*Planned
	}
	unused verdict // memory for the next, of WriteBack's goroutine
}

// Planned is a step's use of the slots: it reads the rows that it uses, then writes the rows that
// it keeps.
type Planned struct {
	Step  int
	Parts []Part // one for each of Options.Kept
}

// New makes a cache without embeddings.
func New(o Options) (*Cache, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	o = o.withDefaults()
	c := &Cache{o: o, judge: judge{pGrad: o.PGrad}, unused: make(verdict, len(o.Kept))}
	for range o.Layers {
		types := make([]int, o.Types)
		for t := range types {
			types[t] = -1
		}
		c.at = append(c.at, types)
	}
	r := newRule(o)
	for k, kept := range o.Kept {
		c.at[kept.Layer][kept.Type] = k
		c.mu.pools = append(c.mu.pools, newPool(o, kept, r))
	}
	c.mu.counts, c.mu.written = make([]Counts, len(o.Kept)), o.First
	return c, nil
}

// Kept returns Options.Kept, or nothing where no embedding is ever used.
func (c *Cache) Kept() []Kept { return c.o.Kept }

// Group begins the plans of the n steps from first on. first follows the last planned step. The
// Expander makes the plans while the batches are drawn together; it is nil if there is no pool.
// Group panics unless the step Lag before the last of them is written back. Draw all steps of a
// group before the next Group, or call Rewind.
func (c *Cache) Group(first, n int) sample.Expander {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, seen := c.mu.written+len(c.mu.planned), first+n-1-c.o.Lag
	switch {
	case first != next || n < 1:
		panic(fmt.Sprintf("history: Group of %d steps from %d on: step %d is next", n, first, next))
	case seen >= c.mu.written:
		panic(fmt.Sprintf("history: Group of %d steps from %d on before WriteBack of step %d", n, first, seen))
	case first+n-1 > maxStep:
		panic("history: Group: a step beyond 32 bits")
	}
	for i := range n {
		c.mu.planned = append(c.mu.planned, c.blank(first+i))
	}
	if len(c.mu.pools) == 0 {
		return nil
	}
	c.group.cache, c.group.first, c.group.steps = c, first, n
	return &c.group
}

// blank is the plan of a step about which nothing is decided yet.
func (c *Cache) blank(step int) *Planned {
	n := len(c.mu.spare)
	if n == 0 {
		p := &Planned{Step: step, Parts: make([]Part, len(c.o.Kept))}
		for k, kept := range c.o.Kept {
			p.Parts[k].Layer, p.Parts[k].Type = kept.Layer, kept.Type
		}
		return p
	}
	p := c.mu.spare[n-1]
	c.mu.spare = c.mu.spare[:n-1]
	p.Step = step
	for k := range p.Parts {
		p.Parts[k].reset()
	}
	return p
}

// plan calls pool.plan for a step, on the k-th pool.
func (c *Cache) plan(step, k int, live, next []uint32, origins []sample.Origin) ([]uint32, []sample.Origin) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := step - c.mu.written
	if i < 0 || i >= len(c.mu.planned) || c.mu.planned[i].Parts[k].planned {
		panic(fmt.Sprintf("history: Expand of step %d, which is planned or of no group", step))
	}
	part := &c.mu.planned[i].Parts[k]
	next, origins = c.mu.pools[k].plan(step, c.rejected(step-c.o.Lag, k), part, live, next, origins)
	if c.o.Takes != nil {
		c.o.Takes(k, step, part.Slots)
	}
	return next, origins
}

// rejected is the verdict of a step, empty for steps before the first.
func (c *Cache) rejected(step, k int) []Version {
	if i := step - (c.mu.written - len(c.mu.verdicts)); i >= 0 {
		return c.mu.verdicts[i][k]
	}
	return nil
}

// Planned lends what a step does, once its batch is drawn and until it is written back.
func (c *Cache) Planned(step int) *Planned {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := step - c.mu.written
	if i < 0 || i >= len(c.mu.planned) {
		panic(fmt.Sprintf("history: step %d is not planned: those from %d to %d are", step, c.mu.written, c.mu.written+len(c.mu.planned)-1))
	}
	p := c.mu.planned[i]
	for k := range p.Parts {
		if !p.Parts[k].planned {
			panic(fmt.Sprintf("history: step %d is not drawn to its end", step))
		}
	}
	return p
}

// WriteBack records the measurements of a step that ran, one for each of Planned.Parts. For idle
// parts a measurement may be zero, and if all are idle the list may be empty. Steps are written
// back in order, each once. Plans of steps Lag later know the embeddings that it rejects.
func (c *Cache) WriteBack(step int, measured []Measured) {
	p := c.Planned(step)
	// Nobody else changes the step that is written back, nor a finished plan. The lock keeps out
	// only the readers that come after.
	if step != c.mu.written {
		panic(fmt.Sprintf("history: WriteBack of step %d: step %d is next", step, c.mu.written))
	}
	v := c.unused
	for k := range p.Parts {
		var m Measured
		if len(measured) > 0 {
			m = measured[k]
		}
		part := &p.Parts[k]
		c.mu.pools[k].countRejected(step, part)
		v[k] = c.judge.judge(step, c.mu.pools[k], part, &m, v[k], &part.counts)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range p.Parts {
		c.mu.counts[k].Add(p.Parts[k].counts)
	}
	switch {
	case len(v) == 0: // no pools
	case len(c.mu.verdicts) == c.o.Lag:
		c.unused = c.mu.verdicts[0]
		copy(c.mu.verdicts, c.mu.verdicts[1:])
		c.mu.verdicts[c.o.Lag-1] = v
	default:
		c.unused = make(verdict, len(v))
		c.mu.verdicts = append(c.mu.verdicts, v)
	}
	c.mu.planned = c.mu.planned[:copy(c.mu.planned, c.mu.planned[1:])]
	c.mu.spare = append(c.mu.spare, p)
	c.mu.written++
}

// Rewind forgets the plans of steps from step on, which did not run and are planned anew. Nobody
// may plan or write back meanwhile.
func (c *Cache) Rewind(step int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keep := step - c.mu.written
	if keep < 0 || keep > len(c.mu.planned) {
		panic(fmt.Sprintf("history: Rewind to step %d: steps from %d to %d can be planned anew", step, c.mu.written, c.mu.written+len(c.mu.planned)))
	}
	for i := len(c.mu.planned) - 1; i >= keep; i-- {
		p := c.mu.planned[i]
		for k := range p.Parts {
			if p.Parts[k].planned {
				c.mu.pools[k].unplan(p.Step, &p.Parts[k])
			}
		}
		c.mu.spare = append(c.mu.spare, p)
	}
	c.mu.planned = c.mu.planned[:keep]
}

// Stats returns the counts of each pool, as of the last step that was written back. They do not
// depend on how far ahead plans are.
func (c *Cache) Stats() []Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Stats, len(c.o.Kept))
	for k, kept := range c.o.Kept {
		n := c.mu.counts[k]
		all[k] = Stats{Layer: kept.Layer, Type: kept.Type, Slots: kept.Slots, Live: n.live(), Counts: n}
	}
	return all
}
