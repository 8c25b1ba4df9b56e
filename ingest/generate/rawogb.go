package generate

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/rawfile"
)

// Measured sizes of values, about, once they are deflated: features hardly shrink, ids by half or
// more.
const (
	deflatedEdge  = 5 // bytes: two ids of 8
	deflatedYear  = 3
	deflatedLabel = 2
	textEdge      = 7
	textValue     = 7
	smallFiles    = 1 << 20
)

func appendInts(b []byte, values []int64) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

// ogbBinary is OGB's layout of papers100M: deflated arrays, labels as floats that are NaN where
// there is none.
type ogbBinary struct{ *rawWriter }

func (w ogbBinary) bytes() int64 {
	return smallFiles + deflatedEdge*w.g.shape.edges + w.nodes()*int64(4*w.g.shape.dim+deflatedYear+deflatedLabel) + 4*w.splitNodes()
}

func (w ogbBinary) write(ctx context.Context) error {
	n, dim := w.nodes(), w.g.shape.dim
	err := w.npz("raw/data.npz",
		array("edge_index", "<i8", func(f io.Writer) error { return w.edgeIndex(ctx, f, 0) }, 2, w.g.shape.edges),
		one("num_nodes_list", n),
		one("num_edges_list", w.g.shape.edges),
		array("node_feat", "<f4", func(f io.Writer) error {
			w.begin("write features", n, "rows")
			return w.g.Rows(ctx, 0, func(c ingest.RowChunk) error {
				w.buf = w.buf[:0]
				for _, x := range c.Values {
					w.buf = binary.LittleEndian.AppendUint32(w.buf, math.Float32bits(x))
				}
				w.add(len(c.Values) / dim)
				_, err := f.Write(w.buf)
				return err
			})
		}, n, int64(dim)),
		array("node_year", "<i8", func(f io.Writer) error { return w.years(ctx, f) }, n, 1))
	if err != nil {
		return err
	}
	err = w.npz("raw/node-label.npz", array("node_label", "<f4", func(f io.Writer) error {
		w.begin("write labels", n, "nodes")
		return w.eachNode(ctx, f, 4, func(dst []byte, v uint32) {
			binary.LittleEndian.PutUint32(dst, math.Float32bits(float32(labelOrNaN(w.g.label(v)))))
		})
	}, n, 1))
	if err != nil {
		return err
	}
	if err := w.splitText(ctx); err != nil {
		return err
	}
	return w.about()
}

// one is an array of a number.
func one(key string, n int64) func(*rawfile.NPZ) error {
	return array(key, "<i8", func(f io.Writer) error {
		_, err := f.Write(appendInts(nil, []int64{n}))
		return err
	}, 1)
}

// array returns a function that writes an array to an archive.
func array(key, descr string, body func(io.Writer) error, shape ...int64) func(*rawfile.NPZ) error {
	return func(z *rawfile.NPZ) error {
		f, err := z.Array(key, descr, shape...)
		if err != nil {
			return err
		}
		return body(f)
	}
}

// years writes the years of all nodes.
func (w *rawWriter) years(ctx context.Context, f io.Writer) error {
	w.begin("write years", w.nodes(), "nodes")
	return w.eachNode(ctx, f, 8, func(dst []byte, v uint32) { binary.LittleEndian.PutUint64(dst, uint64(w.g.year(v))) })
}

func labelOrNaN(label int32) float64 {
	if label < 0 {
		return math.NaN()
	}
	return float64(label)
}

// about writes what OGB's folders have for people: the version, and what classes are called.
func (w *rawWriter) about() error {
	if err := w.text("RELEASE_v1.txt", ""); err != nil {
		return err
	}
	readme := "Made by gnnstore generate.\n\n" + w.g.schema.Identity + "\n"
	if err := w.text("mapping/README.md", readme); err != nil {
		return err
	}
	return w.gzip("mapping/labelidx2category.csv.gz", func(f io.Writer) error {
		kind := "community"
		if w.g.traits != nil {
			kind = "class"
		}
		_, err := io.WriteString(f, "label idx,category\n")
		for c := 0; err == nil && c < w.g.shape.classes; c++ {
			_, err = fmt.Fprintf(f, "%d,%s %d\n", c, kind, c)
		}
		return err
	})
}

// ogbText is OGB's layout of its smaller datasets: gzipped tables without headers.
type ogbText struct{ *rawWriter }

func (w ogbText) bytes() int64 {
	return smallFiles + textEdge*w.g.shape.edges + w.nodes()*int64(textValue*w.g.shape.dim+deflatedLabel) + 4*w.splitNodes()
}

func (w ogbText) write(ctx context.Context) error {
	dim := w.g.shape.dim
	for _, count := range []struct {
		file string
		n    int64
	}{{"raw/num-node-list.csv.gz", w.nodes()}, {"raw/num-edge-list.csv.gz", w.g.shape.edges}} {
		if err := w.gzip(count.file, func(f io.Writer) error { _, err := fmt.Fprintln(f, count.n); return err }); err != nil {
			return err
		}
	}
	w.begin("write edges", w.g.shape.edges, "edges")
	err := w.gzip("raw/edge.csv.gz", func(f io.Writer) error {
		return w.g.Edges(ctx, 0, func(c ingest.EdgeChunk) error {
			w.buf = w.buf[:0]
			for i, u := range c.Src {
				w.buf = append(strconv.AppendInt(w.buf, u, 10), ',')
				w.buf = append(strconv.AppendInt(w.buf, c.Dst[i], 10), '\n')
			}
			w.add(c.Len())
			_, err := f.Write(w.buf)
			return err
		})
	})
	if err != nil {
		return err
	}
	w.begin("write features", w.nodes(), "rows")
	err = w.gzip("raw/node-feat.csv.gz", func(f io.Writer) error {
		// The shortest digits that read back as the same float32.
		return w.eachLine(ctx, f, int64(max(1, ingest.ChunkBytes/8/dim)), func(s *scratch, v uint32) {
			w.g.row(s.row, v)
			for i, x := range s.row {
				if i > 0 {
					s.text = append(s.text, ',')
				}
				s.text = strconv.AppendFloat(s.text, float64(x), 'g', -1, 32)
			}
		})
	})
	if err != nil {
		return err
	}
	w.begin("write labels", w.nodes(), "nodes")
	err = w.gzip("raw/node-label.csv.gz", func(f io.Writer) error {
		return w.eachLine(ctx, f, ingest.ChunkRows, func(s *scratch, v uint32) {
			if label := w.g.label(v); label >= 0 {
				s.text = strconv.AppendInt(s.text, int64(label), 10)
			} else {
				s.text = append(s.text, "nan"...)
			}
		})
	})
	if err != nil {
		return err
	}
	if err := w.splitText(ctx); err != nil {
		return err
	}
	return w.about()
}
