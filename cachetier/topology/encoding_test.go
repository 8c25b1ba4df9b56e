package topology_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
)

var dataset = flag.String("dataset", "", "sealed `dataset` of which BenchmarkEncoding measures the topology")

// block holds some lists, one after another, in one encoding.
type block struct {
	bytes   []byte
	degrees []int
}

// asDeltas packs lists as differences of neighbours, seven bits a byte.
func asDeltas(lists [][]uint32) (b block) {
	for _, list := range lists {
		last := uint32(0)
		for _, u := range list {
			b.bytes = binary.AppendUvarint(b.bytes, uint64(u-last))
			last = u
		}
		b.degrees = append(b.degrees, len(list))
	}
	return b
}

func asTheyAre(lists [][]uint32) (b block) {
	for _, list := range lists {
		for _, u := range list {
			b.bytes = binary.LittleEndian.AppendUint32(b.bytes, u)
		}
		b.degrees = append(b.degrees, len(list))
	}
	return b
}

func (b *block) undoDeltas(out []uint32) []uint32 {
	rest := b.bytes
	for _, degree := range b.degrees {
		last := uint32(0)
		for range degree {
			if x := rest[0]; x < 0x80 { // the common case, without a call
				last += uint32(x)
				rest = rest[1:]
			} else {
				x, n := binary.Uvarint(rest)
				last += uint32(x)
				rest = rest[n:]
			}
			out = append(out, last)
		}
	}
	return out
}

func (b *block) undoNothing(out []uint32) []uint32 {
	ids, _ := store.NodeIDs(b.bytes)
	return append(out, ids...)
}

// BenchmarkEncoding measures the figures on packed lists in the package comment: the bits of an
// edge, and the edges that one core unpacks in a second. Lists are packed as they are or as
// differences, each with and without zstd, 16 K edges or more at a time. It measures the first and
// the last 2^22 edges: the hottest lists and the coldest.
func BenchmarkEncoding(b *testing.B) {
	if *dataset == "" {
		b.Skip("no -dataset")
	}
	d, err := store.Open(*dataset)
	require.NoError(b, err)
	defer d.Close()
	g := d.Graph(0)
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	require.NoError(b, err)
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	require.NoError(b, err)
	defer decoder.Close()
	const blockEdges, edges = 1 << 14, 1 << 22

	for _, region := range []string{"first", "last"} {
		at := func(i int) []uint32 {
			if region == "last" {
				i = g.Nodes() - 1 - i
			}
			return g.Neighbors(uint32(i))
		}
		var groups [][][]uint32
		n, total := blockEdges, 0
		for i := 0; i < g.Nodes() && total < edges; i++ {
			if n >= blockEdges {
				groups, n = append(groups, nil), 0
			}
			last := &groups[len(groups)-1]
			*last = append(*last, at(i))
			n, total = n+len(at(i)), total+len(at(i))
		}
		for _, c := range []struct {
			name string
			pack func(lists [][]uint32) block
			undo func(b *block, out []uint32) []uint32
			zstd bool
		}{
			{"plain", asTheyAre, (*block).undoNothing, false}, {"delta", asDeltas, (*block).undoDeltas, false},
			{"plain+zstd", asTheyAre, (*block).undoNothing, true}, {"delta+zstd", asDeltas, (*block).undoDeltas, true},
		} {
			b.Run(fmt.Sprintf("lists=%s/as=%s", region, c.name), func(b *testing.B) {
				blocks, bytes := make([]block, len(groups)), 0
				for i, lists := range groups {
					blocks[i] = c.pack(lists)
					if c.zstd {
						blocks[i].bytes = encoder.EncodeAll(blocks[i].bytes, nil)
					}
					bytes += len(blocks[i].bytes)
				}
				var raw []byte
				var out []uint32
				unpack := func(i int) {
					packed := blocks[i]
					if c.zstd {
						var err error
						if raw, err = decoder.DecodeAll(packed.bytes, raw[:0]); err != nil {
							b.Fatal(err)
						}
						packed.bytes = raw
					}
					out = c.undo(&packed, out[:0])
				}
				for i, lists := range groups {
					unpack(i)
					require.True(b, slices.Equal(slices.Concat(lists...), out))
				}
				for b.Loop() {
					for i := range blocks {
						unpack(i)
					}
				}
				b.ReportMetric(8*float64(bytes)/float64(total), "bits/edge")
				b.ReportMetric(float64(total)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Medges/s")
			})
		}
	}
}
