package eventset

import (
	"context"
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/ingest"
)

// idxColumn is the column of TGN's files that has the number of an event's row of features, from 1.
const idxColumn = "idx"

const noEvent = math.MaxUint32

// findRows reads which row of features each event names. If events name the rows in their order,
// which is usual, it keeps nothing.
func (s *Source) findRows(ctx context.Context, m *matrix) error {
	m.event = nil
	events := int64(0)
	wrong := func(line int64, format string, args ...any) error {
		return fmt.Errorf("%s: line %d: %w", s.list, line, fmt.Errorf(format, args...))
	}
	there, err := s.EventNumbers(ctx, idxColumn, func(line, idx int64) error {
		row := idx - m.skip
		if m.event == nil && row == events && row < m.rows {
			events++
			return nil
		}
		switch {
		case m.event != nil:
		case s.memory > 0 && 4*m.rows > s.memory/4:
			return wrong(line, "idx %d, and %d follows: events name the rows of features in an order of their own, and %d places take more than a quarter of "+
				"{memory}; raise it, or sort table and rows", idx, events+m.skip, m.rows)
		default:
			m.event = make([]uint32, m.rows)
			for i := range m.event {
				m.event[i] = noEvent
				if int64(i) < events {
					m.event[i] = uint32(i)
				}
			}
		}
		switch {
		case row < 0 || row >= m.rows:
			return wrong(line, "idx %d names no row of %s: those of events are %d to %d; are they of one data set?", idx, m.path, m.skip, m.skip+m.rows-1)
		case m.event[row] != noEvent:
			return wrong(line, "idx %d is that of event %d (counting from 0) as well; each event has a row of %s of its own", idx, m.event[row], m.path)
		}
		m.event[row] = uint32(events)
		events++
		return nil
	})
	if err == nil && there && m.event != nil && events != m.rows {
		err = fmt.Errorf("%s: %d events, and %s has %d rows of events; is the table complete?", s.list, events, m.path, m.rows)
	}
	return err
}

// gatherBytes bounds the rows in memory while they are put into the order of events. Options.Memory
// may lower it.
const gatherBytes = 256 << 20

// eachByEvent streams rows in the order of events. It reads the file once for each window of events
// whose rows fit in memory.
func (m *matrix) eachByEvent(ctx context.Context, emit func(ingest.RowChunk) error) error {
	room := int64(gatherBytes)
	if m.memory > 0 {
		room = min(room, m.memory/4)
	}
	width := int64(m.dim)
	window := min(max(room/4/width, 1), m.rows)
	rows := make([]float32, window*width)
	most := max(ingest.ChunkBytes/4/width, 1)
	for first := int64(0); first < m.rows; first += window {
		n := min(window, m.rows-first)
		err := m.eachRow(ctx, func(c ingest.RowChunk) error {
			for i := range int64(len(c.Values)) / width {
				if at := int64(m.event[c.First+i]) - first; at >= 0 && at < n {
					copy(rows[at*width:], c.Values[i*width:(i+1)*width])
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for done := int64(0); done < n; done += most {
			if err := ctx.Err(); err != nil {
				return err
			}
			k := min(most, n-done)
			chunk := ingest.RowChunk{Place: ingest.Place{File: m.path, First: first + done}, Values: rows[done*width : (done+k)*width]}
			if err := emit(chunk); err != nil {
				return err
			}
		}
	}
	return nil
}
