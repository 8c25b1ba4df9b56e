package generate

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/rawfile"
)

// tgl is the layout of TGL's temporal graphs: events and labels in tables whose first column has no
// name, edge features in one of torch's files. There are no node features.
type tgl struct {
	*rawWriter
	events *events
}

// labelEvery is the number of events to a label, which is the home of the event's user.
const labelEvery = 10

func (w tgl) bytes() int64 {
	return smallFiles + w.g.shape.edges*int64(64+64/labelEvery+4*w.g.shape.dim)
}

func (w tgl) write(ctx context.Context) error {
	n := w.g.shape.edges
	w.begin("write events", n, "events")
	err := w.file("edges.csv", func(f io.Writer) error {
		return w.eachEvent(ctx, f, 1, ",src,dst,time,int_roll,ext_roll\n", func(dst []byte, k int64) []byte {
			e := w.events.at(k)
			dst = append(strconv.AppendInt(dst, k, 10), ',')
			dst = append(strconv.AppendInt(dst, e.user, 10), ',')
			dst = append(strconv.AppendInt(dst, e.item, 10), ',')
			dst = append(strconv.AppendInt(dst, e.time, 10), ".0,0,"...)
			return append(strconv.AppendInt(dst, int64(e.part), 10), '\n')
		})
	})
	if err != nil {
		return err
	}
	w.begin("write labels", chunks(n, labelEvery), "labels")
	err = w.file("labels.csv", func(f io.Writer) error {
		return w.eachEvent(ctx, f, labelEvery, ",node,time,label,ext_roll\n", func(dst []byte, k int64) []byte {
			e := w.events.at(k)
			dst = append(strconv.AppendInt(dst, k/labelEvery, 10), ',')
			dst = append(strconv.AppendInt(dst, e.user, 10), ',')
			dst = append(strconv.AppendInt(dst, e.time, 10), ".0,"...)
			dst = append(strconv.AppendInt(dst, int64(e.home), 10), ',')
			return append(strconv.AppendInt(dst, int64(e.part), 10), '\n')
		})
	})
	if err != nil {
		return err
	}
	w.begin("write features", n, "rows")
	return w.file("edge_features.pt", func(f io.Writer) error {
		dim := w.g.shape.dim
		p := rawfile.NewPT(f, "edge_features.pt")
		err := p.Object(func(p *rawfile.Pickler) error { return p.Float32s("0", n, int64(dim)) })
		if err != nil {
			return err
		}
		storage, err := p.Storage("0")
		if err != nil {
			return err
		}
		rows := int64(max(1, ingest.ChunkBytes/4/dim))
		type buffer struct {
			row   []float32
			bytes []byte
		}
		err = ordered(ctx, chunks(n, rows), func() *buffer { return &buffer{row: make([]float32, dim)} },
			func(chunk int64, b *buffer) {
				b.bytes = b.bytes[:0]
				for k := chunk * rows; k < min(n, (chunk+1)*rows); k++ {
					w.events.row(b.row, k)
					for _, x := range b.row {
						b.bytes = binary.LittleEndian.AppendUint32(b.bytes, math.Float32bits(x))
					}
				}
			},
			func(_ int64, b *buffer) error {
				w.add(len(b.bytes) / 4 / dim)
				_, err := storage.Write(b.bytes)
				return err
			})
		return errors.Join(err, p.Close())
	})
}

// eachEvent writes a header and a line for every step-th event, made on all processors.
func (w tgl) eachEvent(ctx context.Context, f io.Writer, step int64, header string, line func(dst []byte, k int64) []byte) error {
	if _, err := io.WriteString(f, header); err != nil {
		return err
	}
	const rows = 16 << 10
	n := chunks(w.g.shape.edges, step)
	return ordered(ctx, chunks(n, rows), func() *[]byte { return new([]byte) },
		func(chunk int64, b *[]byte) {
			*b = (*b)[:0]
			for i := chunk * rows; i < min(n, (chunk+1)*rows); i++ {
				*b = line(*b, i*step)
			}
		},
		func(chunk int64, b *[]byte) error {
			w.add(int(min(rows, n-chunk*rows)))
			_, err := f.Write(*b)
			return err
		})
}
