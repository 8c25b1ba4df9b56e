package plan

// portions is the number of equal parts in which the rest of a budget is handed out.
const portions = 32

// Division holds the bytes that each table gets of a Budget's memory for rows, and each relation of
// its memory for lists.
type Division struct {
	Device, Host []int64 // by table, as in Demand.Rows
	Topology     []int64 // by relation, as in Demand.Lists
}

// Divide divides b, which Split made, among the tables and relations. Each table has the rows of a
// group's steps, each relation its offsets; the rest goes in portions, each to the table or
// relation that saves the device the most time. A table that is in memory as a whole needs no
// bookkeeping.
func (d Demand) Divide(b Budget) Division {
	group := float64(b.Group)
	v := Division{make([]int64, len(d.Rows)), make([]int64, len(d.Rows)), make([]int64, len(d.Lists))}
	fill(v.Device, b.Device, nil, func(t int, bytes int64) (int64, float64) {
		_, useful := d.Rows[t].Need()
		return useful, d.Rows[t].Seconds(d.Disk, float64(bytes)+d.Rows[t].window()*group, group) // the host has the rows of a group
	})
	var unions []int64
	for t, r := range d.Rows {
		_, useful := r.Need()
		unions = append(unions, min(int64(r.window()*group)+r.Fixed, max(0, useful-v.Device[t])))
	}
	fill(v.Host, b.Host, unions, func(t int, bytes int64) (int64, float64) {
		_, useful := d.Rows[t].Need()
		return max(0, useful-v.Device[t]), d.Rows[t].Seconds(d.Disk, float64(v.Device[t]+bytes), group)
	})
	var offsets []int64
	for _, l := range d.Lists {
		offsets = append(offsets, l.Offsets)
	}
	fill(v.Topology, b.Topology, offsets, func(r int, bytes int64) (int64, float64) {
		l := d.Lists[r]
		_, useful := l.Need()
		return useful, l.Seconds(d.Disk, float64(bytes-l.Offsets), group)
	})
	return v
}

// fill divides total bytes among parts: first what each is to have, or as much of it as there is,
// and then the rest in portions. of gives the most bytes that a part has a use for, and its seconds
// with some bytes. A part that is alone has all of it.
func fill(parts []int64, total int64, first []int64, of func(part int, bytes int64) (useful int64, seconds float64)) {
	if len(parts) == 1 {
		parts[0] = total
		return
	}
	wanted := int64(0)
	for _, n := range first {
		wanted += n
	}
	left := total
	for i, n := range first {
		if wanted > total {
			n = int64(float64(n) / float64(wanted) * float64(total))
		}
		parts[i] = min(n, left)
		left -= parts[i]
	}
	for portion := max(1, left/portions); left > 0; {
		best, most := -1, 0.0
		for i, has := range parts {
			useful, now := of(i, has)
			if has >= useful {
				continue
			}
			_, then := of(i, has+min(portion, left))
			if saved := now - then; best < 0 || saved > most {
				best, most = i, saved
			}
		}
		if best < 0 {
			return // all have what they can use
		}
		useful, _ := of(best, parts[best])
		n := min(portion, left, useful-parts[best])
		parts[best] += n
		left -= n
	}
}
