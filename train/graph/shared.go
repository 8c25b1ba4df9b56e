package graph

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tiers"
)

// planned describes the workers of a plan, which are not there. Their shares are drawn one after
// the other.
type planned struct {
	workers int
	link    plan.Link
	machine int // workers on a machine
	rank    int // of the worker whose share is drawn
}

// tracedSteps is the number of steps by which the ways of several workers are compared.
const tracedSteps = 3

// Exchanges of a step. The unit is the time of a header with a message.
const (
	exchangesOfHalo = 2 // of hidden rows forwards, and of their gradients backwards
	exchangesOfSum  = 2 // dist.Group.Sum: a header and three messages, which take as long
	exchangesOfHop  = 2 // ask and answer
	exchangesOfDraw = 2 // plan.Config.Agree, and the rows of a batch
	exchangesOfJoin = 1 // plan.Config.Agree, once more for each step of a horizon
)

// workerOf has what the ways cost one worker. It travels as JSON.
type workerOf struct {
	Ways    []wayOfWorker
	Cores   int
	Drawers int
	OwnDisk bool
}

type wayOfWorker struct {
	Step    plan.WorkerStep
	Group   int    // steps that are drawn together
	Joins   bool   // epochs go by horizons
	Refused string // not enough memory
}

// tracedAsks has what workers ask each other for in some steps, if they own nodes.
type tracedAsks struct {
	asks    [][]sample.Asks // of this worker: by step and owner
	come    [][]sample.Asks // of this worker as an owner: by step and worker
	seconds float64         // to draw a step, without reading lists
}

// tracedTogether has the work of every worker in some steps, if they compute together.
type tracedTogether struct {
	works   [][]sample.Together // by step and worker
	seeds   []float64           // by worker: rows of seeds that it sends and gets in a step, together
	refused string              // the reason, if nothing was traced
}

// drawTogether draws the first steps of the epoch that began, each for the seeds of all workers,
// and traces the work of every worker. It exchanges nothing: every worker draws all of it.
func (c *core) drawTogether(ctx context.Context, first *sample.Batch) (t tracedTogether, err error) {
	if _, err := c.Options.InWay(run.Cooperative, c.data.Learns()); err != nil {
		t.refused = err.Error()
		return t, nil
	}
	workers := c.workerCount()
	if bytes := int64(workers) * first.Bytes(); bytes > c.tiers.Total()/togetherPart {
		t.refused = fmt.Sprintf("{parallel} %s: a batch of all workers would take %s, too much to trace within {memory_bytes} %s",
			run.Cooperative, kernels.FormatBytes(bytes), kernels.FormatBytes(c.tiers.Total()))
		return t, nil
	}
	defer func() { c.tracing = nil }()
	p := c.owners(workers)
	t.seeds = make([]float64, workers)
	steps := min(tracedSteps, c.task.Steps())
	for step := range steps {
		all, seen := make([][]uint32, len(c.data.Types)), make([]map[uint32]bool, len(c.data.Types))
		asked := make([][][]uint32, workers)
		for rank := range workers {
			c.tracing = &rank
			for n, ids := range c.task.Seeds(step) {
				asked[rank] = append(asked[rank], slices.Clone(ids))
				if seen[n] == nil {
					seen[n] = map[uint32]bool{}
				}
				for _, v := range ids {
					if q := p.Owner(n, v); q != rank {
						t.seeds[q] += 1 / float64(steps)
						t.seeds[rank] += 1 / float64(steps)
					}
					if !seen[n][v] {
						seen[n][v] = true
						all[n] = append(all[n], v)
					}
				}
			}
		}
		b, err := c.tiers.First(ctx, c.BatchSeeds().At(step), all, nil)
		if err != nil {
			return t, err
		}
		t.works = append(t.works, c.tiers.Sampler.Together(p, b, asked))
	}
	return t, nil
}

// togetherPart bounds a traced batch of all workers: it may take an eighth of one worker's memory.
const togetherPart = 8

// owners returns the owners of nodes among so many workers. Rank is not set.
func (c *core) owners(workers int) *sample.Parts {
	p := &sample.Parts{
		Workers: workers, Owner: func(t int, v uint32) int { return c.data.Owners(t, workers).Owner(v) },
		Reads: make([]bool, len(c.data.Types)+len(c.data.EdgeTables)),
	}
	for _, n := range c.tiers.Types {
		p.Reads[n] = true
	}
	return p
}

// together replaces s, the work of a step of worker rank alone, by its work in a step of t, on
// average. edges is the number that the worker draws alone: seconds are scaled by the edges that it
// draws together. wanted has the rows and lists that it reads, and memory the bytes that a step
// takes beyond a step alone.
func (c *core) together(
	t tracedTogether, rank int, edges float64, s *plan.WorkerStep,
) (wanted tiers.Wanted, memory int64) {
	wanted.Rows = make([]float64, len(c.data.Types)+len(c.data.EdgeTables))
	layers := len(c.draws.Fanouts)
	for range layers {
		wanted.Lists = append(wanted.Lists, make([]float64, len(c.data.Types)))
	}
	each, drawn := 1/float64(len(t.works)), 0.0
	forth := 4.0  // bytes of a number in a row; in a gradient it always has 4
	hidden := 0.0 // numbers in the rows and gradients that are sent
	if c.HaloDtype == "f16" {
		forth = 2
	}
	s.InputRows = 0
	for _, works := range t.works {
		w := &works[rank]
		s.Sent.IDs += each * float64(w.IDBytes)
		for q := range works {
			if q != rank { // others ask all owners; about an equal share of that comes here
				s.Received.IDs += each * float64(works[q].IDBytes) / float64(len(works)-1)
			}
		}
		for hop := range w.Hops {
			h, l := &w.Hops[hop], layers-1-hop
			drawn += each * float64(h.Edges)
			sent, taken := 0, 0
			for n := range h.Nodes {
				wanted.Lists[l][n] += each * float64(len(h.Nodes[n]))
				sent, taken = sent+h.Sent[n], taken+h.Taken[n]
			}
			if l > 0 { // it sends rows, and later the gradients of the rows that it took
				numbers := each * float64(c.model.Width(l-1))
				hidden += numbers * float64(sent+taken)
				s.Sent.Hidden += numbers * (forth*float64(sent) + 4*float64(taken))
				s.Received.Hidden += numbers * (forth*float64(taken) + 4*float64(sent))
			}
			if c.draws.GCN { // 4 bytes ask for the degree of a node; four numbers of 4 bytes answer
				s.Sent.IDs, s.Received.IDs = s.Sent.IDs+each*4*float64(taken), s.Received.IDs+each*4*float64(sent)
				s.Sent.Lists, s.Received.Lists = s.Sent.Lists+each*16*float64(sent), s.Received.Lists+each*16*float64(taken)
			}
		}
		for n := range wanted.Rows {
			wanted.Rows[n] += each * float64(len(w.Rows[n]))
			s.InputRows += each * float64(len(w.Rows[n]))
			if w.Sent[n]+w.Taken[n] > 0 {
				bytes := each * float64(c.tiers.RowBytes(n))
				s.Sent.Rows += bytes * float64(w.Sent[n])
				s.Received.Rows += bytes * float64(w.Taken[n])
			}
		}
	}
	numbers := float64(c.model.Width(layers-1)) * t.seeds[rank]
	hidden += numbers
	seeds := (forth + 4) / 2 * numbers
	s.Sent.Hidden, s.Received.Hidden = s.Sent.Hidden+seeds, s.Received.Hidden+seeds
	s.Drawing, s.Computing = s.Drawing*drawn/max(edges, 1), s.Computing*drawn/max(edges, 1)
	return wanted, int64(haloCopies * 4 * hidden)
}

// haloCopies is about how many bytes a step takes in memory for each byte of hidden rows and
// gradients in float32 that the worker sends: rows to send, rows that came, the rows of all sources
// with their gradients, and messages. On ogbn-arxiv three workers that send 1.0 MiB each took 7.6
// MiB more than by parts.
const haloCopies = 8

// draw traces the first steps of the epoch that began.
func (c *core) draw(ctx context.Context, rank, workers int) (t tracedAsks, err error) {
	p := c.owners(workers)
	p.Rank = rank
	steps := min(tracedSteps, c.task.Steps())
	for step := range steps {
		before, began := c.tiers.ListsRead(), time.Now()
		b, err := c.batch(ctx, step)
		if err != nil {
			return t, err
		}
		took := time.Since(began).Seconds() - c.tiers.ListsRead().Sub(before).Seconds
		if t.seconds == 0 || took < t.seconds { // the first step makes the buffers
			t.seconds = max(took, 1e-9)
		}
		t.asks = append(t.asks, c.tiers.Sampler.Asks(p, b))
	}
	return t, nil
}

// asksSizes counts a step of a tracedAsks, on average.
type asksSizes struct {
	alone, own      tiers.Wanted // reading for itself; reading its own part for all workers
	rows, ownRows   float64
	edges, ownEdges float64
	sent, received  plan.Traffic
}

// sizes counts t, for worker rank.
func (c *core) sizes(t tracedAsks, rank int) (s asksSizes) {
	inputs, layers, types := len(c.data.Types)+len(c.data.EdgeTables), len(c.draws.Fanouts), len(c.data.Types)
	wanted := func() (w tiers.Wanted) {
		w.Rows = make([]float64, inputs)
		for range layers {
			w.Lists = append(w.Lists, make([]float64, types))
		}
		return w
	}
	s.alone, s.own = wanted(), wanted()
	each := 1 / float64(len(t.asks))
	for step := range t.asks {
		for _, a := range t.asks[step] {
			s.edges += each * float64(a.Edges)
			for n, rows := range a.Rows {
				s.alone.Rows[n] += each * float64(len(rows))
			}
			for hop, lists := range a.Lists {
				for n := range lists {
					s.alone.Lists[layers-1-hop][n] += each * float64(len(lists[n]))
				}
			}
		}
		for _, a := range t.come[step] {
			s.ownEdges += each * float64(a.Edges)
		}
		for n := range inputs {
			s.own.Rows[n] += each * distinct(t.come[step], func(a *sample.Asks) []uint32 { return a.Rows[n] })
		}
		for hop := range layers {
			for n := range types {
				lists := func(a *sample.Asks) []uint32 { return a.Lists[hop][n] }
				s.own.Lists[layers-1-hop][n] += each * distinct(t.come[step], lists)
			}
		}
		for q := range t.asks[step] {
			if q == rank {
				continue
			}
			out, in := &t.asks[step][q], &t.come[step][q]
			s.sent.IDs += each * float64(out.IDBytes)
			s.received.IDs += each * float64(in.IDBytes)
			s.sent.Lists += each * float64(in.ListBytes)
			s.received.Lists += each * float64(out.ListBytes)
			for n := range inputs {
				if len(out.Rows[n])+len(in.Rows[n]) > 0 {
					bytes := each * float64(c.tiers.RowBytes(n))
					s.sent.Rows += bytes * float64(len(in.Rows[n]))
					s.received.Rows += bytes * float64(len(out.Rows[n]))
				}
			}
		}
	}
	for n := range inputs {
		s.rows, s.ownRows = s.rows+s.alone.Rows[n], s.ownRows+s.own.Rows[n]
	}
	return s
}

// distinct counts the different nodes in all lists. of returns a list.
func distinct(asks []sample.Asks, of func(a *sample.Asks) []uint32) float64 {
	var all []uint32
	for i := range asks {
		all = append(all, of(&asks[i])...)
	}
	slices.Sort(all)
	return float64(len(slices.Compact(all)))
}

// costs returns the costs of each way for worker rank. computing is the seconds that it computes in
// a step alone. Of m, the first that fits in the memory counts.
func (c *core) costs(
	t tracedAsks, all tracedTogether, rank, workers int, computing float64, m []tiers.Measure,
) (w workerOf) {
	s, steps := c.sizes(t, rank), c.task.Steps()
	w.Cores, w.Drawers, w.OwnDisk = runtime.GOMAXPROCS(0), c.Workers, c.DiskRate != ""
	gradients := plan.GradientTraffic(c.Config.Weights(c.shape()), workers)
	for _, way := range run.ParallelWays {
		beside := int64(0) // bytes of memory that a step takes beyond a step alone
		step, owners, wanted := plan.WorkerStep{Drawing: t.seconds, Computing: computing, InputRows: s.rows}, 1, s.alone
		switch way {
		case run.Cooperative:
			if all.refused != "" {
				w.Ways = append(w.Ways, wayOfWorker{Refused: all.refused})
				continue
			}
			owners = workers
			wanted, beside = c.together(all, rank, s.edges, &step)
		case run.ByParts:
			step.Drawing *= s.ownEdges / max(s.edges, 1)
			step.InputRows, step.Sent, step.Received = s.ownRows, s.sent, s.received
			owners, wanted = workers, s.own
		}
		step.Sent.Gradients, step.Received.Gradients = gradients.Gradients, gradients.Gradients
		of := wayOfWorker{}
		var reads tiers.StepReads
		var err error
		for _, m := range m {
			m.Step += beside
			if reads, err = c.tiers.StepReads(m, owners, wanted, steps); err == nil {
				break
			}
		}
		step.Reads, step.First, step.Last, of.Group = reads.Way, reads.First, reads.Last, reads.Group
		step.Gathers, of.Joins = reads.Gathers, reads.Joins
		if err != nil {
			of.Refused = strings.ReplaceAll(err.Error(), "\n", " ")
		}
		of.Step = step
		w.Ways = append(w.Ways, of)
	}
	return w
}

// compare returns the estimates of all ways, by what they cost each worker. This many workers
// share a machine.
func (c *core) compare(all []workerOf, link plan.Link, machine int) (ways []plan.Shared) {
	for i, way := range run.ParallelWays {
		if _, err := c.Options.InWay(way, c.data.Learns()); err != nil {
			ways = append(ways, plan.Shared{Way: way, Refused: err.Error()})
			continue
		}
		s, refused := plan.Spread{Link: link, Machine: machine, Cores: all[0].Cores, Drawers: all[0].Drawers}, ""
		group, joins := 1, true
		for _, w := range all {
			s.Workers = append(s.Workers, w.Ways[i].Step)
			s.OwnDisk = s.OwnDisk || w.OwnDisk
			group, joins = max(group, w.Ways[i].Group), joins && w.Ways[i].Joins
			if refused == "" {
				refused = w.Ways[i].Refused
			}
		}
		if refused != "" {
			ways = append(ways, plan.Shared{Way: way, Refused: refused})
			continue
		}
		s.Exchanges.Steps = exchangesOfSum
		hops := exchangesOfHop * len(c.draws.Fanouts)
		if way == run.Cooperative { // owners draw for themselves: they send no lists back
			hops = len(c.draws.Fanouts)
			s.Exchanges.Steps += float64(exchangesOfHalo * len(c.draws.Fanouts))
		}
		if c.draws.GCN {
			hops += exchangesOfHop
		}
		if way != run.Independent {
			s.Exchanges.Drawing = float64(hops+exchangesOfDraw) / float64(group)
			if joins {
				s.Exchanges.Drawing += exchangesOfJoin
			}
			s.Exchanges.Rows = float64(len(c.tiers.Types))
		}
		ways = append(ways, s.Estimate(way))
	}
	return ways
}

// computing returns the seconds of a step on b, the batch of the first step.
func (c *core) computing(b *sample.Batch) (seconds float64, err error) {
	for n := range 3 { // the first is the first use of its memory, and another process may disturb one
		began := time.Now()
		if err := c.rehearse(b, 0); err != nil {
			return 0, err
		}
		if took := time.Since(began).Seconds(); n == 0 || took < seconds {
			seconds = took
		}
	}
	return seconds, nil
}

// comparePlanned compares the ways for workers that are not there.
func (c *core) comparePlanned(
	ctx context.Context, first *sample.Batch, m []tiers.Measure,
) (ways []plan.Shared, err error) {
	p := c.internal.planned
	defer func() { p.rank = 0 }()
	computing, err := c.computing(first)
	if err != nil {
		return nil, err
	}
	together, err := c.drawTogether(ctx, first)
	if err != nil {
		return nil, err
	}
	traces := make([]tracedAsks, p.workers)
	seconds, edges := 0.0, 0.0
	for p.rank = range p.workers {
		if traces[p.rank], err = c.draw(ctx, p.rank, p.workers); err != nil {
			return nil, err
		}
		seconds += traces[p.rank].seconds
	}
	var all []workerOf
	for rank := range traces {
		t := &traces[rank]
		t.come = make([][]sample.Asks, len(t.asks))
		for step := range t.asks {
			for _, from := range traces {
				t.come[step] = append(t.come[step], from.asks[step][rank])
			}
		}
		edges += c.sizes(*t, rank).edges
	}
	for rank, t := range traces {
		own := c.sizes(t, rank).edges
		share := own * float64(p.workers) / max(edges, 1) // of the mean
		t.seconds = seconds / float64(p.workers) * share
		all = append(all, c.costs(t, together, rank, p.workers, computing*share, m))
	}
	return c.compare(all, p.link, p.machine), nil
}

// chooseParallel replaces the option AutoParallel by a way. All workers call it, and take the way
// that worker 0 chooses. b is the batch of the first step.
func (c *core) chooseParallel(ctx context.Context, b *sample.Batch, m []tiers.Measure) error {
	g := c.Hooks.Group
	if c.Parallel != run.AutoParallel || c.internal.planned != nil {
		return nil
	}
	if g.Size() == 1 || c.internal.fixed != nil {
		c.Parallel = run.Independent
		return nil
	}
	choice, err := c.onlyWay()
	if err != nil {
		return err
	}
	if choice == nil {
		all, link, machine, err := c.costsOfAll(ctx, b, m)
		if err != nil {
			return err
		}
		if choice, err = c.choose(ctx, all, link, machine); err != nil {
			return err
		}
	}
	c.choice, c.Parallel = choice, choice.Way
	if c.ByOwners() {
		c.tiers.TakeParts(c.parts())
	}
	return nil
}

// onlyWay returns the choice of a way if the others are refused, or nil. The error says why all are
// refused.
func (c *core) onlyWay() (*run.ParallelChoice, error) {
	var left []string
	var why error
	for _, way := range run.ParallelWays {
		if _, err := c.Options.InWay(way, c.data.Learns()); err == nil {
			left = append(left, way)
		} else if why == nil {
			why = err
		}
	}
	if len(left) == 0 {
		return nil, why
	}
	if len(left) > 1 {
		return nil, nil
	}
	text := fmt.Sprintf("{parallel} %s: the other ways are refused: %s", left[0], why)
	return &run.ParallelChoice{Way: left[0], Reason: strings.ReplaceAll(text, "\n", "; ")}, nil
}

// costsOfAll measures what the ways cost each worker, and the link between them.
func (c *core) costsOfAll(
	ctx context.Context, b *sample.Batch, m []tiers.Measure,
) (all []workerOf, link plan.Link, machine int, err error) {
	g := c.Hooks.Group
	t, err := c.draw(ctx, g.Rank(), g.Size())
	if err != nil {
		return nil, link, 0, err
	}
	together, err := c.drawTogether(ctx, b)
	if err != nil {
		return nil, link, 0, err
	}
	// Workers of a machine compute in turns, each with all processors.
	turn, turns := turnOf(g.Peers(), g.Rank())
	computing := 0.0
	for n := range turns {
		if n == turn {
			if computing, err = c.computing(b); err != nil {
				return nil, link, 0, err
			}
		}
		err := c.unlocked(func() error {
			_, err := g.Gather(ctx, dist.At{}, nil)
			return err
		})
		if err != nil {
			return nil, link, 0, err
		}
	}
	send := make([][]byte, g.Size())
	for q := range send {
		for _, asks := range t.asks {
			send[q] = asks[q].Append(send[q])
		}
	}
	err = c.unlocked(func() (err error) {
		if link.BytesPerSecond, link.Latency, err = g.Measure(ctx); err != nil {
			return err
		}
		came, err := g.Exchange(ctx, dist.At{}, send)
		if err != nil {
			return err
		}
		t.come = make([][]sample.Asks, len(t.asks))
		for q, text := range came {
			for step := range t.come {
				var a sample.Asks
				if text, err = a.Read(text); err != nil {
					return fmt.Errorf("%s: what it asks for in a step: %w", g.Name(q), err)
				}
				t.come[step] = append(t.come[step], a)
			}
		}
		return nil
	})
	if err != nil {
		return nil, link, 0, err
	}
	own, err := json.Marshal(c.costs(t, together, g.Rank(), g.Size(), computing, m))
	if err != nil {
		return nil, link, 0, err
	}
	err = c.unlocked(func() error {
		texts, err := g.Gather(ctx, dist.At{}, own)
		for p := range texts {
			var w workerOf
			if err == nil {
				err = json.Unmarshal(texts[p], &w)
			}
			all = append(all, w)
		}
		return err
	})
	return all, link, turns, err
}

// turnOf returns the place of a worker among the workers of its machine, and the most workers that
// a machine has.
func turnOf(peers []dist.Peer, rank int) (turn, most int) {
	on := map[string]int{}
	for _, p := range peers {
		if p.Rank == rank {
			turn = on[p.Host]
		}
		on[p.Host]++
		most = max(most, on[p.Host])
	}
	return turn, most
}

// choose has worker 0 choose a way for all workers.
func (c *core) choose(
	ctx context.Context, all []workerOf, link plan.Link, machine int,
) (*run.ParallelChoice, error) {
	choice := &run.ParallelChoice{Link: link, Ways: c.compare(all, link, machine)}
	best := plan.Choose(choice.Ways)
	if best < 0 { // Open will fail likewise
		choice.Way, choice.Reason = run.Independent, choice.Ways[0].Refused
	} else {
		choice.Way, choice.Reason = choice.Ways[best].Way, reasonOf(choice.Ways, best, link)
	}
	text, err := json.Marshal(choice)
	if err != nil {
		return nil, err
	}
	err = c.unlocked(func() error {
		text, err = c.Hooks.Group.Broadcast(ctx, dist.At{}, text)
		return err
	})
	if err == nil {
		err = json.Unmarshal(text, choice)
	}
	return choice, err
}

// reasonOf returns a sentence on why a way is taken.
func reasonOf(ways []plan.Shared, best int, link plan.Link) string {
	seconds := func(s float64) string {
		return time.Duration(s * float64(time.Second)).Round(100 * time.Microsecond).String()
	}
	b := &ways[best]
	text := fmt.Sprintf("{parallel} %s: a step takes about %s, limited by %s", b.Way, seconds(b.Seconds), b.LimitingStage)
	for i := range ways {
		switch w := &ways[i]; {
		case i == best:
		case w.Refused != "":
			text += fmt.Sprintf("; %s is refused: %s", w.Way, w.Refused)
		default:
			text += fmt.Sprintf("; %s would take %s, limited by %s", w.Way, seconds(w.Seconds), w.LimitingStage)
		}
	}
	return text + fmt.Sprintf("; a worker sends %s a second", kernels.FormatBytes(int64(link.BytesPerSecond)))
}
