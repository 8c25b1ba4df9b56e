//go:build gnncheck

package kernels

import (
	"fmt"
	"sync/atomic"
)

// loans counts what is lent.
type loans struct{ n atomic.Int64 }

func (l *loans) add(n int64) {
	if l.n.Add(n) < 0 {
		panic("kernels: HostBuf: Return without a Lend")
	}
}

// none panics unless everything came back.
func (l *loans) none() {
	if n := l.n.Load(); n != 0 {
		panic(fmt.Sprintf("kernels: HostBuf closed while %d borrowers have it", n))
	}
}

// poison fills memory that is given up: all ones are NaN as float32 and as float16, and no node's
// id.
func poison(b []byte) {
	for i := range b {
		b[i] = 0xff
	}
}
