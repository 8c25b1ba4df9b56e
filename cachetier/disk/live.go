package disk

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Live counts the reads of a Reader since Open. Latency is the time from handing a read to the
// system until its bytes arrive. Under Mmap it is the time to copy an extent from the map.
type Live struct {
	Reads    int64   `json:"reads"`     // finished reads
	Bytes    int64   `json:"bytes"`     // bytes that these reads asked for
	UnderWay int64   `json:"under_way"` // reads under way now
	Depth    float64 `json:"depth"`     // mean number of reads under way, while Read ran

	Waited time.Duration `json:"waited_ns"` // sum of the latencies of these reads

	P50 time.Duration `json:"p50_ns"`
	P90 time.Duration `json:"p90_ns"`
	P99 time.Duration `json:"p99_ns"`
	Max time.Duration `json:"max_ns"`
}

// meter counts the reads of a Reader. Each counter is atomic by itself, so a copy of all of them is
// consistent only to within the reads under way.
type meter struct {
	reads, bytes, underWay atomic.Int64
	waited                 atomic.Int64 // ns, sum over all reads
	running                atomic.Int64 // ns, sum over the calls of Read that have ended
	since                  atomic.Int64 // ns from origin to the start of the running Read; 0 if none runs
	origin                 time.Time
	latency                histogram
}

func newMeter() *meter { return &meter{origin: time.Now()} }

// start and stop enclose a call of Read.
func (m *meter) start() { m.since.Store(max(1, int64(time.Since(m.origin)))) }
func (m *meter) stop()  { m.running.Add(int64(time.Since(m.origin)) - m.since.Swap(0)) }

// ended counts a finished read of so many bytes.
func (m *meter) ended(bytes int, latency time.Duration) {
	m.reads.Add(1)
	m.bytes.Add(int64(bytes))
	m.waited.Add(int64(latency))
	m.latency.add(latency)
}

// reset zeroes the counters. No read may be under way.
func (m *meter) reset() {
	for _, n := range []*atomic.Int64{&m.reads, &m.bytes, &m.waited, &m.running, &m.latency.max} {
		n.Store(0)
	}
	for b := range m.latency.counts {
		m.latency.counts[b].Store(0)
	}
}

func (m *meter) read() Live {
	running := m.running.Load()
	if since := m.since.Load(); since > 0 {
		running += int64(time.Since(m.origin)) - since
	}
	l := Live{Reads: m.reads.Load(), Bytes: m.bytes.Load(), UnderWay: m.underWay.Load(), Waited: time.Duration(m.waited.Load())}
	if running > 0 {
		l.Depth = float64(l.Waited) / float64(running) // Little's law
	}
	p := m.latency.quantiles(0.5, 0.9, 0.99)
	l.P50, l.P90, l.P99, l.Max = p[0], p[1], p[2], time.Duration(m.latency.max.Load())
	return l
}

// histogram counts durations in buckets. A bucket is a sixteenth of a power of two wide: 3 % to
// either side of its middle.
type histogram struct {
	counts [61 << 4]atomic.Int64
	max    atomic.Int64
}

// bucket returns the number of d's bucket: d itself below 16 ns, else d's exponent and the four
// bits below its highest bit.
func bucket(d time.Duration) int {
	n := uint64(max(d, 0))
	e := bits.Len64(n >> 4)
	if e == 0 {
		return int(n)
	}
	return e<<4 | int(n>>(e-1)&15)
}

// middle returns the duration that bucket b stands for.
func middle(b int) time.Duration {
	e := b >> 4
	if e == 0 {
		return time.Duration(b)
	}
	return time.Duration((uint64(b&15|16)<<1 + 1) << (e - 1) >> 1)
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucket(d)].Add(1)
	for {
		top := h.max.Load()
		if int64(d) <= top || h.max.CompareAndSwap(top, int64(d)) {
			return
		}
	}
}

// quantiles returns, for each of these ascending shares, the duration that this share of the counts
// does not exceed. Without counts it is 0.
func (h *histogram) quantiles(shares ...float64) []time.Duration {
	var total, seen int64
	counts := make([]int64, len(h.counts))
	for b := range counts {
		counts[b] = h.counts[b].Load()
		total += counts[b]
	}
	at, out := -1, make([]time.Duration, len(shares))
	if total == 0 {
		return out
	}
	for i, share := range shares {
		for seen < max(1, int64(share*float64(total))) {
			at++
			seen += counts[at]
		}
		out[i] = min(middle(at), time.Duration(h.max.Load()))
	}
	return out
}
