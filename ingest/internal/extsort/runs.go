package extsort

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/kernels"
)

// Order returns the numbers that a record sorts by: first, and where that is equal, second. No two
// records have both alike.
type Order func(record []byte) (first, second uint64)

// order has the numbers that a record sorts by, and its place.
type order struct {
	first, second uint64
	at            uint32
}

const orderBytes = 24

// SortRuns sorts the records of logs, as many at a time as fit in memory, into runs: buckets that
// are sorted each by itself, named after name. sorted is called with numbers of records, from
// several goroutines. The logs stay.
func (a *Area) SortRuns(ctx context.Context, name string, logs []Bucket, width int, memory int64, workers int, by Order, sorted func(n int)) ([]Bucket, error) {
	each := memory/int64(workers) - WriterBytes(1, MinBlock)
	step := Chunk(width, int(min(max(each, 0)*int64(width)/int64(width+orderBytes), 1<<30)))
	type piece struct {
		log   Bucket
		at, n int64
	}
	var pieces []piece
	for _, l := range logs {
		for at := int64(0); at < l.Bytes; at += step {
			pieces = append(pieces, piece{l, at, min(step, l.Bytes-at)})
		}
	}
	runs := make([]Bucket, len(pieces))
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range min(workers, len(pieces)) {
		g.Go(func() error {
			buf, err := kernels.NewHostBuf(int(RoundUp(slices.MaxFunc(pieces, func(x, y piece) int { return cmp.Compare(x.n, y.n) }).n)))
			if err != nil {
				return err
			}
			defer buf.Close()
			var places []order
			for {
				k := int(next.Add(1)) - 1
				if k >= len(pieces) || ctx.Err() != nil {
					return ctx.Err()
				}
				records, err := a.Load(pieces[k].log, pieces[k].at, pieces[k].n, buf.Bytes())
				if err != nil {
					return err
				}
				n := len(records) / width
				if cap(places) < n {
					places = make([]order, n)
				}
				places = places[:n]
				for i := range places {
					first, second := by(records[i*width : (i+1)*width])
					places[i] = order{first, second, uint32(i)}
				}
				slices.SortFunc(places, func(x, y order) int {
					if x.first != y.first {
						return cmp.Compare(x.first, y.first)
					}
					return cmp.Compare(x.second, y.second)
				})
				if runs[k], err = a.writeRun(fmt.Sprintf("%s-%d", name, k), func(put func(record []byte)) error {
					for _, p := range places {
						put(records[int(p.at)*width : (int(p.at)+1)*width])
					}
					return nil
				}); err != nil {
					return err
				}
				sorted(n)
			}
		})
	}
	return runs, g.Wait()
}

// writeRun makes a bucket of the records that each puts.
func (a *Area) writeRun(name string, each func(put func(record []byte)) error) (Bucket, error) {
	w, err := a.NewWriter(name, 1, MinBlock)
	if err != nil {
		return Bucket{}, err
	}
	to := w.NewAppender()
	err = each(func(record []byte) { to.Put(0, record) })
	to.Flush()
	run, err := CloseAfter(err, w.Close)
	return run[0], err
}

var merges atomic.Int64 // numbers the files of merges

// MergeRuns visits the records of runs in order, in about so much memory. A record is lent for the
// call. The runs stay.
func (a *Area) MergeRuns(runs []Bucket, width int, memory int64, by Order, visit func(record []byte) error) error {
	least := max(Chunk(width, 1), sector)
	for ways := int(max(2, memory/least)); len(runs) > ways; {
		first := runs[:ways]
		run, err := a.writeRun(fmt.Sprintf("merged-%d", merges.Add(1)), func(put func(record []byte)) error {
			return a.MergeRuns(first, width, memory, by, func(record []byte) error { put(record); return nil })
		})
		if err != nil {
			return err
		}
		defer func() { _ = a.Remove(run) }() // it goes with the directory otherwise
		runs = append(slices.Clone(runs[ways:]), run)
	}
	var h runHeap
	defer func() {
		for _, r := range h {
			r.mem.Close()
		}
	}()
	for _, b := range runs {
		if b.Bytes == 0 {
			continue
		}
		mem, err := Buffer(width, int(min(memory/int64(len(runs)), readStep)))
		if err != nil {
			return err
		}
		r := &runReader{area: a, b: b, width: width, by: by, mem: mem}
		h = append(h, r)
		if err := r.next(); err != nil {
			return err
		}
	}
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
	for len(h) > 0 {
		r := h[0]
		if err := visit(r.record); err != nil {
			return err
		}
		if err := r.next(); err != nil {
			return err
		}
		if r.record == nil {
			r.mem.Close()
			last := len(h) - 1
			h[0] = h[last]
			h = h[:last]
		}
		h.down(0)
	}
	return nil
}

// runReader is a run that is being read.
type runReader struct {
	area          *Area
	b             Bucket
	width         int
	by            Order
	mem           *kernels.HostBuf
	at            int64
	have          []byte
	record        []byte // nil after the last
	first, second uint64
}

func (r *runReader) next() (err error) {
	if len(r.have) == 0 {
		if r.at == r.b.Bytes {
			r.record = nil
			return nil
		}
		n := min(Chunk(r.width, len(r.mem.Bytes())), r.b.Bytes-r.at)
		if r.have, err = r.area.Load(r.b, r.at, n, r.mem.Bytes()); err != nil {
			return err
		}
		r.at += n
	}
	r.record, r.have = r.have[:r.width], r.have[r.width:]
	r.first, r.second = r.by(r.record)
	return nil
}

// runHeap has the run with the least record first.
type runHeap []*runReader

func (h runHeap) less(i, j int) bool {
	return h[i].first < h[j].first || h[i].first == h[j].first && h[i].second < h[j].second
}

// down moves the i-th element of the heap down to its place.
func (h runHeap) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h.less(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
