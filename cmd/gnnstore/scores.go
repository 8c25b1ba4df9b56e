package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gnnstore/gnnstore/ingest/export"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train"
	"github.com/gnnstore/gnnstore/train/task"
)

// scoresResult is the output of predict for links. Its JSON keys are stable.
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
	PeakRSSBytes int64 `json:"peak_rss_bytes"`
}

// checkScores refuses flags of scores that do not go with the others, and names missing ones.
func (o *predictOptions) checkScores(given func(flag string) bool) error {
	switch {
	case o.events != "":
		return nil // of a stream, which checkStream looks at
	case o.what != train.Scores && (given("top") || o.known || o.relation != ""):
		return errors.New("--top, --exclude-known and --relation go with --what scores")
	case o.what == train.Embeddings && o.pairs != "":
		return errors.New("--pairs: embeddings are of nodes; take --what scores, of links, or what the run learnt of edges")
	case o.what != train.Scores:
		return nil
	case o.plan:
		return errors.New("--plan goes with predictions of nodes; of --what embeddings it says what the rows take that scores are of")
	case (o.pairs == "") != given("top"):
		return errors.New("--what scores needs --pairs FILE or --top K, one of them; of a run on a stream --events FILE")
	case given("top") && o.top < 1:
		return fmt.Errorf("--top %d: at least 1", o.top)
	case given("layer") || given("type"):
		return errors.New("--layer and --type do not go with --what scores, which are of the rows that the decoder reads")
	case o.pairs != "" && (given("nodes") || o.known || o.relation != ""):
		return errors.New("--nodes, --exclude-known and --relation go with --top: pairs say themselves which nodes and relation they are of")
	}
	return nil
}

// score writes the scores of pairs: of those in a file, or of each source with its best
// destinations.
func (o *predictOptions) score(ctx context.Context, stdout io.Writer, p *progress, n *usedNetwork, out string, began time.Time) error {
	_, src, dst := n.Relation()
	d := n.Data()
	r := scoresResult{used: n.used(), What: o.what}
	of := export.Pairs{Src: d.IDs(src), Dst: d.IDs(dst)}
	var keys []string
	for _, l := range n.learntRelations() {
		keys = append(keys, l.Key())
		if len(d.Links.All) > 1 {
			of.Relations = append(of.Relations, l.Name)
		}
	}
	r.Relation = strings.Join(keys, ", ")
	n.Follow(func(layer, layers int, kind string, done, nodes int) {
		p.show(fmt.Sprintf("layer %d of %d, %s", layer, layers, kind), int64(done), int64(nodes), "nodes")
	})
	write := func(rows int64, fill func(add func(p train.Pairs, scores []float32) error) error) error {
		form := export.RowOptions{
			Format: export.Format(o.format), Kind: export.Numbers, Names: []string{"score"}, Cols: 1, Rows: rows, Fewer: o.top > 0, Force: o.force,
		}
		n.followSpace(p, o.Scratch, form.Bytes(out, of.Src, of.Dst))
		report, err := export.WritePairs(out, of, form, func(add addPairs) error {
			return fill(func(p train.Pairs, scores []float32) error {
				r.Rows += int64(len(scores))
				return add(p.Src, p.Dst, p.Of, scores)
			})
		})
		if err != nil {
			return err
		}
		r.written = wrote(out, report, n.BytesRead(), began)
		return nil
	}
	var err error
	if o.pairs != "" {
		err = o.scorePairs(ctx, p, n, &r, write)
	} else {
		err = o.findTop(ctx, p, n, &r, write)
	}
	if err != nil {
		return err
	}
	p.clear()
	r.PeakRSSBytes = n.PeakRSSBytes()
	if o.json {
		return printJSON(stdout, r)
	}
	printf(stdout, "%s weights, of epoch %d\n", r.Checkpoint, r.Epoch)
	best := ""
	if r.Top > 0 {
		best = fmt.Sprintf(", the best %s of each of %s sources", count(int64(r.Top)), count(int64(r.Sources)))
	}
	relation := "relation " + r.Relation
	if len(keys) > 1 && r.Top == 0 {
		relation = fmt.Sprintf("%d relations", len(keys))
	}
	printf(stdout, "scores of %s pairs of %s%s, %s\n", count(r.Rows), relation, best, r.text())
	return nil
}

// writePairs calls fill to add pairs to the file, rows of them at most.
type writePairs func(rows int64, fill func(add func(p train.Pairs, scores []float32) error) error) error

// addPairs is the function that export.WritePairs passes to its caller.
type addPairs = func(src, dst []store.NodeID, of []uint32, rows []float32) error

func (o *predictOptions) scorePairs(ctx context.Context, p *progress, n *usedNetwork, r *scoresResult, write writePairs) error {
	pairs := newPairFile(o.pairs, n)
	r.Pairs = o.pairs
	p.show("read pairs", 0, 0, "pairs")
	if err := pairs.guarded(func(train.Pairs) error { return ctx.Err() }); err != nil { // before anything is computed
		return err
	}
	all := pairs.count
	return write(all, func(add func(p train.Pairs, scores []float32) error) error {
		return n.Scores(ctx, pairs.guarded, func(some train.Pairs, scores []float32) error {
			err := add(some, scores)
			p.show("score", r.Rows, all, "pairs")
			return err
		})
	})
}

func (o *predictOptions) findTop(ctx context.Context, p *progress, n *usedNetwork, r *scoresResult, write writePairs) error {
	_, src, dst := n.Relation()
	sources, err := predicted(ctx, n, src, o.nodes)
	if err != nil {
		return err
	}
	all := n.learntRelations()
	number := 0
	switch {
	case o.relation != "":
		if number = relationOf(all, o.relation); number < 0 {
			return fmt.Errorf("--relation %s: it is none of those whose links the run learns: %s", o.relation, r.Relation)
		}
	case len(all) > 1:
		return fmt.Errorf("--top %d: the run learns the links of %d relations; say by --relation of which of them", o.top, len(all))
	}
	r.Top, r.ExcludeKnown, r.Sources, r.Relation = o.top, o.known, len(sources), all[number].Key()
	top := task.TopOptions{K: o.top, Of: number, ExcludeKnown: o.known, Progress: func(done, all int64) { p.show("find the best", done, all, "pairs") }}
	most := int64(len(sources)) * int64(min(o.top, n.Data().Types[dst].Nodes))
	return write(most, func(add func(p train.Pairs, scores []float32) error) error {
		var from, of []uint32
		return n.Top(ctx, top, sources, func(u uint32, best []uint32, scores []float32) error {
			from, of = from[:0], of[:0]
			for range best {
				from, of = append(from, u), append(of, uint32(number))
			}
			return add(train.Pairs{Src: from, Dst: best, Of: of}, scores)
		})
	})
}
