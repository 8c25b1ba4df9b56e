package build

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/store"
)

// said is the record of a label of a node at a time: the bits of the time, its number as read, the
// node's row, the class, and the part.
type said []byte

const saidBytes = 28

func (s said) time() uint64      { return binary.LittleEndian.Uint64(s) } // its bits
func (s said) number() uint64    { return binary.LittleEndian.Uint64(s[8:]) }
func (s said) row() uint32       { return binary.LittleEndian.Uint32(s[16:]) }
func (s said) class() int32      { return int32(binary.LittleEndian.Uint32(s[20:])) }
func (s said) part() ingest.Part { return ingest.Part(s[24]) }

// byTimeSaid is the order of labels: by time, and of one time as read.
func byTimeSaid(record []byte) (first, second uint64) {
	return timeKey(store.F64, said(record).time()), said(record).number()
}

// writeNodeLabels writes the labels that nodes have at times of their own, sorted by these. They
// are the source type's.
func (w *streamWriter) writeNodeLabels(ctx context.Context, i int) error {
	if !w.form.Stream.NodeLabels {
		return nil
	}
	b := w.b
	logs, count, err := w.readNodeLabels(ctx, i)
	defer b.discard(logs...)
	if err != nil || count == 0 {
		return err
	}
	runs, err := b.area.SortRuns(ctx, fmt.Sprintf("said-run-%d", i), logs, saidBytes, b.room(), workers(), byTimeSaid, func(int) {})
	defer b.discard(runs...)
	if err != nil {
		return err
	}
	if err := w.out.AddNodeLabels(); err != nil {
		return err
	}
	split := streamSplit{plan: splitPlan{kind: "given"}}
	var nodes []store.NodeID
	var times []float64
	var classes []int32
	flush := func() error {
		err := w.out.AppendNodeLabels(nodes, times, classes)
		nodes, times, classes = nodes[:0], times[:0], classes[:0]
		return errors.Join(err, ctx.Err())
	}
	err = b.area.MergeRuns(runs, saidBytes, b.room(), byTimeSaid, func(record []byte) error {
		s := said(record)
		if err := split.add(0, 0, s.part()); err != nil {
			return fmt.Errorf("stream %s: label %d of nodes (counting from 0, as read): %w", w.form.Name, s.number(), err)
		}
		nodes, times, classes = append(nodes, storedID(w.src, s.row())), append(times, math.Float64frombits(s.time())), append(classes, s.class())
		if len(nodes) == eventBatch {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	w.nodeLabels = split.report()
	w.report.NodeLabels = count
	return err
}

// readNodeLabels makes a log of the source's labels.
func (w *streamWriter) readNodeLabels(ctx context.Context, i int) (logs []extsort.Bucket, count int64, err error) {
	b, f := w.b, &w.form
	if b.extras.NodeLabels == nil {
		return nil, 0, fmt.Errorf("stream %s: its labels of nodes cannot be read; this is a fault of the reader, please report it", f.Name)
	}
	out, err := b.area.NewWriter(fmt.Sprintf("said-%d", i), 1, extsort.MinBlock)
	if err != nil {
		return nil, 0, err
	}
	to, record := out.NewAppender(), make(said, saidBytes)
	var at origin
	err = b.extras.NodeLabels(ctx, i, func(c ingest.NodeLabelChunk) error {
		if err := at.follow(ctx, c.Place, len(c.Nodes)); err != nil {
			return err
		}
		if at.next > store.MaxEvents {
			return fmt.Errorf("%s: %d labels of nodes and more; they are numbered in 32 bits, so at most %d", c.File, at.next, uint32(store.MaxEvents))
		}
		for k, row := range c.Nodes {
			fail := func(format string, args ...any) error {
				return fmt.Errorf("%s: %w", c.Row(k), fmt.Errorf(format, args...))
			}
			switch class, t := c.Classes[k], c.Times[k]; {
			case row < 0 || row >= int64(f.src.count):
				return fail("node %d is none of the %d nodes of type %s, which count from 0", row, f.src.count, f.src.name)
			case class < 0 || class >= ingest.MaxClasses:
				return fail("class %d; classes are numbers from 0 to %d", class, ingest.MaxClasses-1)
			case t-t != 0:
				return fail("its time is %v, and times are finite numbers", t)
			}
			binary.LittleEndian.PutUint64(record, timeBits(c.Times[k]))
			binary.LittleEndian.PutUint64(record[8:], uint64(c.First)+uint64(k))
			binary.LittleEndian.PutUint32(record[16:], uint32(row))
			binary.LittleEndian.PutUint32(record[20:], uint32(c.Classes[k]))
			record[24] = byte(c.Parts[k])
			to.Put(0, record)
		}
		return out.Err()
	})
	to.Flush()
	logs, err = extsort.CloseAfter(err, out.Close)
	return logs, at.next, err
}
