package pipeline_test

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

var dataset = flag.String("dataset", "", "sealed `dataset` for BenchmarkGroupCold and -Resident, instead of one that they make")

// benchGraph is a graph of 5 M nodes and 72 M edges, where low ids are neighbours more often, as in
// a dataset that is numbered by access.
func benchGraph(b *testing.B) string {
	if *dataset != "" {
		return *dataset
	}
	const nodes, degree = 5_000_000, 14
	path := filepath.Join(b.TempDir(), "cold.gnn")
	w, err := store.Create(path, store.WriterOptions{})
	require.NoError(b, err)
	original := make([]int64, nodes)
	for v := range original {
		original[v] = int64(v)
	}
	require.NoError(b, w.AddNodeType("node", original))
	g, err := w.AddRelation("node", "to", "node", false)
	require.NoError(b, err)
	var list []uint32
	for v := range nodes {
		list = list[:0]
		for e := range degree/2 + int(sample.Hash(1, uint64(v))%(degree+1)) {
			x := float64(sample.Hash(2, uint64(v), uint64(e))>>11) / (1 << 53)
			list = append(list, uint32(nodes*x*x))
		}
		slices.Sort(list)
		require.NoError(b, g.Append(list))
	}
	require.NoError(b, g.Close())
	_, err = w.Seal(store.Manifest{Name: "cold", Order: "original", Provenance: store.Provenance{Tool: "test"}})
	require.NoError(b, err)
	return path
}

// BenchmarkGroupCold draws 64 batches of a hundred seeds, the share of the graph that a thousand
// are of papers100M's, in groups of so many, with no list resident, from a file that is not in the
// page cache when a group begins.
func BenchmarkGroupCold(b *testing.B) {
	path := benchGraph(b)
	d, err := store.Open(path)
	require.NoError(b, err)
	defer d.Close()
	const seeds, steps = 100, 64
	g := d.Graph(0)
	_, file := g.Sections()
	for _, size := range []int{1, 8, steps} {
		b.Run(fmt.Sprintf("group=%d", size), func(b *testing.B) {
			tier, err := topology.Open(b.Context(), g, topology.Options{Bytes: topology.LeastBytes(g), Options: disk.Options{Kind: disk.Pread}})
			require.NoError(b, err)
			defer tier.Close()
			group := sample.NewSampler(tier, sample.Config{Fanouts: []int{15, 10, 5}}, 2)
			var batches []*sample.Batch
			z, ids := make([]sample.BatchSeed, size), make([][][]uint32, size)
			for i := range size {
				batches, ids[i] = append(batches, new(sample.Batch)), [][]uint32{make([]uint32, seeds)}
			}
			for b.Loop() {
				for lo := 0; lo < steps; lo += size {
					b.StopTimer()
					fd := int(file.File.Fd())
					require.NoError(b, unix.Fdatasync(fd))
					require.NoError(b, unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED))
					for i := range size {
						z[i] = sample.BatchSeed{First: uint64(lo + i)}
						for j := range ids[i][0] {
							ids[i][0][j] = uint32((uint64(lo+i)*seeds + uint64(j)) * 2_654_435_761 % uint64(g.Nodes()))
						}
					}
					b.StartTimer()
					require.NoError(b, group.Sample(context.Background(), batches, z, ids))
				}
			}
			st, n := tier.Stats(), float64(b.N)
			b.ReportMetric(float64(st.Misses)/b.Elapsed().Seconds(), "lists/s")
			b.ReportMetric(float64(st.Cold.Rows)/b.Elapsed().Seconds(), "distinct-lists/s")
			b.ReportMetric(1e3*st.Cold.Seconds/n/steps, "read-ms/step")
			b.ReportMetric(float64(st.Cold.Reads)/n/steps, "reads/step")
			b.ReportMetric(float64(st.Cold.BytesRead)/n/steps/1e6, "MB/step")
			b.ReportMetric(st.Cold.Amplification, "amplification")
		})
	}
}

// BenchmarkGroupResident draws batches of a thousand seeds on one core: one by one from the map of
// a dataset that the page cache holds, and in groups of eight from a tier that holds all of it.
func BenchmarkGroupResident(b *testing.B) {
	d, err := store.Open(benchGraph(b))
	require.NoError(b, err)
	defer d.Close()
	const seeds, size = 1000, 8
	g, fanouts := d.Graph(0), []int{15, 10, 5}
	tier, err := topology.Open(b.Context(), g, topology.Options{Bytes: 1 << 40})
	require.NoError(b, err)
	defer tier.Close()
	group, sampler := sample.NewSampler(tier, sample.Config{Fanouts: fanouts}, 1), sample.NewSampler(sample.AtHand(g), sample.Config{Fanouts: fanouts}, 1)
	var batches []*sample.Batch
	z, ids := make([]sample.BatchSeed, size), make([][][]uint32, size)
	for i := range size {
		batches, ids[i] = append(batches, new(sample.Batch)), [][]uint32{make([]uint32, seeds)}
	}
	for _, c := range []struct {
		name string
		draw func() error
	}{
		{"group/tier", func() error { return group.Sample(context.Background(), batches, z, ids) }},
		{"one/map", func() error {
			return store.Guard(func() error {
				for i := range batches {
					if err := sampler.SampleOne(context.Background(), batches[i], z[i], ids[i]...); err != nil {
						return err
					}
				}
				return nil
			})
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			edges := 0
			for step := 0; b.Loop(); step++ {
				for i := range size {
					z[i] = sample.BatchSeed{First: uint64(step*size + i)}
					for j := range ids[i][0] {
						ids[i][0][j] = uint32((z[i].First*seeds + uint64(j)) * 2_654_435_761 % uint64(g.Nodes()))
					}
				}
				require.NoError(b, c.draw())
				for _, batch := range batches {
					for l := range batch.Layers {
						edges += len(batch.Layers[l].Blocks[0].Nbr)
					}
				}
			}
			b.ReportMetric(float64(edges)/b.Elapsed().Seconds()/1e6, "Medges/s")
		})
	}
}
