package graph

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	tasks "github.com/gnnstore/gnnstore/train/task"
)

// Probe describes a linear model that was fitted to a node's own columns and its degrees. Its JSON
// keys are stable.
type Probe struct {
	Columns int      `json:"columns"` // of the node's own row; 0: it has none
	Degrees []string `json:"degrees"` // logarithms of 1 + these numbers
	// L2 is the strength of L2s that validation chose, or the middle one if Validated is false.
	L2        float64   `json:"l2"`
	L2s       []float64 `json:"l2s"`
	Validated bool      `json:"validated"`
	Train     int       `json:"train"` // nodes
	Steps     int       `json:"steps"`
	Seconds   float64   `json:"seconds"`
	BytesRead int64     `json:"bytes_read"` // of rows, from disk
}

// nodeColumns reads a node's own row, and the logarithms of its degrees.
type nodeColumns struct {
	rows    *cachetier.Stack // nil: nodes have no row of their own
	half    bool
	dim     int
	degrees *data.Degrees
	buf     *kernels.HostBuf // rows of a batch, as stored
	counts  []int
}

// probeFeatures returns the features that the probe reads, or nil. It does not read learnt rows.
func (c *core) probeFeatures() *store.Features {
	if t := &c.data.Types[c.data.Target]; t.Embed == 0 {
		return t.Features
	}
	return nil
}

// probeColumns returns the number of columns of the probe.
func (c *core) probeColumns() int {
	n := c.data.DegreeColumns(c.data.Target)
	if f := c.probeFeatures(); f != nil {
		n += f.Dim()
	}
	return n
}

// probeBytes returns the memory of the probe beside its cache of rows.
func (c *core) probeBytes() (n int64) {
	nodes, ok := c.task.(*tasks.Nodes)
	if !ok || !c.internal.probe {
		return 0
	}
	cols := c.probeColumns()
	n = nodes.ProbeBytes(cols) + c.data.DegreesBytes(c.data.Target)
	if f := c.probeFeatures(); f != nil {
		n += int64(nodes.ProbeBatch(cols)) * int64(f.RowBytes())
	}
	return n
}

// checkProbe refuses a probe without training nodes, and one by several workers or on a part.
func (c *core) checkProbe() error {
	switch {
	case !c.internal.probe:
		return nil
	case c.Hooks.Group.Size() > 1 || c.data.OwnPart() != nil:
		return errors.New("{baseline}: the linear model is fitted by one worker that has the whole dataset; leave it out")
	case len(c.data.Train) == 0:
		return c.data.Set.About(errors.New("{baseline}: there is no training node with a label; leave it out"))
	}
	return nil
}

// openColumns opens the columns of the target type. Its cache of rows takes up to half of the
// memory that evaluation uses at other times.
func (c *core) openColumns(ctx context.Context) (_ *nodeColumns, err error) {
	x := &nodeColumns{}
	if x.degrees, err = c.data.NodeDegrees(ctx, c.data.Target, c.look); err != nil {
		return nil, err
	}
	f := c.probeFeatures()
	if f == nil {
		return x, nil
	}
	x.dim, x.half = f.Dim(), f.Elem() == store.F16
	o := c.eval.Tables
	o.DeviceBytes, o.StaticBytes, o.Prewarm, o.Policy = 0, 0, false, cachetier.LRU
	o.HostBytes = min(max(0, c.eval.Bytes)/2, 2*int64(len(c.data.Train))*int64(f.RowBytes()))
	if x.rows, err = cachetier.Open(ctx, f, o); err != nil {
		return nil, err
	}
	batch := c.task.(*tasks.Nodes).ProbeBatch(c.probeColumns())
	if x.buf, err = kernels.NewHostBuf(batch * f.RowBytes()); err != nil {
		return nil, errors.Join(err, x.rows.Close())
	}
	return x, nil
}

// look lets the evaluator's owner look at the memory.
func (c *core) look() {
	if c.eval.Look != nil {
		c.eval.Look()
	}
}

func (x *nodeColumns) close() error {
	if x.rows == nil {
		return nil
	}
	x.buf.Close()
	return x.rows.Close()
}

// read writes the columns of nodes to dst: the row of a node, then its degrees.
func (x *nodeColumns) read(ctx context.Context, dst []float32, nodes []uint32) error {
	if len(nodes) == 0 {
		return nil
	}
	cols := len(dst) / len(nodes)
	if x.rows != nil {
		if err := x.rows.Gather(ctx, x.buf.Bytes()[:len(nodes)*x.rows.RowBytes()], nodes); err != nil {
			return err
		}
	}
	for i, v := range nodes {
		row := dst[i*cols : (i+1)*cols]
		if x.rows != nil {
			if lo, hi := i*x.dim, (i+1)*x.dim; x.half {
				kernels.HalfToFloat32(row[:x.dim], x.buf.Uint16s()[lo:hi])
			} else {
				copy(row, x.buf.Float32s()[lo:hi])
			}
		}
		x.counts = x.degrees.Append(x.counts[:0], v)
		for d, n := range x.counts {
			row[x.dim+d] = float32(math.Log1p(float64(n)))
		}
	}
	return nil
}

// FitProbe fits a linear model to the nodes that the run learns. Measure then measures it too. The
// network must have been opened with NetworkOptions.Probe. show is called after each step.
func (n *Network) FitProbe(ctx context.Context, show func(done, all int)) (_ *Probe, err error) {
	defer kernels.RecoverMemory(&err)
	began, c := time.Now(), n.c
	nodes := c.task.(*tasks.Nodes)
	err = store.Guard(func() (err error) {
		n.columns, err = c.openColumns(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("{baseline}: %w", err)
	}
	looks := 0
	from := tasks.Columns{Cols: c.probeColumns(), Rows: n.columns.read}
	if n.probe, err = nodes.NewProbe(ctx, c.Backend, from, func(done, all int) {
		if looks++; looks%looksAtMaps == 0 {
			c.look()
		}
		show(done, all)
	}); err != nil {
		return nil, c.data.Set.About(fmt.Errorf("{baseline}: %w", err))
	}
	p := &Probe{
		Columns: n.columns.dim, Degrees: n.columns.degrees.Names, L2: n.probe.L2, L2s: tasks.Strengths, Validated: n.probe.Validated, Train: len(c.data.Train),
		Steps: n.probe.Steps, Seconds: time.Since(began).Seconds(),
	}
	p.BytesRead = n.columns.bytesRead()
	return p, nil
}

// bytesRead returns the bytes of rows that x has read from disk.
func (x *nodeColumns) bytesRead() int64 {
	if x == nil || x.rows == nil {
		return 0
	}
	s := x.rows.Stats()
	return s.Disk.BytesRead + s.Warmup.BytesRead
}

// closeProbe gives the memory of the probe back.
func (n *Network) closeProbe() (err error) {
	if n.probe != nil {
		n.probe.Close()
	}
	if n.columns != nil {
		err = n.columns.close()
	}
	n.probe, n.columns = nil, nil
	return err
}
