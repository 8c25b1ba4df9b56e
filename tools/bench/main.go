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
//	go run ./tools/bench coop    [-data DIR | -dataset FILE.gnn] [-parts DIR,DIR] [-check]
//	go run ./tools/bench rounds
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
// Each command is a row of commands, and the comment of its function has what it compares. A
// comparison of the kind A, B, A, B is a list of sides and a list of columns: see turns. Those that
// only draw and plan, and windows, print their own tables.
//
// kernels has the portable set beside the others: gonum for products and Go for all else. epoch,
// peers and infer take the loaders that their Python has. A dataset of several types, for step,
// samplers and peers, is made by gnnstore generate mag240m mag.gnn --scale 0.01 --dim 128 --train
// 0.2 --valid 0.02 --test 0.02 --undirected --reverse --features mean, for example. On it, samplers
// that expand a node only once are held to the edges and nodes that ours would have if it did so.
// link wants a dataset made with --edge-split and with labels.
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
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/tools/cli"
	"github.com/gnnstore/gnnstore/train/infer"
	"github.com/gnnstore/gnnstore/train/trace"
)

// comparison has the flags of the commands, and the dataset that they compare on.
type comparison struct {
	out             io.Writer
	python          string
	parts           []string // directories of parts of dataset, in coop
	loader          string   // of epoch's Python; the first that there is, where it is empty
	data            string
	dataset         string
	ds              *store.Dataset // of dataset, in the commands that open it
	rounds          int
	batches         int
	threads         int
	memory          string
	limit           int64 // bytes of memory; 0: there is none
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
	negatives       int      // of each positive, or shared, in link and embed
	stale           string   // --t-stale of history and join
	ways            []string // of join and history
	evalNodes       int      // of join
	json            bool     // of link
	check           bool     // of coop
	spill, rate     string   // of join
	products        kernels.Precision
	binary          cli.Binary  // none where the command has no use for it
	group           *cli.Cgroup // of the Python; nil: none
	tmp             string      // gone afterwards
	scripts         string      // where the Python lies
}

// command is a row of the table of commands.
type command struct {
	compare func(context.Context, *comparison) error
	steps   int    // that an epoch, or a trace, has unless said otherwise; none where nothing is out of core
	memory  string // unless said otherwise
	ways    string // likewise
	opens   bool   // -dataset, or ogbn-arxiv where there is none
	missing string // where -dataset must be given: for example
	probes  bool   // measures the disk under the dataset
	python  bool   // -python must be given
	runs    bool   // gnnstore, and not only to ingest what -dataset lacks
	alone   bool   // without data
}

// Examples of datasets that must be given.
const (
	aGraph  = "a sealed dataset, such as that of gnnstore generate papers100m ten.gnn --nodes 10M --edges 144M"
	aStream = "a stream, such as that of gnnstore ingest events ml_wikipedia.txt wiki.gnn --bipartite --edge-features random:16"
)

var commands = map[string]command{
	"kernels":    {compare: compareKernels, alone: true},
	"rounds":     {compare: modelRounds, alone: true},
	"step":       {compare: compareSteps, opens: true, python: true},
	"stream":     {compare: compareStreamSteps, opens: true, missing: aStream, python: true},
	"newest":     {compare: compareNewest, opens: true, missing: aStream, python: true},
	"epoch":      {compare: compareEpochs, opens: true, python: true, runs: true},
	"samplers":   {compare: compareSamplers, opens: true, python: true},
	"curves":     {compare: drawCurves, runs: true},
	"policies":   {compare: comparePolicies, steps: 400},
	"dependent":  {compare: compareDependent, steps: 1024, opens: true, missing: aGraph, probes: true},
	"coop":       {compare: countWorkers, opens: true},
	"reuse":      {compare: compareReuse, steps: 400, opens: true, missing: aGraph, probes: true},
	"windows":    {compare: compareWindows, steps: 512, memory: "1GiB", opens: true, missing: aGraph, probes: true, runs: true},
	"epoch-disk": {compare: compareDiskEpochs, steps: 240, opens: true, missing: aGraph, probes: true, runs: true},
	"link":       {compare: compareLinks, steps: 100, opens: true, missing: aGraph, runs: true},
	"peers": {compare: comparePeers, steps: 240, memory: "4GiB",
		opens: true, missing: aGraph, probes: true, python: true, runs: true},
	"infer":   {compare: compareInference, steps: 20, memory: "4GiB", opens: true, missing: aGraph, probes: true, runs: true},
	"embed":   {compare: compareEmbeddings, steps: 100, memory: "2GiB", opens: true, missing: aGraph, runs: true},
	"history": {compare: compareHistory, steps: 400, memory: "2GiB", ways: "windows,static,lru", opens: true, missing: aGraph, runs: true},
	"join":    {compare: compareJoins, steps: 400, memory: "2GiB", ways: "rows,windows,join", missing: aGraph, runs: true},
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
		return fmt.Errorf("there are: bench %s", strings.Join(slices.Sorted(maps.Keys(commands)), ", "))
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
	f.BoolVar(&c.check, "check", false, "in coop: fail if known counts have changed")
	f.StringVar((*string)(&c.products), "matmul", string(kernels.Float32), "precision of products, in step and stream: f32, or bf16 beside f32 and PyTorch's autocast")
	parts := f.String("parts", "", "`directories` of parts of the dataset, in coop")
	engine := f.String("engine", string(disk.Auto), "how the disk is read, in training out of core")
	device := f.String("device", "", "`reads,bytes` a second of the disk that seconds are worked out for, such as 70000,1.5e9; default measured")
	fanout := f.String("fanout", setting.FormatInts(fanouts), "neighbours drawn at each hop, in dependent and reuse")
	kappa := f.String("kappa", "256", "batches in a row that share their draws, in dependent")
	cache := f.String("cache", "20%", "`share` of the feature bytes that the host tier gets, in dependent and reuse")
	f.BoolVar(&c.layerDependency, "layer-dependency", false, "let a node draw the same at every layer, in dependent")
	f.StringVar((*string)(&c.binary), "bin", "", "a built `gnnstore`; default: built now")
	_ = f.Parse(args[1:]) // ExitOnError
	if *parts != "" {
		c.parts = strings.Split(*parts, ",")
	}
	c.engine, c.ways, c.holds = disk.Kind(*engine), strings.Split(*ways, ","), strings.Split(*holds, ",")
	if c.device, err = parseDevice(*device); err != nil {
		return err
	}
	if err := c.parseDraws(*fanout, *kappa, *cache); err != nil {
		return err
	}
	if c.memory != "" {
		if err := setting.Bytes(&c.limit).Set(c.memory); err != nil {
			return fmt.Errorf("-memory %w", err)
		}
	}
	outOfCore := command.steps > 0
	switch {
	case f.NArg() > 0:
		return fmt.Errorf("%q is one argument too many", f.Arg(0))
	case c.rounds < 1 || c.batches < 1 || c.threads < 1:
		return errors.New("-rounds, -batches and -threads: at least 1")
	case c.python == "" && command.python:
		return errors.New("-python is missing: the path of a Python with PyTorch")
	case !slices.Contains([]string{"", "pyg", "graphbolt", "dgl"}, c.loader):
		return fmt.Errorf("-loader %s: pyg, graphbolt or dgl", c.loader)
	case c.loader != "" && name != "epoch":
		return errors.New("-loader goes with epoch")
	case c.products != kernels.Float32 && c.products != kernels.BF16:
		return fmt.Errorf("-matmul %s: f32 or bf16", c.products)
	case c.products != kernels.Float32 && name != "step" && name != "stream":
		return errors.New("-matmul goes with step and stream")
	case c.check && name != "coop":
		return errors.New("-check goes with coop")
	case c.json && name != "link":
		return errors.New("-json goes with link")
	case c.negatives < 1:
		return errors.New("-negatives: at least 1")
	case outOfCore && (c.batch < 1 || c.steps < 1):
		return errors.New("-batch and -steps: at least 1")
	case outOfCore && c.engine.Validate() != nil:
		return fmt.Errorf("-engine: %w", c.engine.Validate())
	case c.dataset == "" && command.missing != "":
		return fmt.Errorf("-dataset is missing: %s", command.missing)
	case c.dataset == "" && c.data == "" && !command.alone:
		return errors.New("no data: set GNNSTORE_DATA or -data to the directory that holds ogbn_arxiv, or give -dataset")
	}
	if c.tmp, err = os.MkdirTemp("", "gnnstore-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.tmp)) }()
	if c.binary == "" && (command.runs || c.dataset == "" && !command.alone) {
		if c.binary, err = cli.Build(ctx, c.tmp); err != nil {
			return err
		}
	}
	if command.opens {
		if err := c.open(ctx); err != nil {
			return err
		}
		defer c.ds.Close()
	}
	if command.probes {
		if c.device, err = c.device.measure(ctx, c.ds.Features(0)); err != nil {
			return err
		}
	}
	defer func() { c.group.Close() }() // after the Python that is in it
	return command.compare(ctx, &c)
}

// open opens the dataset to compare on, ingested if there is none yet.
func (c *comparison) open(ctx context.Context) (err error) {
	if c.dataset == "" {
		c.dataset = filepath.Join(c.tmp, "arxiv.gnn")
		raw := filepath.Join(c.data, "ogbn_arxiv")
		if err := c.binary.Run(ctx, "ingest", "ogb", raw, c.dataset, "--undirected", "--features", "fastrp:128"); err != nil {
			return err
		}
	}
	c.ds, err = store.Open(c.dataset)
	return err
}

// base names the dataset as tables do.
func (c *comparison) base() string { return filepath.Base(c.dataset) }

// tableHead prints the names of a Markdown table's columns, as in | one | two |, and the line that
// makes them its head.
func tableHead(w io.Writer, columns string) {
	fmt.Fprintf(w, "%s\n|%s\n", columns, strings.Repeat(" --- |", strings.Count(columns, "|")-1))
}
