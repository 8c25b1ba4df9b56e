package cachetier

import "github.com/gnnstore/gnnstore/cachetier/disk"

// Stats counts what the tiers did since Open. Its JSON keys are stable.
//
// Every id given to Gather is one input row, and one tier serves it:
//
//	input_rows = device.rows_hit + host.rows_hit + disk.rows
//
// and input_rows × row_bytes is the sum of the three bytes_out. A tier passes the rows that it
// misses on to the next. A row that was read for a window of several steps is served by the disk at
// its first use, and by the host tier from then on. The reads of a window are counted with its
// first Gather. Rows that Open, Prewarm, Restore and Reload read are not input rows; they are
// counted in Warmup.
type Stats struct {
	Tiers     Tiers `json:"tiers"`
	Disk      Disk  `json:"disk"`       // reads for Gather
	Warmup    Disk  `json:"warmup"`     // reads that fill the regions and the cache
	InputRows int64 `json:"input_rows"` // rows that a run without caches would have read
	RowBytes  int64 `json:"row_bytes"`

	Windows       int64 `json:"windows"`         // windows from which rows were gathered
	StaticRowsHit int64 `json:"static_rows_hit"` // the part of host.rows_hit that the static region served
	RowsBypassed  int64 `json:"rows_bypassed"`   // rows read for a step and not cached

	Join *Join `json:"join,omitempty"` // nil without horizons
}

// Join counts the rows that horizons moved. Each row that was spilled by a scan or forwarded by a
// window was written once and read once.
type Join struct {
	Horizons  int64 `json:"horizons"`
	Spilled   int64 `json:"rows_spilled"`   // by scans, to the first window that wants the row
	Forwarded int64 `json:"rows_forwarded"` // by windows, to the next one that wants the row
	Reread    int64 `json:"rows_reread"`    // from the table, since a damaged spill lost the row

	// ScanBytes and ScanSeconds count what all scans read from the table, and the time that took.
	// Disk counts both, too.
	ScanBytes   int64   `json:"scan_bytes"`
	ScanSeconds float64 `json:"scan_seconds"`
}

// plus returns a + sign × b. Either may be nil.
func (a *Join) plus(b *Join, sign int64) *Join {
	if b == nil {
		return a
	}
	sum := Join{}
	if a != nil {
		sum = *a
	}
	sum.Horizons += sign * b.Horizons
	sum.Spilled += sign * b.Spilled
	sum.Forwarded += sign * b.Forwarded
	sum.Reread += sign * b.Reread
	sum.ScanBytes += sign * b.ScanBytes
	sum.ScanSeconds += float64(sign) * b.ScanSeconds
	return &sum
}

// Tiers has a Tier for each tier, in the order in which they are asked.
type Tiers struct {
	Device Tier `json:"device"`
	Host   Tier `json:"host"`
	Disk   Tier `json:"disk"`
}

// Tier counts what one tier holds and did.
type Tier struct {
	// CapacityBytes and UsedBytes count rows only; on disk, the whole table without padding.
	CapacityBytes int64 `json:"capacity_bytes"`
	UsedBytes     int64 `json:"used_bytes"`
	CapacityRows  int64 `json:"capacity_rows"`
	UsedRows      int64 `json:"used_rows"`

	// IndexBytes is the size of the bookkeeping. CapacityBytes + IndexBytes is never more than the
	// tier's budget.
	IndexBytes int64 `json:"index_bytes"`

	RowsHit    int64 `json:"rows_hit"`    // ids served
	RowsMissed int64 `json:"rows_missed"` // ids passed on
	BytesOut   int64 `json:"bytes_out"`   // RowsHit × RowBytes

	// BytesRead counts the bytes that came into the tier. Device: the bytes that Open loaded into
	// the region, and rows that stayed there after their step. Host: the bytes of rows that came
	// into the static region and the cache. Disk: the same as Disk.BytesRead.
	BytesRead int64 `json:"bytes_read"`

	// Evictions counts the rows that lost their place.
	Evictions int64 `json:"evictions"`
}

func (t *Tier) setUsed(rows, rowBytes int64) { t.UsedRows, t.UsedBytes = rows, rows*rowBytes }

func (t *Tier) served(hit, missed, rowBytes int64) {
	t.RowsHit += hit
	t.RowsMissed += missed
	t.BytesOut += hit * rowBytes
}

// Disk counts reads. While a window is in use, the rows of its later steps do not count as wanted
// yet.
type Disk = disk.Account

func newStats(rows, rowBytes int, l layout, warmup disk.Traffic) Stats {
	size := int64(rowBytes)
	tier := func(rows int) Tier {
		return Tier{CapacityRows: int64(rows), CapacityBytes: int64(rows) * size}
	}
	static := int64(l.hot - l.device)
	st := Stats{RowBytes: size}
	st.Tiers = Tiers{Device: tier(l.device + l.dynamic.Slots), Host: tier(int(static) + l.slots), Disk: tier(rows)}
	st.Tiers.Device.setUsed(int64(l.device), size)
	st.Tiers.Device.BytesRead = int64(l.device) * size
	st.Tiers.Host.setUsed(static, size)
	st.Tiers.Host.BytesRead = static * size
	st.Tiers.Host.IndexBytes = l.indexBytes()
	st.Tiers.Disk.setUsed(int64(rows), size)
	read := int64(l.hot + l.shared)
	st.Warmup.Count(read, 0, read*size, warmup)
	return st
}

// count adds t to the counters. held is the number of rows in the cache.
func (s *Stack) count(t tally, held int) {
	s.stats.Lock()
	defer s.stats.Unlock()
	st := &s.stats.Stats
	host := t.static + t.cached
	st.InputRows += t.device + host + t.read
	st.Windows += t.windows
	st.StaticRowsHit += t.static
	st.RowsBypassed += t.bypassed
	device := &st.Tiers.Device
	device.served(t.device, host+t.read, st.RowBytes)
	device.BytesRead += t.kept * st.RowBytes
	device.Evictions += t.lost
	device.setUsed(device.UsedRows+t.kept-t.lost, st.RowBytes)
	st.Tiers.Host.served(host, t.read, st.RowBytes)
	st.Tiers.Host.setUsed(int64(s.hot-s.layout.device+held), st.RowBytes)
	st.Tiers.Host.BytesRead += t.copied * st.RowBytes
	st.Tiers.Host.Evictions += t.evicted
	st.Tiers.Disk.served(t.read, 0, st.RowBytes)
	st.Tiers.Disk.BytesRead += t.traffic.Bytes
	st.Disk.Count(t.read, t.repeated, t.read*st.RowBytes, t.traffic)
	if j := (Join{t.horizons, t.spilled, t.forwarded, t.reread, t.scanned.Bytes, t.scanned.Seconds}); j != (Join{}) {
		st.Join = st.Join.plus(&j, 1)
	}
}

// Stats returns a copy of the counters, as of the last Gather that ended. It does not wait for one
// that runs.
func (s *Stack) Stats() Stats {
	s.stats.Lock()
	defer s.stats.Unlock()
	return s.stats.Stats
}

// Sub returns the counts since earlier, an older copy from the same Stack. Capacities and current
// use stay as in st.
func (st Stats) Sub(earlier Stats) Stats {
	st.InputRows -= earlier.InputRows
	st.Windows -= earlier.Windows
	st.StaticRowsHit -= earlier.StaticRowsHit
	st.RowsBypassed -= earlier.RowsBypassed
	st.Tiers.Device.sub(earlier.Tiers.Device)
	st.Tiers.Host.sub(earlier.Tiers.Host)
	st.Tiers.Disk.sub(earlier.Tiers.Disk)
	st.Disk = st.Disk.Sub(earlier.Disk)
	st.Join = st.Join.plus(earlier.Join, -1)
	st.Warmup = st.Warmup.Sub(earlier.Warmup)
	return st
}

// Add returns st plus the counts of an earlier Stack over the same table. Capacities and current
// use stay as in st.
func (st Stats) Add(earlier Stats) Stats {
	st.InputRows += earlier.InputRows
	st.Windows += earlier.Windows
	st.StaticRowsHit += earlier.StaticRowsHit
	st.RowsBypassed += earlier.RowsBypassed
	st.Tiers.Device.plus(earlier.Tiers.Device)
	st.Tiers.Host.plus(earlier.Tiers.Host)
	st.Tiers.Disk.plus(earlier.Tiers.Disk)
	st.Disk = st.Disk.Add(earlier.Disk)
	st.Join = st.Join.plus(earlier.Join, 1)
	st.Warmup = st.Warmup.Add(earlier.Warmup)
	return st
}

// Sum adds up the counts, capacities and use of stacks over different tables. RowBytes is 0 if
// theirs differ.
func Sum(all []Stats) (sum Stats) {
	for i, st := range all {
		rowBytes := st.RowBytes
		if i > 0 && rowBytes != sum.RowBytes {
			rowBytes = 0
		}
		st = st.Add(sum)
		st.RowBytes = rowBytes
		st.Tiers.Device.holds(sum.Tiers.Device)
		st.Tiers.Host.holds(sum.Tiers.Host)
		st.Tiers.Disk.holds(sum.Tiers.Disk)
		sum = st
	}
	return sum
}

// Combine fills dst with f(a[i], b[i]) and returns it. Where b is shorter than a, f gets zero
// counters. dst may be a or b.
func Combine(dst, a, b []Stats, f func(a, b Stats) Stats) []Stats {
	dst = dst[:0]
	for i := range a {
		var other Stats
		if i < len(b) {
			other = b[i]
		}
		dst = append(dst, f(a[i], other))
	}
	return dst
}

// holds adds the capacities and the use of u.
func (t *Tier) holds(u Tier) {
	t.CapacityBytes += u.CapacityBytes
	t.UsedBytes += u.UsedBytes
	t.CapacityRows += u.CapacityRows
	t.UsedRows += u.UsedRows
	t.IndexBytes += u.IndexBytes
}

func (t *Tier) plus(u Tier) {
	t.RowsHit += u.RowsHit
	t.RowsMissed += u.RowsMissed
	t.BytesOut += u.BytesOut
	t.BytesRead += u.BytesRead
	t.Evictions += u.Evictions
}

func (t *Tier) sub(u Tier) {
	t.RowsHit -= u.RowsHit
	t.RowsMissed -= u.RowsMissed
	t.BytesOut -= u.BytesOut
	t.BytesRead -= u.BytesRead
	t.Evictions -= u.Evictions
}
