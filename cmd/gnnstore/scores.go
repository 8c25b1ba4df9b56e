package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/export"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/graph"
	"github.com/gnnstore/gnnstore/train/task"
)

// scoresResult is the output of predict for links.
type scoresResult struct {
	used
	Relation     string `json:"relation"` // key of the links' relation, or keys of several
	What         string `json:"what"`
	Pairs        string `json:"pairs,omitempty"` // file
	Top          int    `json:"top,omitempty"`
	ExcludeKnown bool   `json:"exclude_known,omitempty"`
	Sources      int    `json:"sources,omitempty"` // of Top
	Rows         int64  `json:"rows"`
	written

	relations int // learnt by the run
}

// checkScores refuses flags of scores that do not go with the others, and names missing ones.
func (o *predictOptions) checkScores() error {
	given := o.given
	switch {
	case o.events != "":
		return nil // of a stream, which checkStream looks at
	case o.what != graph.Scores && (given("top") || o.known || o.relation != ""):
		return errors.New("--top, --exclude-known and --relation go with --what scores")
	case o.what == graph.Embeddings && o.pairs != "":
		return errors.New("--pairs: embeddings are of nodes; take --what scores, of links, or what the run learnt of edges")
	case o.what != graph.Scores:
		return nil
	case o.plan:
		return errors.New("--plan goes with predictions of nodes; with --what embeddings it plans the rows that scores come from")
	case (o.pairs == "") != given("top"):
		return errors.New("--what scores needs --pairs FILE or --top K, one of them; of a run on a stream --events FILE")
	case given("top") && o.top < 1:
		return fmt.Errorf("--top %d: at least 1", o.top)
	case given("layer") || given("type"):
		return errors.New("--layer and --type do not go with --what scores: these come from the rows that the decoder reads")
	case o.pairs != "" && (given("nodes") || o.known || o.relation != ""):
		return errors.New("--nodes, --exclude-known and --relation go with --top: the pairs name their nodes and relation")
	}
	return nil
}

// text describes the rows.
func (r *scoresResult) text() string {
	relation, best := "relation "+r.Relation, ""
	switch {
	case r.Top > 0:
		best = fmt.Sprintf(", the best %s of each of %s sources", count(int64(r.Top)), count(int64(r.Sources)))
	case r.relations > 1:
		relation = fmt.Sprintf("%d relations", r.relations)
	}
	return fmt.Sprintf("scores of %s pairs of %s%s", count(r.Rows), relation, best)
}

// askScores asks for scores of pairs: those in a file, or each source with its best destinations.
func (o *predictOptions) askScores(ctx context.Context, p *progress, u *usedRun, out string) (*prediction, error) {
	n := u.network.Graph
	_, src, dst := n.Relation()
	d := n.Data()
	learnt := learntRelations(n)
	r := &scoresResult{used: u.used(), What: o.what, relations: len(learnt)}
	of := export.Pairs{Src: d.IDs(src), Dst: d.IDs(dst)}
	var keys []string
	for _, l := range learnt {
		keys = append(keys, l.Key())
		if len(learnt) > 1 {
			of.Relations = append(of.Relations, l.Name)
		}
	}
	r.Relation = strings.Join(keys, ", ")
	showLayers(p, n, "")
	ask := o.findTop
	if o.pairs != "" {
		ask = o.scorePairs
	}
	rows, fill, err := ask(ctx, p, n, r)
	if err != nil {
		return nil, err
	}
	form := export.RowOptions{
		Format: export.Format(o.format), Kind: export.Numbers, Names: []string{"score"}, Cols: 1, Rows: rows, Fewer: o.top > 0, Force: o.force,
	}
	write := func() (*export.RowsReport, error) {
		showSpace(p, n, o.Scratch, form.Bytes(out, of.Src, of.Dst))
		return export.WritePairs(out, of, form, func(add addPairs) error {
			return fill(func(p graph.Pairs, scores []float32) error {
				r.Rows += int64(len(scores))
				return add(p.Src, p.Dst, p.Of, scores)
			})
		})
	}
	return &prediction{result: r, write: write, text: r.text}, nil
}

// fillScores calls add with pairs and their scores.
type fillScores func(add func(p graph.Pairs, scores []float32) error) error

// addPairs is the function that export.WritePairs passes to its caller.
type addPairs = func(src, dst []store.NodeID, of []uint32, rows []float32) error

// scorePairs returns the number of the pairs in a file, and a function that scores them.
func (o *predictOptions) scorePairs(ctx context.Context, p *progress, n *graph.Network, r *scoresResult) (rows int64, _ fillScores, err error) {
	pairs := newPairFile(o.pairs, n)
	r.Pairs = o.pairs
	if err := pairs.check(ctx, p, "pairs"); err != nil {
		return 0, nil, err
	}
	all := pairs.count
	return all, func(add func(p graph.Pairs, scores []float32) error) error {
		return n.Scores(ctx, pairs.guarded, func(some graph.Pairs, scores []float32) error {
			err := add(some, scores)
			p.show("score", r.Rows, all, "pairs")
			return err
		})
	}, nil
}

// findTop returns the most pairs that there may be, and a function that finds the best destinations
// of each source.
func (o *predictOptions) findTop(ctx context.Context, p *progress, n *graph.Network, r *scoresResult) (most int64, _ fillScores, err error) {
	_, src, dst := n.Relation()
	sources, err := predicted(ctx, n, src, o.nodes)
	if err != nil {
		return 0, nil, err
	}
	all := learntRelations(n)
	number := 0
	switch {
	case o.relation != "":
		if number = relationOf(all, o.relation); number < 0 {
			return 0, nil, fmt.Errorf("--relation %s: it is none of those whose links the run learns: %s", o.relation, r.Relation)
		}
	case len(all) > 1:
		return 0, nil, fmt.Errorf("--top %d: the run learns the links of %d relations; say by --relation of which of them", o.top, len(all))
	}
	r.Top, r.ExcludeKnown, r.Sources, r.Relation = o.top, o.known, len(sources), all[number].Key()
	top := task.TopOptions{K: o.top, Of: number, ExcludeKnown: o.known, Progress: func(done, all int64) { p.show("find the best", done, all, "pairs") }}
	most = int64(len(sources)) * int64(min(o.top, n.Data().Types[dst].Nodes))
	return most, func(add func(p graph.Pairs, scores []float32) error) error {
		var from, of []uint32
		return n.Top(ctx, top, sources, func(u uint32, best []uint32, scores []float32) error {
			from, of = from[:0], of[:0]
			for range best {
				from, of = append(from, u), append(of, uint32(number))
			}
			return add(graph.Pairs{Src: from, Dst: best, Of: of}, scores)
		})
	}, nil
}
