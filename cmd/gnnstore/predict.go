package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"

	"github.com/gnnstore/gnnstore/ingest/export"
	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/graph"
	"github.com/gnnstore/gnnstore/train/run"
)

type predictOptions struct {
	networkOptions
	what     string
	layer    int
	kind     string // node type
	pairs    string // file of node pairs
	top      int
	known    bool   // leave out known links
	relation string // of the links, for top
	edges    string
	at       string // time of embeddings
	events   string // file of pairs with times
	nodes    string
	format   string
	force    bool
	plan     bool
	json     bool
	given    func(flag string) bool
}

// prediction answers a question to a network. Its rows are computed while they are written.
type prediction struct {
	result result
	write  func() (*export.RowsReport, error)
	// text describes the rows of the file once they are written.
	text func() string
	// plan prints how the rows would be computed; nil: there is no plan of it.
	plan func(w io.Writer) error
}

// result is the output of predict, which differs by what is predicted. Its JSON keys are stable.
type result interface{ file() *written }

// written is the part of a result that describes the output files, and what they took.
type written struct {
	Out     string   `json:"out"`
	Format  string   `json:"format"`
	Files   []string `json:"files"`
	Bytes   int64    `json:"bytes"`
	Seconds float64  `json:"seconds"`
	run.Cost
}

func (w *written) file() *written { return w }

// text returns the time that it took, and the size and the names of the files.
func (w *written) text() string {
	return fmt.Sprintf("in %s: %s in %s", seconds(w.Seconds), size(w.Bytes), strings.Join(w.Files, " and "))
}

func newPredict() *cobra.Command {
	o := defaultPredict()
	var flags *setting.Bound[predictOptions]
	cmd := &cobra.Command{
		Use:   "predict RUN [DATASET] OUT",
		Short: "Write what the network of a run predicts",
		Long: "Write what the network of RUN predicts to the file OUT, each row under the id that you know the node by.\n" +
			"DATASET is needed where the dataset has moved; it may also be another one with the same types and columns.\n\n" +
			"The network is that of the best epoch. It reads all neighbours of each node, so that the same weights always predict the\n" +
			"same. Another DATASET may have nodes that the network has not seen, but it has the same types, relations, widths and\n" +
			"classes; labels and a split may be missing. Learnt rows go by the ids of nodes (--unseen says what new ones have);\n" +
			"features made by fastrp or random are of one graph alone.\n\n" +
			"A run of --task link has embeddings to write: what its decoder reads of nodes, or of links between two types of those of\n" +
			"--type; the decoder itself is in best.safetensors. With --layer 0 they are rows for input: features, or the learnt rows.\n" +
			"With --what scores it scores the pairs of --pairs, the higher the likelier, in the order of the file; or it finds the --top\n" +
			"destinations of each source, which come by stored order, the best first.\n\n" +
			"A run of --task edge writes what it learnt of edges: of --edges, those that its dataset holds out or has, or of the --pairs of a\n" +
			"file. Messages pass along the edges that were trained on, so what it says of those is better than of others. With --what\n" +
			"embeddings it writes what is made of nodes.\n\n" +
			"A run on a stream of events replays it from the first event on. It writes embeddings of the nodes of a --type --at a time, by all\n" +
			"events before that; or with --what scores the scores of the pairs in --events, each by what was before its time, as evaluation\n" +
			"would: state of whole batches, and all neighbours. DATASET may be one in which the stream has gone on.\n\n" +
			"Rows come in the order in which the dataset has its nodes. Classes go by their names where they have some, but in npy.\n\n" +
			"  parquet  column id, or src and dst of edges and pairs; class, or for several classes a node the list classes; a column a class of probabilities and\n" +
			"           logits; value; the list embedding\n" +
			"  csv      the same in text, with several classes joined by semicolons and a column a number of an embedding\n" +
			"  npy      OUT.npy: classes as int64, or uint8 with a column a class where a node has several; else float32; and\n" +
			"           OUT.ids.npy, or OUT.ids.txt where ids are texts; of edges OUT.src and OUT.dst instead\n" +
			"  ogb-lsc  what OGB's challenge takes for MAG240M: y_pred_mag240m_MODE.npz in the folder OUT, where MODE is the --nodes:\n" +
			"           test-dev, test-challenge or test-whole",
		Example: "  gnnstore predict runs/arxiv-1 classes.parquet\n" +
			"  gnnstore predict runs/arxiv-1 probabilities.csv --what probabilities --nodes new-papers.txt\n" +
			"  gnnstore predict runs/arxiv-1 hidden.npy --what embeddings\n" +
			"  gnnstore predict runs/cites-1 scores.csv --what scores --pairs candidates.csv\n" +
			"  gnnstore predict runs/cites-1 likely.parquet --what scores --top 10 --exclude-known\n" +
			"  gnnstore predict runs/otc-1 signs.csv --edges test --what probabilities\n" +
			"  gnnstore predict runs/wiki-1 users.npy --type user --at 2000000\n" +
			"  gnnstore predict runs/wiki-1 scores.csv --what scores --events candidates.csv\n" +
			"  gnnstore predict runs/mag-1 authors.parquet --what embeddings --layer 0 --type author",
		Args: oneOf("RUN OUT", "RUN DATASET OUT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			errs := []error{flags.Check(defaultPredict()), o.Validate()}
			if o.what != "" && !slices.Contains(graph.Predictable, o.what) {
				errs = append(errs, fmt.Errorf("--what %s: there are %s", o.what, setting.OneOf(graph.Predictable)))
			}
			switch export.Format(o.format) {
			case "", export.Parquet, export.NPY, export.CSV, export.OGBLSC:
			default:
				errs = append(errs, fmt.Errorf("--format %s: there are parquet, npy, csv and ogb-lsc", o.format))
			}
			out := args[len(args)-1]
			switch _, known := export.FormatOf(out); {
			case known || o.format != "":
			case len(args) == 2 && exists(filepath.Join(out, "manifest.json")):
				errs = append(errs, fmt.Errorf("%s is a dataset, and OUT is missing: gnnstore predict %s %s OUT.parquet", out, args[0], out))
			default:
				errs = append(errs, fmt.Errorf("%s: no format has this ending: choose .parquet, .csv or .npy, or say --format", out))
			}
			errs = append(errs, o.checkSubmission())
			if err := errors.Join(errs...); err != nil {
				return misuse(err)
			}
			if !cmd.Flags().Changed("layer") {
				o.layer = graph.DefaultLayer
			}
			o.given = cmd.Flags().Changed
			if err := o.checkScores(); err != nil {
				return misuse(err)
			}
			dataset := ""
			if len(args) == 3 {
				dataset = args[1]
			}
			return runPredict(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], dataset, out, o)
		},
	}
	flags = bindTable(cmd, predictTable, o)
	return cmd
}

func defaultPredict() *predictOptions { return &predictOptions{edges: "all", nodes: "all"} }

var predictNetwork = networkRows(func(o *predictOptions) *networkOptions { return &o.networkOptions }, "that of OUT")

// predictTable declares the options of predict.
var predictTable = slices.Concat(setting.Table[predictOptions]{
	{Key: "what", Group: "What to predict",
		In: func(o *predictOptions) setting.Value {
			return setting.Hint(setting.Word(&o.what), graph.Predictable...)
		},
		Usual: true, Brief: "classes, probabilities, logits, values, embeddings or scores",
		Help: "what to write: " + setting.OneOf(graph.Predictable) + " (default classes; values if numbers were learnt; embeddings for a run of links)"},
	{Key: "layer",
		In: func(o *predictOptions) setting.Value { return setting.Int(&o.layer) },
		Help: "layer of embeddings, from 1; 0: the input of nodes, learnt rows too (default the last hidden layer; with one layer, its logits; " +
			"for links the last layer)"},
	{Key: "type",
		In:   func(o *predictOptions) setting.Value { return setting.Word(&o.kind) },
		Help: "node type (default the learnt one; links between two types need it)"},
	{Key: "relation",
		In:   func(o *predictOptions) setting.Value { return setting.Word(&o.relation) },
		Help: "{top}: the relation of the links, if the run learns several"},
	{Key: "nodes",
		In: func(o *predictOptions) setting.Value {
			return setting.Word(&o.nodes)
		},
		Usual: true, Brief: "nodes to predict: all, train, valid, test, or a file of ids",
		Help: "nodes to predict: all, train, valid, test, or a file with an id a line; with {top} the sources"},
	{Key: "edges",
		In: func(o *predictOptions) setting.Value {
			return setting.Hint(setting.Word(&o.edges), "all", "train", "valid", "test")
		},
		Usual: true, Brief: "edges to predict: all, train, valid or test",
		Help: "edges: which to predict: valid, test, train or all; or {pairs}"},
	{Key: "pairs",
		In:    func(o *predictOptions) setting.Value { return setting.Word(&o.pairs) },
		Usual: true, Brief: "file of the pairs to score, csv or Parquet",
		Help: "scores and edges: file of the pairs, csv or Parquet, with the columns src, dst, and relation if several are learnt; edges also " +
			"need the columns that the network reads. Csv without a header has src, dst, relation in this order"},
	{Key: "top",
		In:    func(o *predictOptions) setting.Value { return setting.Int(&o.top) },
		Usual: true, Brief: "scores: write the N best destinations of each source",
		Help: "scores: write the N best destinations of each source, instead of {pairs}"},
	{Key: "exclude_known",
		In:    func(o *predictOptions) setting.Value { return setting.Bool(&o.known) },
		Usual: true, Brief: "{top}: leave out links of the dataset",
		Help: "{top}: leave out links of the dataset, held-out ones too, and a node itself"},
	{Key: "at",
		In:    func(o *predictOptions) setting.Value { return setting.Word(&o.at) },
		Usual: true, Brief: "streams: the time of embeddings (default after the last event)",
		Help: "streams: the time of embeddings, in the units of the stream (default after the last event)"},
	{Key: "events",
		In:    func(o *predictOptions) setting.Value { return setting.Word(&o.events) },
		Usual: true, Brief: "streams: file of the pairs to score, csv or Parquet",
		Help: "streams: file of the pairs to score, csv or Parquet with the columns src, dst and time; csv without a header has them in this order"},
}, predictNetwork.Pick("The network", "checkpoint", "older-checkpoint", "unseen"), setting.Table[predictOptions]{
	{Key: "format", Group: "The file",
		In: func(o *predictOptions) setting.Value {
			return setting.Hint(setting.Word(&o.format), "parquet", "npy", "csv", "ogb-lsc")
		},
		Usual: true, Brief: "parquet, npy or csv (default by the ending of OUT)",
		Help: "parquet, npy or csv (default by the ending of OUT, else parquet); or ogb-lsc, into the folder OUT"},
	{Key: "force",
		In:    func(o *predictOptions) setting.Value { return setting.Bool(&o.force) },
		Usual: true,
		Help:  "replace OUT if it is there"},
	{Key: "json",
		In:    func(o *predictOptions) setting.Value { return setting.Bool(&o.json) },
		Usual: true,
		Help:  "print the result as JSON"},
}, predictNetwork.Pick("Memory and disk", "memory", "device", "matmul", "way", "tmp", "layer-dtype"), setting.Table[predictOptions]{
	{Key: "plan",
		In:   func(o *predictOptions) setting.Value { return setting.Bool(&o.plan) },
		Help: "print how each layer would be computed and what that would read, and write nothing"},
})

func runPredict(ctx context.Context, stdout, stderr io.Writer, runPath, dataset, out string, o *predictOptions) (err error) {
	if o.group == nil {
		owners, err := ownersOf(runPath, dataset)
		if err != nil {
			return err
		}
		if owners.workers > 0 {
			return o.together(ctx, stdout, stderr, runPath, owners, out)
		}
	}
	began := time.Now()
	if o.group.Rank() == 0 {
		if err := o.mayWrite(out); err != nil {
			return err
		}
	}
	p := newProgress(stderr)
	defer p.clear()
	dir, err := run.Look(runPath)
	if err != nil {
		return err
	}
	defer dir.Close()
	ask := o.askGraph
	if dir.Record().Options.Streams() {
		if err := o.checkStream(dir); err != nil {
			return err
		}
		ask = o.askStream
	} else if o.given("at") || o.events != "" {
		return fmt.Errorf("run %s: --at and --events go with runs on streams", runPath)
	}
	u, err := o.use(stderr, p, dir, dataset)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.Close()) }()
	defer func() { err = o.tidy(u, err) }()
	a, err := ask(ctx, p, u, out)
	if err != nil {
		return err
	}
	if o.plan {
		return a.plan(stdout)
	}
	report, err := a.write()
	if err != nil {
		return err
	}
	p.clear()
	*a.result.file() = written{out, string(report.Format), report.Files, report.Bytes, time.Since(began).Seconds(), u.network.Cost()}
	if o.json {
		return printJSON(stdout, a.result)
	}
	weights := u.used()
	printf(stdout, "%s\n%s, %s\n", weights.text(), a.text(), a.result.file().text())
	return nil
}

// together predicts by several workers. Worker 0 writes.
func (o *predictOptions) together(
	ctx context.Context, stdout, stderr io.Writer, runPath string, all owners, out string,
) error {
	switch {
	case o.plan:
		return misuse(fmt.Errorf("--plan: %s, and a plan is made for one worker; leave --plan out", all.why()))
	case export.Format(o.format) == export.OGBLSC:
		return misuse(fmt.Errorf("--format ogb-lsc: %s; take --format parquet, npy or csv", all.why()))
	case !slices.Contains([]string{"all", "train", "valid", "test"}, o.nodes):
		return misuse(fmt.Errorf("--nodes %s: %s; take all, train, valid or test", o.nodes, all.why()))
	}
	dir, err := run.Look(runPath)
	if err != nil {
		return err
	}
	learnt := dir.Record().Options
	if err := dir.Close(); err != nil {
		return err
	}
	ofEdges := learnt.Edges() && o.what != graph.Embeddings
	if o.what == graph.Scores || o.pairs != "" || o.top > 0 || ofEdges {
		return misuse(fmt.Errorf("%s, and several workers predict only for nodes; take --what embeddings", all.why()))
	}
	predict := func(ctx context.Context, stdout, stderr io.Writer, g *dist.Group) error {
		own := *o
		own.group = g
		return runPredict(ctx, stdout, stderr, runPath, all.path, out, &own)
	}
	return all.together(ctx, stdout, stderr, predict)
}

// mayWrite returns an error if OUT cannot be written.
func (o *predictOptions) mayWrite(out string) error {
	place := out
	if export.Format(o.format) == export.OGBLSC {
		place = filepath.Join(out, "y_pred_mag240m_"+o.nodes+".npz")
		if _, err := os.Stat(out); err != nil {
			return nil // the folder is made when there is something to put there
		}
	}
	return export.MayWrite(vfs.Default, place, o.force)
}

// tidy removes hidden rows that earlier commands left in the scratch directory, or says in err that
// this one leaves some.
func (o *predictOptions) tidy(u *usedRun, err error) error {
	if u.network == nil || u.network.Graph == nil {
		return err
	}
	n := u.network.Graph
	if err == nil && !o.plan && o.group.Rank() == 0 {
		err = n.Tidy()
	}
	if err != nil && n.Left() {
		err = fmt.Errorf("%w; what is computed of hidden layers stays in %s: the same command goes on from there, or remove it", err, o.Scratch)
	}
	return err
}

// askGraph opens the network of a run on a graph, and asks it for scores of links, for what it
// learnt of edges, or for nodes.
func (o *predictOptions) askGraph(ctx context.Context, p *progress, u *usedRun, out string) (*prediction, error) {
	o.Scratch, o.Predicts, o.GoesOn = filepath.Clean(out)+".layers", true, true
	if o.tmp != "" {
		o.Scratch = filepath.Join(o.tmp, filepath.Base(o.Scratch))
	}
	if err := u.open(ctx, p, &o.networkOptions); err != nil {
		return nil, err
	}
	n := u.network.Graph
	if o.what == "" {
		o.what = graph.Classes
		switch {
		case n.Links():
			o.what = graph.Embeddings
		case n.Numbers():
			o.what = graph.Values
		}
	}
	if o.what == graph.Scores && n.Links() {
		return o.askScores(ctx, p, u, out)
	}
	layer, err := n.Layer(o.what, o.layer)
	if err != nil {
		return nil, u.dir.About(err)
	}
	if n.Edges() && o.what != graph.Embeddings {
		return o.askEdges(ctx, p, u, out)
	}
	return o.askNodes(ctx, p, u, layer, out)
}
