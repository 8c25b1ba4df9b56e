package build

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// meanEdges are edges by ascending destination, some of a relation's.
type meanEdges interface {
	// each visits the edges to destinations from lo up to end, a record of 8 bytes each: a
	// [extsort.Key] of destination and source. Calls go upwards: lo is never below an earlier one.
	// The records are lent for the call.
	each(ctx context.Context, lo, end uint32, visit func(records []byte) error) error
	// any reports whether there are such edges. lo is no lower than in earlier calls of each.
	any(lo, end uint32) (bool, error)
	close() error
}

// edgeRecords is the number of edges that are visited at a time.
const edgeRecords = 1 << 16

// storedEdges reads all edges of a relation from the dataset.
type storedEdges struct {
	r       *store.RelationReader
	offsets []uint64
	items   []store.NodeID
	records []byte
}

func (b *builder) openStored(s meanSource) (*storedEdges, error) {
	r, err := b.w.OpenRelation(b.schema.Relations[s.relation].Key())
	if err != nil {
		return nil, err
	}
	return &storedEdges{r, make([]uint64, 1<<13+1), make([]store.NodeID, edgeRecords), make([]byte, 8*edgeRecords)}, nil
}

func (e *storedEdges) close() error { return e.r.Close() }

func (e *storedEdges) any(lo, end uint32) (bool, error) {
	var ends [2]uint64
	err := errors.Join(e.r.Offsets(int64(lo), ends[:1]), e.r.Offsets(int64(end), ends[1:]))
	return ends[1] > ends[0], err
}

func (e *storedEdges) each(ctx context.Context, lo, end uint32, visit func(records []byte) error) error {
	for lo < end {
		n := min(int(end-lo), len(e.offsets)-1)
		offsets := e.offsets[:n+1]
		if err := e.r.Offsets(int64(lo), offsets); err != nil {
			return err
		}
		v := 0 // of these lists
		for at := offsets[0]; at < offsets[n]; {
			items := e.items[:min(uint64(len(e.items)), offsets[n]-at)]
			if err := errors.Join(ctx.Err(), e.r.Neighbors(int64(at), items)); err != nil {
				return err
			}
			for k, u := range items {
				for at+uint64(k) >= offsets[v+1] {
					v++
				}
				binary.LittleEndian.PutUint64(e.records[8*k:], extsort.MakeKey(lo+uint32(v), u))
			}
			if err := visit(e.records[:8*len(items)]); err != nil {
				return err
			}
			at += uint64(len(items))
		}
		lo += uint32(n)
	}
	return ctx.Err()
}

// spilledEdges are the edges from one block of sources.
type spilledEdges struct {
	area   *extsort.Area
	bucket extsort.Bucket
	buf    *kernels.HostBuf // shared with others, which are visited at other times

	at   int64  // where the edges begin that are not passed
	next uint32 // the destination of the first of them; no node's when there are none
	end  uint32 // of the last call of each
	then int64  // where the edges from there on begin
}

const noEdges = ^uint32(0)

func newSpilledEdges(area *extsort.Area, bucket extsort.Bucket, buf *kernels.HostBuf) (*spilledEdges, error) {
	e := &spilledEdges{area: area, bucket: bucket, buf: buf}
	return e, e.look()
}

// look reads the destination of the edge that comes next.
func (e *spilledEdges) look() error {
	if e.next = noEdges; e.at == e.bucket.Bytes {
		return nil
	}
	const page = 4096
	from := e.at / page * page
	records, err := e.area.Load(e.bucket, from, min(page, e.bucket.Bytes-from), e.buf.Bytes())
	if err == nil {
		e.next = uint32(binary.LittleEndian.Uint64(records[e.at-from:]) >> 32)
	}
	return err
}

func (e *spilledEdges) close() error { return nil }

func (e *spilledEdges) any(lo, end uint32) (bool, error) {
	err := e.pass(lo)
	return e.next < end && e.next != noEdges, err
}

// pass goes on to the edges to destinations from lo on.
func (e *spilledEdges) pass(lo uint32) (err error) {
	if e.end > 0 && lo >= e.end {
		e.at, e.end = e.then, 0
		err = e.look()
	}
	if err == nil && e.next < lo {
		if e.at, err = e.walk(context.Background(), lo, func([]byte) error { return nil }); err == nil {
			err = e.look()
		}
	}
	return err
}

func (e *spilledEdges) each(ctx context.Context, lo, end uint32, visit func(records []byte) error) error {
	err := e.pass(lo)
	if err == nil {
		e.then, err = e.walk(ctx, end, visit)
		e.end = end
	}
	return err
}

// walk visits the edges to destinations below end, and returns where the others begin.
func (e *spilledEdges) walk(ctx context.Context, end uint32, visit func(records []byte) error) (at int64, err error) {
	at = e.at
	const step = 8 * edgeRecords
	for at < e.bucket.Bytes {
		from := at / 4096 * 4096
		records, err := e.area.Load(e.bucket, from, min(step, e.bucket.Bytes-from), e.buf.Bytes())
		if err = errors.Join(err, ctx.Err()); err != nil {
			return at, err
		}
		records = records[at-from:]
		n := 0
		for n < len(records) && uint32(binary.LittleEndian.Uint64(records[n:])>>32) < end {
			n += 8
		}
		if n > 0 {
			if err := visit(records[:n]); err != nil {
				return at, err
			}
		}
		if at += int64(n); n < len(records) {
			break
		}
	}
	return at, nil
}
