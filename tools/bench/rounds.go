package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/gnnstore/gnnstore/train/dist/rounds"
)

// contentions are the values of ρ for which sending everything at once is estimated.
var contentions = []float64{0, 0.05, 0.1, 0.2}

// roundsBytes is the mean length of a message, and roundsDraws the number of times that random
// lengths and orders are drawn.
const (
	roundsBytes = 16 << 20
	roundsDraws = 100
)

// roundsLengths has ways to draw the lengths of messages, as multiples of the mean.
var roundsLengths = []struct {
	name string
	draw func(r *rand.Rand) float64
}{
	{"equal", func(*rand.Rand) float64 { return 1 }},
	{"within 5 %", func(r *rand.Rand) float64 { return 0.95 + 0.1*r.Float64() }},
	{"0 to 2 times the mean", func(r *rand.Rand) float64 { return 2 * r.Float64() }},
	{"exponential", func(r *rand.Rand) float64 { return r.ExpFloat64() }},
}

// modelRounds prints what exchanges of all workers with all take by the model of package rounds, on
// models of usual machines. Nothing is measured.
func modelRounds(_ context.Context, c *comparison) error {
	models := []*rounds.Topology{
		rounds.PCIe(2, 2, 12e9), rounds.PCIe(2, 4, 12e9), rounds.CubeMesh(20e9), rounds.Mesh(8, 20e9),
		rounds.Switch(16, 150e9), rounds.Sockets(4, 12e9, 20e9),
		rounds.FatTree(4, 4, 2, 1.25e9), rounds.FatTree(4, 4, 4, 1.25e9),
	}
	columns := "| topology | rounds | lengths | longest first | fixed | random order |"
	for _, contention := range contentions {
		columns += fmt.Sprintf(" at once, ρ = %v |", contention)
	}
	tableHead(c.out, columns+" even at ρ: longest first | fixed |")
	for _, t := range models {
		for i, lengths := range roundsLengths {
			name, count := "", ""
			if i == 0 {
				same := rounds.Equal(t.Size(), 1)
				name, count = t.Name(), fmt.Sprintf("%d, fixed %d", len(rounds.Schedule(t, same)), len(rounds.Fixed(t)))
			}
			fmt.Fprintf(c.out, "| %s | %s | %s |%s\n", name, count, lengths.name, modelLengths(t, lengths.draw))
		}
	}
	return nil
}

// modelLengths returns the numbers of a row: milliseconds, and the contention above which rounds
// are faster.
func modelLengths(t *rounds.Topology, draw func(r *rand.Rand) float64) string {
	var longest, fixed, random, evenLongest, evenFixed float64
	once := make([]float64, len(contentions))
	rule := rounds.Fixed(t)
	for seed := range uint64(roundsDraws) {
		r := rand.New(rand.NewPCG(seed, 1))
		bytes := rounds.Equal(t.Size(), 0)
		for p := range bytes {
			for q := range bytes[p] {
				bytes[p][q] = 1 + int64(roundsBytes*draw(r))
			}
		}
		pairs := rounds.Pairs(bytes)
		r.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
		a, b := t.Seconds(rounds.Schedule(t, bytes), bytes), t.Seconds(rule, bytes)
		longest, fixed, random = longest+a, fixed+b, random+t.Seconds(rounds.Place(t, pairs), bytes)
		evenLongest, evenFixed = evenLongest+t.BreakEven(bytes, a), evenFixed+t.BreakEven(bytes, b)
		for i, contention := range contentions {
			once[i] += t.OneShot(bytes, contention)
		}
	}
	var row strings.Builder
	for _, seconds := range append([]float64{longest, fixed, random}, once...) {
		fmt.Fprintf(&row, " %.2f |", 1e3*seconds/roundsDraws)
	}
	for _, contention := range []float64{evenLongest, evenFixed} {
		if math.IsInf(contention, 1) {
			row.WriteString(" never |")
		} else {
			fmt.Fprintf(&row, " %.3f |", contention/roundsDraws)
		}
	}
	return row.String()
}
