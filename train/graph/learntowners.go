package graph

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tiers"
)

// learntSums adds up the gradients of learnt rows at the workers that own the rows. Each owner
// then changes its own rows, so that no two workers change the same row.
type learntSums struct {
	sums []float64 // of a table's own rows
	host []float32 // the same, rounded once
	send [][]byte  // by worker
	rows []optim.Rows
	bufs []kernels.Buffer // of the gradients in rows
	norm []kernels.Tensor // of the norms in rows: a number a worker
}

// reduce replaces the rows that the step's Update changes by own rows, with the sums of all
// workers' gradients. Sums are added up in float64 in the order of workers, and rounded once.
func (s *learntSums) reduce(ctx context.Context, t *trainer, at dist.At, b *pipeline.Gathered) error {
	d := b.Batch.(*sample.Batch).Dealt()
	came, err := t.Hooks.Group.Exchange(ctx, at, s.messages(t, d))
	if err != nil {
		return err
	}
	came = slices.Clone(came) // each is taken apart, table by table
	squares := make([]float64, len(t.tiers.Learnt))
	s.rows = s.rows[:0]
	for k, l := range t.tiers.Learnt {
		if err := s.add(t, d, l, came); err != nil {
			return err
		}
		for _, x := range s.host {
			squares[k] += float64(x) * float64(x)
		}
		own := b.Own[l.Type]
		if len(s.bufs) == k {
			s.bufs = append(s.bufs, nil)
		}
		kernels.GrowBuffer(t.Backend, &s.bufs[k], kernels.F32, len(s.host), len(s.host)+len(s.host)/8)
		grad := kernels.Tensor{Buf: s.bufs[k], Type: kernels.F32, Rows: own.Rows, Cols: l.Dim}
		t.Backend.UploadF32(grad, s.host)
		s.rows = append(s.rows, optim.Rows{Records: own, Grad: grad})
	}
	for q, rest := range came {
		if len(rest) > 0 {
			return fmt.Errorf("%s sends %d bytes of gradients too many", t.Hooks.Group.Name(q), len(rest))
		}
	}
	if t.Optim.ClipNorm > 0 {
		if err := s.shareNorms(ctx, t, at, squares); err != nil {
			return err
		}
	}
	t.step.SetLearnt(s.rows)
	return nil
}

// messages returns the gradients of the rows that this worker has read, for their owners: table by
// table, in the order in which the rows came.
func (s *learntSums) messages(t *trainer, d *sample.Dealt) [][]byte {
	if s.send == nil {
		s.send = make([][]byte, t.Hooks.Group.Size())
	}
	for q := range s.send {
		s.send[q] = s.send[q][:0]
	}
	for _, l := range t.tiers.Learnt {
		grad := t.step.LearntGradient(l.Type)
		if grad.Buf == nil { // no row was read
			continue
		}
		host := t.step.Feed.Download(grad)
		for q, places := range d.Take[l.Type] {
			for _, place := range places {
				for _, x := range host[int(place)*l.Dim:][:l.Dim] {
					s.send[q] = binary.LittleEndian.AppendUint32(s.send[q], math.Float32bits(x))
				}
			}
		}
	}
	return s.send
}

// add sets s.host to the gradients of l's own rows, from the first part of each message in came,
// which it takes off.
func (s *learntSums) add(t *trainer, d *sample.Dealt, l tiers.Learnt, came [][]byte) error {
	n := len(d.Rows[l.Type]) * l.Dim
	s.sums = slices.Grow(s.sums[:0], n)[:n]
	clear(s.sums)
	for q, places := range d.Send[l.Type] {
		if bytes := 4 * len(places) * l.Dim; len(came[q]) < bytes {
			return fmt.Errorf("%s sends %d bytes of gradients; %d were expected", t.Hooks.Group.Name(q), len(came[q]), bytes)
		}
		for _, place := range places {
			for c := range l.Dim {
				x := math.Float32frombits(binary.LittleEndian.Uint32(came[q][4*c:]))
				s.sums[int(place)*l.Dim+c] += float64(x)
			}
			came[q] = came[q][4*l.Dim:]
		}
	}
	s.host = s.host[:0]
	for _, x := range s.sums {
		s.host = append(s.host, float32(x))
	}
	return nil
}

// shareNorms sets the norms of s.rows: the norm of a table's gradients at each worker. squares has
// the squares of the norms here, by table.
func (s *learntSums) shareNorms(ctx context.Context, t *trainer, at dist.At, squares []float64) error {
	all, err := gatherOf(t.Hooks.Group, squares, func(own []byte) ([][]byte, error) {
		return t.Hooks.Group.Gather(ctx, at, own)
	})
	if err != nil {
		return err
	}
	for k := range s.rows {
		norms := make([]float32, len(all))
		for q, squares := range all {
			norms[q] = float32(math.Sqrt(squares[k]))
		}
		if len(s.norm) == k {
			s.norm = append(s.norm, kernels.NewTensor(t.Backend, kernels.F32, len(all), 1))
		}
		t.Backend.UploadF32(s.norm[k], norms)
		s.rows[k].Norms = s.norm[k]
	}
	return nil
}

// close frees the gradients.
func (s *learntSums) close(be kernels.Backend) {
	for k := range s.bufs {
		kernels.FreeBuffers(be, &s.bufs[k])
	}
	kernels.FreeTensors(be, s.norm...)
	s.bufs, s.norm = nil, nil
}
