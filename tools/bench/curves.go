package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/trace"
)

// What curves draws, on every graph.
const (
	curveFanout = "10,10,10"
	curveCaches = "5%,20%"
	mostSeeds   = 1024 // of a batch of a trace, and of LABOR-* on a dense graph, where it takes seconds for as many
	leastEpoch  = 80   // batches, where the graph has so many seeds: with few an epoch, κ batches in a row are whole epochs
	mostRows    = 0.2  // of the nodes, that a batch may want, so that the larger cache holds more than one
	leastSteps  = 64   // of a trace
	spans       = 3    // times κ that a trace is long: as caches fill within one and a half, one period is left at least
	dense       = 100  // mean degree
)

// The paper's cache for Reddit, and for a graph of as many nodes: 60,000 of its rows.
const (
	redditNodes = 232_965
	redditCache = ",60000"
)

var curveKappas = []int{1, 4, 16, 64, 256, sample.Forever}

// curveGraphs are the graphs that there are without -dataset: a command and what comes before the
// dataset's path, and after it. The generated ones have the parameters that generate gives them,
// but for their sizes.
var curveGraphs = []struct {
	name          string
	before, after []string
	raw           string // path in -data that stands between them
}{
	{"reddit-like", []string{"generate", "reddit"}, []string{"--dim", "32", "--memory", "2GiB"}, ""},
	{"arxiv", []string{"ingest", "ogb"}, []string{"--features", "degree", "--undirected"}, "ogbn_arxiv"},
	{"cnr2000", []string{"ingest", "npz"}, []string{"--features", "degree"}, "cnr2000/cnr-2000-csr.npz"},
	{"coauthor-cs", []string{"ingest", "npz"}, nil, "coauthor_cs/ms_academic_cs.npz"},
	{"slashdot", []string{"ingest", "csv"}, []string{"--features", "degree"}, "soc_slashdot0902/soc-Slashdot0902.txt.gz"},
	{"papers-like", []string{"generate", "papers100m"}, []string{"--nodes", "1M", "--edges", "29M", "--dim", "32", "--memory", "2GiB"}, ""},
}

// drawCurves prints, for each graph, how the rows of a batch grow with its seeds under each
// sampler, and how often caches miss as κ grows, by what gnnstore trace reports.
func drawCurves(ctx context.Context, c *comparison) error {
	if c.dataset != "" {
		for path := range strings.SplitSeq(c.dataset, ",") {
			if err := c.curvesOf(ctx, path); err != nil {
				return err
			}
		}
		return nil
	}
	for _, g := range curveGraphs {
		path, args := filepath.Join(c.tmp, g.name+".gnn"), g.before
		if g.raw != "" {
			args = append(slices.Clip(args), filepath.Join(c.data, filepath.FromSlash(g.raw)))
		}
		if err := c.binary.Run(ctx, slices.Concat(args, []string{path}, g.after)...); err != nil {
			return err
		}
		if err := c.curvesOf(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

func (c *comparison) curvesOf(ctx context.Context, path string) error {
	ds, err := store.Open(path)
	if err != nil {
		return err
	}
	nodes, edges, seeds := ds.Graph(0).Nodes(), ds.Graph(0).Edges(), len(ds.Split(0).Train)
	ds.Close() //nolint:errcheck // it was only read
	began := time.Now()
	degree := float64(edges) / float64(nodes)
	fmt.Fprintf(c.out, "%s: %d nodes, mean degree %.1f, %d seeds; fanout %s. Rows of a batch by its seeds, ± half of the 95 %% interval of the mean:\n\n",
		filepath.Base(path), nodes, degree, seeds, curveFanout)
	sizes := growthSizes(seeds)
	var growth []trace.Growth
	for _, kind := range sample.Kinds {
		few := sizes
		if kind == sample.LaborStar && degree >= dense {
			few = slices.DeleteFunc(slices.Clone(sizes), func(n int) bool { return n > mostSeeds })
		}
		r, err := c.trace(ctx, path, "--samplers", string(kind), "--batches", setting.FormatInts(few), "--kappa", "1", "--steps", "1")
		if err != nil {
			return err
		}
		growth = append(growth, r.Growth...)
	}
	printGrowth(c.out, sizes, growth)
	batch := traceBatch(growth, seeds, nodes)
	caches := curveCaches
	if nodes == redditNodes {
		caches += redditCache
	}
	var sharing []sharedTraces
	for _, s := range []sharedTraces{{kind: sample.NS, dependent: "nested"}, {kind: sample.Labor0, dependent: "nested"}, {kind: sample.Labor0, dependent: "smoothed"}} {
		for k, kappa := range curveKappas {
			if s.dependent == "smoothed" && (kappa == 1 || kappa == sample.Forever) { // nothing drifts
				s.traces = append(s.traces, sharing[len(sharing)-1].traces[k])
				continue
			}
			r, err := c.trace(ctx, path, "--samplers", string(s.kind), "--batches", "1", "--dependent", s.dependent, "--kappa", sample.KappaText(kappa),
				"--batch", strconv.Itoa(batch), "--steps", strconv.Itoa(traceSteps(kappa)), "--cache", caches, "--policies", "lru,belady")
			if err != nil {
				return err
			}
			s.caches = r.Caches
			s.traces = append(s.traces, r.Traces[0])
		}
		sharing = append(sharing, s)
	}
	fmt.Fprintf(c.out, "\nMisses in %% of the requests, batches of %d, once caches have filled. ÷ is from κ = 1 to κ = 256 of the same row:\n\n", batch)
	printMisses(c.out, sharing)
	fmt.Fprintf(c.out, "\nTook %.0f s.\n\n", time.Since(began).Seconds())
	return nil
}

// trace runs gnnstore trace.
func (c *comparison) trace(ctx context.Context, path string, args ...string) (r *trace.Report, err error) {
	args = append([]string{"trace", path, "--json", "--fanout", curveFanout, "--workers", strconv.Itoa(c.threads), "--tmp", c.tmp}, args...)
	return r, c.binary.JSON(ctx, &r, args...)
}

// traceBatch is the largest batch that has an epoch of many and fits the larger cache with LABOR-0,
// of those that growth was measured for; at least the smallest of them.
func traceBatch(growth []trace.Growth, seeds, nodes int) (batch int) {
	for _, g := range growth {
		fits := g.Batch <= mostSeeds && seeds/g.Batch >= leastEpoch && g.Hops[len(g.Hops)-1].Mean <= mostRows*float64(nodes)
		if g.Sampler == sample.Labor0 && (fits || batch == 0) {
			batch = g.Batch
		}
	}
	return batch
}

// traceSteps is the batches of a trace: half of them may go into filling caches, and what is left
// is to be whole periods of κ. Without periods it is enough that most rows that are ever wanted
// were.
func traceSteps(kappa int) int {
	if kappa == sample.Forever {
		return 2 * leastSteps
	}
	return max(leastSteps, spans*kappa)
}

// growthSizes are powers of 4 from 64 on, as far as there are seeds.
func growthSizes(seeds int) (sizes []int) {
	for n := min(64, seeds); n <= min(16384, seeds); n *= 4 {
		sizes = append(sizes, n)
	}
	return sizes
}

// printGrowth prints a line for each sampler.
func printGrowth(w io.Writer, sizes []int, growth []trace.Growth) {
	columns := "| sampler |"
	for _, n := range sizes {
		columns += fmt.Sprintf(" %d |", n)
	}
	tableHead(w, columns)
	for _, kind := range sample.Kinds {
		fmt.Fprintf(w, "| %s |", kind)
		for _, n := range sizes {
			cell := " "
			for _, g := range growth {
				if last := len(g.Hops) - 1; g.Sampler == kind && g.Batch == n {
					cell = fmt.Sprintf(" %.0f ± %.0f ", g.Hops[last].Mean, g.Hops[last].CI95)
				}
			}
			fmt.Fprintf(w, "%s|", cell)
		}
		fmt.Fprintln(w)
	}
}

// sharedTraces are the traces of one sampler under one way to share draws, by curveKappas.
type sharedTraces struct {
	kind      sample.Kind
	dependent string
	caches    []trace.Size
	traces    []trace.Trace
}

// printMisses prints a line for each way to draw, policy and cache.
func printMisses(w io.Writer, all []sharedTraces) {
	columns := "| draws | rows a batch | policy | cache |"
	for _, kappa := range curveKappas {
		columns += fmt.Sprintf(" κ = %s |", sample.KappaText(kappa))
	}
	tableHead(w, columns+" ÷ |")
	for _, s := range all {
		for i, cache := range s.traces[0].Caches {
			fmt.Fprintf(w, "| %s, %s | %.0f | %s | %s |", s.kind, s.dependent, s.traces[0].Batches.Mean, cache.Policy, s.caches[i%len(s.caches)].Asked)
			misses := map[int]float64{}
			for k, t := range s.traces {
				misses[t.Kappa] = 1 - t.Caches[i].HitRate
				fmt.Fprintf(w, " %.2f |", 100*misses[curveKappas[k]])
			}
			fmt.Fprintf(w, " %.2f |\n", misses[1]/misses[256])
		}
	}
}
