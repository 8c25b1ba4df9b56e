package build

import (
	"context"
	"errors"
	"math"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/kernels"
)

// madeTable is the name of a table of made features.
const madeTable = "feat"

// degreeDim is the number of columns of degree features.
const degreeDim = 3

// madeChunk is the number of values of made features that are filled at a time.
const madeChunk = 1 << 20

// makeTables writes the made features of every node type that is to have them.
func (b *builder) makeTables(s *sizes, do func(pass)) {
	var e *embedding // of fastrp: all types' nodes
	defer func() {
		if e != nil {
			e.free()
		}
	}()
	if b.features.kind == "mean" {
		b.makeMeans(s, do)
		return
	}
	embed := 0.0 // seconds, in the first pass that wants it
	if b.features.kind == "fastrp" {
		embed = b.embedSeconds(s)
	}
	for i, t := range b.schema.NodeTypes {
		if !b.makes[t.Name] {
			continue
		}
		n := b.nodes[i]
		table := ingest.Table{Name: madeTable, NodeType: t.Name, Dim: b.features.dim}
		c := b.tableCost(table, s.nodes[i])
		c.seconds, embed = c.seconds+embed, 0
		name := "make features " + t.Name + "/" + madeTable
		do(pass{name: name, total: int64(n.count), unit: "rows", cost: c, run: func(ctx context.Context) error {
			var fill func(row uint32, dst []float32)
			switch b.features.kind {
			case "degree":
				if n.out == nil { // nodes keep their order
					n.out, n.times = n.times, nil
				}
				if err := errors.Join(b.count(&n.degree, n.count), b.count(&n.out, n.count)); err != nil {
					return err
				}
				in, out := n.degree.Uint32s(), n.out.Uint32s()
				fill = func(row uint32, dst []float32) {
					dst[0], dst[1], dst[2] = 1, float32(math.Log1p(float64(in[row]))), float32(math.Log1p(float64(out[row])))
				}
			case "random":
				seed := mix(b.Seed ^ mix(uint64(i)+1))
				fill = func(row uint32, dst []float32) { normalRow(dst, seed, uint64(row)) }
			case "fastrp":
				if e == nil {
					var err error
					if e, err = b.fastRP(ctx, b.features.dim); err != nil {
						return err
					}
				}
				first, stored := e.types[i].first, n.storedIDs()
				fill = func(row uint32, dst []float32) { copy(dst, e.row(first+int(storedID(stored, row)))) }
			}
			return b.makeTable(ctx, table, true, func(rows []uint32, dst []float32) {
				for k, row := range rows {
					fill(row, dst[k*table.Dim:(k+1)*table.Dim])
				}
			})
		}})
	}
}

// embedSeconds is the time that fastRP takes: each step adds a row for every edge, in both
// directions, and goes through all nodes.
func (b *builder) embedSeconds(s *sizes) float64 {
	rows := s.allNodes()
	for i, n := range s.stored[:b.given] {
		if rows += n; !b.form(i).reverse {
			rows += n
		}
	}
	return float64(rows) * float64(b.features.dim) * fastRPLast / rateEmbed / float64(workers())
}

// makeTable writes a table in stored order, whose rows can be had in any; fill is called by many
// goroutines.
func (b *builder) makeTable(ctx context.Context, t ingest.Table, made bool, fill func(rows []uint32, dst []float32)) error {
	n := b.typeOf(t.NodeType)
	rowOf, err := b.rowsInOrder(n)
	if err != nil {
		return err
	}
	defer b.release(&rowOf)
	from := "features " + t.NodeType + "/" + t.Name
	if made {
		from = "{features} " + b.Features
	}
	var order []uint32
	if rowOf != nil {
		order = rowOf.Uint32s()
	}
	return b.makeRows(ctx, t, made, from, n.count, order, fill)
}

// makeRows writes count rows of a table, in the given order, or in the order 0, 1, 2 and so on
// if order is nil. Messages call their origin from.
func (b *builder) makeRows(ctx context.Context, t ingest.Table, made bool, from string, rowCount int, order []uint32, fill func(rows []uint32, dst []float32)) error {
	w, err := b.newTable(t, made)
	if err != nil {
		return err
	}
	if err := w.open(); err != nil {
		return err
	}
	place := ingest.Place{File: from}
	size := b.elem().Size()
	chunk := max(1, madeChunk/t.Dim)
	values, out := make([]float32, chunk*t.Dim), make([]byte, chunk*t.Dim*size)
	rows := make([]uint32, chunk)
	for lo := 0; lo < rowCount; lo += chunk {
		count := min(chunk, rowCount-lo)
		for k := range rows[:count] {
			if rows[k] = uint32(lo + k); order != nil {
				rows[k] = order[lo+k]
			}
		}
		err := parallel(ctx, count, max(1, convertPiece/t.Dim), func(from, to int) {
			fill(rows[from:to], values[from*t.Dim:to*t.Dim])
		})
		if err != nil {
			return err
		}
		place.First = int64(lo)
		if err := w.convert(place, values[:count*t.Dim], out[:count*t.Dim*size]); err != nil {
			return err
		}
		if err := w.putRows(ctx, int64(lo), count, out[:count*t.Dim*size]); err != nil {
			return err
		}
		b.addMeter(count)
	}
	if err := w.checkRounding(); err != nil {
		return err
	}
	return w.close()
}

// rowsInOrder is the row of each stored id, nil when they are the same.
func (b *builder) rowsInOrder(n *nodes) (*kernels.HostBuf, error) {
	if n.stored == nil {
		return nil, nil
	}
	buf, err := b.hold(4 * int64(max(n.count, 1)))
	if err != nil {
		return nil, err
	}
	rowOf := buf.Uint32s()
	for row, v := range n.storedIDs() {
		rowOf[v] = uint32(row)
	}
	return buf, nil
}

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators, 2014): a bijection in which every bit of x moves about half of the result's.
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
