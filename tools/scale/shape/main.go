// Shape prints what an epoch over parts of a very large graph takes by the cost model of --parallel
// auto. It needs no dataset, and measures nothing.
//
//	go run ./tools/scale/shape [-nodes 1e9] [-degree 20] [-machines 16] [-row 256] [-seeds 16000]
//	    [-share 0.01] [-fanout 15,10,5] [-hidden 256] [-network 10Gbit,25Gbit]
//
// Degrees follow a power law of exponent 2.5, as in train/plan: P(more than x) = (x₀/x)^1.5 from
// x₀, a third of the mean. A node with fewer neighbours than the fanout draws all of them. By this
// 1,000 seeds on papers100M's shape (mean 14.4, fanout 15,10,5) reach 0.43 million nodes; a trace
// has 0.38.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
)

// shape is a graph, its batches and the machines that have its parts.
type shape struct {
	nodes, degree, share float64 // share of the nodes to train on
	machines, row, seeds int     // row: bytes; seeds: of a step, of all machines
	hidden               int
	fanouts              []int
}

func main() {
	var s shape
	flag.Float64Var(&s.nodes, "nodes", 1e9, "nodes of the graph")
	flag.Float64Var(&s.degree, "degree", 20, "mean degree")
	flag.IntVar(&s.machines, "machines", 16, "machines, with a part and a worker each")
	flag.IntVar(&s.row, "row", 256, "bytes of a feature row")
	flag.IntVar(&s.seeds, "seeds", 16000, "seeds of a step, of all machines")
	flag.Float64Var(&s.share, "share", 0.01, "share of the nodes to train on")
	flag.IntVar(&s.hidden, "hidden", 256, "width of the hidden layers of GraphSAGE")
	fanout := flag.String("fanout", "15,10,5", "neighbours drawn at each hop")
	networks := flag.String("network", "10Gbit,25Gbit", "what the network of a machine carries")
	flag.Parse()
	err := s.parse(*fanout)
	if err == nil {
		err = s.print(os.Stdout, strings.Split(*networks, ","))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "shape:", err)
		os.Exit(1)
	}
}

// parse sets the fanouts, and refuses sizes that make no sense.
func (s *shape) parse(fanout string) error {
	for text := range strings.SplitSeq(fanout, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("-fanout %s: numbers of neighbours, at least 1, such as 15,10,5", fanout)
		}
		s.fanouts = append(s.fanouts, n)
	}
	positive := s.row > 0 && s.hidden > 0 && s.nodes > 0 && s.degree > 0 && s.share > 0
	if !positive || s.machines < 2 || s.seeds < s.machines {
		return errors.New("all sizes are above 0, and there are two machines or more, with a seed each")
	}
	return nil
}

// drawn returns the mean number of neighbours that a node draws.
func (s *shape) drawn(fanout int) float64 {
	least, k := s.degree/3, float64(fanout)
	if k <= least {
		return k
	}
	return least + 2*least*(1-math.Sqrt(least/k))
}

// step returns what a machine does in a step.
func (s *shape) step() (w plan.WorkerStep, edges float64) {
	frontier := float64(s.seeds) / float64(s.machines)
	inputs, lists := frontier, 0.0
	for _, k := range s.fanouts {
		lists += inputs
		frontier *= s.drawn(k)
		edges += frontier
		inputs += frontier // among so many nodes few are drawn twice
	}
	others := float64(s.machines-1) / float64(s.machines)
	w.InputRows = inputs
	w.Sent = plan.Traffic{
		IDs: 4 * others * (lists + inputs), Lists: others * (lists + 4*edges), Rows: others * inputs * float64(s.row),
		Gradients: plan.GradientTraffic(s.weights(), s.machines).Gradients,
	}
	w.Received = w.Sent
	return w, edges
}

// weights returns the number of weights of a GraphSAGE network with as many layers as fanouts, on
// rows of float16, for 100 classes.
func (s *shape) weights() int64 {
	n, in := int64(0), s.row/2
	for layer := range s.fanouts {
		out := s.hidden
		if layer == len(s.fanouts)-1 {
			out = 100
		}
		n += int64(2*in+1) * int64(out)
		in = out
	}
	return n
}

// print prints the sizes, and an epoch by each network.
func (s *shape) print(w io.Writer, networks []string) error {
	step, edges := s.step()
	steps := math.Ceil(s.nodes * s.share / float64(s.seeds))
	m, rows, lists := float64(s.machines), s.nodes*float64(s.row)/1e9, 4*s.nodes*s.degree/1e9
	fmt.Fprintf(w, "%.3g nodes of degree %g on %d machines: %.1f GB of rows and %.1f of lists each, and %.1f and %.1f in all\n",
		s.nodes, s.degree, s.machines, rows/m, lists/m, rows, lists)
	fmt.Fprintf(w, "an epoch over %.3g %% of the nodes: %.0f steps of %d seeds, fanout %s\n", 100*s.share, steps, s.seeds,
		strings.Trim(strings.ReplaceAll(fmt.Sprint(s.fanouts), " ", ","), "[]"))
	sent := step.Sent
	fmt.Fprintf(w, "a machine in a step: %.0f thousand rows and %.0f thousand edges; it sends %.1f MB: ",
		step.InputRows/1e3, edges/1e3, sent.Total()/1e6)
	fmt.Fprintf(w, "rows %.1f, lists %.1f, ids %.1f, gradients %.1f\n",
		sent.Rows/1e6, sent.Lists/1e6, sent.IDs/1e6, sent.Gradients/1e6)
	for _, network := range networks {
		link, err := plan.ParseLink(network)
		if err != nil {
			return fmt.Errorf("-network %w", err)
		}
		spread := plan.Spread{
			Link: link, Machine: 1, Cores: 1, Drawers: 1,
			Exchanges: plan.Exchanges{Drawing: 2*float64(len(s.fanouts)) + 2, Rows: 1, Steps: 2},
		}
		for range s.machines {
			spread.Workers = append(spread.Workers, step)
		}
		seconds := 0.0 // of the network: how fast the machines are is not known
		for _, stage := range spread.Estimate(run.ByParts).Stages {
			if stage.Name != plan.Processors {
				seconds = max(seconds, stage.Seconds)
			}
		}
		fmt.Fprintf(w, "%s: %.3f s a step, %.0f s an epoch over parts, if a machine computes %.1f million edges a second or more\n",
			network, seconds, seconds*steps, edges/seconds/1e6)
	}
	return nil
}
