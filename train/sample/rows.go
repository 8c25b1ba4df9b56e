package sample

import (
	"context"
	"fmt"
	"slices"
)

// Edges bring along the numbers of rows of a table, as they bring values. A batch reads each of
// these rows once, in the order in which edges name them: from the last layer to the first,
// relation by relation.

// BringRows makes blocks bring along the row of each edge in a table. of[r] has the row numbers of
// relation r, nil where its edges have no rows. table[r] is the number of its table, which has
// rows[table[r]] rows. It is called before the first Sample, and panics as Bring does.
func (s *Sampler) BringRows(of []Rows, table, rows []int) {
	if len(of) != s.known || len(table) != len(of) {
		panic(fmt.Sprintf("sample: BringRows: %d relations, rows of %d, and tables of %d", s.known, len(of), len(table)))
	}
	for i, r := range of[:len(s.relations)] {
		if r == nil {
			continue
		}
		if s.how().walks || s.SelfLoops {
			panic("sample: BringRows: walks and self loops have no rows")
		}
		s.relations[i].rows, s.relations[i].table = r, table[i]
	}
	for i := range s.drawers {
		d := &s.drawers[i]
		d.tables = d.tables[:0]
		for _, n := range rows {
			d.tables = append(d.tables, index{nodes: n})
		}
	}
}

// bringRows fills the Rows of batches that are drawn, and the rows that they read of each table.
func (s *Sampler) bringRows(ctx context.Context, batches []*Batch) error {
	for i := range s.relations {
		if s.relations[i].rows == nil {
			continue
		}
		if err := s.fillRows(ctx, s.beginValues(&s.relations[i], batches)); err != nil {
			return err
		}
	}
	return s.numberAll(ctx, batches)
}

// fillRows fills the Rows of the blocks of jobs, all of one relation, with numbers of rows.
func (s *Sampler) fillRows(ctx context.Context, jobs []job) error {
	_, misses, err := s.all(ctx, jobs, func(_ *drawer, j *job) (hits, misses int, err error) { return j.takeRows(ctx) })
	if err == nil && misses > 0 {
		err = s.readRows(ctx, jobs, misses)
	}
	return err
}

// numberAll finds the rows that batches read of each table.
func (s *Sampler) numberAll(ctx context.Context, batches []*Batch) error {
	if len(s.drawers[0].tables) == 0 {
		return nil
	}
	return s.each(ctx, len(batches), func(d *drawer, i int) error { return d.numberRows(batches[i], s.relations) })
}

// takeRows makes room for the rows of j's edges and takes those that are resident. It counts these
// lists, and others.
func (j *job) takeRows(ctx context.Context) (hits, misses int, err error) {
	b := j.block
	b.Rows = resize(b.Rows, len(b.Nbr))
	return j.take(ctx, func(i int, v uint32, places []uint32) error {
		j.rows.TakeRows(b.Rows[b.Start[i]:b.End[i]], v, places)
		return nil
	})
}

// readRows takes the rows of edges whose lists are not resident. There are at most misses such
// lists.
func (s *Sampler) readRows(ctx context.Context, jobs []job, misses int64) error {
	return s.passes(jobs, misses, func() error {
		return jobs[0].rows.ReadRows(ctx, s.nodes, func(i, from int, part []uint32) error {
			for at := s.first[i]; at < s.first[i+1]; at++ {
				j, n, _ := s.of(jobs, int(at))
				b := j.block
				for e := b.Start[n]; e < b.End[n]; e++ {
					if place := int(b.places[e]) - from; place >= 0 && place < len(part) {
						b.Rows[e] = part[place]
					}
				}
			}
			return ctx.Err()
		})
	})
}

// numberRows turns the numbers of rows in b's blocks into positions among the rows that b reads.
func (d *drawer) numberRows(b *Batch, relations []relation) error {
	for k := range d.tables {
		d.tables[k].begin(nil)
	}
	for _, layer := range slices.Backward(b.Layers) {
		for i := range relations {
			r, block := &relations[i], &layer.Blocks[i]
			if r.rows == nil || len(block.Rows) == 0 {
				continue
			}
			rows, bad := &b.edgeRows[r.table], 0
			if *rows, bad = d.tables[r.table].number(block.Rows, *rows); bad >= 0 {
				n, _ := slices.BinarySearch(block.End, uint32(bad)+1)
				return &RowError{i, layer.Nodes[r.Dst].Src[n], int(block.places[bad]), block.Rows[bad], d.tables[r.table].nodes}
			}
		}
	}
	return nil
}
