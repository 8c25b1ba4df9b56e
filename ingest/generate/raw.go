package generate

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/rawfile"
	"github.com/gnnstore/gnnstore/kernels"
)

// RawReport counts what [WriteRaw] wrote.
type RawReport struct {
	Kind    string  `json:"kind"`
	Path    string  `json:"path"`
	Nodes   int64   `json:"nodes"`
	Edges   int64   `json:"edges"`
	Files   int     `json:"files"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

// WriteRaw writes a kind of graph as raw files, in the folder layout of the public dataset that it
// is named after, or as tables with a schema where [Tables] reports so. The folder must not exist;
// it is whole or absent: until it is whole, the work is in out.partial, and a .partial that a
// killed call left is replaced. It asks for the space first. progress, which may be nil, is called
// some ten times a second.
func WriteRaw(ctx context.Context, kind, out string, o Options, progress func(ingest.Progress)) (_ *RawReport, err error) {
	start := time.Now()
	s, err := o.shape(kind)
	if err != nil {
		return nil, err
	}
	if !Raw(kind) {
		return nil, fmt.Errorf("kind %s is no benchmark's, and has no raw files; make it a dataset", kind)
	}
	out = filepath.Clean(out)
	if _, err := os.Lstat(out); err == nil {
		return nil, fmt.Errorf("%s: exists already; name another folder, or remove it", out)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	w := &rawWriter{g: newSource(s), root: out + ".partial", edges: s.edges, progress: progress}
	if err := w.checkSpace(out); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(w.root); err != nil {
		return nil, err
	}
	if err := os.Mkdir(w.root, 0o777); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(w.root))
		}
	}()
	if err := w.layout().write(ctx); err != nil {
		return nil, err
	}
	if err := w.publish(out); err != nil {
		return nil, err
	}
	return &RawReport{Kind: kind, Path: out, Nodes: s.nodes, Edges: w.edges, Files: w.files, Bytes: w.bytes, Seconds: time.Since(start).Seconds()}, nil
}

// layout is one way to lay a graph out in files.
type layout interface {
	write(context.Context) error
	// bytes bounds what write writes.
	bytes() int64
}

func (w *rawWriter) layout() layout {
	switch w.g.shape.key {
	case "papers100m":
		return ogbBinary{w}
	case "mag240m":
		return lsc{w}
	case churn:
		return newChurn(w)
	case temporal:
		return tgl{w, newEvents(w.g)}
	case triples:
		return kgText{w}
	}
	return ogbText{w}
}

// rawWriter is a folder under way.
type rawWriter struct {
	g          *Source
	root       string
	edges      int64
	files      int
	bytes      int64
	progress   func(ingest.Progress)
	now        ingest.Progress
	lastReport time.Time
	buf        []byte
}

// checkSpace refuses before the first write. A file system that does not tell is believed to have
// the space.
func (w *rawWriter) checkSpace(out string) error {
	usage, err := vfs.Default.GetDiskUsage(filepath.Dir(out))
	if errors.Is(err, vfs.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("space left for %s: %w", out, err)
	}
	return w.g.shape.fits(out, w.layout().bytes(), usage.AvailBytes)
}

// fits refuses files larger than the free space, and suggests a scale that would fit.
func (s *shape) fits(out string, need int64, free uint64) error {
	if uint64(need) <= free {
		return nil
	}
	return fmt.Errorf("%s: the raw files need about %s and %s are free; make room, write elsewhere, or {scale} %.2g fits",
		out, kernels.FormatBytes(need), kernels.FormatBytes(int64(free)), s.fitting(need, free))
}

// FittingScale returns an Options.Scale at which data that take need bytes now fit into free bytes.
func (g *Source) FittingScale(need int64, free uint64) float64 { return g.shape.fitting(need, free) }

func (s *shape) fitting(need int64, free uint64) float64 {
	scale := cmp.Or(s.options.Scale, 1)
	scale *= 0.95 * float64(max(1, free)) / float64(need) // what does not shrink with the graph is in the 5 %
	unit := math.Pow(10, math.Floor(math.Log10(scale))-1)
	return math.Floor(scale/unit) * unit // two digits
}

// publish syncs the finished folder and renames it to out.
func (w *rawWriter) publish(out string) error {
	err := filepath.WalkDir(w.root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = syncDir(path)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := os.Rename(w.root, out); err != nil {
		return err
	}
	return syncDir(filepath.Dir(out))
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// file writes one file.
func (w *rawWriter) file(path string, body func(io.Writer) error) (err error) {
	path = filepath.Join(w.root, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(f, 1<<20)
	if err = body(b); err == nil {
		if err = b.Flush(); err == nil {
			err = f.Sync()
		}
	}
	if stat, serr := f.Stat(); serr == nil {
		w.bytes += stat.Size()
	}
	w.files++
	return errors.Join(err, f.Close())
}

func (w *rawWriter) text(path, body string) error {
	return w.file(path, func(f io.Writer) error { _, err := io.WriteString(f, body); return err })
}

func (w *rawWriter) gzip(path string, body func(io.Writer) error) error {
	return w.file(path, func(f io.Writer) error {
		z := rawfile.NewGzip(f)
		err := body(z)
		return errors.Join(err, z.Close())
	})
}

// npz writes an archive of arrays.
func (w *rawWriter) npz(path string, arrays ...func(*rawfile.NPZ) error) error {
	return w.file(path, func(f io.Writer) (err error) {
		z := rawfile.NewNPZ(f)
		for _, array := range arrays {
			if err = array(z); err != nil {
				break
			}
		}
		return errors.Join(err, z.Close())
	})
}

// begin and add tell how far a stage is.
func (w *rawWriter) begin(stage string, total int64, unit string) {
	w.now = ingest.Progress{Stage: stage, Total: total, Unit: unit}
}

func (w *rawWriter) add(n int) {
	w.now.Done += int64(n)
	if now := time.Now(); w.progress != nil && now.Sub(w.lastReport) >= 100*time.Millisecond { // ten a second read as motion
		w.lastReport = now
		w.progress(w.now)
	}
}

// edgeIDs writes one end of every edge of a relation, as 64 bits each.
func (w *rawWriter) edgeIDs(ctx context.Context, f io.Writer, relation int, end func(*ingest.EdgeChunk) []int64) error {
	return w.g.Edges(ctx, relation, func(c ingest.EdgeChunk) error {
		w.buf = appendInts(w.buf[:0], end(&c))
		w.add(c.Len())
		_, err := f.Write(w.buf)
		return err
	})
}

func sources(c *ingest.EdgeChunk) []int64      { return c.Src }
func destinations(c *ingest.EdgeChunk) []int64 { return c.Dst }

// edgeIndex writes the two rows of an edge_index: it makes the edges twice, since a row is at its
// end before the other begins, and making them costs less than keeping them.
func (w *rawWriter) edgeIndex(ctx context.Context, f io.Writer, relation int) error {
	r := w.g.schema.Relations[relation]
	w.begin("write edges "+r.Name, 2*r.Edges, "ends")
	if err := w.edgeIDs(ctx, f, relation, sources); err != nil {
		return err
	}
	return w.edgeIDs(ctx, f, relation, destinations)
}

// eachNode makes width bytes for each labelled node by put, on all processors, and writes them.
func (w *rawWriter) eachNode(ctx context.Context, f io.Writer, width int, put func(dst []byte, v uint32)) error {
	rows := int64(max(1, ingest.ChunkBytes/width))
	return eachChunk(ctx, w.nodes(), rows, width, put, func(_ int64, b []byte) error {
		w.add(len(b) / width)
		_, err := f.Write(b)
		return err
	})
}

// scratch is the memory for making lines.
type scratch struct {
	text []byte
	row  []float32 // of features
}

// eachLine makes a line for each labelled node by line, which appends it to text, on all
// processors, and writes them.
func (w *rawWriter) eachLine(ctx context.Context, f io.Writer, rows int64, line func(s *scratch, v uint32)) error {
	n := w.nodes()
	return ordered(ctx, chunks(n, rows), func() *scratch { return &scratch{row: make([]float32, w.g.shape.dim)} },
		func(chunk int64, s *scratch) {
			s.text = s.text[:0]
			for v := chunk * rows; v < min(n, (chunk+1)*rows); v++ {
				line(s, uint32(v))
				s.text = append(s.text, '\n')
			}
		},
		func(chunk int64, s *scratch) error {
			w.add(int(min(rows, n-chunk*rows)))
			_, err := f.Write(s.text)
			return err
		})
}

// nodes returns the number of nodes of the type with features and labels.
func (w *rawWriter) nodes() int64 { return w.g.labelled() }

// splitText writes the split as a node a line.
func (w *rawWriter) splitText(ctx context.Context) error {
	for part := ingest.Train; part <= ingest.Test; part++ {
		w.begin("write split", w.g.shape.parts[part], "nodes")
		err := w.gzip(fmt.Sprintf("split/%s/%v.csv.gz", w.g.shape.split, part), func(f io.Writer) error {
			return w.g.Split(ctx, 0, part, func(c ingest.IDChunk) error {
				w.buf = w.buf[:0]
				for _, v := range c.IDs {
					w.buf = append(strconv.AppendInt(w.buf, v, 10), '\n')
				}
				w.add(len(c.IDs))
				_, err := f.Write(w.buf)
				return err
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// splitNodes returns the number of nodes in the parts of the split.
func (w *rawWriter) splitNodes() int64 {
	p := w.g.shape.parts
	return p[0] + p[1] + p[2]
}
