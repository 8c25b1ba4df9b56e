package cachetier

import "github.com/gnnstore/gnnstore/cachetier/disk"

// Stats counts what the tiers did since Open. Its JSON keys are stable.
//
// Every id given to Gather is one input row, and one tier serves it:
//
//	input_rows = device.rows_hit + host.rows_hit + disk.rows
//
// and input_rows × row_bytes is the sum of the three bytes_out. What a tier misses is what it passes on to the next.
// The load of the device region in Open is no input; it is counted in Warmup.
type Stats struct {
	Tiers     Tiers `json:"tiers"`
	Disk      Disk  `json:"disk"`       // reading for Gather
	Warmup    Disk  `json:"warmup"`     // reading for the device region, in Open
	InputRows int64 `json:"input_rows"` // rows that a run without caches would have read
	RowBytes  int64 `json:"row_bytes"`
}

// Tiers is a Tier each, in the order in which they are asked.
type Tiers struct {
	Device Tier `json:"device"`
	Host   Tier `json:"host"`
	Disk   Tier `json:"disk"`
}

// Tier counts what one tier holds and did.
type Tier struct {
	// CapacityBytes and UsedBytes are those of rows; on disk, of the whole table, without padding.
	CapacityBytes int64 `json:"capacity_bytes"`
	UsedBytes     int64 `json:"used_bytes"`
	CapacityRows  int64 `json:"capacity_rows"`
	UsedRows      int64 `json:"used_rows"`

	// IndexBytes is the bookkeeping. CapacityBytes + IndexBytes is never more than the tier's budget.
	IndexBytes int64 `json:"index_bytes"`

	RowsHit    int64 `json:"rows_hit"`    // ids served
	RowsMissed int64 `json:"rows_missed"` // ids passed on
	BytesOut   int64 `json:"bytes_out"`   // RowsHit × RowBytes

	// BytesRead is what came into the tier. Device: the bytes loaded into the region, all in Open. Host: the bytes of rows
	// copied in; of the rows that a Gather admits, only those count that are still there when it ends. Disk: as
	// Disk.BytesRead.
	BytesRead int64 `json:"bytes_read"`

	// Evictions is how many rows lost their place, those included that were admitted in the same Gather.
	Evictions int64 `json:"evictions"`
}

func (t *Tier) setUsed(rows, rowBytes int64) { t.UsedRows, t.UsedBytes = rows, rows*rowBytes }

func (t *Tier) served(hit, missed, rowBytes int64) {
	t.RowsHit += hit
	t.RowsMissed += missed
	t.BytesOut += hit * rowBytes
}

// Disk counts what was read.
type Disk struct {
	Rows         int64 `json:"rows"`          // rows served
	RowsRepeated int64 `json:"rows_repeated"` // of these, how many shared a read with an earlier id of their Gather
	BytesWanted  int64 `json:"bytes_wanted"`  // Rows × RowBytes
	// BytesRead is what was asked of the file. It is more than wanted where rows are merged and what lies between them is
	// read too, and less where ids repeat.
	BytesRead     int64   `json:"bytes_read"`
	Reads         int64   `json:"reads"`         // stretches of the file
	Seconds       float64 `json:"seconds"`       // in which a read was under way
	Amplification float64 `json:"amplification"` // BytesRead / BytesWanted, 0 if none were wanted
}

func (d *Disk) add(rows, repeated, rowBytes int64, t disk.Traffic) {
	d.Rows += rows
	d.RowsRepeated += repeated
	d.BytesWanted += rows * rowBytes
	d.BytesRead += t.Bytes
	d.Reads += t.Reads
	d.Seconds += t.Seconds
	d.setAmplification()
}

func (d *Disk) setAmplification() {
	d.Amplification = 0
	if d.BytesWanted > 0 {
		d.Amplification = float64(d.BytesRead) / float64(d.BytesWanted)
	}
}

func newStats(rows, rowBytes, hot, hostRows int, warmup disk.Traffic) Stats {
	size := int64(rowBytes)
	tier := func(rows int) Tier {
		return Tier{CapacityRows: int64(rows), CapacityBytes: int64(rows) * size}
	}
	st := Stats{RowBytes: size, Tiers: Tiers{Device: tier(hot), Host: tier(hostRows), Disk: tier(rows)}}
	st.Tiers.Device.setUsed(int64(hot), size)
	st.Tiers.Device.BytesRead = int64(hot) * size
	st.Tiers.Host.IndexBytes = int64(hostRows) * hostIndexBytes
	st.Tiers.Disk.setUsed(int64(rows), size)
	st.Warmup.add(int64(hot), 0, size, warmup)
	return st
}

// count adds a Gather of ids input rows that went as planned.
func (s *Stack) count(ids int, p *plan, read disk.Traffic, hostRows int) {
	s.stats.Lock()
	defer s.stats.Unlock()
	st := &s.stats.Stats
	device, host, onDisk := int64(len(p.fromDevice)), int64(len(p.fromHost)+p.freshHits), int64(p.misses)
	st.InputRows += int64(ids)
	st.Tiers.Device.served(device, host+onDisk, st.RowBytes)
	st.Tiers.Host.served(host, onDisk, st.RowBytes)
	st.Tiers.Host.setUsed(int64(hostRows), st.RowBytes)
	st.Tiers.Host.BytesRead += int64(len(p.toHost)) * st.RowBytes
	st.Tiers.Host.Evictions += int64(p.evictions)
	st.Tiers.Disk.served(onDisk, 0, st.RowBytes)
	st.Tiers.Disk.BytesRead += read.Bytes
	st.Disk.add(onDisk, onDisk-int64(len(p.wants)), st.RowBytes, read)
}

// Stats is a copy of the counters, as of the last Gather that ended. It does not wait for one that runs.
func (s *Stack) Stats() Stats {
	s.stats.Lock()
	defer s.stats.Unlock()
	return s.stats.Stats
}

// Sub is what was counted since earlier, an older copy from the same Stack. Capacities and what is held now stay as in
// st.
func (st Stats) Sub(earlier Stats) Stats {
	st.InputRows -= earlier.InputRows
	st.Tiers.Device.sub(earlier.Tiers.Device)
	st.Tiers.Host.sub(earlier.Tiers.Host)
	st.Tiers.Disk.sub(earlier.Tiers.Disk)
	st.Disk.sub(earlier.Disk)
	st.Warmup.sub(earlier.Warmup)
	return st
}

// Add is st with what an earlier Stack over the same table had counted. Capacities and what is held now stay as in st.
func (st Stats) Add(earlier Stats) Stats {
	st.InputRows += earlier.InputRows
	st.Tiers.Device.plus(earlier.Tiers.Device)
	st.Tiers.Host.plus(earlier.Tiers.Host)
	st.Tiers.Disk.plus(earlier.Tiers.Disk)
	st.Disk = st.Disk.Add(earlier.Disk)
	st.Warmup = st.Warmup.Add(earlier.Warmup)
	return st
}

func (t *Tier) plus(u Tier) {
	t.RowsHit += u.RowsHit
	t.RowsMissed += u.RowsMissed
	t.BytesOut += u.BytesOut
	t.BytesRead += u.BytesRead
	t.Evictions += u.Evictions
}

// Add is the sum of both.
func (d Disk) Add(e Disk) Disk {
	d.Rows += e.Rows
	d.RowsRepeated += e.RowsRepeated
	d.BytesWanted += e.BytesWanted
	d.BytesRead += e.BytesRead
	d.Reads += e.Reads
	d.Seconds += e.Seconds
	d.setAmplification()
	return d
}

func (t *Tier) sub(u Tier) {
	t.RowsHit -= u.RowsHit
	t.RowsMissed -= u.RowsMissed
	t.BytesOut -= u.BytesOut
	t.BytesRead -= u.BytesRead
	t.Evictions -= u.Evictions
}

func (d *Disk) sub(e Disk) {
	d.Rows -= e.Rows
	d.RowsRepeated -= e.RowsRepeated
	d.BytesWanted -= e.BytesWanted
	d.BytesRead -= e.BytesRead
	d.Reads -= e.Reads
	d.Seconds -= e.Seconds
	d.setAmplification()
}
