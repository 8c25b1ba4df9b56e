package ingest

import (
	"context"
	"slices"
)

// ChunkRows is the most rows in a [Chunker]'s chunk: the ids of this many edges take ChunkBytes.
const ChunkRows = ChunkBytes / 16

// Chunker cuts the rows of a section into chunks as [Source] wants them, for formats whose rows
// come one by one. For each row call In with its file, Line if it has one, append the row to Chunk,
// and call Added.
// Call Flush after the last row. The Chunker sets First. A chunk is lent to emit. One goroutine
// uses a Chunker.
type Chunker[C any, P chunk[C]] struct {
	Chunk C
	rows  int // of Chunk
	ctx   context.Context
	emit  func(C) error
}

// chunk is a pointer to one of the chunks of a Source.
type chunk[C any] interface {
	*C
	place() *Place
	full(rows int) bool // with ChunkRows rows it is full in any case
	reset()             // empties it and keeps its memory
}

// Chunks returns a Chunker for a section that is given this emit.
func Chunks[C any, P chunk[C]](ctx context.Context, emit func(C) error) *Chunker[C, P] {
	return &Chunker[C, P]{ctx: ctx, emit: emit}
}

// In names the file of the next row. A chunk ends with its file.
func (k *Chunker[C, P]) In(file string) error {
	p := P(&k.Chunk).place()
	if file == p.File {
		return nil
	}
	err := k.Flush()
	p.File = file
	return err
}

// Line notes that the next row is on a line of its file, from 1.
func (k *Chunker[C, P]) Line(line int64) { P(&k.Chunk).place().Lines.Add(k.rows, line) }

// Added counts a row that was appended to the chunk, and emits a full chunk.
func (k *Chunker[C, P]) Added() error {
	if k.rows++; k.rows < ChunkRows && !P(&k.Chunk).full(k.rows) {
		return nil
	}
	return k.Flush()
}

// Flush emits the rows that are left.
func (k *Chunker[C, P]) Flush() error {
	if err := k.ctx.Err(); err != nil || k.rows == 0 {
		return err
	}
	err := k.emit(k.Chunk)
	c := P(&k.Chunk)
	p := c.place()
	p.First += int64(k.rows)
	p.Lines.runs = p.Lines.runs[:0]
	c.reset()
	k.rows = 0
	return err
}

// End ends a section. It returns err if that is not nil, and else emits the rows that are left.
func (k *Chunker[C, P]) End(err error) error {
	if err != nil {
		return err
	}
	return k.Flush()
}

// Parts cuts a section that is one list into chunks, and calls emit with a copy of each.
func Parts[T any](ctx context.Context, file string, all []T, emit func(place Place, part []T) error) error {
	place := Place{File: file}
	for part := range slices.Chunk(all, ChunkRows) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := emit(place, slices.Clone(part)); err != nil {
			return err
		}
		place.First += int64(len(part))
	}
	return nil
}

func (p *Place) place() *Place { return p }

func (c *EdgeChunk) full(int) bool {
	return len(c.SrcTexts.Bytes)+len(c.DstTexts.Bytes) >= ChunkBytes
}

func (c *EdgeChunk) reset() {
	c.Src, c.Dst, c.Parts = c.Src[:0], c.Dst[:0], c.Parts[:0]
	c.SrcTexts.Reset()
	c.DstTexts.Reset()
	for i := range c.Values {
		c.Values[i] = c.Values[i][:0]
	}
}

func (c *RowChunk) full(rows int) bool { return 4*(len(c.Values)+len(c.Values)/rows) > ChunkBytes }
func (c *RowChunk) reset()             { c.Values = c.Values[:0] }

func (c *LabelChunk) full(rows int) bool { return 4*(len(c.Values)+len(c.Values)/rows) > ChunkBytes }
func (c *LabelChunk) reset()             { c.Values = c.Values[:0] }

func (c *IDChunk) full(int) bool { return len(c.Texts.Bytes) >= ChunkBytes }

func (c *IDChunk) reset() {
	c.IDs = c.IDs[:0]
	c.Texts.Reset()
}

func (c *NegativeChunk) full(int) bool { return len(c.Nodes) >= ChunkRows }

func (c *NegativeChunk) reset() {
	c.Src, c.Dst, c.Times, c.Ends, c.Nodes = c.Src[:0], c.Dst[:0], c.Times[:0], c.Ends[:0], c.Nodes[:0]
}
