package disk

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Rate slows transfers down to a slower device, for measurements: to so many bytes and so many
// transfers a second. All users of a Rate wait in one line, as they would for the device.
type Rate struct {
	bytes, transfers float64 // a second
	mu               sync.Mutex
	free             time.Time // when the device will have done all transfers so far
}

// ParseRate parses BYTES,TRANSFERS, such as 200MB,500: both are per second, and above 0.
func ParseRate(text string) (*Rate, error) {
	size, transfers, _ := strings.Cut(text, ",")
	unit := 1.0
	for suffix, n := range map[string]float64{"kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if cut, ok := strings.CutSuffix(strings.TrimSuffix(strings.TrimSpace(size), "/s"), suffix); ok {
			size, unit = cut, n
			break
		}
	}
	b, errBytes := strconv.ParseFloat(strings.TrimSpace(size), 64)
	t, errTransfers := strconv.ParseFloat(strings.TrimSpace(transfers), 64)
	if errBytes != nil || errTransfers != nil || !positive(b*unit) || !positive(t) {
		return nil, fmt.Errorf("%q is not bytes and transfers a second, both above 0, such as 200MB,500", text)
	}
	return &Rate{bytes: b * unit, transfers: t}, nil
}

// Costs returns the costs of the device that r imitates.
func (r *Rate) Costs() Costs { return Costs{SecondsPerRead: 1 / r.transfers, BytesPerSecond: r.bytes} }

// Delay books a transfer of so many bytes on the device, and returns the time from now until it is
// done.
func (r *Rate) Delay(bytes int) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.free.Before(now) {
		r.free = now
	}
	r.free = r.free.Add(time.Duration((1/r.transfers + float64(bytes)/r.bytes) * float64(time.Second)))
	return r.free.Sub(now)
}

// Faults returns faults, which may be nil, with the Rate's delay added to each read.
func (r *Rate) Faults(faults Faults) Faults {
	return func(file int, offset int64, size int) Fault {
		f := faults.at(file, offset, size)
		f.Delay += r.Delay(size)
		return f
	}
}
