package generate

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/rawfile"
	"github.com/gnnstore/gnnstore/kernels"
)

// lsc is MAG240M's layout: plain arrays, with 16 bits for features and 64 for all others, and two
// of torch's files. Labels of the test set are hidden.
type lsc struct{ *rawWriter }

func (w lsc) bytes() int64 {
	return smallFiles + 16*w.g.shape.edges + w.nodes()*int64(2*w.g.shape.dim+16) + 12*w.splitNodes() + 12*w.g.shape.parts[ingest.Test]
}

func (w lsc) write(ctx context.Context) error {
	if err := w.text("RELEASE_v1.txt", ""); err != nil {
		return err
	}
	err := w.pt("meta.pt", func(p *rawfile.Pickler) error {
		return p.Dict(func() {
			for _, t := range w.g.types {
				p.Text(t.name).Int(int64(t.count))
			}
			p.Text("num_classes").Int(int64(w.g.shape.classes))
		})
	})
	if err != nil {
		return err
	}
	if err := w.splitDict(ctx); err != nil {
		return err
	}
	for i, r := range w.g.schema.Relations {
		file := "processed/" + r.Src + "___" + r.Name + "___" + r.Dst + "/edge_index.npy"
		err := w.npy(file, "<i8", func(f io.Writer) error { return w.edgeIndex(ctx, f, i) }, 2, r.Edges)
		if err != nil {
			return err
		}
	}
	return w.papers(ctx)
}

// papers writes what papers have.
func (w lsc) papers(ctx context.Context) error {
	n, dim := w.nodes(), w.g.shape.dim
	w.begin("write features", n, "rows")
	err := w.npy("processed/paper/node_feat.npy", "<f2", func(f io.Writer) error {
		half := make([]uint16, max(ingest.ChunkBytes/4, dim))
		return w.g.Rows(ctx, 0, func(c ingest.RowChunk) error {
			half := half[:len(c.Values)]
			kernels.Float32ToHalf(half, c.Values)
			w.buf = w.buf[:0]
			for _, h := range half {
				w.buf = binary.LittleEndian.AppendUint16(w.buf, h)
			}
			w.add(len(half) / dim)
			_, err := f.Write(w.buf)
			return err
		})
	}, n, int64(dim))
	if err != nil {
		return err
	}
	w.begin("write labels", n, "nodes")
	err = w.npy("processed/paper/node_label.npy", "<f8", func(f io.Writer) error {
		return w.eachNode(ctx, f, 8, func(dst []byte, v uint32) {
			binary.LittleEndian.PutUint64(dst, math.Float64bits(labelOrNaN(w.g.label(v))))
		})
	}, n)
	if err != nil {
		return err
	}
	return w.npy("processed/paper/node_year.npy", "<i8", func(f io.Writer) error { return w.years(ctx, f) }, n)
}

// splitDict writes the parts of the split, the test set three times over: whole, and by the rule of
// older releases in two parts, three of each five nodes for development and the others for the
// challenge.
func (w lsc) splitDict(ctx context.Context) error {
	parts := w.g.shape.parts
	dev := 3*(parts[ingest.Test]/5) + min(3, parts[ingest.Test]%5)
	w.begin("write split", 2*(w.splitNodes()+parts[ingest.Test]), "nodes") // each array streams twice
	return w.pt("split_dict.pt", func(p *rawfile.Pickler) (err error) {
		return errors.Join(p.Dict(func() {
			for _, part := range []struct {
				name string
				part ingest.Part
				n    int64
				keep func(at int64) bool
			}{
				{"train", ingest.Train, parts[ingest.Train], nil},
				{"valid", ingest.Valid, parts[ingest.Valid], nil},
				{"test-whole", ingest.Test, parts[ingest.Test], nil},
				{"test-dev", ingest.Test, dev, func(at int64) bool { return at%5 < 3 }},
				{"test-challenge", ingest.Test, parts[ingest.Test] - dev, func(at int64) bool { return at%5 >= 3 }},
			} {
				if err != nil {
					return
				}
				p.Text(part.name)
				err = p.Int64s(part.n, func(emit func([]int64) error) error {
					var kept []int64
					return w.g.Split(ctx, 0, part.part, func(c ingest.IDChunk) error {
						ids := c.IDs
						if part.keep != nil {
							kept = kept[:0]
							for i, v := range ids {
								if part.keep(c.First + int64(i)) {
									kept = append(kept, v)
								}
							}
							ids = kept
						}
						w.add(len(ids))
						return emit(ids)
					})
				})
			}
		}), err)
	})
}

// npy writes an array into a file of its own.
func (w *rawWriter) npy(path, descr string, body func(io.Writer) error, shape ...int64) error {
	return w.file(path, func(f io.Writer) error {
		if _, err := f.Write(npy.AppendHeader(nil, descr, shape...)); err != nil {
			return err
		}
		return body(f)
	})
}

// pt writes a file of torch's without storages.
func (w *rawWriter) pt(path string, object func(*rawfile.Pickler) error) error {
	return w.file(path, func(f io.Writer) error {
		p := rawfile.NewPT(f, path)
		if err := p.Object(object); err != nil {
			return err
		}
		return p.Close()
	})
}
