package extsort

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/gnnstore/gnnstore/kernels"
)

// Key is the first eight bytes, little-endian, of a record of a [Sorter]: a list in the upper half
// and an item of it in the lower. In wider records a number follows, eight bytes as well, which
// sorts records of one key, and then anything. Records that have both in common are few and alike.
type Key = uint64

// MakeKey joins the two.
func MakeKey(list, item uint32) Key { return uint64(list)<<32 | uint64(item) }

// Run is the sorted records of some lists: List, List+1, ….
type Run struct {
	List    uint32
	Lengths []uint32 // of each list
	Items   []uint32 // ascending within a list; equal ones by their numbers
	Records []byte   // of wider records: as they came
	Index   []uint32 // and the place in Records, counted in records, of each item
	Width   int
}

// Record is the i-th record after sorting, of wider ones.
func (r *Run) Record(i int) []byte {
	at := int(r.Index[i]) * r.Width
	return r.Records[at : at+r.Width]
}

// Sorter sorts buckets in memory, one at a time: one goroutine uses it.
type Sorter struct {
	area    *Area
	width   int
	records int // room, in records
	lists   int
	in      *kernels.HostBuf // records as they came, of one input behind the other
	out     *kernels.HostBuf // items, or the places of records
	items   *kernels.HostBuf // of wider records
	counts  *kernels.HostBuf
}

// SorterBytes is the memory of a Sorter of records of a width, lists and a number of inputs.
func SorterBytes(records, lists int64, width, inputs int) int64 {
	perRecord := int64(width) + 4
	if width > 8 {
		perRecord += 4
	}
	return records*perRecord + int64(inputs)*(sector+4*(lists+1)) + splitBytes
}

const (
	// splitWays is into how many a bucket that does not fit is parted, at most.
	splitWays  = 24
	splitBytes = (splitWays + writers + 1) * MinBlock
)

// NewSorter takes SorterBytes of memory, for so many records in all inputs together.
func (a *Area) NewSorter(records, lists int64, width, inputs int) (_ *Sorter, err error) {
	s := &Sorter{area: a, width: width, records: int(records), lists: int(lists)}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	for _, b := range []struct {
		to    **kernels.HostBuf
		bytes int64
	}{{&s.in, records*int64(width) + int64(inputs)*sector}, {&s.out, 4 * records}, {&s.counts, int64(inputs) * 4 * (lists + 1)}, {&s.items, 4 * records}} {
		if b.to == &s.items && width == 8 {
			continue
		}
		if *b.to, err = kernels.NewHostBuf(int(b.bytes)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Close gives the memory back.
func (s *Sorter) Close() {
	for _, b := range []*kernels.HostBuf{s.in, s.out, s.items, s.counts} {
		if b != nil {
			b.Close()
		}
	}
}

// Runs sorts what lies between keys first and last, both included, in one bucket of each input, and
// calls visit with a Run of each input over the same lists, again and again until all is seen, in
// ascending order. A list may go on in the next call. Buckets that do not fit are parted further on
// disk, and stay.
func (s *Sorter) Runs(inputs []Bucket, first, last Key, visit func([]Run) error) error {
	total := int64(0)
	for _, b := range inputs {
		total += b.Bytes / int64(s.width)
	}
	lists := last>>32 - first>>32 + 1
	if total <= int64(s.records) && lists <= uint64(s.lists) {
		return s.sortAll(inputs, first, int(lists), visit)
	}
	if first == last {
		return s.equal(inputs, first, visit)
	}
	if total == 0 { // many lists, and none has anything
		for ; ; first += uint64(s.lists) << 32 {
			n := min(last>>32-first>>32+1, uint64(s.lists))
			if err := s.sortAll(inputs, first, int(n), visit); err != nil || first>>32+n > last>>32 {
				return err
			}
		}
	}
	return s.split(inputs, first, last, total, visit)
}

// sortAll sorts inputs that fit.
func (s *Sorter) sortAll(inputs []Bucket, first Key, lists int, visit func([]Run) error) error {
	in, out, counts := s.in.Bytes(), s.out.Uint32s(), s.counts.Uint32s()
	var items []uint32
	if s.width > 8 {
		items = s.items.Uint32s()
	}
	runs := make([]Run, len(inputs))
	for i, b := range inputs {
		records, err := s.area.Load(b, 0, b.Bytes, in)
		if err != nil {
			return err
		}
		in = in[RoundUp(b.Bytes):]
		n := len(records) / s.width
		runs[i] = Run{List: uint32(first >> 32), Lengths: counts[:lists], Width: s.width}
		c := counts[:lists+1]
		counts = counts[lists+1:]
		if s.width == 8 {
			runs[i].Items = out[:n]
			if !sortKeys(asKeys(records), runs[i].List, c, out[:n]) {
				return fmt.Errorf("%s: has a record that does not belong there: something else changed it", s.area.path(b.Name))
			}
		} else {
			runs[i].Items, runs[i].Index, runs[i].Records = items[:n], out[:n], records
			if !sortRecords(&runs[i], c) {
				return fmt.Errorf("%s: has a record that does not belong there: something else changed it", s.area.path(b.Name))
			}
			items = items[n:]
		}
		out = out[n:]
	}
	return visit(runs)
}

func asKeys(b []byte) []Key {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*Key)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}

// sortKeys is a counting sort by list, then a sort of each list. counts has one entry more than
// there are lists, and becomes their lengths. keys are scratch afterwards.
func sortKeys(keys []Key, list uint32, counts, out []uint32) bool {
	clear(counts)
	lists := uint32(len(counts) - 1)
	for _, k := range keys {
		l := uint32(k>>32) - list
		if l >= lists {
			return false
		}
		counts[l]++
	}
	startsFromCounts(counts)
	for _, k := range keys {
		l := uint32(k>>32) - list
		out[counts[l]] = uint32(k)
		counts[l]++
	}
	from := uint32(0)
	for l, end := range counts[:lists] {
		sortItems(out[from:end], keys)
		counts[l] = end - from
		from = end
	}
	return true
}

func startsFromCounts(counts []uint32) {
	sum := uint32(0)
	for i, c := range counts {
		counts[i] = sum
		sum += c
	}
}

// radixFrom is the length from which a radix sort beats the library's.
const radixFrom = 1024

// sortItems sorts, with half of scratch's bytes as a second place.
func sortItems(items []uint32, scratch []Key) {
	if len(items) < radixFrom {
		slices.Sort(items)
		return
	}
	const digit, buckets = 11, 1 << 11
	other := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(scratch))), len(items))
	var counts [3][buckets]uint32
	for _, x := range items {
		counts[0][x%buckets]++
		counts[1][x>>digit%buckets]++
		counts[2][x>>(2*digit)]++
	}
	from, to := items, other
	for d := range counts {
		c := &counts[d]
		shift := d * digit
		if c[from[0]>>shift%buckets] == uint32(len(items)) {
			continue // all alike
		}
		startsFromCounts(c[:])
		for _, x := range from {
			at := &c[x>>shift%buckets]
			to[*at] = x
			*at++
		}
		from, to = to, from
	}
	if &from[0] != &items[0] {
		copy(items, from)
	}
}

// sortRecords is sortKeys for wider records, which stay where they are.
func sortRecords(r *Run, counts []uint32) bool {
	clear(counts)
	lists := uint32(len(counts) - 1)
	key := func(i uint32) Key { return binary.LittleEndian.Uint64(r.Records[int(i)*r.Width:]) }
	for i := range r.Index {
		l := uint32(key(uint32(i))>>32) - r.List
		if l >= lists {
			return false
		}
		counts[l]++
	}
	startsFromCounts(counts)
	for i := range r.Index {
		l := uint32(key(uint32(i))>>32) - r.List
		r.Index[counts[l]] = uint32(i)
		counts[l]++
	}
	number := func(i uint32) uint64 { return binary.LittleEndian.Uint64(r.Records[int(i)*r.Width+8:]) }
	from := uint32(0)
	for l, end := range counts[:lists] {
		slices.SortFunc(r.Index[from:end], func(a, b uint32) int {
			if x, y := key(a), key(b); x != y {
				if x < y {
					return -1
				}
				return 1
			}
			return cmp.Compare(number(a), number(b))
		})
		counts[l] = end - from
		from = end
	}
	for i, at := range r.Index {
		r.Items[i] = uint32(key(at))
	}
	return true
}

// equal streams records that have one key.
func (s *Sorter) equal(inputs []Bucket, k Key, visit func([]Run) error) error {
	if s.width > 8 {
		for i, b := range inputs { // of one input after the other: the order is by key, then by input, then by number
			alone := make([]Bucket, len(inputs))
			err := s.byNumber(b, func(b Bucket) error {
				alone[i] = b
				return s.sortAll(alone, k, 1, visit)
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	left := make([]int64, len(inputs))
	for i, b := range inputs {
		left[i] = b.Bytes / 8
	}
	items := s.out.Uint32s()
	for i := range items {
		items[i] = uint32(k)
	}
	for {
		more := false
		runs := make([]Run, len(inputs))
		for i := range inputs {
			n := min(left[i], int64(len(items)))
			left[i] -= n
			more = more || left[i] > 0
			runs[i] = Run{List: uint32(k >> 32), Lengths: []uint32{uint32(n)}, Items: items[:n], Width: 8}
		}
		if err := visit(runs); err != nil || !more {
			return err
		}
	}
}

var splits atomic.Int64 // numbers the files of splits

// split parts what does not fit by a sample of its keys, and sorts the parts.
func (s *Sorter) split(inputs []Bucket, first, last Key, total int64, visit func([]Run) error) error {
	starts, err := s.splitters(inputs, first, last, total)
	if err != nil {
		return err
	}
	parts := make([][]Bucket, len(inputs)) // by input, then by part
	defer func() {
		for _, p := range parts {
			_ = s.area.Remove(p...) // they go with the directory otherwise
		}
	}()
	for i, b := range inputs {
		parts[i], err = s.part(b, len(starts), func(record []byte) int {
			k := binary.LittleEndian.Uint64(record)
			at, found := slices.BinarySearch(starts, k)
			if !found {
				at--
			}
			if k > last {
				return -1
			}
			return at
		})
		if err != nil {
			return err
		}
	}
	for p, start := range starts {
		end := last
		if p+1 < len(starts) {
			end = starts[p+1] - 1
		}
		part := make([]Bucket, len(inputs))
		for i := range inputs {
			part[i] = parts[i][p]
		}
		if err := s.Runs(part, start, end, visit); err != nil {
			return err
		}
	}
	return nil
}

// part puts each record of a bucket in one of so many. of returns which, or less than 0 for a
// record that cannot be there. Buckets come back with an error, too.
func (s *Sorter) part(b Bucket, buckets int, of func(record []byte) int) ([]Bucket, error) {
	buf, err := Buffer(s.width, int(min(b.Bytes, 1<<20)))
	if err != nil {
		return nil, err
	}
	defer buf.Close()
	w, err := s.area.NewWriter(fmt.Sprintf("part-%d", splits.Add(1)), buckets, MinBlock)
	if err != nil {
		return nil, err
	}
	to := w.NewAppender()
	err = s.area.Each(b, s.width, buf.Bytes(), func(records []byte) error {
		for ; len(records) > 0; records = records[s.width:] {
			at := of(records[:s.width])
			if at < 0 {
				return fmt.Errorf("%s: has a record that does not belong there: something else changed it", s.area.path(b.Name))
			}
			to.Put(at, records[:s.width])
		}
		return w.Err()
	})
	to.Flush()
	return CloseAfter(err, w.Close)
}

// byNumber visits buckets that fit, in ascending order of the numbers in them: b, or parts of it.
func (s *Sorter) byNumber(b Bucket, visit func(Bucket) error) error {
	n := b.Bytes / int64(s.width)
	if n <= int64(s.records) {
		return visit(b)
	}
	number := func(record []byte) uint64 { return binary.LittleEndian.Uint64(record[8:]) }
	least, most := ^uint64(0), uint64(0)
	buf, err := Buffer(s.width, int(min(b.Bytes, 1<<20)))
	if err != nil {
		return err
	}
	err = s.area.Each(b, s.width, buf.Bytes(), func(records []byte) error {
		for ; len(records) > 0; records = records[s.width:] {
			least, most = min(least, number(records)), max(most, number(records))
		}
		return nil
	})
	buf.Close()
	if err != nil {
		return err
	}
	if least == most {
		return fmt.Errorf("%s: has a number twice: something else changed it", s.area.path(b.Name))
	}
	ways := min(n*4/3/int64(s.records)+2, splitWays)
	width := (most-least)/uint64(ways) + 1 // the least and the most part ways
	parts, err := s.part(b, int(ways), func(record []byte) int { return int((number(record) - least) / width) })
	defer func() { _ = s.area.Remove(parts...) }()
	for _, p := range parts {
		if err == nil {
			err = s.byNumber(p, visit)
		}
	}
	return err
}

// splitters are the first keys of the parts, the first of all included. There are at least two.
func (s *Sorter) splitters(inputs []Bucket, first, last Key, total int64) ([]Key, error) {
	var sample []Key
	buf, err := Buffer(s.width, 1)
	if err != nil {
		return nil, err
	}
	defer buf.Close()
	step := Chunk(s.width, len(buf.Bytes()))
	const places = 64
	for _, b := range inputs {
		for i := range int64(places) {
			at := (b.Bytes / step) * i / places * step
			if at >= b.Bytes {
				break
			}
			records, err := s.area.Load(b, at, min(step, b.Bytes-at), buf.Bytes())
			if err != nil {
				return nil, err
			}
			for ; len(records) > 0; records = records[s.width:] {
				sample = append(sample, binary.LittleEndian.Uint64(records))
			}
		}
	}
	slices.Sort(sample)
	// Parts of three quarters of what fits, and whole lists where that makes enough of them.
	ways := int(min(total*4/3/int64(max(1, s.records))+1, splitWays))
	if lists := last>>32 - first>>32 + 1; lists > uint64(s.lists) {
		ways = int(min(max(uint64(ways), lists/uint64(s.lists)+1), splitWays))
	}
	ways = max(ways, 2)
	starts := []Key{first}
	add := func(k Key) {
		if k > starts[len(starts)-1] && k <= last {
			starts = append(starts, k)
		}
	}
	for i := 1; i < ways; i++ {
		k := sample[len(sample)*i/ways]
		if whole := k &^ (1<<32 - 1); whole > starts[len(starts)-1] {
			k = whole
		}
		add(k)
	}
	if len(starts) == 1 { // much of it is the first key: alone, or the middle
		if sample[len(sample)/2] == first {
			add(first + 1)
		} else {
			add(first + (last-first)/2 + 1)
		}
	}
	return starts, nil
}
