package pipeline_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/train/sample"
)

// room keeps records in memory.
type room struct{ runs int }

func (r *room) NewRun() sample.Run {
	r.runs++
	return new(roomRun)
}

type roomRun struct {
	sync.Mutex
	records [][]byte
}

func (r *roomRun) Append(record []byte) error {
	r.Lock()
	defer r.Unlock()
	r.records = append(r.records, slices.Clone(record))
	return nil
}

func (r *roomRun) Each(_ context.Context, do func(records []byte) error) error {
	for _, record := range r.records {
		if err := do(record); err != nil {
			return err
		}
	}
	r.records = nil
	return nil
}

// TestHorizonOverTiers: a horizon gives the same batches as groups. If its pairs fit in memory, it
// reads as much as one group of all steps.
func TestHorizonOverTiers(t *testing.T) {
	const nodes, n = 2000, 12
	g, _ := hubs(t, nodes)
	seeds := func(step int) (ids []uint32) {
		for i := range 30 {
			ids = append(ids, uint32((i*61+step*17)%nodes))
		}
		return append(ids, nodes-1)
	}
	least, all := topology.LeastBytes(g), topology.AllBytes(g)
	for _, c := range []sample.Config{
		{Fanouts: []int{6, 4, 3}}, {Fanouts: []int{40, 3}, Options: sample.Options{SelfLoops: true, GCN: true}},
		{Kind: sample.Labor0, Smoothed: true, Fanouts: []int{8, 4}}, {Kind: sample.Labor0, Poisson: true, Fanouts: []int{8, 4}},
	} {
		for _, bytes := range []int64{least, all / 2, all} {
			open := func() *topology.Tier {
				tier, err := topology.Open(t.Context(), g, topology.Options{Bytes: bytes, Options: disk.Options{Kind: disk.Pread}})
				require.NoError(t, err)
				return tier
			}
			tier := open()
			want, err := drawGroup(tier, c, 2, n, n, seeds)
			require.NoError(t, err)
			reads := tier.Stats()
			tier.Close()
			for _, memory := range []int64{1 << 30, 1 << 20, 50_000} {
				tier, spill := open(), new(room)
				s := sample.NewSampler(tier, c, 2)
				s.Bytes = memory
				require.NoError(t, s.SampleFar(t.Context(), spill, n, func(i int) (sample.BatchSeed, [][]uint32, []sample.Without) {
					return sample.BatchSeed{First: uint64(i)}, [][]uint32{seeds(i)}, nil
				}, func(i int, b *sample.Batch) error {
					var again sample.Batch
					if _, err := s.Unpack(&again, s.Pack(nil, b)); err != nil {
						return err
					}
					if !equal(want[i], &again) {
						return fmt.Errorf("batch %d differs", i)
					}
					return nil
				}))
				got := tier.Stats()
				tier.Close()
				require.Equal(t, []int64{reads.Hits, reads.Misses, reads.Cold.Rows}, []int64{got.Hits, got.Misses, got.Cold.Rows}, "each list once a hop")
				if memory == 1<<30 {
					require.Zero(t, spill.runs)
					reads.Cold.Seconds, got.Cold.Seconds = 0, 0
					reads.Warmup.Seconds, got.Warmup.Seconds = 0, 0
					require.Equal(t, reads, got)
				}
				if memory == 50_000 {
					require.Positive(t, spill.runs)
				}
			}
		}
	}
}
