package cachetier

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/cachetier/policy"
)

// The format of Resident starts with a magic number and the number of rows of the table in 8 bytes.
// Varints follow: how many rows are absent, present, absent, present, … to the end of the table.
// Each but the first is at least 1. At the end is the XXH3 of all that, in 8 bytes. Numbers are
// little-endian.
const residentMagic = "gnnrows1"

// ErrResident is in the chain of Restore's error if the input is not a set of rows of this table.
var ErrResident = errors.New("no list of this table's resident rows")

// Resident writes which rows are in the cache, in a byte or two for each, so that a later run can
// go on with a warm cache.
func (s *Stack) Resident(w io.Writer) error {
	s.alive("Resident")
	h := xxh3.New()
	b := bufio.NewWriter(io.MultiWriter(h, w)) // h first: a vfs.File may change the bytes that it has written
	b.WriteString(residentMagic)               // errors stay until Flush
	var buf [binary.MaxVarintLen64]byte
	binary.LittleEndian.PutUint64(buf[:8], uint64(s.rows))
	b.Write(buf[:8])
	at, start := 0, 0 // end of the runs written; start of the current run of present rows
	run := func(start, end int) {
		b.Write(binary.AppendUvarint(buf[:0], uint64(start-at)))
		b.Write(binary.AppendUvarint(buf[:0], uint64(end-start)))
		at = end
	}
	if s.cache != nil {
		start = s.hot
		end := start
		for i, word := range s.cache.Now().Rows() {
			for ; word != 0; word &= word - 1 {
				v := s.hot + i<<6 + bits.TrailingZeros64(word)
				if v != end {
					if end > start {
						run(start, end)
					}
					start = v
				}
				end = v + 1
			}
		}
		if end > start {
			run(start, end)
		}
	}
	if rest := s.rows - at; rest > 0 {
		b.Write(binary.AppendUvarint(buf[:0], uint64(rest)))
	}
	err := b.Flush()
	if err == nil {
		_, err = w.Write(binary.LittleEndian.AppendUint64(nil, h.Sum64()))
	}
	if err != nil {
		return fmt.Errorf("cachetier: write the resident rows: %w", err)
	}
	return nil
}

// Restore fills the cache with the rows that Resident wrote, or with the lowest of them if the
// cache has become smaller. Its reads of the table are counted in Stats.Warmup. Under None it only
// checks the input. An ErrResident leaves the cache as it was; an error of reading the table leaves
// it empty.
func (s *Stack) Restore(ctx context.Context, r io.Reader) error {
	s.alive("Restore")
	keep := s.cache != nil
	var rows *set
	if keep {
		rows = s.newSet()
		defer s.drop(rows)
	}
	err := readResident(r, s.rows, func(from, to int) {
		for v := max(from, s.hot); keep && v < to; v++ {
			rows.Add(uint32(v - s.hot))
		}
	})
	if err != nil {
		return fmt.Errorf("cachetier: %w: %w", ErrResident, err)
	}
	if !keep || s.layout.cache.Kind == policy.None {
		return nil
	}
	if err := s.fill(ctx, rows.Set); err != nil {
		return fmt.Errorf("cachetier: %w", err)
	}
	return nil
}

// hashed reads bytes and hashes them.
type hashed struct {
	r *bufio.Reader
	h *xxh3.Hasher
}

func (b hashed) ReadByte() (byte, error) {
	c, err := b.r.ReadByte()
	if err == nil {
		b.h.Write([]byte{c})
	}
	return c, err
}

// readResident calls present with each run [from, to) of resident rows of a table of n rows.
func readResident(r io.Reader, n int, present func(from, to int)) error {
	b := hashed{bufio.NewReader(r), xxh3.New()}
	var head [len(residentMagic) + 8]byte
	if _, err := io.ReadFull(b.r, head[:]); err != nil {
		return fmt.Errorf("its head: %w", unexpected(err))
	}
	b.h.Write(head[:])
	if string(head[:len(residentMagic)]) != residentMagic {
		return fmt.Errorf("it starts with %q, not with %q", head[:len(residentMagic)], residentMagic)
	}
	if of := binary.LittleEndian.Uint64(head[len(residentMagic):]); of != uint64(n) {
		return fmt.Errorf("it is of a table of %d rows, and this one has %d", of, n)
	}
	for at, i := 0, 0; at < n; i++ {
		run, err := binary.ReadUvarint(b)
		switch {
		case err != nil:
			return fmt.Errorf("the run from row %d on: %w", at, unexpected(err))
		case run > uint64(n-at) || run == 0 && i > 0:
			return fmt.Errorf("a run of %d rows from row %d on, in a table of %d", run, at, n)
		}
		if i%2 == 1 {
			present(at, at+int(run))
		}
		at += int(run)
	}
	want := b.h.Sum64()
	var sum [8]byte
	if _, err := io.ReadFull(b.r, sum[:]); err != nil {
		return fmt.Errorf("its checksum: %w", unexpected(err))
	}
	if got := binary.LittleEndian.Uint64(sum[:]); got != want {
		return fmt.Errorf("its checksum is %016x, and its bytes give %016x", got, want)
	}
	if _, err := b.r.ReadByte(); err == nil {
		return errors.New("more follows its end")
	} else if err != io.EOF {
		return err
	}
	return nil
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
