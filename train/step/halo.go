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

// cooperating is the state of a step of a Cooperation. Its memory serves the steps that follow.
type cooperating struct {
	*Cooperation
	feed   *Feed
	halos  [][]tape.Halo // by layer and type
	lists  [][]uint32    // of halos
	at     []uint32      // of tape.Halo.At, all behind each other
	send   [][]byte
	unread [][]byte  // of the messages that came, by worker
	bits   []uint16  // of rows in float16
	rows   []float32 // from float16
	err    error     // of the first exchange that failed; after it nothing is exchanged
}

// cooperate returns model.Pass.Exchange for a step of in, or nil if this worker computes in alone.
// It uploads the lists of rows.
func (s *Stepper) cooperate(in Input) (exchange func(l int, x model.Rows, cols []int) model.Rows) {
	c := &s.others
	c.Cooperation, c.feed, c.err = in.Cooperation, s.Feed, nil
	if in.Cooperation == nil {
		return nil
	}
	c.upload(in)
	return func(l int, x model.Rows, cols []int) model.Rows {
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
	c.send = resize(c.send, len(of[0]))
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
				if err := c.appendRows(q, b[:n], half); err != nil {
					return err
				}
				b = b[n:]
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
	c.unread = append(c.unread[:0], came...)
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
				if len(c.unread[q]) < sent {
					return fmt.Errorf("worker %d sends %d bytes of hidden rows; more were expected", q, len(came[q]))
				}
				c.copyRows(dst[:n], c.unread[q][:sent], half)
				c.unread[q], dst = c.unread[q][sent:], dst[n:]
			}
			return nil
		})
		if c.err != nil {
			return
		}
	}
	for q := range c.unread {
		if len(c.unread[q]) > 0 {
			c.err = fmt.Errorf("worker %d sends %d bytes of hidden rows too many", q, len(c.unread[q]))
		}
	}
}

// appendRows appends rows to the message to worker q, as they are or in float16.
func (c *cooperating) appendRows(q int, rows []byte, half bool) error {
	if !half {
		c.send[q] = append(c.send[q], rows...)
		return nil
	}
	c.rows, c.bits = resize(c.rows, len(rows)/4), resize(c.bits, len(rows)/4)
	for i := range c.rows {
		c.rows[i] = math.Float32frombits(binary.LittleEndian.Uint32(rows[4*i:]))
	}
	if n := kernels.Float32ToHalf(c.bits, c.rows); n > 0 {
		return fmt.Errorf("{halo_dtype} f16: %d numbers of hidden rows are beyond its range; take f32", n)
	}
	for _, bits := range c.bits {
		c.send[q] = binary.LittleEndian.AppendUint16(c.send[q], bits)
	}
	return nil
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

// upload uploads the lists of in's halos. They are valid as long as the lists of Blocks.
func (c *cooperating) upload(in Input) {
	places := 0
	for l := 1; l < len(in.Halos); l++ {
		for t := range in.Halos[l].Own {
			places += in.sources(l, t)
		}
	}
	c.at, c.lists = resize(c.at, places), c.lists[:0]
	at := c.at
	for l := 1; l < len(in.Halos); l++ {
		h := &in.Halos[l]
		for t, own := range h.Own {
			places := at[:in.sources(l, t)]
			at = at[len(places):]
			for row, place := range own {
				places[place] = uint32(row)
			}
			n := 0
			for _, take := range h.Take[t] {
				for _, place := range take {
					places[place] = kernels.InSlot | uint32(n)
					n++
				}
			}
			c.lists = append(append(append(c.lists, own), h.Send[t]...), h.Take[t]...)
			c.lists = append(c.lists, places)
		}
	}
	n := total(c.lists)
	buf := c.feed.room(haloInts, kernels.U32, n)
	c.feed.staging.JoinU32(kernels.Tensor{Buf: buf, Type: kernels.U32, Rows: n, Cols: 1}, c.lists...)
	n = 0
	next := func(rows int) kernels.Tensor {
		n += rows
		return kernels.Tensor{Buf: buf, Type: kernels.U32, Off: n - rows, Rows: rows, Cols: 1}
	}
	c.halos = resize(c.halos, len(in.Halos))
	for l := 1; l < len(c.halos); l++ {
		h := &in.Halos[l]
		c.halos[l] = c.halos[l][:0]
		for t, own := range h.Own {
			c.halos[l] = append(c.halos[l], tape.Halo{
				Own: next(len(own)), Send: next(total(h.Send[t])), Take: next(total(h.Take[t])),
				At: next(in.sources(l, t)),
			})
		}
	}
}

// sources returns the number of nodes of type t whose rows layer l reads; behind the last layer it
// is the number of seeds.
func (in *Input) sources(l, t int) int {
	if l < len(in.Layers) {
		return len(in.Layers[l].Nodes[t].Src)
	}
	return len(in.Seeds[t])
}
