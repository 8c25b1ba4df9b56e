package dist

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"
)

// Exchanges of Measure: bytes that a worker sends to all others together, and how often.
const (
	measureFirst = 64 << 10
	measureMost  = 4 << 20
	measureTurns = 5
)

// measureEnough is the time of an exchange that is long enough to tell the speed.
const measureEnough = 50 * time.Millisecond

// Measure times exchanges among all workers, on the lane of rows. It returns the bytes that a
// worker sends a second while it receives as many, and the seconds of an exchange of small
// messages, both of the slowest worker. Every worker calls it before it uses the lane, and gets the
// same numbers. Messages grow until an exchange takes 50 ms, to 4 MiB at most.
func (g *Group) Measure(ctx context.Context) (bytesPerSecond, latency float64, err error) {
	others, c := g.Size()-1, g.Rows()
	if c == nil {
		return math.Inf(1), 0, nil
	}
	if _, err = c.timed(ctx, others); err == nil { // the first makes the connections
		latency, err = c.timed(ctx, others)
	}
	for bytes := measureFirst; err == nil; bytes *= 4 {
		var took float64
		if took, err = c.timed(ctx, bytes); err != nil {
			break
		}
		// The largest messages count: small ones may be no more than what buffers on the way hold.
		bytesPerSecond = float64(max(bytes/others, 1)*others) / (took - min(latency, took/10))
		if took >= measureEnough.Seconds() || bytes >= measureMost {
			break
		}
	}
	return bytesPerSecond, latency, err
}

// timed returns the seconds of an exchange in which each worker sends so many bytes to the others:
// the median of some turns, of the slowest worker.
func (c *Channel) timed(ctx context.Context, bytes int) (float64, error) {
	g := c.group
	send := make([][]byte, g.Size())
	for q := range send {
		if q != g.Rank() {
			send[q] = make([]byte, max(bytes/(g.Size()-1), 1))
		}
	}
	var turns []float64
	for range measureTurns {
		began := time.Now()
		if _, err := c.Exchange(ctx, At{}, send); err != nil {
			return 0, err
		}
		turns = append(turns, max(time.Since(began).Seconds(), 1e-9))
	}
	slices.Sort(turns)
	own := binary.LittleEndian.AppendUint64(nil, math.Float64bits(turns[measureTurns/2]))
	for q := range send {
		send[q] = own
	}
	came, err := c.Exchange(ctx, At{}, send)
	most := 0.0
	for q := range came {
		if len(came[q]) != len(own) {
			return 0, fmt.Errorf("%s sent %d bytes for the time of an exchange; %d were expected", g.Name(q), len(came[q]), len(own))
		}
		most = max(most, math.Float64frombits(binary.LittleEndian.Uint64(came[q])))
	}
	return most, err
}
