package disk

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Rate holds transfers to what a slower device would do, for measurements: so many bytes a second,
// and so many transfers. All that share it wait in one line, as they would for the device.
type Rate struct {
	bytes, transfers float64 // a second
	mu               sync.Mutex
	free             time.Time // when the device is done with what it was given
}

// ParseRate reads BYTES,TRANSFERS, both a second, such as 200MB,500.
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

// Delay takes the device for a transfer of so many bytes, and is how long it takes from now on.
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

// Faults are the delays of reads, and beside them what faults does, unless that is nil.
func (r *Rate) Faults(faults Faults) Faults {
	return func(file int, offset int64, size int) Fault {
		f := faults.at(file, offset, size)
		f.Delay += r.Delay(size)
		return f
	}
}
