package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/trace"
)

// ladder lists the draws that are compared, from plain ones on: each has one thing more, and the
// last two are two ways to share them.
func (c *comparison) ladder() (all []rung) {
	config := sample.Config{Fanouts: c.fanouts, LayerDependency: c.layerDependency}
	labor, drifting := config, config
	labor.Kind, drifting.Kind, drifting.Smoothed = sample.Labor0, sample.Labor0, c.kappa != 1
	shared := "labor0, κ = " + sample.KappaText(c.kappa)
	return []rung{
		{name: "ns", draws: draws{config, 1}, read: true},
		{name: "labor0", draws: draws{labor, 1}},
		{name: shared + " nested", draws: draws{labor, c.kappa}, read: true},
		{name: shared + " smoothed", draws: draws{drifting, c.kappa}},
	}
}

// rung is draws by their name. Of some of them rows are really read.
type rung struct {
	name string
	draws
	read bool
}

// dependentVariants lists what holds the rows: the baselines first, which all are compared with. A
// prefix of all bytes has no slab, so rows that wait for their step have no place; by windows its
// like is the static policy.
func dependentVariants(windows bool) []variant {
	static := variant{name: "static prefix", Options: cachetier.Options{Policy: cachetier.Static}, prefix: 100}
	ahead := []int{16, 64}
	if windows {
		static.name, static.prefix, ahead = "static", 0, []int{1, 4}
	}
	all := []variant{{name: "lru", Options: cachetier.Options{Policy: cachetier.LRU}}, static}
	for _, n := range ahead {
		all = append(all, variant{name: fmt.Sprintf("belady, %d ahead", n), Options: cachetier.Options{Lookahead: n}})
	}
	for i := range all {
		all[i].windows = windows
	}
	return all
}

// fillSteps is the number of steps that fill the cache before the steps that are read for real,
// step by step.
const fillSteps = 64

// compareDependent has the policies plan the same steps under each rung of the ladder, with the
// same bytes, and prints what they would read, step by step and by windows; then some of them read
// for real. See comparePolicies.
func compareDependent(ctx context.Context, c *comparison) error {
	f, g := c.ds.Features(0), c.ds.Graph(0)
	bytes := int64(float64(tableBytes(f)) * c.cache.Share)
	fmt.Fprintf(c.out, "%s: %d nodes, mean degree %.1f, %d training nodes; rows of %d bytes, %d MiB. Batch %d, fanout %s%s; a cache of %v of the feature bytes.\n",
		c.base(), g.Nodes(), float64(g.Edges())/float64(g.Nodes()), len(c.ds.Split(0).Train), f.RowBytes(), tableBytes(f)>>20,
		c.batch, setting.FormatInts(c.fanouts), map[bool]string{true: ", the same draws at every layer"}[c.layerDependency], c.cache)
	fmt.Fprintf(c.out, "The device: %s. Steps %d to %d, those before fill the slab.\n", c.device, c.steps/2+1, c.steps)
	variants := slices.Concat(dependentVariants(false), dependentVariants(true))
	var tables [2][]standing // step by step, and by windows
	var checked []string
	for _, r := range c.ladder() {
		steps, err := drawTrace(ctx, c.ds, r.draws, c.batch, c.steps)
		if err != nil {
			return err
		}
		options, standings := make([]cachetier.Options, len(variants)), make([]standing, len(variants))
		g, planning := errgroup.WithContext(ctx)
		g.SetLimit(c.threads)
		for i, v := range variants {
			o := v.within(bytes, c.device, c.engine)
			options[i] = o
			g.Go(func() error {
				if err := planning.Err(); err != nil {
					return err
				}
				forecast, err := planned(planning, f, o, steps, v.windows)
				standings[i] = standing{r.name, v.name, meanRows(steps[len(steps)/2:]), forecast}
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		half := len(variants) / 2
		tables[0], tables[1] = append(tables[0], standings[:half]...), append(tables[1], standings[half:]...)
		for i, v := range variants {
			if !r.read || !slices.Contains([]string{"lru", "belady, 64 ahead", "belady, 1 ahead"}, v.name) {
				continue
			}
			before := 2
			if !v.windows {
				before = fillSteps
			}
			line, err := reallyRead(ctx, f, options[i], steps, standings[i].window, before)
			if err != nil {
				return err
			}
			checked = append(checked, fmt.Sprintf("| %s | %s | %d | %s |", r.name, v.name, standings[i].window, line))
		}
	}
	for i, t := range tables {
		fmt.Fprintf(c.out, "\n%s. ÷ is by how much cold rows, and in brackets device ms, are fewer than with LRU and with the prefix under NS, and with the prefix under the same draws:\n\n",
			[]string{"Windows of one step", "Windows that fill the slab; the prefix is the static policy, with a slab"}[i])
		printStandings(c, t)
	}
	rows, best := tables[0][0], tables[1][0]
	for _, s := range tables[1] {
		if s.cost.Steps > 0 && s.ms() < best.ms() {
			best = s
		}
	}
	fmt.Fprintf(c.out, "\nFrom NS and LRU, step by step, to %s and %s, by windows, device time ÷ %.1f.\n", best.draws, best.policy, rows.ms()/best.ms())
	fmt.Fprintf(c.out, "\nSome read for real, past the page cache, once their first %d steps, or two windows, have filled the slab:\n\n", fillSteps)
	tableHead(c.out, "| draws | policy | steps a window | steps | reads a step | MB a step | MB wanted | device ms a step | by the model | real / model |")
	fmt.Fprintf(c.out, "%s\n\n", strings.Join(checked, "\n"))
	return nil
}

// standing has the reads of a policy under some draws.
type standing struct {
	draws, policy string
	wanted        float64 // rows a step
	forecast
}

func (s standing) rows() float64 { return float64(s.cost.Rows) / float64(s.cost.Steps) }
func (s standing) ms() float64   { return 1e3 * s.cost.Seconds / float64(s.cost.Steps) }

// printStandings prints the standings of one kind of windows. The first two are the baselines.
func printStandings(c *comparison, all []standing) {
	tableHead(c.out, "| draws | rows a step | policy | steps a window | cold rows | device ms | ÷ NS + LRU | ÷ NS + prefix | ÷ own prefix |")
	per := len(all) / len(c.ladder())
	for i, s := range all {
		draws, wanted := "", ""
		if i%per == 0 {
			draws, wanted = s.draws, fmt.Sprintf("%.0f", s.wanted)
		}
		fmt.Fprintf(c.out, "| %s | %s | %s | %d |", draws, wanted, s.policy, s.window)
		if s.cost.Steps == 0 { // the trace is too short to say
			fmt.Fprintln(c.out, " | | | | |")
			continue
		}
		fmt.Fprintf(c.out, " %.0f | %.1f | %s | %s | %s |\n", s.rows(), s.ms(), s.gain(all[0]), s.gain(all[1]), s.gain(all[i-i%per+1]))
	}
}

// gain returns t's rows divided by s's, and in brackets the same of device time.
func (s standing) gain(t standing) string {
	if t.cost.Steps == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f)", t.rows()/s.rows(), t.ms()/s.ms())
}

// parseDraws reads the flags of dependent that are texts.
func (c *comparison) parseDraws(fanout, kappa, cache string) (err error) {
	c.fanouts, err = setting.ParseInts(fanout)
	if err != nil || len(c.fanouts) == 0 || slices.ContainsFunc(c.fanouts, func(k int) bool { return k < 1 && k != sample.All }) {
		return fmt.Errorf("-fanout %s: neighbours at each hop, such as 15,10,5", fanout)
	}
	if c.kappa, err = sample.ParseKappa(kappa); err != nil {
		return fmt.Errorf("-kappa: %w", err)
	}
	if c.cache, err = trace.ParseCapacity(cache); err != nil || !(c.cache.Share > 0 && c.cache.Share <= 1) {
		return fmt.Errorf("-cache %s: a share of the feature bytes, such as 20%%", cache)
	}
	return nil
}
