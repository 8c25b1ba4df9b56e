package disk

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Costs is the time that a device takes for reads when many are under way.
type Costs struct {
	SecondsPerRead float64 `json:"seconds_per_read"` // on top of the transfer
	BytesPerSecond float64 `json:"bytes_per_second"`
}

// Assumed are the costs of a virtual disk that was not measured: 70,000 reads a second, and 1 GB/s.
var Assumed = Costs{SecondsPerRead: 1.0 / 70_000, BytesPerSecond: 1e9}

// ParseCosts parses READS,BYTES, such as 70000,1.5e9: both are per second, and above 0.
func ParseCosts(text string) (Costs, error) {
	reads, bytes, _ := strings.Cut(text, ",")
	r, errReads := strconv.ParseFloat(strings.TrimSpace(reads), 64)
	b, errBytes := strconv.ParseFloat(strings.TrimSpace(bytes), 64)
	c := Costs{SecondsPerRead: 1 / r, BytesPerSecond: b}
	if errReads != nil || errBytes != nil || r <= 0 || b <= 0 || (Options{Costs: c}).Validate() != nil {
		return Costs{}, fmt.Errorf("%q is not reads and bytes a second, both above 0, such as 70000,1.5e9", text)
	}
	return c, nil
}

// Slower returns the costs of a device that is as slow as the slower of two, in reads and in bytes.
func (c Costs) Slower(than Costs) Costs {
	return Costs{max(c.SecondsPerRead, than.SecondsPerRead), min(c.BytesPerSecond, than.BytesPerSecond)}
}

// Gap returns the number of bytes that cost as much as another read. Reading through a gap of at
// most that size is cheaper.
func (c Costs) Gap() int64 { return int64(c.SecondsPerRead * c.BytesPerSecond) }

// Spread returns the seconds to read n of total items, each of so many bytes, that are spread
// evenly over a file: one by one or through the gaps between them, whichever is faster.
func (c Costs) Spread(n, total, bytes float64) float64 {
	seconds, _ := c.SpreadBytes(n, total, bytes)
	return seconds
}

// SpreadBytes returns the seconds of Spread, and the bytes that are read.
func (c Costs) SpreadBytes(n, total, bytes float64) (seconds, read float64) {
	if n <= 0 {
		return 0, 0
	}
	block := max(bytes, 4096)
	each := c.SecondsPerRead + block/c.BytesPerSecond
	through := bytes * max(total/n, 1) / c.BytesPerSecond
	if each < through {
		return n * each, n * block
	}
	return n * through, n * through * c.BytesPerSecond
}

// Scattered estimates the traffic of reading n of total items, each of so many bytes, that lie
// anywhere in a file. It models a Reader with blocks of 4 KiB, which also reads through gaps.
func (c Costs) Scattered(n, total, bytes float64) Traffic {
	if n <= 0 || total <= 0 {
		return Traffic{}
	}
	block := max(bytes, 4096)
	all := max(total*bytes/block, 1) // blocks of the file
	wanted := 1.0                    // share of the blocks with a wanted item
	if n < total {
		wanted = -math.Expm1(block / bytes * math.Log1p(-n/total))
	}
	through := math.Floor(float64(c.Gap()) / block)
	// The next wanted block follows after g others with a probability of wanted·(1-wanted)^g. Gaps
	// of up to through blocks are read.
	rest := 1 - wanted
	beyond := math.Pow(rest, through+1)
	between := (rest - beyond*(1+through*wanted)) / wanted
	read := min(all, all*wanted*(1+between)) * block
	return Traffic{Reads: int64(math.Ceil(max(all*wanted*beyond, read/MaxExtent))), Bytes: int64(read)}
}

// Seconds returns how long the device is busy with t.
func (c Costs) Seconds(t Traffic) float64 {
	return float64(t.Reads)*c.SecondsPerRead + float64(t.Bytes)/c.BytesPerSecond
}

// Request is the place of a wanted item in a file.
type Request struct {
	File   int
	Offset int64
	Size   int // at least 1
}

// Merge combines n requests into extents, and returns a function that yields these in order. at
// returns request i; requests are sorted by file and offset, and do not overlap. A gap between the
// blocks of two requests is read through if it is at most Costs.Gap and the extent stays within
// MaxExtent. So requests that share a block are read together, and a region where much is wanted is
// read whole. A request larger than MaxExtent gets its own extent. The extents depend only on the
// requests, Costs and Block.
func (r *Reader) Merge(n int, at func(i int) Request) func() (Extent, bool) {
	return merge(n, at, r.costs.Gap(), r.Block())
}

func merge(n int, at func(i int) Request, gap, block int64) func() (Extent, bool) {
	i := 0
	var p Request
	if n > 0 {
		p = at(0)
	}
	return func() (Extent, bool) {
		if i == n {
			return Extent{}, false
		}
		s := Extent{File: p.File, Offset: p.Offset, Size: p.Size, Lo: i}
		for i++; i < n; i++ {
			p = at(i)
			lo, hi := hull(s, block)
			from, to := hull(Extent{Offset: p.Offset, Size: p.Size}, block)
			if p.File != s.File || from-hi > gap || to-lo > MaxExtent {
				break
			}
			s.Size = int(p.Offset - s.Offset + int64(p.Size))
		}
		s.Hi = i
		return s, true
	}
}
