package sample

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
)

// appendDrawn appends what was drawn. The first byte is the width of a count, 1 or 4. Then come the
// counts of neighbours, by destination. Then come all neighbours, all weights, all values and all
// rows, as far as there are some. Last is the number of edges left out, by seed.
func (b *Block) appendDrawn(text []byte, weighs bool) []byte {
	most := uint32(0)
	for i := range b.Start {
		most = max(most, b.End[i]-b.Start[i])
	}
	if most <= math.MaxUint8 {
		text = append(text, 1)
		for i := range b.Start {
			text = append(text, byte(b.End[i]-b.Start[i]))
		}
	} else {
		text = append(text, 4)
		for i := range b.Start {
			text = appendNumber(text, int(b.End[i]-b.Start[i]))
		}
	}
	for i := range b.Start {
		text = appendNumbers(text, b.drawn(i))
	}
	for i := range b.Start {
		if weighs {
			text = appendFloats(text, b.values(i))
		}
	}
	for i := range b.Start {
		text = appendFloats(text, b.Values[int(b.Start[i])*b.columns:int(b.End[i])*b.columns])
	}
	for i := range b.Start {
		if len(b.Rows) > 0 {
			text = appendNumbers(text, b.Rows[b.Start[i]:b.End[i]])
		}
	}
	return appendNumbers(appendNumber(text, len(b.lost)), b.lost)
}

// drawnPart has what one worker drew for some destinations of a block: see appendDrawn.
type drawnPart struct {
	lists, width                             int // destinations, bytes of a count
	counts, nbr, weights, values, rows, lost message
}

// read reads the part from m. What m lacks stays empty.
func (part *drawnPart) read(j *job, m *message, weighs bool) {
	part.width = m.number(1)
	part.counts = m.part(part.lists * part.width)
	drawn, each := 0, part.counts
	for range part.lists {
		drawn += each.number(part.width)
	}
	part.nbr = m.part(4 * drawn)
	if weighs {
		part.weights = m.part(4 * drawn)
	}
	part.values = m.part(4 * drawn * j.columns)
	if j.rows != nil {
		part.rows = m.part(4 * drawn)
	}
	part.lost = m.part(4 * m.number(4))
}

// appendWithout appends the edges that batch i is drawn without. For each relation into one of
// types the text has a count n, n places and n sources. A place is the place of the destination
// among the nodes that the owner is asked for.
func (s *Sampler) appendWithout(p *Parts, texts [][][]byte, batches []*Batch, i int, types []bool) {
	for r, ends := range s.schema.Relations {
		if !types[ends.Dst] {
			continue
		}
		asked := make([]uint32, p.Workers)
		places, sources := make([][]uint32, p.Workers), make([][]uint32, p.Workers)
		for n, v := range batches[i].Seeds[ends.Dst] { // the first destinations
			q := p.Owner(ends.Dst, v)
			for _, u := range batches[i].Without[r].Of(n) {
				places[q], sources[q] = append(places[q], asked[q]), append(sources[q], u)
			}
			asked[q]++
		}
		for q := range texts {
			texts[q][i] = appendNumbers(appendNumbers(appendNumber(texts[q][i], len(places[q])), places[q]), sources[q])
		}
	}
}

// readWithout reads what appendWithout has appended.
func (s *Sampler) readWithout(r *request, m *message, types []bool) {
	r.without = make([]Without, len(s.schema.Relations))
	for k, ends := range s.schema.Relations {
		if !types[ends.Dst] {
			continue
		}
		n, seeds := m.number(4), 0
		places, sources := m.part(4*n), m.part(4*n)
		if m.short || n == 0 {
			continue
		}
		pairs := make([]uint64, n)
		for i := range pairs {
			place := places.number(4)
			seeds = max(seeds, place+1)
			pairs[i] = uint64(place)<<32 | uint64(sources.number(4))
		}
		if seeds > len(r.nodes[ends.Dst]) {
			m.short = true
			return
		}
		r.without[k].Fill(seeds, pairs)
	}
}

// texts returns room for a text to each worker for each of so many batches.
func (p *Parts) texts(batches int) [][][]byte {
	texts := make([][][]byte, p.Workers)
	for q := range texts {
		texts[q] = make([][]byte, batches)
	}
	return texts
}

// exchange sends the texts for each worker, and returns the texts that come, by worker and batch.
// They are lent until the next exchange. A message has the length of each text, and then the texts.
func (p *Parts) exchange(ctx context.Context, texts [][][]byte) ([][]message, error) {
	send := make([][]byte, p.Workers)
	for q, all := range texts {
		n := 0
		for _, text := range all {
			n += 4 + len(text)
		}
		send[q] = make([]byte, 0, n)
		for _, text := range all {
			send[q] = appendNumber(send[q], len(text))
		}
		for _, text := range all {
			send[q] = append(send[q], text...)
		}
	}
	recv, err := p.Exchange(ctx, send)
	if err != nil {
		return nil, err
	}
	came := make([][]message, p.Workers)
	for q := range came {
		m := message{text: recv[q]}
		lengths := m.part(4 * len(texts[q]))
		for range texts[q] {
			came[q] = append(came[q], m.part(lengths.number(4)))
		}
		if err := m.end(q); err != nil {
			return nil, err
		}
	}
	return came, nil
}

// message is a text from another worker, read from its start to its end. If it is too short, what
// is missing reads as 0, and short is set.
type message struct {
	text  []byte
	short bool
}

// end returns an error unless the message of worker q was read to its end.
func (m *message) end(q int) error {
	if m.short || len(m.text) > 0 {
		return fmt.Errorf("a message of worker %d has the wrong length; start all workers with one build of gnnstore", q)
	}
	return nil
}

// part reads the next n bytes.
func (m *message) part(n int) message {
	if n > len(m.text) {
		m.text, m.short = nil, true
		return message{}
	}
	part := message{text: m.text[:n]}
	m.text = m.text[n:]
	return part
}

// number reads a number of 1 byte or 4.
func (m *message) number(width int) int {
	part := m.part(width)
	switch {
	case len(part.text) == 0:
		return 0
	case width == 1:
		return int(part.text[0])
	}
	return int(binary.LittleEndian.Uint32(part.text))
}

// numbers and floats fill dst.
func (m *message) numbers(dst []uint32) {
	part := m.part(4 * len(dst))
	for i := range min(len(dst), len(part.text)/4) {
		dst[i] = binary.LittleEndian.Uint32(part.text[4*i:])
	}
}

func (m *message) floats(dst []float32) {
	part := m.part(4 * len(dst))
	for i := range min(len(dst), len(part.text)/4) {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(part.text[4*i:]))
	}
}

func appendNumber(text []byte, n int) []byte {
	return binary.LittleEndian.AppendUint32(text, uint32(n))
}

func appendNumbers(text []byte, numbers []uint32) []byte {
	for _, x := range numbers {
		text = binary.LittleEndian.AppendUint32(text, x)
	}
	return text
}

func appendFloats(text []byte, numbers []float32) []byte {
	for _, x := range numbers {
		text = binary.LittleEndian.AppendUint32(text, math.Float32bits(x))
	}
	return text
}
