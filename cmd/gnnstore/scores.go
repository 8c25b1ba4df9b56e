package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gnnstore/gnnstore/ingest/export"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train"
)

// scoresResult is what predict did of links. Its JSON keys are stable.
type scoresResult struct {
	Run          string   `json:"run"`
	Dataset      string   `json:"dataset"`
	Seal         string   `json:"seal"`
	Checkpoint   string   `json:"checkpoint"` // "best" or "last"
	Epoch        int      `json:"epoch"`
	Updates      int      `json:"updates"`
	Relation     string   `json:"relation"` // key of that whose links these are
	What         string   `json:"what"`
	Pairs        string   `json:"pairs"` // file
	Rows         int64    `json:"rows"`
	Out          string   `json:"out"`
	Format       string   `json:"format"`
	Files        []string `json:"files"`
	Bytes        int64    `json:"bytes"`
	BytesRead    int64    `json:"bytes_read"` // of feature rows, from disk
	Seconds      float64  `json:"seconds"`
	PeakRSSBytes int64    `json:"peak_rss_bytes"`
}

// checkScores says which flags of scores go with nothing, or are missing.
func (o *predictOptions) checkScores(given func(flag string) bool) error {
	switch {
	case o.what != train.Scores && given("pairs"):
		return errors.New("--pairs goes with --what scores")
	case o.what != train.Scores:
		return nil
	case o.pairs == "":
		return errors.New("--what scores needs --pairs FILE")
	case given("layer") || given("type") || given("nodes"):
		return errors.New("--layer, --type and --nodes do not go with --what scores: the pairs say which nodes they are of")
	}
	return nil
}

// score writes the scores of pairs.
func (o *predictOptions) score(ctx context.Context, stdout io.Writer, p *progress, n *usedNetwork, out string, began time.Time) error {
	number, src, dst := n.Relation()
	d := n.Data()
	relation := d.Relations[number].Relation
	pairs := &pairFile{path: o.pairs, relation: relation, ids: [2]store.IDs{d.IDs(src), d.IDs(dst)}}
	guarded := func(use func(src, dst []uint32) error) error {
		return store.Guard(func() error { return pairs.each(use) })
	}
	p.show("read pairs", 0, 0, "pairs")
	if err := guarded(func(_, _ []uint32) error { return ctx.Err() }); err != nil { // before anything is computed
		return err
	}
	r := scoresResult{
		Run: n.run, Dataset: n.ds.Path(), Seal: n.ds.Manifest().Seal, Checkpoint: n.Checkpoint, Epoch: n.Epoch, Updates: n.Updates,
		Relation: relation.Key(), What: o.what, Pairs: o.pairs, Rows: pairs.count, Out: out,
	}
	n.Follow(func(layer, layers int, kind string, done, nodes int) {
		p.show(fmt.Sprintf("layer %d of %d, %s", layer, layers, kind), int64(done), int64(nodes), "nodes")
	})
	done := int64(0)
	form := export.RowOptions{Format: export.Format(o.format), Rows: r.Rows, Force: o.force}
	report, err := export.WritePairs(out, d.IDs(src), d.IDs(dst), form, func(add func(src, dst []store.NodeID, scores []float32) error) error {
		return n.Scores(ctx, guarded, func(src, dst []uint32, scores []float32) error {
			done += int64(len(scores))
			p.show("score", done, r.Rows, "pairs")
			return add(src, dst, scores)
		})
	})
	if err != nil {
		return err
	}
	p.clear()
	r.Format, r.Files, r.Bytes = string(report.Format), report.Files, report.Bytes
	r.BytesRead, r.Seconds, r.PeakRSSBytes = n.BytesRead(), time.Since(began).Seconds(), n.PeakRSSBytes()
	if o.json {
		return printJSON(stdout, r)
	}
	printf(stdout, "%s weights, of epoch %d\n", r.Checkpoint, r.Epoch)
	printf(stdout, "scores of %s pairs of relation %s, in %s: %s in %s\n", count(r.Rows), r.Relation, seconds(r.Seconds), size(r.Bytes), out)
	return nil
}
