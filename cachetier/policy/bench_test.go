package policy

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// sizes has a graph of ten million nodes with a fifth of its rows cached, and one of the shape of
// papers100M whose cache is 4 GiB.
var sizes = []struct{ rows, slots, step int }{{10_000_000, 2_000_000, 38_000}, {111_000_000, 16_000_000, 380_000}}

// drawn returns n different rows of a skewed distribution: low numbers are hot, as ingest orders
// them.
func drawn(rng *rand.Rand, rows, n int) (Set, []uint32) {
	s := make(Set, SetWords(rows))
	ids := make([]uint32, 0, n)
	for len(ids) < n {
		x := rng.Float64()
		if v := uint32(x * x * x * float64(rows)); s.Add(v) {
			ids = append(ids, v)
		}
	}
	return s, ids
}

// BenchmarkCache plans windows that fill most of the slots, and steps; in both cases the next four
// are known.
func BenchmarkCache(b *testing.B) {
	for _, size := range sizes {
		for _, windows := range []bool{true, false} {
			need, name := size.step, "step"
			if windows {
				need, name = size.slots*9/10, "window"
			}
			rng := rand.New(rand.NewPCG(1, 2))
			var sets []Set
			var later []Rows
			for range 8 {
				s, _ := drawn(rng, size.rows, need)
				sets, later = append(sets, s), append(later, s)
			}
			later = append(later, later...)
			for _, kind := range Kinds {
				b.Run(fmt.Sprintf("rows=%d/plan=%s/policy=%s", size.rows, name, kind), func(b *testing.B) {
					c, err := New(Config{Kind: kind, Rows: size.rows, Slots: size.slots})
					require.NoError(b, err)
					defer c.Close()
					for i := range 2 * size.slots / need {
						c.Step(sets[i%8], later[i%8+1:i%8+5])
					}
					i := 0
					for b.Loop() {
						if windows {
							c.Window(sets[i%8], later[i%8+1:i%8+5])
						} else {
							c.Step(sets[i%8], later[i%8+1:i%8+5])
						}
						i++
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(need), "ns/row")
				})
			}
		}
	}
}

// BenchmarkUse looks up the rows of a step, unordered, as a sample gives them.
func BenchmarkUse(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("rows=%d", size.rows), func(b *testing.B) {
			c, err := New(Config{Kind: Belady, Rows: size.rows, Slots: size.slots})
			require.NoError(b, err)
			defer c.Close()
			need, ids := drawn(rand.New(rand.NewPCG(1, 2)), size.rows, size.slots*9/10)
			x, _ := c.Window(need, nil)
			i, slots := 0, make([]uint32, size.step)
			for b.Loop() {
				i = (i + 1) % (len(ids) / size.step)
				if _, ok := x.Use(ids[i*size.step:(i+1)*size.step], slots); !ok {
					b.Fatal("lost")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size.step), "ns/row")
		})
	}
}

// BenchmarkWalk lists the new rows of a window, as loading it does.
func BenchmarkWalk(b *testing.B) {
	size := sizes[0]
	c, err := New(Config{Kind: Belady, Rows: size.rows, Slots: size.slots})
	require.NoError(b, err)
	defer c.Close()
	need, _ := drawn(rand.New(rand.NewPCG(1, 2)), size.rows, size.slots/2)
	x, _ := c.Window(need, nil)
	portion := make([]uint32, 1<<16)
	for b.Loop() {
		var w Walk
		for w.Next(x, portion) > 0 {
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size.slots/2), "ns/row")
}
