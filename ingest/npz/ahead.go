package npz

import (
	"io"
	"sync"
)

const (
	aheadBlock  = 256 << 10
	aheadBlocks = 4 // of 256 KiB: what a processor inflates in 1 to 4 ms, so that neither side waits for every chunk
)

// ahead reads a body in a goroutine of its own, a little before it is asked for: inflating is most
// of the work of reading an archive, and whoever consumes it has work of his own.
type ahead struct {
	body  io.ReadCloser
	full  chan block
	empty chan []byte
	stop  chan struct{}
	done  sync.WaitGroup
	now   block // being handed out
	at    int   // of it, the byte to be handed out next
}

// block is the data of one filling, and the error that ended it.
type block struct {
	data []byte
	err  error
}

// readAhead takes the body, and closes it when it is closed.
func readAhead(body io.ReadCloser) *ahead {
	a := &ahead{body: body, full: make(chan block, aheadBlocks), empty: make(chan []byte, aheadBlocks), stop: make(chan struct{})}
	a.done.Go(a.run)
	return a
}

func (a *ahead) run() {
	for made, data := 0, []byte(nil); ; made++ {
		if made < aheadBlocks {
			data = make([]byte, aheadBlock)
		} else {
			select {
			case data = <-a.empty:
			case <-a.stop:
				return
			}
		}
		b := block{data: data}
		n := 0
		for n < len(data) && b.err == nil {
			var k int
			k, b.err = a.body.Read(data[n:])
			n += k
		}
		b.data = data[:n]
		select {
		case a.full <- b:
		case <-a.stop:
			return
		}
		if b.err != nil {
			return
		}
	}
}

// Read returns what has been read ahead, and then how the body ended, every time it is asked.
func (a *ahead) Read(b []byte) (int, error) {
	for a.at == len(a.now.data) {
		if a.now.err != nil {
			return 0, a.now.err
		}
		if cap(a.now.data) > 0 {
			a.empty <- a.now.data[:cap(a.now.data)] // has room for all blocks there are
		}
		a.now, a.at = <-a.full, 0
	}
	n := copy(b, a.now.data[a.at:])
	a.at += n
	return n, nil
}

// Close waits for the goroutine.
func (a *ahead) Close() error {
	close(a.stop)
	a.done.Wait()
	return a.body.Close()
}
