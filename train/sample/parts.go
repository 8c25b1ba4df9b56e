package sample

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
)

// Parts deals out the nodes of a graph among workers. The owner of a node has its neighbour lists
// and its row of features. It draws from the lists, and reads the rows, for all workers.
type Parts struct {
	Rank, Workers int
	// Owner returns the worker that owns row v of input t. Input t is type t of nodes or, from the
	// number of types on, a table of edges. It is the same for all workers, and safe for concurrent
	// use.
	Owner func(t int, v uint32) int
	// Place returns the place of row v of input t in its owner's files. It is at most v. Nil: every
	// worker has the whole files, and the place is v.
	Place func(t int, v uint32) uint32
	// Reads marks the inputs that have rows.
	Reads []bool
	// Exchange sends send[q] to worker q, and returns what each worker sends to this one, by
	// worker. The results are lent until the next call.
	Exchange func(ctx context.Context, send [][]byte) ([][]byte, error)
}

// Dealt lists the rows that owners read and send for a batch.
type Dealt struct {
	// Rows[t] lists the rows of input t that this worker reads for all workers, each once. They are
	// numbered by Parts.Place.
	Rows [][]uint32
	// Send[t][q] has the rows that go to worker q, as places in Rows[t].
	Send [][][]uint32
	// Take[t][q] has the rows that come from worker q, in the same order, as places in Inputs()[t].
	Take [][][]uint32
}

// SampleParts is SampleThrough for workers that each have the lists of their own nodes. All workers
// call it at the same time, with the same number of batches, and either all or none with an
// Expander. Each batch is the one that SampleThrough draws, bit for bit, and gets a Dealt as well.
// It panics if the sampler compares lists.
//
// A worker asks its own topology for its own nodes alone.
//
// At each hop a worker sends 4 bytes for each destination that another worker owns. It gets back
// about 4 bytes for each neighbour, 8 with weights.
func (s *Sampler) SampleParts(
	ctx context.Context, p *Parts, e Expander,
	batches []*Batch, batchSeeds []BatchSeed, seeds [][][]uint32,
) error {
	s.checkParts(e, batches)
	if err := s.countLoops(ctx); err != nil { // of its own nodes
		return err
	}
	for i := range s.drawers {
		s.drawers[i].last = finished{} // another drawer may have drawn the batch anew since
	}
	for i, b := range batches {
		s.drawers[0].begin(b, seeds[i])
		b.halos = nil
	}
	for hop := range s.Fanouts {
		asked, err := s.ask(ctx, p, batches, batchSeeds, s.drawnTypes(hop), func(b *Batch, t int) []uint32 {
			return b.Layers[len(s.Fanouts)-1-hop].Nodes[t].destinations()
		})
		if err == nil {
			err = s.drawFor(ctx, asked, hop)
		}
		if err == nil {
			err = s.answer(ctx, p, batches, batchSeeds, hop, e == nil)
		}
		if err == nil && e != nil {
			err = s.expand(ctx, e, batches, hop)
		}
		if err != nil {
			return err
		}
	}
	if err := s.numberAll(ctx, batches); err != nil {
		return err
	}
	if s.GCN {
		if err := s.normalizeAll(ctx, p, batches); err != nil {
			return err
		}
	}
	return s.deal(ctx, p, batches)
}

// checkParts panics where SampleParts cannot draw.
func (s *Sampler) checkParts(e Expander, batches []*Batch) {
	if s.how().own != nil {
		panic(fmt.Sprintf("sample: SampleParts: %s compares lists", s.Kind))
	}
	s.checkWithout(e, batches)
}

// inputRows returns the number of rows of an input.
func (s *Sampler) inputRows(t int) int {
	if types := len(s.schema.Types); t >= types {
		return s.drawers[0].tables[t-types].nodes
	}
	return s.schema.Types[t]
}

// drawnTypes marks the types of the nodes whose lists a hop draws from.
func (s *Sampler) drawnTypes(hop int) []bool {
	types := make([]bool, len(s.schema.Types))
	for r, ends := range s.schema.Relations {
		if s.FanoutOf(hop, r) != 0 {
			types[ends.Dst] = true
		}
	}
	return types
}

// request has the nodes that a worker asks an owner for, for one batch.
type request struct {
	batchSeed BatchSeed
	nodes     [][]uint32 // by type
	without   []Without  // by relation: edges to these nodes that are not drawn; empty: none
}

// ask sends nodes of some types to their owners. It returns, by worker and batch, what workers ask
// this one for, in the order of nodes(b, t). batchSeeds is nil if owners draw nothing.
func (s *Sampler) ask(
	ctx context.Context, p *Parts, batches []*Batch, batchSeeds []BatchSeed, types []bool,
	nodes func(b *Batch, t int) []uint32,
) (asked [][]request, err error) {
	texts := p.texts(len(batches))
	err = s.each(ctx, len(batches), func(_ *drawer, i int) error {
		ids := make([][]uint32, p.Workers)
		for q := range texts {
			if batchSeeds == nil {
				break
			}
			texts[q][i], _ = binary.Append(texts[q][i], binary.LittleEndian, batchSeeds[i]) // cannot fail: it has a fixed size
		}
		for t, wanted := range types {
			if !wanted {
				continue
			}
			for q := range ids {
				ids[q] = ids[q][:0]
			}
			for _, v := range nodes(batches[i], t) {
				q := p.Owner(t, v)
				ids[q] = append(ids[q], v)
			}
			for q := range ids {
				texts[q][i] = appendNumbers(appendNumber(texts[q][i], len(ids[q])), ids[q])
			}
		}
		if batchSeeds != nil && len(batches[i].Without) > 0 {
			s.appendWithout(p, texts, batches, i, types)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	came, err := p.exchange(ctx, texts)
	if err != nil {
		return nil, err
	}
	asked = make([][]request, p.Workers)
	for q := range asked {
		asked[q] = make([]request, len(batches))
	}
	return asked, s.each(ctx, len(batches), func(_ *drawer, i int) error {
		for q := range asked {
			r, ids, m := &asked[q][i], make([][]uint32, len(types)), &came[q][i]
			if batchSeeds != nil {
				seed := m.part(binary.Size(r.batchSeed))
				_, _ = binary.Decode(seed.text, binary.LittleEndian, &r.batchSeed) // if it is short, m.end says so
			}
			for t, wanted := range types {
				if !wanted {
					continue
				}
				if n := m.number(4); n <= len(m.text)/4 {
					ids[t] = make([]uint32, n)
				}
				m.numbers(ids[t])
				for _, v := range ids[t] {
					if int(v) >= s.inputRows(t) || p.Owner(t, v) != p.Rank {
						return fmt.Errorf("worker %d asks worker %d for row %d of input %d, which it does not own",
							q, p.Rank, v, t)
					}
				}
			}
			if r.nodes = ids; len(m.text) > 0 {
				s.readWithout(r, m, types)
			}
			if err := m.end(q); err != nil {
				return err
			}
		}
		return nil
	})
}

// drawFor draws the nodes that workers have asked for at a hop. Afterwards s.served has, worker by
// worker, what was drawn for each of its batches.
func (s *Sampler) drawFor(ctx context.Context, asked [][]request, hop int) error {
	all := slices.Concat(asked...)
	for len(s.served) < len(all) {
		s.served = append(s.served, new(Batch))
	}
	served, seeds := s.served[:len(all)], make([]BatchSeed, len(all))
	for k, r := range all {
		seeds[k] = r.batchSeed
		s.drawers[0].shape(served[k])
		served[k].Without = r.without
		for t, ids := range r.nodes {
			served[k].Layers[len(s.Fanouts)-1-hop].Nodes[t].start(ids)
		}
	}
	for r := range s.relations {
		if s.FanoutOf(hop, r) == 0 {
			continue
		}
		set := []*relation{&s.relations[r]}
		for at := 0; at < len(served); {
			n := s.fit(set, served[at:], hop)
			if err := s.draw(ctx, s.begin(set, served[at:at+n], seeds[at:], hop), n); err != nil {
				return err
			}
			at += n
		}
		if err := s.bringFor(ctx, &s.relations[r], served, hop); err != nil {
			return err
		}
	}
	return nil
}

// bringFor fills the Values and Rows of r's blocks at a hop of batches that are drawn.
func (s *Sampler) bringFor(ctx context.Context, r *relation, batches []*Batch, hop int) (err error) {
	jobs := s.someJobs(len(batches))
	for i, b := range batches {
		s.beginDrawn(&jobs[i], r, b, hop)
	}
	if r.columns > 0 {
		err = s.fillValues(ctx, jobs)
	}
	if err != nil || r.rows == nil {
		return err
	}
	if err = s.fillRows(ctx, jobs); err != nil {
		return err
	}
	return s.each(ctx, len(jobs), func(d *drawer, i int) error { return jobs[i].checkRows(d.tables[r.table].nodes) })
}

// checkRows returns an error if an edge has a row that its table, of so many rows, does not have.
func (j *job) checkRows(rows int) error {
	b := j.block
	for i, v := range j.dst {
		for e := b.Start[i]; e < b.End[i]; e++ {
			if int(b.Rows[e]) >= rows {
				return &RowError{j.number, v, int(b.places[e]), b.Rows[e], rows}
			}
		}
	}
	return nil
}

// answer sends what was drawn at a hop to the workers that asked for it, and makes the layers of
// batches from what comes. If descends is set, all sources are drawn further.
func (s *Sampler) answer(
	ctx context.Context, p *Parts, batches []*Batch, batchSeeds []BatchSeed, hop int, descends bool,
) error {
	at, texts := len(s.Fanouts)-1-hop, p.texts(len(batches))
	err := s.each(ctx, len(batches), func(_ *drawer, i int) error {
		for q := range texts {
			blocks := s.served[q*len(batches)+i].Layers[at].Blocks
			for r := range blocks {
				if s.FanoutOf(hop, r) != 0 {
					texts[q][i] = blocks[r].appendDrawn(texts[q][i], s.weighs())
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	came, err := p.exchange(ctx, texts)
	if err != nil {
		return err
	}
	return s.each(ctx, len(batches), func(d *drawer, i int) error {
		var j job
		messages := make([]*message, p.Workers)
		for q := range came {
			messages[q] = &came[q][i]
		}
		for r := range s.relations {
			s.assign(&j, &s.relations[r], batches[i], batchSeeds[i], hop)
			j.block.start(len(j.dst))
			if err := d.assemble(p, &j, messages); err != nil {
				return err
			}
		}
		for q, m := range messages {
			if err := m.end(q); err != nil {
				return err
			}
		}
		later := d.later
		d.later = true // other workers know the degrees
		defer func() { d.later = later }()
		if err := d.finish(batches[i], hop); err != nil {
			return err
		}
		if descends {
			d.descend(batches[i], hop)
		}
		return nil
	})
}

// assemble fills j's block with what the owners of its destinations have drawn: the next part of
// the messages in came, one a worker.
func (d *drawer) assemble(p *Parts, j *job, came []*message) error {
	if j.draws.fanout == 0 {
		for n := range j.dst {
			d.make(j.block, n, 0)
		}
		return nil
	}
	parts := make([]drawnPart, p.Workers)
	for _, v := range j.dst {
		parts[p.Owner(j.Dst, v)].lists++
	}
	for q, m := range came {
		if parts[q].read(j, m, d.weighs()); m.short {
			return m.end(q)
		}
	}
	b := j.block
	for i, v := range j.dst {
		part := &parts[p.Owner(j.Dst, v)]
		n := part.counts.number(part.width)
		d.make(b, i, n)
		part.nbr.numbers(b.drawn(i))
		if d.weighs() && n > 0 {
			part.weights.floats(b.values(i))
		}
		if i < len(b.lost) && len(part.lost.text) > 0 { // of a seed
			b.lost[i] = uint32(part.lost.number(4))
		}
		if b.columns > 0 {
			at := len(b.Values)
			b.Values = grow(b.Values, n*b.columns)[:at+n*b.columns]
			part.values.floats(b.Values[at:])
		}
		if j.rows != nil {
			at := len(b.Rows)
			b.Rows = grow(b.Rows, n)[:at+n]
			part.rows.numbers(b.Rows[at:])
		}
	}
	return nil
}

// normalizeAll sets the weights of GCN's sum in all blocks of batches. It asks owners for degrees
// and self loops: 4 bytes sent and 8 received for each node that another worker owns.
func (s *Sampler) normalizeAll(ctx context.Context, p *Parts, batches []*Batch) error {
	r := &s.relations[0] // there is just one
	types := make([]bool, len(s.schema.Types))
	types[r.Src] = true
	nodes := func(b *Batch, t int) []uint32 {
		if !b.expanded { // each layer's sources are the first of them
			return b.Layers[0].Nodes[t].Src
		}
		var all []uint32
		for l := range b.Layers {
			all = append(all, b.Layers[l].Nodes[t].Src...)
		}
		return all
	}
	asked, err := s.ask(ctx, p, batches, nil, types, nodes)
	if err != nil {
		return err
	}
	texts := p.texts(len(batches))
	err = s.each(ctx, len(batches), func(d *drawer, i int) error {
		left := s.leftOut(batches[i])
		for q := range texts {
			for _, v := range asked[q][i].nodes[r.Src] {
				degree, selves := d.degree(0, v)
				texts[q][i] = appendNumber(appendNumber(texts[q][i], degree), selves)
				if batches[i].halos != nil {
					texts[q][i] = appendNumber(appendNumber(texts[q][i], left[v].edges), left[v].selves)
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	came, err := p.exchange(ctx, texts)
	if err != nil {
		return err
	}
	return s.each(ctx, len(batches), func(d *drawer, i int) error {
		b := batches[i]
		all := nodes(b, r.Src)
		degrees, left := make([][2]int, len(all)), make([]leftOut, len(all)) // by place
		for n, v := range all {
			q := p.Owner(r.Src, v)
			m := &came[q][i]
			degrees[n] = [2]int{m.number(4), m.number(4)}
			if b.halos == nil {
				continue
			}
			if l := (leftOut{m.number(4), m.number(4)}); q != p.Rank { // normalize subtracts b.Without of its own seeds
				left[n] = l
			}
		}
		for q := range came {
			if err := came[q][i].end(q); err != nil {
				return err
			}
		}
		first := make([]int, len(b.Layers)) // place of each layer's first source
		for l := 1; b.expanded && l < len(first); l++ {
			first[l] = first[l-1] + len(b.Layers[l-1].Nodes[r.Src].Src)
		}
		d.normalizeBy(b, func(layer, n int) (degree, selves int) {
			of, less := degrees[first[layer]+n], left[first[layer]+n]
			if d.FanoutOf(len(b.Layers)-1-layer, 0) == 0 { // nothing is drawn
				less = leftOut{}
			}
			return of[0] - less.edges, of[1] - less.selves
		})
		for l := range b.Layers {
			if !d.RevEdges { // reverses were made without weights, and so without RevEdge
				d.reverse(&d.schema, b, l)
			}
		}
		return nil
	})
}

// normalizeBy sets the weights of GCN's sum in all blocks of b by the degrees of the sources of
// each layer, by place.
func (d *drawer) normalizeBy(b *Batch, degrees func(layer, place int) (degree, selves int)) {
	own := d.degree
	defer func() { d.degree = own }()
	for hop := range d.Fanouts {
		at := len(d.Fanouts) - 1 - hop
		layer := &b.Layers[at]
		d.degree = func(p int, _ uint32) (degree, selves int) { return degrees(at, p) }
		for r, ends := range d.schema.Relations { // there is just one
			d.normalize(&layer.Blocks[r], &layer.Nodes[ends.Src], d.FanoutOf(hop, r), b.without(r))
		}
	}
}

// Later has batches come without the weights of GCN's sum, for a caller that gets degrees of
// sources from other workers. Normalize sets these weights.
func (s *Sampler) Later() {
	for i := range s.drawers {
		s.drawers[i].later = true
	}
}

// Normalize sets the weights of GCN's sum in b. degrees returns the number of in-neighbours of the
// input at a place, and the number of them that are the node itself.
func (s *Sampler) Normalize(b *Batch, degrees func(place int) (degree, selves int)) {
	s.drawers[0].normalizeBy(b, func(_, place int) (degree, selves int) { return degrees(place) })
}

// Degree returns what Normalize needs of v, whose list the sampler has. The first call may read all
// lists. The error is the topology's.
func (s *Sampler) Degree(ctx context.Context, v uint32) (degree, selves int, err error) {
	if err := s.countLoops(ctx); err != nil {
		return 0, 0, err
	}
	degree, selves = s.drawers[0].degree(0, v)
	return degree, selves, nil
}

// deal asks the owner of each input row to read it. It fills each batch's Dealt with the rows to
// read, send and take.
func (s *Sampler) deal(ctx context.Context, p *Parts, batches []*Batch) error {
	inputs := func(b *Batch, t int) []uint32 { return b.Inputs()[t] }
	asked, err := s.ask(ctx, p, batches, nil, p.Reads, inputs)
	if err != nil {
		return err
	}
	return s.each(ctx, len(batches), func(d *drawer, i int) error {
		b := batches[i]
		if b.dealt == nil {
			b.dealt = new(Dealt)
		}
		b.dealt.begin(len(p.Reads), p.Workers)
		d.last = finished{}
		for t, reads := range p.Reads {
			if !reads {
				continue
			}
			numbers := d.inputIndex(t)
			numbers.begin(nil)
			for q := range asked {
				b.dealt.Send[t][q] = asked[q][i].nodes[t]
				// ask has checked that these rows exist.
				b.dealt.Rows[t], _ = numbers.number(asked[q][i].nodes[t], b.dealt.Rows[t])
			}
			if p.Place != nil {
				for k, v := range b.dealt.Rows[t] {
					b.dealt.Rows[t][k] = p.Place(t, v)
				}
			}
			for n, v := range inputs(b, t) {
				q := p.Owner(t, v)
				b.dealt.Take[t][q] = append(b.dealt.Take[t][q], uint32(n))
			}
		}
		return nil
	})
}

// inputIndex returns the index that numbers the rows of an input.
func (d *drawer) inputIndex(t int) *index {
	if types := len(d.indexes); t >= types {
		return &d.tables[t-types]
	}
	return &d.indexes[t]
}

// shape gives d a list for each of so many inputs and workers.
func (d *Dealt) shape(inputs, workers int) {
	if len(d.Rows) == inputs && len(d.Take[0]) == workers {
		return
	}
	*d = Dealt{make([][]uint32, inputs), make([][][]uint32, inputs), make([][][]uint32, inputs)}
	for t := range d.Rows {
		d.Send[t], d.Take[t] = make([][]uint32, workers), make([][]uint32, workers)
	}
}

// begin empties d.
func (d *Dealt) begin(inputs, workers int) {
	d.shape(inputs, workers)
	for t := range d.Rows {
		d.Rows[t] = d.Rows[t][:0]
		for q := range workers {
			d.Send[t][q], d.Take[t][q] = nil, d.Take[t][q][:0]
		}
	}
}

// len returns the numbers in d.
func (d *Dealt) len() (n int) {
	for t := range d.Rows {
		n += len(d.Rows[t])
		for q := range d.Send[t] {
			n += len(d.Send[t][q]) + len(d.Take[t][q])
		}
	}
	return n
}
