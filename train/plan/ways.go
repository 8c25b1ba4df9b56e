package plan

import "math"

// Way is what a way to bring the rows of an epoch takes of the disk. Its JSON keys are stable.
type Way struct {
	Seconds float64 `json:"seconds"` // that the device is busy
	Read    float64 `json:"read_bytes"`
	Written float64 `json:"written_bytes"`
}

func (w *Way) add(v Way) {
	w.Seconds, w.Read, w.Written = w.Seconds+v.Seconds, w.Read+v.Read, w.Written+v.Written
}

// Ways are those that there are to bring the feature rows of an epoch: each step's own, row by row; by windows; and by horizons of windows
// (see cachetier.Horizon). They are an estimate before the first step, of a graph whose nodes are wanted alike: on others fewer rows are
// wanted. Neighbour lists are left out, and a device is taken to write as fast as it reads.
type Ways struct {
	Rows    Way `json:"rows"`
	Windows Way `json:"windows"`
	Join    Way `json:"join"`

	WindowCount int   `json:"window_count"` // of an epoch
	Horizons    int   `json:"horizons"`     // of several windows, in an epoch: one of some windows, and the rest as the spill has room
	SpillBytes  int64 `json:"spill_bytes"`  // that one of them takes at most
}

// spillShare is what a horizon may take of a spill, so that the next one can begin.
const spillShare = 7.0 / 8

// Ways are those of an epoch of so many steps with budget b and a spill of so many bytes; 0: as many as one horizon wants.
func (d Demand) Ways(b Budget, steps int, spill int64) (w Ways) {
	group := max(1, min(float64(b.Group), float64(steps)))
	windows := float64(steps) / group
	w.WindowCount = int(math.Ceil(windows))
	_, allRows := d.rows()
	type joined struct{ count, bytes, wanted, distinct float64 } // of a table, cold rows
	var tables []joined
	var alone Way                                           // a window that reads its own rows
	blocks := float64(d.Batches.Bytes) / 2 * float64(steps) // without their reverses
	need := blocks
	for _, r := range d.Rows {
		_, useful := r.Need()
		inMemory := share(useful, allRows) * float64(b.Device+b.Host) / float64(r.Bytes)
		if inMemory >= float64(r.Count) {
			continue
		}
		union := min(marginal*float64(r.Inputs)*group, float64(r.Count))
		kept := max(0, inMemory-union) / float64(r.Count)
		rows := float64(r.Inputs*steps) * (1 - min(1, inMemory/float64(r.Count)))
		w.Rows.add(Way{Seconds: rows * (d.Disk.SecondsPerRead + 4096/d.Disk.BytesPerSecond), Read: rows * 4096})
		wanted := union * (1 - kept)
		if r.Cold > 0 {
			wanted = min(r.Cold*group, float64(r.Count))
		}
		seconds, read := d.Disk.SpreadBytes(wanted, float64(r.Count), float64(r.Bytes))
		w.Windows.add(Way{Seconds: seconds * windows, Read: read * windows})
		alone.add(Way{Seconds: seconds, Read: read})
		j := joined{float64(r.Count), float64(r.Bytes), wanted * windows, 0}
		j.distinct = j.count * (1 - math.Pow(1-wanted/j.count, windows))
		need += j.distinct * (j.bytes + 4)
		tables = append(tables, j)
	}
	w.Horizons = 1
	if spill > 0 && need > float64(spill)*spillShare {
		w.Horizons = int(math.Ceil(need / (float64(spill) * spillShare)))
	}
	w.SpillBytes = int64(need / float64(w.Horizons))
	if w.WindowCount > rampWindows+2 {
		w.Horizons++
	}
	for _, j := range tables {
		n := float64(w.Horizons)
		seconds, read := d.Disk.SpreadBytes(min(j.count, j.distinct), j.count, j.bytes)
		moved := j.wanted * (j.bytes + 4)
		w.Join.add(Way{Seconds: n*seconds + 2*moved/d.Disk.BytesPerSecond, Read: n*read + moved, Written: moved})
	}
	first := min(windows, 1+1.0/rampParts) // the windows that a range begins with: see Planner.limits
	w.Join.add(Way{Seconds: first * alone.Seconds, Read: first * alone.Read})
	w.Join.add(Way{Seconds: 2 * blocks / d.Disk.BytesPerSecond, Read: blocks, Written: blocks})
	return w
}

// JoinPays reports whether the join keeps the device busy for so much less than windows do that it is worth its memory and writes.
func (w Ways) JoinPays() bool {
	const least = 3 // seconds of an epoch
	return w.WindowCount >= horizonLeast && w.Windows.Seconds-w.Join.Seconds >= least && w.Join.Seconds <= 0.8*w.Windows.Seconds
}
