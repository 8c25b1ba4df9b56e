package build

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/store"
)

// splitsByTime reports whether the source's relation i is split by time.
func (b *builder) splitsByTime(i int) bool {
	return b.edgeSplits[i] != nil && b.edgeSplits[i].kind == "time"
}

// readTimes reads the columns of sources that relations are split by. They stay in memory until the
// edges are read.
func (b *builder) readTimes(ctx context.Context) error {
	for i := range b.read() {
		if !b.splitsByTime(i) || b.state.Relations[i].Read {
			continue
		}
		if name := b.edgeSplits[i].ofSource(); name != "" {
			if err := b.readSourceTimes(ctx, i, b.edgeSplits[i], name); err != nil {
				return err
			}
		}
	}
	return nil
}

// findTimes finds the bounds of the relations that are split by time.
func (b *builder) findTimes(s *sizes, do func(pass)) {
	for i, r := range b.read() {
		if !b.splitsByTime(i) {
			continue
		}
		log := 8 * s.edges[i]
		do(pass{name: "order times of " + r.Key(), total: r.Edges, unit: "edges",
			cost: cost{items: s.edges[i], seconds: float64(s.edges[i]) / rateRead, spillRead: log, spillWritten: log},
			run: func(ctx context.Context) (err error) {
				b.state.Relations[i].Bounds, err = b.timeBounds(ctx, i, b.edgeSplits[i])
				return err
			}})
	}
}

// boundTimes hands the bounds to the splits.
func (b *builder) boundTimes(context.Context) error {
	for i := range b.read() {
		if b.splitsByTime(i) {
			b.edgeSplits[i].bounds = b.state.Relations[i].Bounds
		}
	}
	return nil
}

// readSourceTimes reads a column of the sources of relation i.
func (b *builder) readSourceTimes(ctx context.Context, i int, split *edgeSplit, column string) (err error) {
	n := b.typeOf(b.schema.Relations[i].Src)
	if split.times, err = b.hold(4 * int64(max(n.count, 1))); err != nil {
		return err
	}
	b.meter.begin("read "+column+" of "+n.name, int64(n.count), "nodes")
	defer b.meter.end()
	keys, row := split.times.Uint32s(), 0
	err = b.extras.NodeColumn(ctx, n.number, column, func(values []float32) error {
		if row+len(values) > n.count {
			return fmt.Errorf("column %s of node type %s: more values than its %d nodes; this is a fault of the reader, please report it", column, n.name, n.count)
		}
		for _, x := range values {
			keys[row] = uint32(timeKey(store.F32, uint64(math.Float32bits(x))))
			row++
		}
		b.meter.add(len(values))
		return ctx.Err()
	})
	if err == nil && row < n.count {
		err = fmt.Errorf("column %s of node type %s: %d values for %d nodes; is the file complete?", column, n.name, row, n.count)
	}
	return err
}

// freeTimes gives back the times of sources.
func (b *builder) freeTimes(context.Context) error {
	for _, split := range b.edgeSplits {
		if split != nil && split.times != nil {
			b.release(&split.times)
		}
	}
	return nil
}

// timeBounds reads the times of relation i, and finds the first that are beyond the shares of
// training and validation. All edges that the source has count, those too that turn out to be no
// edges or to be there twice.
func (b *builder) timeBounds(ctx context.Context, i int, split *edgeSplit) (bounds [2]uint64, err error) {
	column := 0
	for split.times == nil && b.schema.Relations[i].Columns[column].Name != split.column {
		column++
	}
	w, err := b.area.NewWriter(fmt.Sprintf("times-%d", i), 1, extsort.MaxBlock)
	if err != nil {
		return bounds, err
	}
	to := w.NewAppender()
	report := RelationReport{Key: b.schema.Relations[i].Key()}
	err = b.eachEdges(ctx, i, &report, func(c *ingest.EdgeChunk) error {
		if split.times == nil {
			for _, x := range c.Values[column] {
				to.Put8(0, timeKey(split.elem, x))
			}
			return w.Err()
		}
		times, count := split.times.Uint32s(), int64(b.typeOf(b.schema.Relations[i].Src).count)
		for _, u := range c.Src {
			if u >= 0 && u < count { // other ids are refused when edges are read
				to.Put8(0, uint64(times[u]))
			}
		}
		return w.Err()
	})
	to.Flush()
	times, err := extsort.CloseAfter(err, w.Close)
	if err != nil {
		return bounds, err
	}
	defer b.discard(times...)
	count := times[0].Bytes / 8
	n := float64(count)
	return b.nth(ctx, times[0], count, [2]int64{
		int64(math.Round(split.shares[0] * n)), int64(math.Round((split.shares[0] + split.shares[1]) * n)),
	})
}

// nth finds two of n logged numbers by their places in ascending order, sixteen bits in a pass over
// the log; one behind the last is the largest number.
func (b *builder) nth(ctx context.Context, log extsort.Bucket, n int64, place [2]int64) (found [2]uint64, err error) {
	const digit = 16
	buf, err := extsort.Buffer(8, streamBytes)
	if err != nil {
		return found, err
	}
	defer buf.Close()
	rest := place // places among the numbers that begin with what is found so far
	for shift := 64 - digit; shift >= 0; shift -= digit {
		var counts [2][1 << digit]int64
		err := b.area.Each(log, 8, buf.Bytes(), func(records []byte) error {
			for ; len(records) > 0; records = records[8:] {
				x := binary.LittleEndian.Uint64(records)
				for k := range found {
					if shift == 64-digit || x>>(shift+digit) == found[k]>>(shift+digit) {
						counts[k][x>>shift&(1<<digit-1)]++
					}
				}
			}
			return ctx.Err()
		})
		if err != nil {
			return found, err
		}
		for k := range found {
			if place[k] >= n {
				continue
			}
			d := 0
			for rest[k] >= counts[k][d] {
				rest[k] -= counts[k][d]
				d++
			}
			found[k] |= uint64(d) << shift
		}
	}
	for k := range found {
		if place[k] >= n {
			found[k] = math.MaxUint64
		}
	}
	return found, nil
}

// timeKey is a number that sorts as the value of a column does, which has these bits.
func timeKey(e store.Elem, bits uint64) uint64 {
	switch e {
	case store.U8:
		return bits & math.MaxUint8
	case store.U32:
		return bits & math.MaxUint32
	case store.I32:
		return uint64(uint32(bits) ^ 1<<31)
	case store.I64:
		return bits ^ 1<<63
	case store.F64:
		if bits>>63 == 0 {
			return bits | 1<<63
		}
		return ^bits
	case store.F32:
		x := math.Float32frombits(uint32(bits)) + 0 // of the two zeros, one
		if y := math.Float32bits(x); y>>31 == 0 {
			return uint64(y | 1<<31)
		} else {
			return uint64(^y)
		}
	}
	return bits
}
