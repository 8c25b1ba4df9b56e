package main

import (
	"bufio"
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
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train"
	"github.com/gnnstore/gnnstore/train/infer"
	"github.com/gnnstore/gnnstore/train/run"
)

type predictOptions struct {
	networkOptions
	what     string
	layer    int
	kind     string // type of the nodes
	pairs    string // file of them
	top      int
	known    bool   // is left out
	relation string // of top
	edges    string
	at       string // time
	events   string // file of them
	nodes    string
	format   string
	force    bool
	plan     bool
	json     bool
	given    func(flag string) bool
}

// predictResult is the output of predict. Its JSON keys are stable.
type predictResult struct {
	used
	Target  string `json:"target"` // type of the nodes
	What    string `json:"what"`
	Layer   int    `json:"layer"`   // the predictions are made from its rows
	Columns int    `json:"columns"` // numbers a row
	Nodes   string `json:"nodes"`
	Rows    int    `json:"rows"`
	written
	// Layers reports on the computation of each layer for the nodes of each type, beside its plan.
	Layers        []infer.Report `json:"layers"`
	PeakRSSBytes  int64          `json:"peak_rss_bytes"`
	PeakFileBytes int64          `json:"peak_file_bytes"` // of mapped files, the program's among them
}

// written is the part of a result that describes the output files, and the time and reads for them.
type written struct {
	Out       string   `json:"out"`
	Format    string   `json:"format"`
	Files     []string `json:"files"`
	Bytes     int64    `json:"bytes"`
	BytesRead int64    `json:"bytes_read"` // of rows, from disk
	Seconds   float64  `json:"seconds"`
}

func wrote(out string, r *export.RowsReport, read int64, began time.Time) written {
	return written{out, string(r.Format), r.Files, r.Bytes, read, time.Since(began).Seconds()}
}

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
		Long: "Write to the file OUT what the network of the run in directory RUN predicts of nodes, with labels or without, each under the\n" +
			"id that you know it by. It reads all neighbours of each node, so that the same weights always predict the same. The network\n" +
			"is that of the best epoch. DATASET is needed where the dataset has moved. It may also be another one, with nodes that the\n" +
			"network has not seen, but the same types, relations, widths and classes; labels and a split may be missing. Learnt rows go\n" +
			"by the ids of nodes (--unseen says what new ones have); features made by fastrp or random are of one graph alone.\n\n" +
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
			if o.what != "" && !slices.Contains(train.Predictable, o.what) {
				errs = append(errs, fmt.Errorf("--what %s: there are %s", o.what, setting.OneOf(train.Predictable)))
			}
			switch export.Format(o.format) {
			case "", export.Parquet, export.NPY, export.CSV, export.OGBLSC:
			default:
				errs = append(errs, fmt.Errorf("--format %s: there are parquet, npy, csv and ogb-lsc", o.format))
			}
			errs = append(errs, o.checkSubmission())
			if err := errors.Join(errs...); err != nil {
				return misuse(err)
			}
			if !cmd.Flags().Changed("layer") {
				o.layer = train.DefaultLayer
			}
			o.given = cmd.Flags().Changed
			if err := o.checkScores(o.given); err != nil {
				return misuse(err)
			}
			dataset := ""
			if len(args) == 3 {
				dataset = args[1]
			}
			return runPredict(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], dataset, args[len(args)-1], o)
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
			return setting.Hint(setting.Word(&o.what), train.Predictable...)
		},
		Help: "what to write: " + setting.OneOf(train.Predictable) + " (default classes; values if numbers were learnt; embeddings for a run of links)"},
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
		Help: "nodes to predict: all, train, valid, test, or a file with an id a line; with {top} the sources"},
	{Key: "edges",
		In: func(o *predictOptions) setting.Value {
			return setting.Hint(setting.Word(&o.edges), "all", "train", "valid", "test")
		},
		Help: "edges: which to predict: valid, test, train or all; or {pairs}"},
	{Key: "pairs",
		In: func(o *predictOptions) setting.Value { return setting.Word(&o.pairs) },
		Help: "scores and edges: file of the pairs, csv or Parquet, with the columns src, dst, and relation if several are learnt; edges also " +
			"need the columns that the network reads. Csv without a header has src, dst, relation in this order"},
	{Key: "top",
		In:   func(o *predictOptions) setting.Value { return setting.Int(&o.top) },
		Help: "scores: write the N best destinations of each source, instead of {pairs}"},
	{Key: "exclude_known",
		In:   func(o *predictOptions) setting.Value { return setting.Bool(&o.known) },
		Help: "{top}: leave out links of the dataset, held-out ones too, and a node itself"},
	{Key: "at",
		In:   func(o *predictOptions) setting.Value { return setting.Word(&o.at) },
		Help: "streams: the time of embeddings, in the units of the stream (default after the last event)"},
	{Key: "events",
		In:   func(o *predictOptions) setting.Value { return setting.Word(&o.events) },
		Help: "streams: file of the pairs to score, csv or Parquet with the columns src, dst and time; csv without a header has them in this order"},
}, predictNetwork.Pick("The network", "checkpoint", "older-checkpoint", "unseen"), setting.Table[predictOptions]{
	{Key: "format", Group: "The file",
		In: func(o *predictOptions) setting.Value {
			return setting.Hint(setting.Word(&o.format), "parquet", "npy", "csv", "ogb-lsc")
		},
		Help: "parquet, npy or csv (default by the ending of OUT, else parquet); or ogb-lsc, into the folder OUT"},
	{Key: "force",
		In:   func(o *predictOptions) setting.Value { return setting.Bool(&o.force) },
		Help: "replace OUT if it is there"},
	{Key: "json",
		In:   func(o *predictOptions) setting.Value { return setting.Bool(&o.json) },
		Help: "print the result as JSON"},
}, predictNetwork.Pick("Memory and disk", "memory", "way", "tmp", "layer-dtype"), setting.Table[predictOptions]{
	{Key: "plan",
		In:   func(o *predictOptions) setting.Value { return setting.Bool(&o.plan) },
		Help: "print how each layer would be computed and what that would read, and write nothing"},
})

func runPredict(ctx context.Context, stdout, stderr io.Writer, runPath, dataset, out string, o *predictOptions) (err error) {
	began := time.Now()
	place := out
	if export.Format(o.format) == export.OGBLSC {
		place = filepath.Join(out, "y_pred_mag240m_"+o.nodes+".npz")
	}
	if _, err := os.Stat(filepath.Dir(place)); place == out || err == nil { // the folder is made when there is something to put there
		if err := export.MayWrite(vfs.Default, place, o.force); err != nil {
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
	switch {
	case dir.Record().Options.Streams():
		return o.predictStream(ctx, stdout, stderr, p, dir, dataset, out, began)
	case o.given("at") || o.events != "":
		return fmt.Errorf("run %s: --at and --events go with runs on streams", runPath)
	}
	o.Scratch, o.Predicts, o.GoesOn = filepath.Clean(out)+".layers", true, true
	if o.tmp != "" {
		o.Scratch = filepath.Join(o.tmp, filepath.Base(o.Scratch))
	}
	n, err := o.open(ctx, stderr, p, runPath, dataset)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	defer func() {
		if err == nil && !o.plan {
			err = n.Tidy()
		}
		if err != nil && n.Left() {
			err = fmt.Errorf("%w; what is computed of hidden layers stays in %s: the same command goes on from there, or remove it", err, o.Scratch)
		}
	}()
	if o.what == "" {
		o.what = train.Classes
		switch {
		case n.Links():
			o.what = train.Embeddings
		case n.Numbers():
			o.what = train.Values
		}
	}
	if o.what == train.Scores && n.Links() {
		return o.score(ctx, stdout, p, n, out, began)
	}
	layer, err := n.Layer(o.what, o.layer)
	if err != nil {
		return fmt.Errorf("run %s: %w", runPath, err)
	}
	if n.Edges() && o.what != train.Embeddings {
		return o.predictEdges(ctx, stdout, p, n, out, began)
	}
	if err := o.checkNodes(n); err != nil {
		return fmt.Errorf("run %s: %w", runPath, err)
	}
	kind, err := n.TypeOf(o.kind, o.what, layer)
	if err != nil {
		return fmt.Errorf("run %s: %w", runPath, err)
	}
	var sent *submission
	var nodes []uint32
	if export.Format(o.format) == export.OGBLSC {
		if sent, err = newSubmission(n, o.nodes); err == nil {
			nodes = sent.nodes
		}
	} else {
		nodes, err = predicted(ctx, n, kind, o.nodes)
	}
	if err != nil {
		return err
	}
	d := n.Data()
	if o.what == train.Embeddings && layer == 1 && n.Layers() == 1 && d.Links == nil {
		p.line("note: the network has one layer and no hidden one: its embeddings are its logits")
	}
	if o.plan {
		return printLayerPlan(stdout, p, n, layer, kind, nodes, o.json)
	}
	r := predictResult{
		used: n.used(), Target: d.Types[kind].Name, What: o.what, Layer: layer, Columns: n.Columns(o.what, layer, kind),
		Nodes: o.nodes, Rows: len(nodes),
	}
	form := export.RowOptions{Format: export.Format(o.format), Kind: export.Numbers, Cols: r.Columns, Rows: int64(r.Rows), Force: o.force}
	if d.Links == nil {
		form.Names = d.Labels.Label.ClassNames
	}
	switch {
	case o.what == train.Embeddings:
		form.Kind, form.Column = export.Vector, "embedding"
	case o.what == train.Values:
		form.Names = []string{"value"}
	case o.what == train.Classes && n.Several():
		form.Kind, form.Column = export.Flags, "classes"
	case o.what == train.Classes:
		form.Kind, form.Column = export.Class, "class"
	}
	done := int64(0)
	p.show("predict "+o.what, done, int64(r.Rows), "nodes")
	n.Follow(func(layer, layers int, kind string, done, nodes int) {
		if layer < layers {
			p.show(fmt.Sprintf("layer %d of %d, %s", layer, layers, kind), int64(done), int64(nodes), "nodes")
		}
	})
	n.followSpace(p, o.Scratch, form.Bytes(out, d.IDs(kind)))
	r.Layers = []infer.Report{}
	n.FollowLayers(func(l infer.Report) {
		r.Layers = append(r.Layers, l)
		p.line("layer %d of %d, %s", l.Layer, r.Layer, layerText(l))
	})
	fill := func(add func([]store.NodeID, []float32) error) error {
		return n.Predict(ctx, o.what, layer, kind, nodes, func(chunk []uint32, rows []float32) error {
			done += int64(len(chunk))
			p.show("predict "+o.what, done, int64(r.Rows), "nodes")
			return add(chunk, rows)
		})
	}
	var report *export.RowsReport
	if sent != nil {
		report, err = sent.write(out, o.nodes, o.force, fill)
	} else {
		report, err = export.WriteRows(out, d.IDs(kind), form, fill)
	}
	if err != nil {
		return err
	}
	p.clear()
	r.written = wrote(out, report, n.BytesRead(), began)
	r.PeakRSSBytes, r.PeakFileBytes = n.PeakRSSBytes(), n.PeakFileBytes()
	if o.json {
		return printJSON(stdout, r)
	}
	of := r.What
	switch {
	case of == train.Embeddings && r.Layer == 0:
		of = "rows for input"
	case of == train.Embeddings:
		of = fmt.Sprintf("%s of layer %d", of, r.Layer)
	}
	printf(stdout, "%s weights, of epoch %d\n", r.Checkpoint, r.Epoch)
	printf(stdout, "%s of %s nodes of type %s, by stored order, %s\n", of, count(int64(r.Rows)), r.Target, r.text())
	return nil
}

// layerText describes the time and the reads of computing a layer for the nodes of a type.
func layerText(l infer.Report) string {
	text := fmt.Sprintf("%s: %s nodes in %s", l.Type, count(int64(l.Nodes)), seconds(l.Seconds))
	if l.BytesRead > 0 || l.PlannedBytesRead > 0 {
		text += fmt.Sprintf(", %s held in %s, read %s in %s (planned %s, %s, %s)", l.Way, many(l.Parts, "part"), size(l.BytesRead), seconds(l.ReadSeconds),
			many(l.PlannedParts, "part"), size(l.PlannedBytesRead), seconds(l.PlannedReadSeconds))
	}
	if l.BytesWritten > 0 {
		text += ", wrote " + size(l.BytesWritten)
	}
	return text
}

// many returns "1 part", "2 parts" and the like.
func many(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return count(int64(n)) + " " + thing
}

// printLayerPlan prints the plan of computing the layers, relation by relation.
func printLayerPlan(stdout io.Writer, p *progress, n *usedNetwork, layer, kind int, nodes []uint32, asJSON bool) error {
	plan, err := n.PlanPredict(layer, kind, nodes)
	p.clear()
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(stdout, struct {
			Layers []infer.Planned `json:"layers"`
		}{plan})
	}
	for _, l := range plan {
		printf(stdout, "layer %d of %d, %s: %s nodes", l.Layer, layer, l.Type, count(int64(l.Nodes)))
		if l.BytesRead > 0 {
			printf(stdout, ", %s held in %s, reads %s in %s", l.Way, many(l.Parts, "part"), size(l.BytesRead), seconds(l.Seconds))
		}
		if l.BytesWritten > 0 {
			printf(stdout, ", writes %s", size(l.BytesWritten))
		}
		printf(stdout, "\n")
		for _, r := range l.Relations {
			printf(stdout, "  %s: %s edges, reads %s in %s\n", r.Relation, count(r.Edges), size(r.BytesRead), seconds(r.Seconds))
		}
	}
	return nil
}

// predicted returns the nodes of a type that --nodes names, in ascending order.
func predicted(ctx context.Context, n *usedNetwork, kind int, which string) ([]uint32, error) {
	d := n.Data()
	switch which {
	case "all":
		nodes := make([]uint32, d.Types[kind].Nodes)
		for v := range nodes {
			nodes[v] = uint32(v)
		}
		return nodes, nil
	case "train", "valid", "test":
		if d.Links != nil || kind != d.Target {
			return nil, fmt.Errorf("--nodes %s: nodes of type %s have no split; give all, or a file with an id a line", which, d.Types[kind].Name)
		}
		return d.Part(which)
	}
	return nodesOf(ctx, which, d.IDs(kind), d.Types[kind].Nodes)
}

// nodesOf reads the nodes from the file that --nodes names. Their type has count nodes.
func nodesOf(ctx context.Context, which string, ids store.IDs, count int) (nodes []uint32, err error) {
	f, err := os.Open(which)
	if err != nil {
		return nil, fmt.Errorf("--nodes %s: it is none of all, train, valid and test, and no file that can be read: %w", which, err)
	}
	defer f.Close()
	err = store.Guard(func() (err error) {
		nodes, err = nodesIn(ctx, f, ids, count)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("--nodes %s%w", which, err)
	}
	return nodes, nil
}

// mostLine is the length in bytes that a line with an id may have.
const mostLine = 1 << 20

// nodesIn reads an id a line, and returns the nodes in ascending order, once each. The type has
// count nodes. Empty lines are skipped. The error begins with the line.
func nodesIn(ctx context.Context, r io.Reader, ids store.IDs, count int) (nodes []uint32, err error) {
	lines, number := bufio.NewScanner(r), 0
	lines.Buffer(nil, mostLine)
	there, found := make([]bool, count), 0
	for lines.Scan() {
		if number++; number%(1<<16) == 0 && ctx.Err() != nil {
			return nil, fmt.Errorf(", line %d: %w", number, ctx.Err())
		}
		text := strings.TrimSuffix(lines.Text(), "\r")
		if number == 1 {
			text = strings.TrimPrefix(text, "\ufeff")
		}
		if text == "" {
			continue
		}
		v, ok, err := storedID(ids, text)
		if err != nil {
			return nil, fmt.Errorf(", line %d: %w", number, err)
		}
		if !ok {
			return nil, fmt.Errorf(", line %d: no node has the id %s; remove the line", number, text)
		}
		if !there[v] {
			there[v] = true
			found++
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf(", line %d: it is longer than %s, and no id; give a file with an id a line", number+1, size(mostLine))
	case err != nil:
		return nil, fmt.Errorf(", line %d: %w", number+1, err)
	}
	nodes = make([]uint32, 0, found)
	for v, is := range there {
		if is {
			nodes = append(nodes, uint32(v))
		}
	}
	if len(nodes) == 0 {
		return nil, errors.New(": no id is in it")
	}
	return nodes, nil
}
