package step

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// Cooperation connects a step with the workers that compute the other nodes of its batch.
type Cooperation struct {
	Halos []sample.Halo // sample.Batch.Halos
	// Swap sends send[q] to worker q, and returns the bytes that come from each worker. They are
	// lent until the next call. Nil: nothing is exchanged, and rows of other workers have no
	// meaning, as in a rehearsal.
	Swap func(send [][]byte) ([][]byte, error)
	// Half has rows be sent in float16. Their gradients are sent in float32.
	Half bool
}

// cooperating is the state of one step of a Cooperation.
type cooperating struct {
	*Cooperation
	feed  *Feed
	halos [][]tape.Halo // by layer and type
	send  [][]byte
	bits  []uint16  // of rows in float16
	rows  []float32 // from float16
	err   error     // of the first exchange that failed; after it nothing is exchanged
}

// cooperate returns model.Pass.Exchange for a step of in, or nil if this worker computes in alone.
// It uploads the lists of rows.
func (s *Stepper) cooperate(in Input) (c *cooperating, exchange func(l int, x model.Rows, cols []int) model.Rows) {
	if in.Cooperation == nil {
		return nil, nil
	}
	c = &cooperating{Cooperation: in.Cooperation, feed: s.Feed, halos: s.Feed.haloLists(in)}
	return c, func(l int, x model.Rows, cols []int) model.Rows {
		h := &c.Halos[l]
		forth := true
		return s.Tape.Exchange(x, c.halos[l], cols, func(send, come []kernels.Tensor) {
			if forth {
				c.swap(send, h.Send, come, h.Take, c.Half)
			} else {
				c.swap(send, h.Take, come, h.Send, false)
			}
			forth = false
		})
	}
}

// swap sends the matrices in send, and fills those in come; each has one by type. of and from list
// the rows that go to each worker and come from it, by type and worker; swap uses their numbers.
// half has rows be sent in float16.
func (c *cooperating) swap(
	send []kernels.Tensor, of [][][]uint32, come []kernels.Tensor, from [][][]uint32, half bool,
) {
	if c.Swap == nil || c.err != nil {
		return
	}
	workers := len(of[0])
	if len(c.send) != workers {
		c.send = make([][]byte, workers)
	}
	for q := range c.send {
		c.send[q] = c.send[q][:0]
	}
	for t, x := range send {
		if x.Len() == 0 {
			continue
		}
		c.err = c.feed.Read(x, func(b []byte) error {
			for q, rows := range of[t] {
				n := 4 * x.Cols * len(rows)
				c.send[q], b = c.appendRows(c.send[q], b[:n], half), b[n:]
			}
			return nil
		})
		if c.err != nil {
			return
		}
	}
	came, err := c.Swap(c.send)
	if c.err = err; err != nil {
		return
	}
	rest := append([][]byte(nil), came...)
	for t, x := range come {
		if x.Len() == 0 {
			continue
		}
		c.err = c.feed.staging.Fill(x, func(dst []byte) error {
			for q, rows := range from[t] {
				n := 4 * x.Cols * len(rows)
				sent := n
				if half {
					sent /= 2
				}
				if len(rest[q]) < sent {
					return fmt.Errorf("worker %d sends %d bytes of hidden rows; more were expected", q, len(came[q]))
				}
				c.copyRows(dst[:n], rest[q][:sent], half)
				rest[q], dst = rest[q][sent:], dst[n:]
			}
			return nil
		})
		if c.err != nil {
			return
		}
	}
	for q := range rest {
		if len(rest[q]) > 0 {
			c.err = fmt.Errorf("worker %d sends %d bytes of hidden rows too many", q, len(rest[q]))
		}
	}
}

// appendRows appends rows to text, as they are or in float16.
func (c *cooperating) appendRows(text, rows []byte, half bool) []byte {
	if !half {
		return append(text, rows...)
	}
	c.rows, c.bits = resize(c.rows, len(rows)/4), resize(c.bits, len(rows)/4)
	for i := range c.rows {
		c.rows[i] = math.Float32frombits(binary.LittleEndian.Uint32(rows[4*i:]))
	}
	kernels.Float32ToHalf(c.bits, c.rows)
	for _, bits := range c.bits {
		text = binary.LittleEndian.AppendUint16(text, bits)
	}
	return text
}

// copyRows fills dst with the rows that appendRows appended.
func (c *cooperating) copyRows(dst, text []byte, half bool) {
	if !half {
		copy(dst, text)
		return
	}
	c.rows, c.bits = resize(c.rows, len(dst)/4), resize(c.bits, len(dst)/4)
	for i := range c.bits {
		c.bits[i] = binary.LittleEndian.Uint16(text[2*i:])
	}
	kernels.HalfToFloat32(c.rows, c.bits)
	for i, x := range c.rows {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
	}
}

// failed returns the error of the exchanges so far; c may be nil.
func (c *cooperating) failed() error {
	if c == nil {
		return nil
	}
	return c.err
}

// haloLists uploads the lists of in's halos, by layer and type. They are valid as long as the lists
// of Blocks.
func (f *Feed) haloLists(in Input) [][]tape.Halo {
	var lists [][]uint32
	for l := 1; l < len(in.Halos); l++ {
		h := &in.Halos[l]
		for t := range h.Own {
			sources := in.Seeds[t]
			if l < len(in.Layers) {
				sources = in.Layers[l].Nodes[t].Src
			}
			at := make([]uint32, len(sources))
			var send, take []uint32
			for row, place := range h.Own[t] {
				at[place] = uint32(row)
			}
			for q := range h.Send[t] {
				send = append(send, h.Send[t][q]...)
				for _, place := range h.Take[t][q] {
					at[place] = kernels.InSlot | uint32(len(take))
					take = append(take, place)
				}
			}
			lists = append(lists, h.Own[t], send, take, at)
		}
	}
	n := total(lists)
	buf := f.room(haloInts, kernels.U32, n)
	f.staging.JoinU32(kernels.Tensor{Buf: buf, Type: kernels.U32, Rows: n, Cols: 1}, lists...)
	n = 0
	next := func() kernels.Tensor {
		t := kernels.Tensor{Buf: buf, Type: kernels.U32, Off: n, Rows: len(lists[0]), Cols: 1}
		n, lists = n+len(lists[0]), lists[1:]
		return t
	}
	all := make([][]tape.Halo, len(in.Halos))
	for l := 1; l < len(all); l++ {
		for range in.Halos[l].Own {
			all[l] = append(all[l], tape.Halo{Own: next(), Send: next(), Take: next(), At: next()})
		}
	}
	return all
}
