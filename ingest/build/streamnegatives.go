package build

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// The way of negatives that a source gives, which names events by their ends and times, in any
// order:
//
//	events  as they are written, those not to learn from leave a record each
//	lists   each leaves a record as well, and its nodes, by stored ids, in a log of their own
//	join    both are sorted by ends and time together, so that events meet their lists
//	write   the pairs are sorted by event, and the nodes follow into the dataset
//
// Memory is bounded as in sorting, whatever their number.

// keyed is the record of an event or of a list, by rows and the time.
type keyed []byte

const keyedBytes = 32

func (k keyed) key() (ends, time uint64) {
	return binary.LittleEndian.Uint64(k), binary.LittleEndian.Uint64(k[8:])
}
func (k keyed) at() uint64    { return binary.LittleEndian.Uint64(k[16:]) } // the event's number, or the place of the list's first node
func (k keyed) count() uint32 { return binary.LittleEndian.Uint32(k[24:]) } // of the list's nodes
func (k keyed) isList() bool  { return k[28] == 1 }

func byKey(record []byte) (ends, time uint64) { return keyed(record).key() }

func (k keyed) set(src, dst uint32, bits, at uint64, count uint32, isList bool) {
	binary.LittleEndian.PutUint64(k, extsort.MakeKey(src, dst))
	binary.LittleEndian.PutUint64(k[8:], bits)
	binary.LittleEndian.PutUint64(k[16:], at)
	binary.LittleEndian.PutUint32(k[24:], count)
	binary.LittleEndian.PutUint32(k[28:], 0)
	if isList {
		k[28] = 1
	}
}

// ofEvent is the record of an event with its list: its number, the place of the first node, and how
// many there are.
const ofEventBytes = 24

func byEvent(record []byte) (event, _ uint64) { return binary.LittleEndian.Uint64(record), 0 }

// negativeKeys collects the records of events that are not to learn from; of a stream without
// negatives it is nil, and does nothing.
type negativeKeys struct {
	out    *extsort.Writer
	to     *extsort.Appender
	record keyed
}

func (w *streamWriter) newNegativeKeys(i int) (*negativeKeys, error) {
	if !w.form.Stream.Negatives {
		return nil, nil
	}
	out, err := w.b.area.NewWriter(fmt.Sprintf("held-%d", i), 1, extsort.MinBlock)
	if err != nil {
		return nil, err
	}
	return &negativeKeys{out, out.NewAppender(), make(keyed, keyedBytes)}, nil
}

func (n *negativeKeys) add(e event, number uint32) {
	if n != nil {
		n.record.set(e.src(), e.dst(), e.time(), uint64(number), 0, false)
		n.to.Put(0, n.record)
	}
}

func (n *negativeKeys) close() ([]extsort.Bucket, error) {
	if n == nil {
		return nil, nil
	}
	n.to.Flush()
	return n.out.Close()
}

// writeNegatives writes the negatives of the events whose records are in held.
func (w *streamWriter) writeNegatives(ctx context.Context, i int, held []extsort.Bucket) error {
	if !w.form.Stream.Negatives {
		return nil
	}
	b := w.b
	lists, nodes, err := w.readNegatives(ctx, i)
	defer func() { b.discard(append(append(append([]extsort.Bucket(nil), held...), lists...), nodes...)...) }()
	if err != nil {
		return err
	}
	runs, err := b.area.SortRuns(ctx, fmt.Sprintf("held-run-%d", i), append(held[:1:1], lists...), keyedBytes, b.room(), workers(), byKey, func(int) {})
	defer b.discard(runs...)
	if err != nil {
		return err
	}
	joined, err := w.joinNegatives(ctx, i, runs)
	defer b.discard(joined...)
	if err != nil {
		return err
	}
	runs, err = b.area.SortRuns(ctx, fmt.Sprintf("ranked-run-%d", i), joined, ofEventBytes, b.room(), workers(), byEvent, func(int) {})
	defer b.discard(runs...)
	if err != nil {
		return err
	}
	return w.orderNegatives(ctx, runs, nodes[0])
}

// readNegatives reads the source's lists: a log of their records, and one of their nodes.
func (w *streamWriter) readNegatives(ctx context.Context, i int) (lists, negatives []extsort.Bucket, err error) {
	b, f := w.b, &w.form
	if b.extras.Negatives == nil {
		return nil, nil, fmt.Errorf("stream %s: its negatives cannot be read; this is a fault of the reader, please report it", f.Name)
	}
	listWriter, err := b.area.NewWriter(fmt.Sprintf("lists-%d", i), 1, extsort.MinBlock)
	if err != nil {
		return nil, nil, err
	}
	nodeWriter, err := b.area.NewWriter(fmt.Sprintf("negatives-%d", i), 1, extsort.MaxBlock)
	if err != nil {
		_, _ = listWriter.Close()
		return nil, nil, err
	}
	toLists, toNodes := listWriter.NewAppender(), nodeWriter.NewAppender()
	own, firstOwn := 0, ""
	record, list, end := make(keyed, keyedBytes), []byte(nil), uint64(0)
	var at origin
	err = b.extras.Negatives(ctx, i, func(c ingest.NegativeChunk) error {
		if err := at.follow(ctx, c.Place, len(c.Src)); err != nil {
			return err
		}
		if len(c.Dst) != len(c.Src) || len(c.Times) != len(c.Src) || len(c.Ends) != len(c.Src) {
			return fmt.Errorf("%s: the reader gave parts of negatives that do not fit each other; this is a fault of the reader, please report it", c.File)
		}
		first := uint32(0)
		for k := range c.Src {
			of := func(what string, n *nodes, id int64) error {
				if id >= 0 && id < int64(n.count) {
					return nil
				}
				return fmt.Errorf("%s: list %d (counting from 0): %s %d is none of the %d nodes of type %s, which count from 0; is it another data set's?",
					c.File, c.First+int64(k), what, id, n.count, n.name)
			}
			if err := of("source", f.src, c.Src[k]); err != nil {
				return err
			}
			if err := of("destination", f.dst, c.Dst[k]); err != nil {
				return err
			}
			ids := c.Nodes[first:c.Ends[k]]
			first = c.Ends[k]
			if slices.Contains(ids, c.Dst[k]) {
				if own++; own == 1 {
					firstOwn = fmt.Sprintf("%s: list %d (counting from 0)", c.File, c.First+int64(k))
				}
			}
			list = list[:0]
			for _, id := range ids {
				if err := of("negative", f.dst, id); err != nil {
					return err
				}
				list = binary.LittleEndian.AppendUint32(list, storedID(w.dst, uint32(id)))
			}
			toNodes.Put(0, list)
			record.set(uint32(c.Src[k]), uint32(c.Dst[k]), timeBits(c.Times[k]), end, uint32(len(ids)), true)
			toLists.Put(0, record)
			end += uint64(len(ids))
		}
		return errors.Join(listWriter.Err(), nodeWriter.Err())
	})
	toLists.Flush()
	toNodes.Flush()
	if own > 0 {
		b.note("stream %s: %d lists of negatives hold the destination of their own event, which then ties with itself; the first is %s", f.Name, own, firstOwn)
	}
	var lerr, nerr error
	lists, lerr = listWriter.Close()
	negatives, nerr = nodeWriter.Close()
	return lists, negatives, cmp.Or(err, lerr, nerr)
}

// joinNegatives joins events with their list. Several events may have the same ends and time.
func (w *streamWriter) joinNegatives(ctx context.Context, i int, runs []extsort.Bucket) ([]extsort.Bucket, error) {
	b := w.b
	out, err := b.area.NewWriter(fmt.Sprintf("ranked-%d", i), 1, extsort.MinBlock)
	if err != nil {
		return nil, err
	}
	to := out.NewAppender()
	var ends, time uint64
	var events []uint64                // of this key that came before its list
	list := make(keyed, 0, keyedBytes) // of this key, once it has come
	unused, records := 0, 0            // lists without an event
	met := false                       // an event of this key has come
	var record [ofEventBytes]byte
	give := func(event uint64) {
		binary.LittleEndian.PutUint64(record[:], event)
		binary.LittleEndian.PutUint64(record[8:], list.at())
		binary.LittleEndian.PutUint32(record[16:], list.count())
		to.Put(0, record[:])
	}
	done := func() error {
		if len(list) > 0 && !met {
			unused++
		}
		if len(events) > 0 {
			return w.noNegatives(events[0])
		}
		return nil
	}
	err = b.area.MergeRuns(runs, keyedBytes, b.room(), byKey, func(r []byte) error {
		if records++; records%eventBatch == 0 {
			if err := errors.Join(ctx.Err(), out.Err()); err != nil {
				return err
			}
		}
		k := keyed(r)
		if e, t := k.key(); records == 1 || e != ends || t != time {
			if err := done(); err != nil {
				return err
			}
			ends, time, events, list, met = e, t, events[:0], list[:0], false
		}
		switch {
		case !k.isList() && len(list) == 0:
			met = true
			events = append(events, k.at())
		case !k.isList():
			met = true
			give(k.at())
		case len(list) > 0:
			return fmt.Errorf("stream %s: negatives of the events at %v from row %d to row %d are there twice, and one would have to be left out; mend the file",
				w.form.Name, math.Float64frombits(time), ends>>32, uint32(ends))
		default:
			list = append(list, k...)
			for _, event := range events {
				give(event)
			}
			events = events[:0]
		}
		return nil
	})
	if err == nil {
		err = done()
	}
	to.Flush()
	joined, err := extsort.CloseAfter(err, out.Close)
	if unused > 0 {
		b.note("stream %s: %d lists of negatives are of no event to validate or to test on, and are left out", w.form.Name, unused)
	}
	return joined, err
}

// noNegatives is the error of an event that the source has no list for.
func (w *streamWriter) noNegatives(event uint64) error {
	verb := partVerb[ingest.Valid]
	if event >= uint64(w.split.counts[ingest.Train]+w.split.counts[ingest.Valid]) {
		verb = partVerb[ingest.Test]
	}
	return fmt.Errorf("stream %s: event %d (counting from 0, in the order of time) is to %s, and the source's negatives have none for it; "+
		"leave {split} out, as negatives were made for one split, or take their files away", w.form.Name, event, verb)
}

// orderNegatives writes the nodes in the order of events, which is mostly that in which they lie.
func (w *streamWriter) orderNegatives(ctx context.Context, runs []extsort.Bucket, nodes extsort.Bucket) error {
	b := w.b
	room := b.room() / 2
	buf, err := kernels.NewHostBuf(int(extsort.RoundUp(min(max(room/4, 1<<20), 16<<20))))
	if err != nil {
		return err
	}
	defer func() { buf.Close() }()
	var have []byte // of the log, from byte at on
	at := int64(0)
	next := uint64(w.split.counts[ingest.Train])
	var ids []store.NodeID
	err = b.area.MergeRuns(runs, ofEventBytes, room, byEvent, func(r []byte) error {
		event, lo, n := binary.LittleEndian.Uint64(r), 4*int64(binary.LittleEndian.Uint64(r[8:])), 4*int64(binary.LittleEndian.Uint32(r[16:]))
		if event != next {
			return fmt.Errorf("stream %s: event %d follows %d among those with negatives; please report it", w.form.Name, event, next)
		}
		next++
		if lo < at || lo+n > at+int64(len(have)) {
			at = lo / sector * sector
			if need := extsort.RoundUp(lo + n - at); need > int64(len(buf.Bytes())) { // one list alone
				buf.Close()
				if buf, err = kernels.NewHostBuf(int(need)); err != nil {
					return err
				}
			}
			if have, err = b.area.Load(nodes, at, min(int64(len(buf.Bytes())), nodes.Bytes-at), buf.Bytes()); err != nil {
				return err
			}
		}
		ids = ids[:0]
		for list := have[lo-at : lo-at+n]; len(list) > 0; list = list[4:] {
			ids = append(ids, binary.LittleEndian.Uint32(list))
		}
		w.report.Negatives += int64(len(ids))
		if next%eventBatch == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		return w.out.AppendNegatives(ids)
	})
	if err == nil && next != uint64(w.report.Events) {
		err = w.noNegatives(next)
	}
	return err
}

// sector is the alignment of offsets that Area.Load wants.
const sector = 4096
