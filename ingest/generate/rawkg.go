package generate

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/gnnstore/gnnstore/ingest"
)

// kgText is the layout of public knowledge graphs: a triple a line, of head, relation and tail, in
// train.txt, valid.txt and test.txt.
type kgText struct{ *rawWriter }

// kgHeldOut is the share of the triples in each of valid.txt and test.txt.
const kgHeldOut = 0.05

// bytes bounds what write writes: 2 names of entities, with 10 digits at most, and one of a
// relation.
func (w kgText) bytes() int64 { return smallFiles + 32*w.g.shape.edges }

func (w kgText) write(ctx context.Context) error {
	w.begin("write triples", 3*w.g.shape.edges, "triples") // each file takes a pass over all
	for part := ingest.Train; part <= ingest.Test; part++ {
		err := w.file(fmt.Sprintf("%v.txt", part), func(f io.Writer) error { return w.triples(ctx, f, part) })
		if err != nil {
			return err
		}
	}
	return nil
}

// triples writes the triples of a part.
func (w kgText) triples(ctx context.Context, f io.Writer, part ingest.Part) error {
	for i := range w.g.schema.Relations {
		name, split := w.g.schema.Relations[i].Name, key(w.g.shape.seed, forSplit, uint64(i))
		err := w.g.Edges(ctx, i, func(c ingest.EdgeChunk) error {
			w.buf = w.buf[:0]
			for at, src := range c.Src {
				// A repeated triple has one part, since only its ends decide.
				if kgPart(unit(draw(split, uint64(src)<<32|uint64(c.Dst[at])))) != part {
					continue
				}
				w.buf = strconv.AppendInt(append(w.buf, 'e'), src, 10)
				w.buf = append(append(append(w.buf, '\t'), name...), "\te"...)
				w.buf = append(strconv.AppendInt(w.buf, c.Dst[at], 10), '\n')
			}
			w.add(c.Len())
			_, err := f.Write(w.buf)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// kgPart returns the part of a triple by a draw of [0, 1).
func kgPart(x float64) ingest.Part {
	switch {
	case x < kgHeldOut:
		return ingest.Valid
	case x < 2*kgHeldOut:
		return ingest.Test
	}
	return ingest.Train
}
