// Accuracy measures what gnnstore's models reach on public graphs, with what is published beside
// it. It builds ./cmd/gnnstore, ingests the raw files and trains a model a seed; the epoch is
// chosen by validation alone.
//
//	go run ./tools/accuracy -data DIR [-seeds 10] [-only NAME,…] [-quick] [-bin FILE]
//	    [-record tools/results/accuracy.md]
//
// It exits 1 when a data set stays below its bar. With -kappa it compares dependent minibatches
// with independent ones, seed by seed, and exits 1 when the upper end of the loss's interval is not
// below the bar for it; see dependenceTasks.
//
//	go run ./tools/accuracy -data DIR -kappa 1,4,16,64,256,inf [-sampler labor0,ns] [-dependent smoothed,nested] [-log FILE] …
//
// With -history it compares training that uses hidden rows of earlier steps again with training
// that does not, in the same way; see historyTasks.
//
//	go run ./tools/accuracy -data DIR -history auto,200:lag=1,auto:kappa=64|grid [-log FILE] …
//
// With -control random or inverse beside -history, other numbers replace the norms of gradients.
// The accuracy that these runs lose beyond -history alone measures the worth of the criterion.
//
//	go run ./tools/accuracy -data DIR -history auto,auto:p-grad=0.5,200:lag=1,200:lag=1:p-grad=0.5 -only amazon_computers -control random
//
// With -dtypes it measures the accuracy that features in float16 lose beside float32, seed by seed.
// With -matmul it measures the loss by products in bf16 beside f32, and exits 1 when an interval is
// not within its bar; see matmulTasks.
//
//	go run ./tools/accuracy -data DIR -dtypes -seeds 5 -only coauthor_cs,facebook
//	go run ./tools/accuracy -data DIR -matmul [-only coauthor_cs/gat,wn18rr] [-epochs 30]
//
// With -generated it wants no data: it trains on a generated graph, and on what plain averages of
// neighbours' rows make of it, and exits 1 when those come near.
//
//	go run ./tools/accuracy -generated citations [-scale 0.012] [-seeds 3]
//
// On kind churn, tables whose true probabilities are known, it compares the defaults with a linear
// model, and exits 1 if they are less than a point above it.
//
//	go run ./tools/accuracy -generated churn [-seeds 5]
//
// With -streams it trains networks on streams of events, public and generated ones, and exits 1
// when one is not as its bars say; see streamTasks.
//
//	go run ./tools/accuracy -data DIR -streams [-only drift-s,wikipedia/all nodes] [-seeds 3]
//
// With -defaults it trains by commands typed without reading help, and by tuned ones, and exits 1
// if a bare command is more than 3 points below; see habits.
//
//	go run ./tools/accuracy -data DIR -defaults [-only ddi,umls] [-seeds 3] [-json] [-log FILE]
//
// With -mitigate it compares training at staleness 3 with and without blending of memories that are
// out of date, and with blending of random nodes; see mitigationTasks.
//
//	go run ./tools/accuracy -data DIR -mitigate 0.95 [-only wikipedia/tgn,enron/tgn] [-seeds 10] [-log FILE]
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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gnnstore/gnnstore/tools/cli"
)

// settings are the flags of train for some tasks.
type settings struct {
	name  string
	flags []string
}

var (
	// sampled has the settings of the larger graphs. Nothing is tuned to a data set but the number
	// of epochs, since an epoch is one step on 200 training nodes and 91 on ogbn-arxiv's. They are
	// a compromise: the small data sets, with 20 training nodes a class, want the dropout and the
	// penalty, and ogbn-arxiv would do better with less of both.
	sampled = settings{"sampled", []string{
		"--layers", "2", "--hidden", "64", "--fanout", "25,25", "--batch", "1000", "--lr", "0.01", "--weight-decay", "5e-4",
		"--dropout", "0.6", "--input-dropout", "0.6", "--eval-every", "2", "--patience", "15",
	}}
	// whole has the settings of the papers that use the public splits: every neighbour, no
	// normalisation between layers.
	wholeGCN = settings{"whole, gcn", append(whole, "--hidden", "16", "--dropout", "0.5", "--input-dropout", "0.5", "--lr", "0.01")}
	wholeGAT = settings{"whole, gat", append(whole, "--hidden", "64", "--heads", "8", "--dropout", "0.6", "--input-dropout", "0.6",
		"--attn-dropout", "0.6", "--lr", "0.005")}
	wholeSAGE = settings{"whole, sage", append(whole, "--hidden", "64", "--dropout", "0.5", "--input-dropout", "0.5", "--lr", "0.01")}
	// labelled are for a graph most of whose nodes are labelled: little regularisation.
	labelled = settings{"labelled", []string{
		"--layers", "2", "--hidden", "64", "--fanout", "10,10", "--batch", "2000", "--lr", "0.01", "--dropout", "0.5", "--eval-every", "2",
	}}

	// typed are for the Heterogeneous Graph Benchmark, the same for all networks and both graphs.
	typed = settings{"typed", []string{
		"--layers", "2", "--hidden", "64", "--fanout", "25,25", "--batch", "200", "--lr", "0.005", "--patience", "15", "--metric", "micro-f1",
	}}

	// links are by GAE's protocol: as many pairs without an edge as there are edges, drawn once to
	// measure.
	links = settings{"links", []string{
		"--task", "link", "--layers", "2", "--hidden", "64", "--negatives", "uniform:1", "--eval-negatives", "pairs:1", "--metric", "auc", "--patience", "20",
	}}
	// signs are of the edges of Bitcoin OTC, whose nodes have no features: a row is learnt for
	// each, and messages bring the ratings of other edges.
	signs = settings{"signs", []string{
		"--task", "edge", "--edge-label", "rating:sign", "--edge-input", "to=rating", "--edge-input", "rev_to=rating", "--input", "node=embed:64",
		"--layers", "2", "--hidden", "64", "--metric", "auc", "--patience", "10",
	}}

	// triples ranks each end of a held-out triple among all entities, except the ends of known
	// triples.
	triples = settings{"triples", []string{
		"--task", "link", "--layers", "0", "--input", "entity=embed:200", "--decoder", "distmult", "--negatives", "all", "--corrupt", "both",
		"--eval-negatives", "all", "--metric", "mrr", "--batch", "500", "--lr", "0.03", "--input-dropout", "0.2", "--eval-every", "2",
	}}

	// cites are of held-out citations, each among nodes in the place of what is cited.
	cites = settings{"cites", []string{
		"--task", "link", "--layers", "2", "--hidden", "128", "--fanout", "15,10", "--batch", "1000", "--negatives", "shared:1000", "--chunk", "1000",
		"--loss", "ce", "--schedule", "cosine", "--dropout", "0.2", "--epoch-steps", "300", "--eval-negatives", fmt.Sprint("uniform:", citedAmong),
		"--eval-edges", strconv.Itoa(citedLinks), "--metric", "mrr",
	}}

	whole = slices.Clip([]string{"--layers", "2", "--fanout", "-1,-1", "--norm", "none", "--weight-decay", "5e-4", "--patience", "100"})
)

// quickSlack is how far one seed may stay below a bar that is set for the mean of ten.
const quickSlack = 0.02

// A task is a model on a data set.
type task struct {
	name      string   // of the data set, and behind a slash of the model unless it is sage
	model     string   // empty: rows alone
	raw       []string // FORMAT and the path of the raw files below the data directory
	flags     []string // of ingest; those that begin with @ are paths below the data directory
	splits    bool     // each seed draws its own split
	settings  settings
	epochs    string
	bar       float64 // of the mean test accuracy; 0: none
	maxLoss   float64 // of accuracy by dependent minibatches, for -kappa; 0: not judged
	published string
	seeds     int // at most; 0: as many as are asked for
	// rival measures something simple on a dataset; the mean of it is then the bar. nil: nothing is
	// compared. Its note is shown.
	rival func(dataset string, seed int) (value float64, note string, err error)
	shown bool // the rival is no bar
}

var (
	perClass = []string{"--undirected", "--split", "per-class:20/30"} // the protocol of Shchur et al. 2018
	arxiv    = []string{"--undirected", "--features", "fastrp:128", "--split", "given"}
	public   = []string{"--undirected", "--normalize", "row"} // as the papers of GCN and GAT have it
	reverse  = []string{"--reverse"}
	random   = []string{"--undirected", "--split", "random:0.6/0.2/0.2"}
	// Not by years: papers of the last ones have no other citations, and without those neither
	// features that are made of the graph nor neighbours, so that nothing would tell one candidate
	// from another.
	heldCitations = []string{"--undirected", "--features", "fastrp:128", "--edge-split", "random:0.9/0.05/0.05"}
	held          = []string{"--undirected", "--edge-split", "random:0.85/0.05/0.1"}
	ratings       = []string{"--edge-columns", "rating=3", "--reverse", "--edge-split", "random:0.85/0.05/0.1", "--features", "none"}
	facebook      = []string{"--undirected", "--nodes", "@musae_facebook/facebook_target.csv", "--label", "page_type",
		"--node-features", "@musae_facebook/facebook.json"}

	coauthor  = []string{"npz", "coauthor_cs/ms_academic_cs.npz"}
	computers = []string{"npz", "amazon_computers/amazon_electronics_computers.npz"}
	cora      = []string{"planetoid", "planetoid_cora"}
	citeseer  = []string{"planetoid", "planetoid_citeseer"}
	acm       = []string{"hgb", "hgb_acm/ACM.zip"}
	imdb      = []string{"hgb", "hgb_imdb/IMDB.zip"}
	otc       = []string{"csv", "bitcoin_otc/soc-sign-bitcoinotc.csv"}
	dblp      = []string{"npz", "dblp_citation/dblp.npz"}
	pages     = []string{"csv", "musae_facebook/facebook_edges.csv"}
)

// Where a figure is published. Those of Shchur et al. are for the largest component and splits of
// their own.
const (
	shchur = "(Shchur et al. 2018, table 1)"
	dgl    = "(DGL examples/pytorch/graphsage, one run)"
	kipf   = "(Kipf and Welling 2017, table 2)"
	velick = "(Veličković et al. 2018, table 2)"
	lv     = "(Lv et al. 2021, table 3)"
	conve  = "(Dettmers et al. 2018, table 4)"
	gae    = "(GAE, Kipf and Welling 2016, table 1)"
	none   = "none found on such splits"
)

// The bars of sage lie somewhat below what is published.
var tasks = []task{
	{name: "coauthor_cs", model: "sage", raw: coauthor, flags: perClass, splits: true, settings: sampled, epochs: "100", bar: 0.905, published: "91.3 " + shchur},
	{name: "amazon_computers", model: "sage", raw: computers, flags: perClass, splits: true, settings: sampled, epochs: "200", bar: 0.80, published: "82.4 " + shchur},
	{name: "ogbn_arxiv", model: "sage", raw: []string{"ogb", "ogbn_arxiv"}, flags: arxiv, settings: sampled, epochs: "15", bar: 0.65, published: "none with these features"},
	{name: "ogbn_arxiv/mlp", model: "mlp", raw: []string{"ogb", "ogbn_arxiv"}, flags: arxiv, settings: sampled, epochs: "15", published: "none with these features"},
	{name: "cora", model: "sage", raw: cora, flags: public, settings: wholeSAGE, epochs: "200", published: "83.3 " + dgl},
	{name: "cora/gcn", model: "gcn", raw: cora, flags: public, settings: wholeGCN, epochs: "200", bar: 0.81, published: "81.5 " + kipf},
	{name: "cora/gat", model: "gat", raw: cora, flags: public, settings: wholeGAT, epochs: "200", bar: 0.79, published: "83.0 ± 0.7 " + velick},
	{name: "citeseer", model: "sage", raw: citeseer, flags: public, settings: wholeSAGE, epochs: "200", published: "71.1 " + dgl},
	{name: "citeseer/gcn", model: "gcn", raw: citeseer, flags: public, settings: wholeGCN, epochs: "200", bar: 0.69, published: "70.3 " + kipf},
	{name: "citeseer/gat", model: "gat", raw: citeseer, flags: public, settings: wholeGAT, epochs: "200", published: "72.5 ± 0.7 " + velick},
	{name: "facebook", model: "sage", raw: pages, flags: facebook, splits: true, settings: labelled, epochs: "8", published: none},
	{name: "facebook/gcn", model: "gcn", raw: pages, flags: facebook, splits: true, settings: labelled, epochs: "8", published: none},
	{name: "facebook/gat", model: "gat", raw: pages, flags: facebook, splits: true, settings: labelled, epochs: "8", published: none},
	{name: "acm/rgcn", model: "rgcn", raw: acm, flags: reverse, settings: typed, epochs: "100", bar: 0.904, published: "91.4, micro-F1 " + lv},
	{name: "acm/rsage", model: "rsage", raw: acm, flags: reverse, settings: typed, epochs: "100", bar: 0.92, published: "93.4, the best of all " + lv},
	{name: "acm/rgat", model: "rgat", raw: acm, flags: reverse, settings: typed, epochs: "100", published: "93.4, the best of all " + lv},
	{name: "acm/hgt", model: "hgt", raw: acm, flags: reverse, settings: typed, epochs: "100", published: "93.4, the best of all " + lv},
	{name: "imdb/rgcn", model: "rgcn", raw: imdb, flags: reverse, settings: typed, epochs: "100", bar: 0.61, published: "62.1, micro-F1 " + lv},
	{name: "imdb/rsage", model: "rsage", raw: imdb, flags: reverse, settings: typed, epochs: "100", bar: 0.64, published: "67.4, the best of all " + lv},
	{name: "imdb/rgat", model: "rgat", raw: imdb, flags: reverse, settings: typed, epochs: "100", published: "67.4, the best of all " + lv},
	{name: "imdb/hgt", model: "hgt", raw: imdb, flags: reverse, settings: typed, epochs: "100", published: "67.4, the best of all " + lv},
	{name: "cora-links/sage", model: "sage", raw: cora, flags: held, splits: true, settings: links, epochs: "100", bar: 0.90, published: "91.0 " + gae},
	{name: "cora-links/gcn", model: "gcn", raw: cora, flags: held, splits: true, settings: links, epochs: "100", bar: 0.90, published: "91.0 " + gae},
	{name: "citeseer-links/sage", model: "sage", raw: citeseer, flags: held, splits: true, settings: links, epochs: "100", bar: 0.88, published: "89.5 " + gae},
	{name: "citeseer-links/gcn", model: "gcn", raw: citeseer, flags: held, splits: true, settings: links, epochs: "100", bar: 0.88, published: "89.5 " + gae},
	{name: "wn18rr", raw: []string{"triples", "wn18rr"}, settings: triples, epochs: "8", seeds: 3, bar: 0.40, published: "43, filtered MRR " + conve},
	{name: "arxiv-cites/sage", model: "sage", raw: []string{"ogb", "ogbn_arxiv"}, flags: heldCitations, splits: true, settings: cites, epochs: "15", seeds: 3,
		published: "the better of common neighbours and features' products", rival: simpleCitations, shown: true},
	{name: "bitcoin_otc/rsage", model: "rsage", raw: otc, flags: ratings, splits: true, settings: signs, epochs: "60", published: "shares of negatives at both ends", rival: meanSigns},
}

// options are the flags.
type options struct {
	data, only, bin, record       string
	seeds                         int
	quick                         bool
	kappas, samplers, dependences string
	history, control, log         string
	jobs                          int
	generated                     string
	scale                         float64
	dtypes, matmul                bool
	epochs                        int
	stream, defaults              bool
	json                          bool
	mitigate                      string
}

func main() {
	var o options
	flag.StringVar(&o.data, "data", os.Getenv("GNNSTORE_DATA"), "`directory` of the raw graphs; default $GNNSTORE_DATA")
	flag.IntVar(&o.seeds, "seeds", 0, "train with the seeds 1 to `N`; default 10, 5 with -history, and 3 with -defaults")
	flag.StringVar(&o.only, "only", "", "comma-separated `names` of tasks; default all of "+strings.Join(names(tasks), ",")+
		", with -matmul of "+strings.Join(names(matmuls.tasks), ",")+", with -kappa of "+strings.Join(names(dependenceTasks), ",")+
		", and with -history of "+strings.Join(names(historyTasks), ","))
	flag.BoolVar(&o.quick, "quick", false, "one seed, and 2 points of slack below the bars")
	flag.StringVar(&o.bin, "bin", "", "a built `gnnstore`; default: built now")
	flag.StringVar(&o.record, "record", "", "put the table as Markdown above the others in this `file`")
	flag.StringVar(&o.kappas, "kappa", "", "compare these comma-separated `κ` of dependent minibatches, inf among them, with 1")
	flag.StringVar(&o.samplers, "sampler", "labor0", "with -kappa: comma-separated `samplers`")
	flag.StringVar(&o.dependences, "dependent", "smoothed", "with -kappa: smoothed, nested or `both`, with a comma between them")
	flag.StringVar(&o.history, "history", "", "compare these comma-separated `ways` to use hidden rows again with none: each a t_stale, and behind it "+
		"any of :p-grad=SHARE, :lag=STEPS and :kappa=κ; or grid")
	flag.StringVar(&o.control, "control", "", "with -history: put other numbers in the place of the norms of gradients, `random` or inverse ones")
	flag.StringVar(&o.log, "log", "", "with -kappa, -history, -dtypes, -matmul and -defaults: write every training to this `file` of JSON lines, and leave out those in it")
	flag.IntVar(&o.jobs, "jobs", 1, "with -kappa, -history, -dtypes and -matmul: `trainings` at once")
	flag.StringVar(&o.generated, "generated", "", "train on this `kind` of generated graph")
	flag.Float64Var(&o.scale, "scale", 0.012, "with -generated: its `scale`")
	flag.BoolVar(&o.dtypes, "dtypes", false, "compare features in float16 with float32")
	flag.BoolVar(&o.matmul, "matmul", false, "compare products in bf16 with f32")
	flag.IntVar(&o.epochs, "epochs", 0, "with -kappa, -history, -dtypes and -matmul: train for `N` epochs in place of a task's own")
	flag.BoolVar(&o.stream, "streams", false, "train on streams of events")
	flag.BoolVar(&o.defaults, "defaults", false, "compare bare commands with tuned ones")
	flag.BoolVar(&o.json, "json", false, "with -defaults: write one JSON object in place of the table")
	flag.StringVar(&o.mitigate, "mitigate", "", "compare blending memories that are out of date, which keep these comma-separated `parts` λ of themselves, with none")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := perform(ctx, os.Stdout, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

func names(tasks []task) []string {
	var names []string
	for _, t := range tasks {
		names = append(names, t.name)
	}
	return names
}

// selectTasks returns the tasks that only names, or all.
func selectTasks(tasks []task, only string) ([]task, error) {
	if only == "" {
		return tasks, nil
	}
	var selected []task
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(tasks, func(t task) bool { return t.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only %s: there are %s", name, strings.Join(names(tasks), ", "))
		}
		selected = append(selected, tasks[i])
	}
	return selected, nil
}

// withEpochs returns tasks that train for n epochs at most.
func withEpochs(tasks []task, n int) []task {
	tasks = slices.Clone(tasks)
	for i := range tasks {
		tasks[i].epochs = strconv.Itoa(n)
	}
	return tasks
}

// study returns the comparison seed by seed that the options ask for, or nil.
func (o *options) study() (*study, error) {
	several := 0
	for _, asked := range []bool{o.kappas != "", o.history != "", o.dtypes, o.matmul} {
		if asked {
			several++
		}
	}
	switch {
	case several > 1:
		return nil, errors.New("-kappa, -history, -dtypes, -matmul: one at a time; a κ with history is -history auto:kappa=64")
	case o.kappas != "":
		return dependence(o.samplers, o.dependences, o.kappas)
	case o.history != "":
		return reuseStudy(o.history)
	case o.dtypes:
		return dtypes.study(), nil
	case o.matmul:
		return matmuls.study(), nil
	}
	return nil, nil
}

func perform(ctx context.Context, w io.Writer, o options) (err error) {
	s, err := o.study()
	if err != nil {
		return err
	}
	if o.seeds == 0 && !o.stream {
		switch o.seeds = 10; {
		case o.history != "":
			o.seeds = 5
		case o.defaults:
			o.seeds = 3
		}
	}
	all, least := tasks, 1
	if s != nil {
		all, least = s.tasks, 2 // pairs, for an interval
	}
	var selected []task
	var habits []habit
	switch {
	case o.stream, o.mitigate != "":
	case o.defaults:
		habits, err = selectHabits(o.only)
	default:
		selected, err = selectTasks(all, o.only)
	}
	switch {
	case err != nil:
		return err
	case o.stream && (s != nil || o.generated != "" || o.quick):
		return errors.New("-streams: -kappa, -history, -dtypes, -matmul, -generated and -quick do not go with it")
	case o.defaults && (s != nil || o.stream || o.generated != "" || o.quick):
		return errors.New("-defaults: -kappa, -history, -dtypes, -matmul, -streams, -generated and -quick do not go with it")
	case o.json && (!o.defaults || o.record != ""):
		return errors.New("-json goes with -defaults, and without -record, which takes the table")
	case o.mitigate != "" && (s != nil || o.generated != "" || o.quick || o.stream || o.defaults):
		return errors.New("-mitigate: -kappa, -history, -dtypes, -matmul, -generated, -streams, -defaults and -quick do not go with it")
	case o.generated != "" && (s != nil || o.only != "" || o.quick):
		return errors.New("-generated: -kappa, -history, -dtypes, -matmul, -only and -quick do not go with it")
	case o.data == "" && o.generated == "":
		return errors.New("no data: set GNNSTORE_DATA or -data to the directory of the raw graphs")
	case o.seeds < least && !o.stream:
		return fmt.Errorf("-seeds %d: at least %d", o.seeds, least)
	case o.jobs < 1:
		return fmt.Errorf("-jobs %d: at least 1", o.jobs)
	case o.control != "" && (o.history == "" || o.bin != ""):
		return errors.New("-control goes with -history, and without -bin: it builds a gnnstore of its own")
	case o.quick && s != nil:
		return errors.New("-quick: one seed has no interval; -kappa, -history, -dtypes and -matmul go without it")
	case o.epochs < 0, o.epochs > 0 && s == nil:
		return fmt.Errorf("-epochs %d: want 1 or more, with -kappa, -history, -dtypes or -matmul", o.epochs)
	case s == nil && (o.log != "" && !o.defaults && o.mitigate == "" || o.jobs != 1):
		return errors.New("-log and -jobs go with -kappa, -history, -dtypes and -matmul, and -log with -defaults and -mitigate")
	}
	if o.epochs > 0 {
		selected = withEpochs(selected, o.epochs)
	}
	tmp, err := os.MkdirTemp("", "gnnstore-accuracy-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	b := bench{gnnstore: cli.Binary(o.bin), data: o.data, tmp: tmp, progress: os.Stderr}
	if o.bin == "" {
		commit, err := commit(ctx) // of what is built now, whatever happens to the tree meanwhile
		if err != nil {
			return err
		}
		b.what = "at commit " + commit
		if o.control != "" {
			b.gnnstore, err = buildControl(ctx, tmp, o.control)
			b.what += ", with " + o.control + " numbers in the place of the norms of gradients"
		} else {
			b.gnnstore, err = cli.Build(ctx, tmp)
		}
		if err != nil {
			return err
		}
	}
	if b.binary, err = fingerprint(b.gnnstore); err != nil {
		return err
	}
	if o.bin != "" {
		b.what = "with a gnnstore of SHA-256 " + b.binary + "…"
	}
	switch {
	case o.stream:
		return b.streams(ctx, w, o)
	case o.defaults:
		return b.defaults(ctx, w, habits, o)
	case o.mitigate != "":
		return b.mitigation(ctx, w, o)
	case o.generated != "":
		return b.generated(ctx, w, o)
	case s != nil:
		return s.perform(ctx, &b, w, selected, o)
	}
	return b.accuracy(ctx, w, selected, o)
}

// accuracy measures tasks and compares them with their bars.
func (b *bench) accuracy(ctx context.Context, w io.Writer, tasks []task, o options) error {
	slack := 0.0
	if o.quick {
		o.seeds, slack = 1, quickSlack
	}
	for _, line := range settingsLines(tasks, o.seeds) {
		fmt.Fprintln(w, line)
	}
	var results []result
	for _, t := range tasks {
		r, err := b.measure(ctx, t, o.seeds)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	if err := writeText(w, results); err != nil {
		return err
	}
	if o.record != "" {
		if err := recordResults(o.record, b.what, results, o.seeds); err != nil {
			return err
		}
	}
	return belowBars(results, slack)
}

// dataset is the name of the task's data set.
func (t *task) dataset() string {
	name, _, _ := strings.Cut(t.name, "/")
	return name
}

// atMost returns how many of seeds the task is trained with.
func (t *task) atMost(seeds int) int {
	if t.seeds > 0 {
		return min(seeds, t.seeds)
	}
	return seeds
}

// bench has the binary, the data and the directories that all tasks share.
type bench struct {
	gnnstore     cli.Binary
	binary, what string // its fingerprint, and what it was built of as far as is known
	data, tmp    string
	progress     io.Writer
}

// measure trains a task's model once a seed.
func (b *bench) measure(ctx context.Context, t task, seeds int) (result, error) {
	r := result{task: t}
	for seed := 1; seed <= t.atMost(seeds); seed++ {
		dataset, err := b.dataset(ctx, t, seed)
		if err != nil {
			return result{}, err
		}
		trained, seconds, err := b.train(ctx, dataset, filepath.Join(b.tmp, "run"), append(trainFlags(t), "--seed", strconv.Itoa(seed))...)
		if err != nil {
			return result{}, err
		}
		if t.rival != nil {
			rival, note, err := t.rival(dataset, seed)
			if err != nil {
				return result{}, err
			}
			r.rival = append(r.rival, rival)
			fmt.Fprintf(b.progress, "%s seed %d: %s %.4f%s\n", t.name, seed, t.published, rival, note)
		}
		if t.splits {
			if err := os.RemoveAll(dataset); err != nil {
				return result{}, err
			}
		}
		r.test = append(r.test, trained.Best.TestAcc)
		r.valid = append(r.valid, trained.Best.ValidAcc)
		r.seconds = append(r.seconds, seconds)
		fmt.Fprintf(b.progress, "%s seed %d: epoch %d  valid %.4f  test %.4f  %.1f s\n",
			t.name, seed, trained.Best.Epoch, trained.Best.ValidAcc, trained.Best.TestAcc, seconds)
	}
	return r, nil
}

// train trains on dataset, keeping no run directory.
func (b *bench) train(ctx context.Context, dataset, run string, args ...string) (trained cli.Trained, seconds float64, err error) {
	began := time.Now()
	err = b.gnnstore.JSON(ctx, &trained, append([]string{"train", dataset, "--run", run}, args...)...)
	return trained, time.Since(began).Seconds(), errors.Join(err, os.RemoveAll(run))
}

// dataset ingests the raw files of a task, or finds what another task or seed made of them. The
// flags of ingest follow the flags of the task.
func (b *bench) dataset(ctx context.Context, t task, seed int, flags ...string) (string, error) {
	if !t.splits {
		seed = 1
	}
	out := filepath.Join(b.tmp, fmt.Sprintf("%s-%d%s.gnn", t.dataset(), seed, strings.Join(flags, "")))
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	args := []string{"ingest", t.raw[0], filepath.Join(b.data, t.raw[1]), out, "--seed", strconv.Itoa(seed)}
	for _, flag := range slices.Concat(t.flags, flags) {
		if path, ok := strings.CutPrefix(flag, "@"); ok {
			flag = filepath.Join(b.data, path)
		}
		args = append(args, flag)
	}
	return out, b.gnnstore.Run(ctx, args...)
}
