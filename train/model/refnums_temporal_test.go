package model

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/tape"
)

// recordedStream is the output of tools/refnums/temporal.py: a batch of a stream, and PyTorch's
// results on it.
type recordedStream struct {
	Hidden     int            `json:"hidden"`
	Time       int            `json:"time"`
	Heads      int            `json:"heads"`
	Mails      int            `json:"mails"`
	LR         float32        `json:"lr"`
	Memory     []float32      `json:"memory"`
	Mail       []float32      `json:"mail"`
	Features   []float32      `json:"features"`
	Events     []float32      `json:"events"`
	MemoryTime []float64      `json:"memory_time"`
	MailTime   [][]float64    `json:"mail_time"`
	Rows       [][2]float64   `json:"rows"`
	Roots      []uint32       `json:"roots"`
	There      [][2]uint32    `json:"there"`
	Others     [][2]uint32    `json:"others"`
	Near       [][][3]float64 `json:"near"` // by root: row, event, time since
	Cases      []struct {
		Model      Kind                      `json:"model"`
		Event      int                       `json:"event"`
		Node       int                       `json:"node"`
		FixedTime  bool                      `json:"fixed_time"`
		TimeScale  float64                   `json:"time_scale"`
		Stateless  bool                      `json:"stateless"`
		Weights    map[string]recordedTensor `json:"weights"`
		Memories   []float64                 `json:"memories"`
		Embeddings []float64                 `json:"embeddings"`
		Scores     []float64                 `json:"scores"`
		Gradients  map[string]recordedTensor `json:"gradients"`
		Losses     []float64                 `json:"losses"`
	} `json:"cases"`
}

// moments is the batch on a backend, with so many columns of features and times in other units.
func (r *recordedStream) moments(be kernels.Backend, c TemporalConfig, s TemporalShape, scale float64) *Moments {
	nodes, all := len(r.MemoryTime), hostMoments{}
	all.memory = r.Memory
	width := len(r.Mail) / nodes / r.Mails
	for v := range nodes {
		for j := range c.Mails {
			all.mail = append(all.mail, r.Mail[(v*r.Mails+j)*width:][:c.Mail(s)]...)
		}
		all.features = append(all.features, r.Features[v*len(r.Features)/nodes:][:s.Node]...)
	}
	for at := 0; at < len(r.Events); at += width - 2*r.Hidden {
		all.events = append(all.events, r.Events[at:][:s.Event]...)
	}
	for _, row := range r.Rows {
		v, at := int(row[0]), row[1]
		m := hostRow{node: uint32(v), age: scale * (at - r.MemoryTime[v])}
		for _, mail := range r.MailTime[v][:c.Mails] {
			m.mailAges = append(m.mailAges, scale*(at-mail))
		}
		all.rows = append(all.rows, m)
	}
	for i, row := range r.Roots {
		v, at := int(r.Rows[row][0]), r.Rows[row][1]
		root := hostRoot{row: row, away: scale * (at - r.MemoryTime[v]) / (scale*at + 1)}
		for _, n := range r.Near[i] {
			root.near = append(root.near, hostNear{row: uint32(n[0]), event: uint32(n[1]), since: scale * n[2]})
		}
		all.roots = append(all.roots, root)
	}
	return all.upload(be, c, s)
}

// TestPyTorchAgreesOnStreams compares memories, embeddings, scores, the gradient of every parameter
// and ten losses of Adam, on every kernel set.
func TestPyTorchAgreesOnStreams(t *testing.T) {
	text, err := os.ReadFile("testdata/refnums/temporal.json")
	require.NoError(t, err)
	var r recordedStream
	require.NoError(t, json.Unmarshal(text, &r))
	everyBackend(t, func(t *testing.T, be kernels.Backend, within tolerance) {
		for i, c := range r.Cases {
			t.Run(fmt.Sprintf("%s/%d", c.Model, i), func(t *testing.T) {
				config := TemporalConfig{Kind: c.Model, Hidden: r.Hidden, Time: r.Time, Heads: r.Heads, Mails: 1, FixedTime: c.FixedTime, Stateless: c.Stateless}
				if c.Model == APAN {
					config.Mails = r.Mails
				}
				s := TemporalShape{Event: c.Event, Node: c.Node}
				m, tp := NewTemporal(be, config, s, 1), tape.New(be)
				defer m.Close()
				defer tp.Close()
				require.Len(t, c.Weights, len(m.Params))
				for _, p := range m.Params {
					w, ok := c.Weights[p.Name]
					require.True(t, ok, "TGL has no parameter %s", p.Name)
					require.Equal(t, w.Shape, p.Shape, p.Name)
					be.UploadF32(p.Value, rounded(w.Data))
				}
				in := r.moments(be, config, s, c.TimeScale)
				pairs := func(all [][2]uint32) (src, dst kernels.Tensor) {
					var ends [2][]uint32
					for _, p := range all {
						ends[0], ends[1] = append(ends[0], p[0]), append(ends[1], p[1])
					}
					return u32(be, ends[0]), u32(be, ends[1])
				}
				var memory, z, there, others *tape.Var
				step := func() (loss float64) {
					tp.Reset(true)
					memory = m.Update(tp, in, 0)
					z = m.Embed(tp, in, memory, 0)
					src, dst := pairs(r.There)
					there = m.Score(tp, z, src, dst)
					src, dst = pairs(r.Others)
					others = m.Score(tp, z, src, dst)
					a, b := tp.LinkLoss(there, others)
					tp.Backward()
					for _, rows := range []kernels.Tensor{a, b} {
						for _, l := range wide(be, rows) {
							loss += l / float64(rows.Rows)
						}
					}
					return loss
				}
				step()
				if c.Stateless {
					require.Nil(t, memory)
				} else {
					requireClose(t, "memories", c.Memories, wide(be, memory.Value), within.step)
				}
				requireClose(t, "embeddings", c.Embeddings, wide(be, z.Value), within.step)
				requireClose(t, "scores", c.Scores, append(wide(be, there.Value), wide(be, others.Value)...), within.step)
				var want, got []float64
				for _, p := range m.Params {
					want, got = append(want, c.Gradients[p.Name].Data...), append(got, wide(be, p.Grad)...)
					be.Fill(p.Grad, 0)
				}
				requireClose(t, "gradients", want, got, within.step)

				adam := kernels.AdamStep{LR: r.LR, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}
				moments := make([][2]kernels.Tensor, len(m.Params))
				for i, p := range m.Params {
					for j := range moments[i] {
						moments[i][j] = f32(be, make([]float32, p.Value.Len()), p.Value.Rows, p.Value.Cols)
					}
				}
				var losses []float64
				for n := range c.Losses {
					losses = append(losses, step())
					adam.Correct1 = float32(1 - math.Pow(float64(adam.Beta1), float64(n+1)))
					adam.Correct2 = float32(1 - math.Pow(float64(adam.Beta2), float64(n+1)))
					for i, p := range m.Params {
						of := kernels.AdamParam{Value: p.Value, Grad: p.Grad, M: moments[i][0], V: moments[i][1]}
						be.Adam([]kernels.AdamParam{of}, 1, adam, kernels.Guard{})
					}
				}
				requireClose(t, "losses", c.Losses, losses, within.losses)
			})
		}
	})
}
