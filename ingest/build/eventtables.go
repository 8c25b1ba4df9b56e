package build

import (
	"context"
	"encoding/binary"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
)

// streamOf is the number of the relation that is the stream with this Key, -1 where that is none.
func (b *builder) streamOf(key string) int {
	if i := b.schema.Relation(key); i >= 0 && b.schema.Relations[i].Stream != nil {
		return i
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

// makeEventTables writes the features that are made for the events of streams: they depend on the
// seed and an event's number alone.
func (b *builder) makeEventTables(s *sizes, do func(pass)) {
	if b.eventDim == 0 || !b.streams() {
		return
	}
	for i, r := range b.read() {
		t := ingest.Table{Name: eventTable, Relation: r.Key(), Dim: b.eventDim}
		rows := b.state.Relations[i].Stream.Report.Events
		fill := func(rows []uint32, dst []float32) {
			seed := mix(b.Seed ^ mix(uint64(i)+1) ^ eventSeed)
			for k, row := range rows {
				normalRow(dst[k*t.Dim:(k+1)*t.Dim], seed, uint64(row))
			}
		}
		do(pass{name: "make features " + r.Key() + "/" + t.Name, total: rows, unit: "rows",
			cost: b.tableCost(t, s.edges[i]),
			run: func(ctx context.Context) error {
				return b.makeRows(ctx, t, true, "{edge_features} "+b.EdgeFeatures, int(rows), nil, fill)
			}})
	}
}

// eventSeed makes the features of events independent of the features of nodes.
const eventSeed = 0x6576656e7473
