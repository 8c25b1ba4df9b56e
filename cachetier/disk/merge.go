package disk

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Costs is what a device takes for reads that are under way many at a time.
type Costs struct {
	SecondsPerRead float64 `json:"seconds_per_read"` // beside the transfer
	BytesPerSecond float64 `json:"bytes_per_second"`
}

// Assumed is a virtual disk of which nothing was measured: 70,000 reads a second, and 1 GB/s.
var Assumed = Costs{SecondsPerRead: 1.0 / 70_000, BytesPerSecond: 1e9}

// ParseCosts reads READS,BYTES, both a second and above 0, such as 70000,1.5e9.
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

// Gap is the number of bytes that cost as much as another read: up to it, reading through is
// cheaper.
func (c Costs) Gap() int64 { return int64(c.SecondsPerRead * c.BytesPerSecond) }

// Spread is the seconds that reading n of total things takes, of bytes each and spread evenly over
// a file: one by one, or through the gaps between them, whichever is less.
func (c Costs) Spread(n, total, bytes float64) float64 {
	seconds, _ := c.SpreadBytes(n, total, bytes)
	return seconds
}

// SpreadBytes is Spread, and the bytes that are read.
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

// Scattered is the traffic of n of total things, of bytes each, that lie anywhere in a file: what a
// Reader with blocks of 4 KiB makes of them, gaps that are read through included.
func (c Costs) Scattered(n, total, bytes float64) Traffic {
	if n <= 0 || total <= 0 {
		return Traffic{}
	}
	block := max(bytes, 4096)
	all := max(total*bytes/block, 1) // blocks
	wanted := 1.0                    // the share of them
	if n < total {
		wanted = -math.Expm1(block / bytes * math.Log1p(-n/total))
	}
	through := math.Floor(float64(c.Gap()) / block)
	// Between a wanted block and the next lie g others with a probability of wanted·(1-wanted)^g;
	// up to through of them are read.
	rest := 1 - wanted
	beyond := math.Pow(rest, through+1)
	between := (rest - beyond*(1+through*wanted)) / wanted
	read := min(all, all*wanted*(1+between)) * block
	return Traffic{Reads: int64(math.Ceil(max(all*wanted*beyond, read/MaxExtent))), Bytes: int64(read)}
}

// Seconds is what the device is busy for.
func (c Costs) Seconds(t Traffic) float64 {
	return float64(t.Reads)*c.SecondsPerRead + float64(t.Bytes)/c.BytesPerSecond
}

// Request is where something wanted lies in a file.
type Request struct {
	File   int
	Offset int64
	Size   int // at least 1
}

// Merge makes extents of n requests, which at gives in the order of files and offsets; requests do
// not overlap. What lies between the blocks of two requests is read through where it is at most
// Costs.Gap, and where the extent stays within MaxExtent; so requests that share a block are read
// together, and a region of which enough is wanted is read whole. A request that is larger goes
// alone. The extents depend on the requests, Costs and Block, and on nothing else.
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
