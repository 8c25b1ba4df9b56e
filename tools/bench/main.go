// Bench holds gnnstore's speed against the obvious alternatives, measured in the same run, in
// turns: A, B, A, B, so that whatever else the machine does falls on both. It prints Markdown for
// tools/results.
//
//	go run ./tools/bench kernels [-python PATH] [-rounds 7]
//	go run ./tools/bench step    -python PATH [-data DIR | -dataset FILE.gnn] [-rounds 7] [-batches 20]
//	go run ./tools/bench stream  -python PATH -dataset STREAM.gnn [-rounds 7] [-batches 20]
//	go run ./tools/bench newest  -python PATH -dataset STREAM.gnn [-rounds 7]
//	go run ./tools/bench epoch   -python PATH [-loader pyg | graphbolt | dgl] [-data DIR | -dataset FILE.gnn] [-rounds 7]
//	go run ./tools/bench samplers   -python PATH [-data DIR | -dataset FILE.gnn] [-rounds 7] [-batches 20]
//	go run ./tools/bench curves     [-data DIR | -dataset FILE.gnn,FILE.gnn]
//	go run ./tools/bench policies   [-data DIR | -dataset FILE.gnn] [-batch 100] [-steps 400]
//	go run ./tools/bench dependent  -dataset FILE.gnn [-batch 100] [-steps 1024] [-fanout 15,10,5] [-kappa 256] [-cache 20%] [-layer-dependency]
//	go run ./tools/bench windows    -dataset FILE.gnn [-memory 1GiB] [-batch 100] [-steps 512]
//	go run ./tools/bench reuse      -dataset FILE.gnn [-batch 100] [-steps 400] [-fanout 15,10,5] [-cache 20%]
//	go run ./tools/bench epoch-disk -dataset FILE.gnn [-batch 100] [-steps 240] [-rounds 7]
//	go run ./tools/bench link       -dataset FILE.gnn [-memory 2GiB] [-batch 100] [-steps 100] [-negatives 50] [-rounds 7] [-json]
//	go run ./tools/bench infer      -dataset FILE.gnn [-python PATH] [-memory 4GiB] [-nodes 1024] [-rounds 3] [-hold auto,rows,sums]
//	                                [-what logits] [-layer-dtype f32]
//	go run ./tools/bench embed      -dataset KG.gnn [-memory 2GiB] [-batch 10000] [-steps 100] [-negatives 1000] [-rounds 7]
//	go run ./tools/bench history    -dataset FILE.gnn [-memory 2GiB] [-batch 100] [-steps 400] [-t-stale 200] [-ways windows,static,lru] [-rounds 7]
//	go run ./tools/bench join       -dataset FILE.gnn [-memory 2GiB] [-batch 100] [-steps 400] [-spill 6GiB] [-disk-rate 200MB,500] [-ways rows,windows,history,join] [-eval-nodes 20000] [-rounds 7]
//	go run ./tools/bench peers      -dataset FILE.gnn -python PATH [-memory 4GiB] [-batch 100] [-steps 240] [-batches 20] [-rounds 3]
//
// kernels times the kernels of gnnstore bench on every kernel set, beside the portable set, which
// is gonum for products and Go for all else, and beside NumPy's OpenBLAS. step alternates one
// training step with plain PyTorch on the same batches and weights, and fails when the losses
// differ. epoch alternates whole epochs with PyTorch Geometric, GraphBolt or DGL. samplers
// alternates turning 1,000 seeds into blocks with the C++ of DGL and of PyTorch Geometric, one
// thread each, and fails when the same sampler draws other numbers of edges or of different nodes.
// A dataset of several types is made by gnnstore generate mag240m mag.gnn --scale 0.01 --dim 128
// --train 0.2 --valid 0.02 --test 0.02 --undirected --reverse --features mean, for example. On it,
// step trains R-GraphSAGE, beside plain PyTorch and PyTorch Geometric's HeteroConv, and samplers
// compares the typed samplers of DGL and pyg-lib, with 15,10 and 25,15 for each relation. Samplers
// that expand a node only once are held to the edges and nodes that ours would have if it did so.
// newest alternates the newest neighbours of a stream's events with PyTorch Geometric's
// LastNeighborLoader. curves shows, on four real graphs and two generated ones, how the rows of a
// batch grow with its seeds under each sampler, and how caches miss as batches in a row share more
// of their draws.
//
// The others are of training out of core. policies plans the same steps under every policy of the
// host tier, at 2 to 20 % of the feature bytes, and prints the rows and device seconds of each;
// without -dataset, on ogbn-arxiv and cnr-2000. dependent goes from NS and LRU to LABOR-0, to
// batches that share their draws, and to Belady, and prints the rows and device seconds that each
// saves, with static prefixes beside it, step by step and by windows. reuse traces runs that use
// hidden rows again, of 20 and 200 steps, with verdicts 1 to 200 steps late, and with slots for
// none to all of the nodes. It prints the reads and the work of each, and the disk time of windows,
// beside the same bytes as a static prefix and as a longer slab. windows trains with read windows
// of 1 to 256 steps, and with the automatic one, under one budget. epoch-disk alternates the same
// steps in memory and with 40 % of the feature bytes. peers alternates fetching rows, and training,
// with a NumPy memory map behind DGL's loader, which has as large a cache of 20 % and is held by a
// memory cgroup to -memory in all.
//
// link trains links, of a dataset made with --edge-split and with labels, in turns with nodes of as
// many roots; and shared negatives in turns with as many negatives of each positive; and draws the
// same steps with their links in the graph and without. infer predicts the logits of all nodes,
// with layers that hold rows, sums and their own choice. Layer by layer it prints the planned and
// the actual reads, their share of the disk's sequential rate, and the layer's share of the
// processors' peak: the time of its additions, products and reads at this machine's best rates,
// measured in the same run, divided by all processors' time. With a Python it takes turns with
// PyTorch Geometric's loop over layers, whose logits must be the same. embed learns a row for each
// node of a knowledge graph under -memory, in turns with all rows in memory, and fails when the
// weights differ. join trains by rows, by windows, with hidden rows of earlier steps, and by joins
// of windows with the table, and prints each one's use of the device, the processors and the disk's
// space, in a memory cgroup of 110 % of -memory. history trains with hidden rows of earlier steps
// and without, by windows and step by step, slots within the budget and beside it.
//
// Python is one with NumPy for kernels, with PyTorch for step, and with PyTorch and DGL, or PyTorch
// Geometric and torch-sparse or pyg-lib, for epoch; GraphBolt is in DGL 2 (dgl==2.1.0 with
// torch==2.2.1, torchdata==0.7.1 and numpy<2), and dgl==1.1.3 wants packaging and
// setuptools==69.5.1 besides. samplers takes all of those that there are, and nothing else of
// gnnstore needs any. Where there is no wheel of torch-sparse for the PyTorch at hand, pip install
// --no-build-isolation --no-deps torch-sparse builds one, with g++, in half an hour on one core;
// samplers does without the torch-scatter that its Python wants. OPENBLAS_CORETYPE is unset for
// Python: it would choose the kernel of another processor. The heap of a step is a test: go test
// ./train/graph -run TestSteadyState -v.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/tools/cli"
	"github.com/gnnstore/gnnstore/train/infer"
	"github.com/gnnstore/gnnstore/train/trace"
)

// comparison has the flags of the commands.
type comparison struct {
	out             io.Writer
	python          string
	loader          string // of epoch's Python; the first that there is, where it is empty
	data            string
	dataset         string
	rounds          int
	batches         int
	threads         int
	memory          string
	batch           int
	steps           int
	engine          disk.Kind
	device          device
	fanouts         []int // of dependent and reuse, as cache is; kappa and layerDependency are of dependent
	kappa           int
	cache           trace.Capacity
	layerDependency bool
	nodes           int    // of a batch of infer's Python
	what            string // of infer, as holds and layerDtype are
	holds           []string
	layerDtype      string
	negatives       int         // of each positive, or shared, in link and embed
	stale           string      // --t-stale of history and join
	ways            []string    // of join and history
	evalNodes       int         // of join
	json            bool        // of link
	spill, rate     string      // of join
	binary          cli.Binary  // none where the command has no use for it
	group           *cli.Cgroup // of the Python; nil: none
	tmp             string      // gone afterwards
	scripts         string      // where the Python lies
}

var commands = map[string]struct {
	compare func(context.Context, *comparison) error
	steps   int    // that an epoch, or a trace, has unless said otherwise; none where nothing is out of core
	memory  string // unless said otherwise
	ways    string // likewise
}{
	"kernels":    {compare: compareKernels},
	"step":       {compare: compareSteps},
	"stream":     {compare: compareStreamSteps},
	"newest":     {compare: compareNewest},
	"epoch":      {compare: compareEpochs},
	"samplers":   {compare: compareSamplers},
	"curves":     {compare: drawCurves},
	"policies":   {compare: comparePolicies, steps: 400},
	"dependent":  {compare: compareDependent, steps: 1024},
	"reuse":      {compare: compareReuse, steps: 400},
	"windows":    {compare: compareWindows, steps: 512, memory: "1GiB"},
	"epoch-disk": {compare: compareDiskEpochs, steps: 240},
	"link":       {compare: compareLinks, steps: 100},
	"peers":      {compare: comparePeers, steps: 240, memory: "4GiB"},
	"infer":      {compare: compareInference, steps: 20, memory: "4GiB"},
	"embed":      {compare: compareEmbeddings, steps: 100, memory: "2GiB"},
	"history":    {compare: compareHistory, steps: 400, memory: "2GiB", ways: "windows,static,lru"},
	"join":       {compare: compareJoins, steps: 400, memory: "2GiB", ways: "rows,windows,join"},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := compare(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func compare(ctx context.Context, out io.Writer, args []string) (err error) {
	if len(args) == 0 || commands[args[0]].compare == nil {
		return errors.New("there are: bench kernels, step, stream, newest, epoch, samplers, curves, policies, dependent, reuse, windows, epoch-disk, link, peers, infer, " +
			"embed, history, join")
	}
	name, command := args[0], commands[args[0]]
	c := comparison{out: out, scripts: filepath.Join("tools", "bench")}
	f := flag.NewFlagSet(name, flag.ExitOnError)
	f.StringVar(&c.python, "python", "", "`path` of the Python to compare with")
	f.StringVar(&c.loader, "loader", "", "in epoch: pyg, graphbolt or dgl; default: the first of `these` that there is")
	f.StringVar(&c.data, "data", os.Getenv("GNNSTORE_DATA"), "`directory` of the raw graphs; default $GNNSTORE_DATA")
	f.StringVar(&c.dataset, "dataset", "", "sealed `dataset` to use; default: ogbn_arxiv of -data, undirected, fastrp:128")
	f.IntVar(&c.rounds, "rounds", 7, "turns of each side")
	f.IntVar(&c.batches, "batches", 20, "batches of a turn: in step, samplers, and of Python in peers")
	f.IntVar(&c.threads, "threads", runtime.GOMAXPROCS(0), "threads of each side")
	f.StringVar(&c.memory, "memory", command.memory, "--memory of training out of core: `size`; default in epoch-disk: the size of the data")
	f.IntVar(&c.batch, "batch", 100, "seeds a step, in training out of core")
	f.IntVar(&c.steps, "steps", command.steps, "steps of a run, or of a trace, in training out of core")
	f.IntVar(&c.nodes, "nodes", 1024, "nodes of a batch, in infer's Python")
	f.IntVar(&c.negatives, "negatives", 50, "many of them, in link and embed")
	f.StringVar(&c.stale, "t-stale", "200", "most `steps` to a use, in history and join")
	ways := f.String("ways", command.ways, "what is timed: in join of rows, windows, history, join; in history of windows, static, lru")
	f.StringVar(&c.what, "what", "logits", "what infer predicts: logits, or classes, which take less space")
	f.StringVar(&c.layerDtype, "layer-dtype", "f32", "numbers of infer's hidden rows")
	holds := f.String("hold", strings.Join(infer.Holds, ","), "of auto, rows, sums: --way of infer")
	f.IntVar(&c.evalNodes, "eval-nodes", 100, "of either part, that join measures accuracy on")
	f.StringVar(&c.spill, "spill", "auto", "--spill of join: `size`")
	f.StringVar(&c.rate, "disk-rate", "", "--disk-rate of join: `bytes,transfers` a second; default: as the disk is")
	f.BoolVar(&c.json, "json", false, "print JSON, in link")
	engine := f.String("engine", string(disk.Auto), "how the disk is read, in training out of core")
	device := f.String("device", "", "`reads,bytes` a second of the disk that seconds are worked out for, such as 70000,1.5e9; default measured")
	fanout := f.String("fanout", numbers(fanouts), "neighbours drawn at each hop, in dependent and reuse")
	kappa := f.String("kappa", "256", "batches in a row that share their draws, in dependent")
	cache := f.String("cache", "20%", "`share` of the feature bytes that the host tier gets, in dependent and reuse")
	f.BoolVar(&c.layerDependency, "layer-dependency", false, "let a node draw the same at every layer, in dependent")
	f.StringVar((*string)(&c.binary), "bin", "", "a built `gnnstore`; default: built now")
	_ = f.Parse(args[1:]) // ExitOnError
	c.engine, c.ways, c.holds = disk.Kind(*engine), strings.Split(*ways, ","), strings.Split(*holds, ",")
	if c.device, err = parseDevice(*device); err != nil {
		return err
	}
	if err := c.parseDraws(*fanout, *kappa, *cache); err != nil {
		return err
	}
	outOfCore := command.steps > 0
	switch {
	case f.NArg() > 0:
		return fmt.Errorf("%q is one argument too many", f.Arg(0))
	case c.rounds < 1 || c.batches < 1 || c.threads < 1:
		return errors.New("-rounds, -batches and -threads: at least 1")
	case c.python == "" && slices.Contains([]string{"step", "stream", "newest", "epoch", "samplers", "peers"}, name):
		return errors.New("-python is missing: the path of a Python with PyTorch")
	case !slices.Contains([]string{"", "pyg", "graphbolt", "dgl"}, c.loader):
		return fmt.Errorf("-loader %s: pyg, graphbolt or dgl", c.loader)
	case c.loader != "" && name != "epoch":
		return errors.New("-loader goes with epoch")
	case c.json && name != "link":
		return errors.New("-json goes with link")
	case c.negatives < 1:
		return errors.New("-negatives: at least 1")
	case outOfCore && (c.batch < 1 || c.steps < 1):
		return errors.New("-batch and -steps: at least 1")
	case outOfCore && c.engine.Validate() != nil:
		return fmt.Errorf("-engine: %w", c.engine.Validate())
	case c.dataset == "" && (name == "stream" || name == "newest"):
		return errors.New("-dataset is missing: a stream, such as that of gnnstore ingest events ml_wikipedia.txt wiki.gnn --bipartite --edge-features random:16")
	case c.dataset == "" && outOfCore && name != "policies":
		return errors.New("-dataset is missing: a sealed dataset, such as that of gnnstore generate papers100m ten.gnn --nodes 10M --edges 144M")
	case c.dataset == "" && c.data == "" && name != "kernels":
		return errors.New("no data: set GNNSTORE_DATA or -data to the directory that holds ogbn_arxiv, or give -dataset")
	}
	if c.tmp, err = os.MkdirTemp("", "gnnstore-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.tmp)) }()
	onlyIngests := slices.Contains([]string{"step", "stream", "newest", "samplers", "policies", "dependent", "reuse"}, name)
	if c.binary == "" && name != "kernels" && !(onlyIngests && c.dataset != "") {
		if c.binary, err = cli.Build(ctx, c.tmp); err != nil {
			return err
		}
	}
	return command.compare(ctx, &c)
}

// arxiv returns the dataset to train on, ingested if there is none yet.
func (c *comparison) arxiv(ctx context.Context) (string, error) {
	if c.dataset != "" {
		return c.dataset, nil
	}
	path := filepath.Join(c.tmp, "arxiv.gnn")
	return path, c.binary.Run(ctx, "ingest", "ogb", filepath.Join(c.data, "ogbn_arxiv"), path, "--undirected", "--features", "fastrp:128")
}

// tableHead prints the names of a Markdown table's columns, as in | one | two |, and the line that
// makes them its head.
func tableHead(w io.Writer, columns string) {
	fmt.Fprintf(w, "%s\n|%s\n", columns, strings.Repeat(" --- |", strings.Count(columns, "|")-1))
}
