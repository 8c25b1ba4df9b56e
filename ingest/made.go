package ingest

import (
	"context"
	"math"
)

// madeTable is the name of a table of made features.
const madeTable = "feat"

// degreeDim is the number of columns of degree features.
const degreeDim = 3

// madeChunk is the number of values of made features that are filled at a time.
const madeChunk = 1 << 16

// makeTables writes the made features of every node type that is to have them.
func (b *builder) makeTables(ctx context.Context) error {
	var embedding []float32 // of fastrp: all types' nodes
	first := 0              // node of the type, among all
	for i, t := range b.schema.NodeTypes {
		n := b.nodes[i]
		if !b.makes[t.Name] {
			first += n.count
			continue
		}
		var fill func(row int, dst []float32)
		switch b.features.kind {
		case "degree":
			in, out := b.listLengths(n), b.timesListed(n)
			fill = func(row int, dst []float32) {
				dst[0], dst[1], dst[2] = 1, float32(math.Log1p(float64(in[row]))), float32(math.Log1p(float64(out[row])))
			}
		case "random":
			seed := mix(b.Seed ^ mix(uint64(i)+1))
			fill = func(row int, dst []float32) { normalRow(dst, seed, uint64(row)) }
		case "fastrp":
			if embedding == nil {
				var err error
				if embedding, err = b.fastRP(ctx, b.features.dim); err != nil {
					return err
				}
			}
			base := first * b.features.dim
			fill = func(row int, dst []float32) { copy(dst, embedding[base+row*len(dst):]) }
		}
		if err := b.makeTable(ctx, t.Name, n.count, fill); err != nil {
			return err
		}
		first += n.count
	}
	return nil
}

// makeTable writes the table of one node type, each row filled on its own.
func (b *builder) makeTable(ctx context.Context, nodeType string, count int, fill func(row int, dst []float32)) error {
	dim := b.features.dim
	w, err := b.newTable(Table{Name: madeTable, NodeType: nodeType, Dim: dim}, true)
	if err != nil {
		return err
	}
	b.meter.begin("write features", int64(count), "rows")
	rows := max(1, madeChunk/dim)
	values := make([]float32, rows*dim)
	for lo := 0; lo < count; lo += rows {
		hi := min(lo+rows, count)
		err := parallel(ctx, hi-lo, max(1, rows/16), func(from, to int) {
			for r := from; r < to; r++ {
				fill(lo+r, values[r*dim:(r+1)*dim])
			}
		})
		if err != nil {
			return err
		}
		place := Place{File: "--features " + b.Features, First: int64(lo)}
		if err := w.put(ctx, RowChunk{Place: place, Values: values[:(hi-lo)*dim]}); err != nil {
			return err
		}
	}
	if err := w.close(); err != nil {
		return err
	}
	b.meter.end()
	return nil
}

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014): a
// bijection in which every bit of x moves about half of the result's.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// cell hashes (seed, row, column), so that a value does not depend on which were drawn before.
func cell(seed, row, column uint64) uint64 { return mix(mix(seed+row) + column) }

// normalRow fills dst with standard normal values, two at a time by Box and Muller.
func normalRow(dst []float32, seed, row uint64) {
	for c := 0; c < len(dst); c += 2 {
		u := (float64(cell(seed, row, uint64(c))>>11) + 1) / (1 << 53) // (0, 1]
		v := float64(cell(seed, row, uint64(c)+1)>>11) / (1 << 53)
		radius := math.Sqrt(-2 * math.Log(u))
		sin, cos := math.Sincos(2 * math.Pi * v)
		dst[c] = float32(radius * cos)
		if c+1 < len(dst) {
			dst[c+1] = float32(radius * sin)
		}
	}
}
