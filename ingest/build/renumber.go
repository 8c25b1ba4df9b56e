package build

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/store"
)

// renumberEdges turns rows into stored ids and parts the edges by destination.
func (b *builder) renumberEdges(s *sizes, do func(pass)) {
	if b.Order == OrderOriginal {
		return
	}
	for i, r := range b.relations() {
		n, f := s.stored[i], b.form(i)
		log := n * int64(f.width)
		do(pass{name: "renumber " + r.Key(), total: b.edgesLeft(i), unit: "edges",
			cost: cost{items: n, seconds: workerSeconds(n, rateRenumber), spillRead: log, spillWritten: log},
			run:  func(ctx context.Context) error { return b.renumberRelation(ctx, i) }})
	}
}

func (b *builder) renumberRelation(ctx context.Context, i int) error {
	f, rel := b.form(i), &b.state.Relations[i]
	logs := f.log(rel)
	stored, starts, err := b.partLogs(ctx, &f, logs, fmt.Sprintf("stored-%d", i), f.src.storedIDs(), f.dst.storedIDs(), nil)
	if err != nil {
		return err
	}
	b.discard(logs...)
	rel.Given, rel.Merged, rel.Stored, rel.Starts = nil, nil, stored, starts
	return nil
}

// partLogs turns the rows of logged edges into the ids that src and dst have for them, unless these
// are nil, and parts the edges by destination: the parts begin at starts. keep, when not nil,
// reports whether an edge by rows is wanted.
func (b *builder) partLogs(
	ctx context.Context, f *edgeForm, logs []extsort.Bucket, name string, src, dst []store.NodeID, keep func(rows extsort.Key) bool,
) (parts []extsort.Bucket, starts []uint32, err error) {
	total := int64(0)
	for _, l := range logs {
		total += l.Bytes / int64(f.width)
	}
	buckets, block := b.spread(total, int64(f.dst.count), f.width, 1)
	ranges, err := b.sampleRanges(logs, f.width, uint64(f.dst.count), buckets, b.sorting(f.width, 1).lists, func(record []byte, sample []uint32) []uint32 {
		return append(sample, storedID(dst, uint32(binary.LittleEndian.Uint64(record)>>32)))
	})
	if err != nil {
		return nil, nil, err
	}
	w, err := b.area.NewWriter(name, ranges.Len(), block)
	if err != nil {
		return nil, nil, err
	}
	err = b.eachChunk(ctx, logs, f.width, func(next func() ([]byte, error)) error {
		to := w.NewAppender()
		defer to.Flush()
		keys := make([]extsort.Key, renumberBatch)
		for {
			records, err := next()
			if err != nil || records == nil {
				return err
			}
			b.addMeter(len(records) / f.width)
			for len(records) > 0 {
				n := min(renumberBatch, len(records)/f.width)
				// Looking up apart from parting lets the processor have many look-ups under way.
				for k := range keys[:n] {
					if keys[k] = binary.LittleEndian.Uint64(records[k*f.width:]); src != nil {
						keys[k] = extsort.MakeKey(dst[keys[k]>>32], src[uint32(keys[k])])
					}
				}
				for k, e := range keys[:n] {
					if keep != nil && !keep(binary.LittleEndian.Uint64(records[k*f.width:])) {
						continue
					}
					part := ranges.Find(uint32(e >> 32))
					if f.width == 8 {
						to.Put8(part, e)
						continue
					}
					rec := records[k*f.width : (k+1)*f.width]
					binary.LittleEndian.PutUint64(rec, e)
					to.Put(part, rec)
				}
				records = records[n*f.width:]
			}
			if err := w.Err(); err != nil {
				return err
			}
		}
	})
	parts, err = extsort.CloseAfter(err, w.Close)
	return parts, ranges.Starts(), err
}

// renumberBatch is the number of edges that are looked up before they are parted.
const renumberBatch = 1024

// streamBytes is a read of a log, a multiple of any record's width after rounding.
const streamBytes = 2 << 20

// eachChunk gives the records of logs out to workers, some at a time. next returns nil at the end.
func (b *builder) eachChunk(ctx context.Context, logs []extsort.Bucket, width int, work func(next func() ([]byte, error)) error) error {
	type place struct {
		log extsort.Bucket
		at  int64
	}
	step := extsort.Chunk(width, streamBytes)
	var places []place
	for _, l := range logs {
		for at := int64(0); at < l.Bytes; at += step {
			places = append(places, place{l, at})
		}
	}
	var taken atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range min(workers(), max(1, len(places))) {
		g.Go(func() error {
			buf, err := extsort.Buffer(width, streamBytes)
			if err != nil {
				return err
			}
			defer buf.Close()
			return work(func() ([]byte, error) {
				k := int(taken.Add(1)) - 1
				if err := ctx.Err(); err != nil || k >= len(places) {
					return nil, err
				}
				p := places[k]
				return b.area.Load(p.log, p.at, min(step, p.log.Bytes-p.at), buf.Bytes())
			})
		})
	}
	return g.Wait()
}

// sampleRanges finds ranges of nodes with about equally many edges, from a few places of the logs:
// of appends the nodes of a record. A sorter has room for so many lists.
func (b *builder) sampleRanges(
	logs []extsort.Bucket, width int, nodes uint64, buckets int, lists int64, of func(record []byte, sample []uint32) []uint32,
) (*extsort.Ranges, error) {
	if buckets == 1 {
		return extsort.EvenRanges(nodes, 1), nil
	}
	const places = 4096
	buf, err := extsort.Buffer(width, 16<<10)
	if err != nil {
		return nil, err
	}
	defer buf.Close()
	step := extsort.Chunk(width, len(buf.Bytes()))
	var sample []uint32
	for _, l := range logs {
		for k := range int64(places) {
			at := l.Bytes / step * k / places * step
			if k > 0 && at == l.Bytes/step*(k-1)/places*step {
				continue
			}
			if at >= l.Bytes {
				break
			}
			records, err := b.area.Load(l, at, min(step, l.Bytes-at), buf.Bytes())
			if err != nil {
				return nil, err
			}
			for at := 0; at < len(records); at += 4 * width { // every fourth
				sample = of(records[at:at+width], sample)
			}
		}
	}
	// A quarter of the buckets may go to keeping ranges narrow; what has more lists than a sorter
	// has room for is parted again.
	widest := max(uint64(max(lists, 1)), 4*nodes/uint64(buckets)+1)
	return extsort.Quantiles(sample, nodes, max(1, buckets-int(nodes/widest)), widest), nil
}
