package build

import (
	"context"
	"encoding/binary"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
)

// streamOf is the number of the relation that is the stream with this Key, -1 where that is none.
func (b *builder) streamOf(key string) int {
	for i, r := range b.schema.Relations {
		if r.Stream != nil && r.Key() == key {
			return i
		}
	}
	return -1
}

// placed reads the places of events whose rows are read in another order than by time.
type placed struct {
	area *extsort.Area
	log  extsort.Bucket
	buf  []byte
	at   int64
	have []byte
}

// next returns the place of the next event as read. ok is false where the event was passed over and
// has none.
func (p *placed) next() (place uint32, ok bool, err error) {
	if len(p.have) == 0 {
		n := min(int64(len(p.buf)), p.log.Bytes-p.at)
		if p.have, err = p.area.Load(p.log, p.at, n, p.buf); err != nil {
			return 0, false, err
		}
		p.at += n
	}
	place = binary.LittleEndian.Uint32(p.have)
	p.have = p.have[rowBytes:]
	return place - 1, place > 0, nil
}

// writeEventTable writes table i of the source, of the events of the stream that relation k is.
func (b *builder) writeEventTable(ctx context.Context, i, k int, t ingest.Table) error {
	rel := &b.state.Relations[k]
	name := "features " + ownerOf(t) + "/" + t.Name
	rows := rel.Stream.Report.Events
	if rel.inOrder() {
		return b.pass(ctx, "write "+name, rows, "rows", func() error {
			w, err := b.newTable(t, false)
			if err == nil {
				err = w.open()
			}
			if err == nil {
				err = w.read(ctx, i)
			}
			if err != nil {
				return err
			}
			return w.close()
		})
	}
	err := b.sortRows(ctx, i, t, rel.Report.EdgesRead, rows, func(w *tableWriter) (func(), error) {
		buf, err := extsort.Buffer(rowBytes, 1<<20)
		if err != nil {
			return nil, err
		}
		w.placed = &placed{area: b.area, log: rel.Stream.Places[0], buf: buf.Bytes()}
		return buf.Close, nil
	})
	if err != nil {
		return err
	}
	return b.writePlaced(ctx, t, rows)
}

// makeEventTables writes the features that are made for the events of streams: they depend on the
// seed and an event's number alone.
func (b *builder) makeEventTables(ctx context.Context) error {
	if b.eventDim == 0 || !b.streams() {
		return nil
	}
	for i, r := range b.read() {
		t := ingest.Table{Name: eventTable, Relation: r.Key(), Dim: b.eventDim}
		rows := b.state.Relations[i].Stream.Report.Events
		err := b.pass(ctx, "make features "+r.Key()+"/"+t.Name, rows, "rows", func() error {
			seed := mix(b.Seed ^ mix(uint64(i)+1) ^ eventSeed)
			return b.makeRows(ctx, t, true, "--edge-features "+b.EdgeFeatures, int(rows), nil, func(rows []uint32, dst []float32) {
				for k, row := range rows {
					normalRow(dst[k*t.Dim:(k+1)*t.Dim], seed, uint64(row))
				}
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eventSeed makes the features of events independent of the features of nodes.
const eventSeed = 0x6576656e7473
