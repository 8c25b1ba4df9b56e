package infer

import (
	"context"
	"sync"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// aheadBlocks is the largest number of lists of rows in memory: one in use, one that has come, and
// one under way.
const aheadBlocks = 3

// aheadRows are rows of a list of nodes.
type aheadRows struct {
	ids  []uint32
	rows kernels.Tensor // none where others bring the rows of the type
	room kernels.Tensor
}

// stream calls use with lists of nodes of type from and their rows, which it reads while the lists
// before are used. next puts the nodes of a list in ids, up to most of them, and leaves it empty at
// the end; it runs on a goroutine of its own. What use gets is valid until it returns. Where
// several lists take more than so much memory, each is read when the one before it is used up.
func (w *windows) stream(ctx context.Context, from, most int, memory int64, next func(ids []uint32) []uint32, use func(ids []uint32, rows kernels.Tensor) error) (err error) {
	s := w.stacks[from]
	if s == nil {
		for ids := next(nil); len(ids) > 0; ids = next(ids[:0]) {
			if err := use(ids, kernels.Tensor{}); err != nil {
				return err
			}
		}
		return nil
	}
	be, elem := w.e.step.Tape.Backend(), w.elem(from)
	cols := s.RowBytes() / elem.Size()
	free, ready := make(chan *aheadRows, aheadBlocks), make(chan *aheadRows)
	for range max(1, min(aheadBlocks, memory/int64(max(1, most*s.RowBytes())))) {
		room := kernels.NewTensor(be, elem, most, cols)
		defer be.Free(room.Buf)
		free <- &aheadRows{room: room}
	}
	ctx, stop := context.WithCancel(ctx)
	var reading sync.WaitGroup
	var failed error
	defer func() {
		stop()
		reading.Wait()
		if err == nil {
			err = failed
		}
	}()
	reading.Go(func() {
		defer close(ready)
		failed = store.Guard(func() error { return w.readAhead(ctx, from, next, free, ready) })
	})
	for b := range ready {
		if err := use(b.ids, b.rows); err != nil {
			return err
		}
		free <- b
	}
	return nil
}

// readAhead fills what free has, and gives it to ready.
func (w *windows) readAhead(ctx context.Context, from int, next func(ids []uint32) []uint32, free <-chan *aheadRows, ready chan<- *aheadRows) error {
	staging := kernels.NewStaging(w.e.step.Tape.Backend())
	defer staging.Close()
	var rows []uint32
	for {
		var b *aheadRows
		select {
		case b = <-free:
		case <-ctx.Done():
			return ctx.Err()
		}
		if b.ids = next(b.ids[:0]); len(b.ids) == 0 {
			return nil
		}
		rows = rows[:0]
		for _, v := range b.ids {
			rows = append(rows, w.row(from, v))
		}
		b.rows = b.room.Slice(0, len(rows))
		if err := staging.Fill(b.rows, func(dst []byte) error { return w.stacks[from].Peek(ctx, dst, rows) }); err != nil {
			return err
		}
		select {
		case ready <- b:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
