//go:build cuda && linux

package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// trial runs kernels on data from the host and compares results. Its buffers live until the process
// ends.
type trial struct {
	wrong
	d       *driver
	s       stream
	kernels map[string]*kernel
	rng     *rand.Rand
}

func newTrial(o *options) (*trial, error) {
	d, kernels, err := openKernels(o)
	if err != nil {
		return nil, err
	}
	return &trial{
		d: d, s: d.newStream(), kernels: kernels, rng: rand.New(rand.NewPCG(1, 2)),
	}, nil
}

// After every output come guard words, which a kernel must not change. Outputs and guard words
// start as poison, a NaN, so that a cell that no thread wrote shows.
const (
	guardWords = 64
	poison     = 0x7fc0_dead
)

// up copies data to the device.
func up[T any](t *trial, data []T) address {
	bytes := bytesOf(data)
	to := t.d.alloc(max(len(bytes), 16))
	put(t, to, data)
	return to
}

// put copies data to a buffer on the device.
func put[T any](t *trial, to address, data []T) {
	bytes := bytesOf(data)
	if len(bytes) == 0 {
		return
	}
	a := newArena(len(bytes))
	defer a.free()
	copy(a.bytes, bytes)
	t.d.upload(to, addressOf(a.bytes), len(bytes), t.s)
	t.d.syncStream(t.s)
}

// output allocates n words for results, and guard words.
func (t *trial) output(n int) address {
	to := t.d.alloc(4 * (n + guardWords))
	t.poison(to, n)
	return to
}

func (t *trial) poison(to address, n int) { t.d.fill(to, poison, n+guardWords, t.s) }

// result copies the words at from to the Go heap, as numbers of type T, and checks the guard words.
func result[T any](t *trial, what string, from address, words int) []T {
	bytes := 4 * (words + guardWords)
	a := newArena(bytes)
	defer a.free()
	t.d.download(addressOf(a.bytes), from, bytes, t.s)
	t.d.syncStream(t.s)
	for i, w := range cast[uint32](a.bytes[4*words:]) {
		if w != poison {
			t.add("%s: wrote word %d past the end", what, i)
			break
		}
	}
	return slices.Clone(cast[T](a.bytes[:4*words]))
}

// twice runs work twice, and adds an error unless both results have the same bits.
func twice(t *trial, what string, work func() []float32) []float32 {
	first := work()
	again := work()
	if !slices.EqualFunc(first, again, func(a, b float32) bool {
		return math.Float32bits(a) == math.Float32bits(b)
	}) {
		t.add("%s: two runs differ", what)
	}
	return first
}

// compare prints the largest error, and adds an error if |got - want| > tolerance · (1 + |want|)
// anywhere.
func (t *trial) compare(what string, got []float32, want []float64, tolerance float64) {
	var most, absolute float64
	at := 0
	for i := range want {
		diff := math.Abs(float64(got[i]) - want[i])
		absolute = max(absolute, diff)
		relative := diff / (1 + math.Abs(want[i]))
		if !(relative <= most) { // a NaN too
			most, at = relative, i
		}
		if math.IsNaN(relative) {
			break
		}
	}
	fmt.Printf("%s: %d values, largest error %.3g (absolute %.3g), bound %.3g\n", what, len(want), most,
		absolute, tolerance)
	if !(most <= tolerance) {
		t.add("%s: value %d is %v, want %v", what, at, got[at], want[at])
	}
}

// equal adds an error unless got has the bits of want, from a loop in Go. Any two NaNs are equal.
func (t *trial) equal(what string, got, want []float32) {
	other, at := 0, 0
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) &&
			!(got[i] != got[i] && want[i] != want[i]) {
			if other == 0 {
				at = i
			}
			other++
		}
	}
	fmt.Printf("%s: %d values, %d other than the reference's\n", what, len(want), other)
	if other != 0 {
		t.add("%s: value %d is %v, want %v", what, at, got[at], want[at])
	}
}

// normals draws n numbers from the standard normal distribution.
func (t *trial) normals(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(t.rng.NormFloat64())
	}
	return v
}

// lists has the neighbours of each destination, the reverse list of each source, and copies of both
// on the device. There are rows destinations, and sources sources.
type lists struct {
	rows, sources         int
	start, end            []uint32
	neighbours            []uint32
	reverseStart, reverse []uint32

	dStart, dEnd, dNeighbours, dReverseStart, dReverse address
}

// newLists draws length() neighbours for each destination.
func (t *trial) newLists(rows, sources int, length func() int) *lists {
	l := &lists{rows: rows, sources: sources, reverseStart: make([]uint32, sources+1)}
	for range rows {
		l.start = append(l.start, uint32(len(l.neighbours)))
		for range length() {
			u := uint32(t.rng.IntN(sources))
			l.neighbours = append(l.neighbours, u)
			l.reverseStart[u+1]++
		}
		l.end = append(l.end, uint32(len(l.neighbours)))
	}
	for u := range sources {
		l.reverseStart[u+1] += l.reverseStart[u]
	}
	l.reverse = make([]uint32, len(l.neighbours))
	next := slices.Clone(l.reverseStart)
	for i := range rows {
		for _, u := range l.neighbours[l.start[i]:l.end[i]] {
			l.reverse[next[u]] = uint32(i)
			next[u]++
		}
	}
	l.dStart, l.dEnd, l.dNeighbours = up(t, l.start), up(t, l.end), up(t, l.neighbours)
	l.dReverseStart, l.dReverse = up(t, l.reverseStart), up(t, l.reverse)
	return l
}

// blocksFor returns the number of blocks of 256 threads that n items with threads each need.
func blocksFor(n, threads int) int { return max(1, (n*threads+255)/256) }
