package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/bench"
	"github.com/gnnstore/gnnstore/train/infer"
)

// inferFloor has the least processor time that a layer of inference can take, by this machine's
// best rates: each edge is added once, the products run at the peak of the kernels, and each byte
// is read once by whoever reads rows. Drawing, listing and writing have no part in it. A layer's
// share of the processors' peak is this floor divided by all processors' time while it was
// computed.
type inferFloor struct {
	edge map[kernels.DType]float64 // seconds of one processor an edge whose row is of a type, where sums of a part lie anywhere
	flop float64                   // and an operation of a product of matrices
	byte float64                   // and a byte that is read, with checksums and copies
}

// floorSums is the bytes of sums that edges are added to, far beyond any cache, and floorRows the
// bytes of a block of rows, as infer reads them.
const (
	floorSums = 1 << 30
	floorRows = 16 << 20
)

// measureFloor takes some seconds for the rates of the fastest kernels, on rows of so many columns,
// and reads the table f in order for the bytes, up to so many.
func measureFloor(ctx context.Context, f *store.Features, cols int, most int64, o cachetier.Options) (floor inferFloor, err error) {
	set := kernels.Sets()[0]
	floor.flop = 1 / bench.MeasureCeilings(set, kernels.Float32, 1, time.Second).Flops
	floor.edge = map[kernels.DType]float64{kernels.F16: edgeSeconds(cols, kernels.F16), kernels.F32: edgeSeconds(cols, kernels.F32)}
	stack, err := cachetier.Open(ctx, f, o)
	if err != nil {
		return floor, err
	}
	defer stack.Close()
	buf, err := kernels.NewHostBuf(max(floorRows, f.RowBytes()))
	if err != nil {
		return floor, err
	}
	defer buf.Close()
	clear(buf.Bytes()) // or its page faults would be part of it
	rows := max(1, floorRows/f.RowBytes())
	var ids []uint32
	bytes, before := int64(0), kernels.ProcessorSeconds()
	for first := 0; first < f.Rows() && bytes < most; first += rows {
		ids = ids[:0]
		for v := first; v < min(first+rows, f.Rows()); v++ {
			ids = append(ids, uint32(v))
		}
		n := int64(len(ids) * f.RowBytes())
		if err := stack.Peek(ctx, buf.Bytes()[:n], ids); err != nil {
			return floor, err
		}
		bytes += n
	}
	floor.byte = (kernels.ProcessorSeconds() - before) / float64(max(bytes, 1))
	return floor, nil
}

// edgeSeconds is the least of several seconds an edge: rows of a block that lie anywhere in it are
// added to sums far apart, ascending as lists have them, on one thread.
func edgeSeconds(cols int, elem kernels.DType) float64 {
	const edges, turns = 1 << 16, 20
	be := kernels.NewCPU(kernels.CPUOptions{Threads: 1})
	matrix := func(elem kernels.DType, bytes int) kernels.Tensor {
		rows := bytes / elem.Size() / cols
		return kernels.Tensor{Buf: be.Alloc(elem, rows*cols), Type: elem, Rows: rows, Cols: cols}
	}
	sums, rows := matrix(kernels.F32, floorSums), matrix(elem, floorRows)
	be.Fill(sums, 1) // or all of it would be one page of zeros
	if ones := make([]uint16, rows.Len()); elem == kernels.F16 {
		for i := range ones {
			ones[i] = 0x3c00
		}
		be.UploadHalf(rows, ones)
	} else {
		be.Fill(rows, 1)
	}
	defer be.Free(sums.Buf)
	defer be.Free(rows.Buf)
	list := func(at func(e int) uint32) kernels.Tensor {
		ids := make([]uint32, edges)
		for e := range ids {
			ids[e] = at(e)
		}
		l := kernels.Tensor{Buf: be.Alloc(kernels.U32, edges), Type: kernels.U32, Rows: edges, Cols: 1}
		be.UploadU32(l, ids)
		return l
	}
	rng := rand.New(rand.NewPCG(1, 2))
	to := list(func(e int) uint32 { return uint32(int64(sums.Rows) * int64(e) / edges) })
	from := list(func(int) uint32 { return rng.Uint32N(uint32(rows.Rows)) })
	least := time.Hour
	for range turns {
		began := time.Now()
		be.AddEdges(sums, rows, kernels.Tensor{}, to, from)
		least = min(least, time.Since(began))
	}
	return least.Seconds() / edges
}

// seconds is the floor of a layer of edges edges, from in columns of a type to out, each node's own
// row and the mean of its neighbours times weights.
func (f inferFloor) seconds(l infer.Report, edges int64, elem kernels.DType, in, out int) float64 {
	products := 2 * 2 * float64(l.Nodes) * float64(in) * float64(out)
	return float64(edges)*f.edge[elem] + products*f.flop + float64(l.BytesRead)*f.byte
}

func (f inferFloor) String() string {
	return fmt.Sprintf("%.1f ns an edge from float16, %.1f from float32, %.0f GFLOP/s and %.2f GB/s read, a processor; %d processors", 1e9*f.edge[kernels.F16], 1e9*f.edge[kernels.F32], 1e-9/f.flop, 1e-9/f.byte,
		runtime.GOMAXPROCS(0))
}
