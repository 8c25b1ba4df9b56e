package build

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/store"
)

// writeLists sorts the halves into the dataset. gap is the median of the times between an event of
// a node and its next, of those above 0; 0 where there is none, or nobody asks.
func (w *streamWriter) writeLists(ctx context.Context, i int, halves []extsort.Bucket, starts []uint32) (gap float64, err error) {
	b := w.b
	l := &eventLists{out: w.out}
	if w.wantsGap() {
		if l.gaps, err = b.area.NewWriter(fmt.Sprintf("gaps-%d", i), 1, extsort.MinBlock); err != nil {
			return 0, err
		}
		l.to = l.gaps.NewAppender()
	}
	form := edgeForm{Relation: w.form.Relation, dst: &nodes{count: int(w.places)}, width: halfBytes}
	err = b.sortBuckets(ctx, &form, &relation{Given: halves, Starts: starts}, func(_ int, wait turn, m *merged) error {
		if err := wait(); err != nil {
			return err
		}
		return l.append(m)
	})
	if err == nil {
		err = l.finish()
	}
	if l.gaps == nil {
		return 0, err
	}
	l.to.Flush()
	log, err := extsort.CloseAfter(err, l.gaps.Close)
	defer b.discard(log...)
	if err != nil || l.count == 0 {
		return 0, err
	}
	middle, err := b.nth(ctx, log[0], l.count, [2]int64{(l.count - 1) / 2, l.count / 2})
	return (math.Float64frombits(middle[0]) + math.Float64frombits(middle[1])) / 2, err
}

// eventLists writes the lists of nodes, which may come in pieces, in ascending order.
type eventLists struct {
	out     *store.StreamWriter
	next    uint64 // place that has not begun
	open    uint64 // length so far of the list before it
	last    float64
	lengths []uint64         // of lists that have ended
	near    []store.HalfEdge // of lists, up to here
	gaps    *extsort.Writer  // nil: nobody asks
	to      *extsort.Appender
	count   int64 // of gaps
}

func (l *eventLists) append(m *merged) error {
	at := 0
	for k, n := range m.lengths {
		if place := uint64(m.list) + uint64(k); place == l.next {
			if place > 0 {
				l.lengths = append(l.lengths, l.open)
			}
			l.next, l.open = place+1, 0
		}
		for range n {
			r := m.records[at*halfBytes:]
			h := store.HalfEdge{
				Time: math.Float64frombits(binary.LittleEndian.Uint64(r[8:])), Event: m.items[at], Neighbor: binary.LittleEndian.Uint32(r[16:]),
			}
			if gap := h.Time - l.last; l.gaps != nil && l.open > 0 && gap > 0 {
				l.to.Put8(0, math.Float64bits(gap))
				l.count++
			}
			at, l.open, l.last = at+1, l.open+1, h.Time
			if l.near = append(l.near, h); len(l.near) == eventBatch {
				if err := l.flush(); err != nil {
					return err
				}
			}
		}
		if len(l.lengths) == eventBatch {
			if err := l.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *eventLists) flush() error {
	err := l.out.AppendNear(l.near)
	if err == nil {
		err = l.out.AppendLengths(l.lengths)
	}
	l.near, l.lengths = l.near[:0], l.lengths[:0]
	return err
}

// finish ends the last list.
func (l *eventLists) finish() error {
	if l.next > 0 {
		l.lengths = append(l.lengths, l.open)
	}
	return l.flush()
}

const (
	// shortSpan is the number of units of time below which they are not taken for seconds: networks
	// see times by waves of a second and longer, and of a stream that is over in one they would see
	// nothing.
	shortSpan = 1e4
	usualGap  = 1e3 // the median of a node's gaps then
)

// wantsGap reports whether the scale of time depends on the gaps between events.
func (w *streamWriter) wantsGap() bool {
	return w.b.TimeScale == 0 && w.report.Last-w.report.First < shortSpan
}

// scale sets the factor that differences of times are multiplied with.
func (w *streamWriter) scale(gap float64) {
	w.report.TimeScale = cmp.Or(w.b.TimeScale, 1)
	if w.b.TimeScale != 0 || gap == 0 {
		return
	}
	w.report.TimeScale = math.Min(usualGap/gap, math.MaxFloat64)
	w.b.note("stream %s: its times span %g, which is little for seconds: networks will see differences of times %g times as long, so that the median "+
		"from one event of a node to its next is %g; {time_scale} says otherwise", w.form.Name, w.report.Last-w.report.First, w.report.TimeScale, float64(usualGap))
}
