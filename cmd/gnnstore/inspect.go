package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gnnstore/gnnstore/store"
)

// inspection is the output of inspect; its JSON keys are stable. Nodes, Edges and Classes are sums
// over all types and relations.
type inspection struct {
	Name       string              `json:"name"`
	Path       string              `json:"path"`
	Seal       string              `json:"seal"`
	Version    int                 `json:"version"`
	Created    time.Time           `json:"created"`
	Order      string              `json:"order"`
	Part       *store.Part         `json:"part,omitempty"` // nodes and edges are then the part's own
	Nodes      int64               `json:"nodes"`
	Edges      int64               `json:"edges"`
	Classes    int64               `json:"classes"`
	Bytes      int64               `json:"bytes"`
	NodeTypes  []inspectedNodes    `json:"node_types"`
	Relations  []inspectedRelation `json:"relations"`
	Streams    []inspectedStream   `json:"streams,omitempty"`
	Tables     []inspectedTable    `json:"tables"`
	Labels     []inspectedLabel    `json:"labels"`
	Splits     []inspectedSplit    `json:"splits"`
	Training   []inspectedReach    `json:"training,omitempty"` // an element a target; none where there is one node type
	Provenance store.Provenance    `json:"provenance"`
}

type inspectedNodes struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
	IDs   string `json:"ids"`                   // what users call nodes by: "numbers" or "texts"
	Bare  bool   `json:"no_features,omitempty"` // it has no table
	First string `json:"first_id"`
	Last  string `json:"last_id"` // of the nodes as stored
}

type inspectedRelation struct {
	Key          string   `json:"key"`
	Edges        int64    `json:"edges"`
	Symmetric    bool     `json:"symmetric"`
	ReverseOf    string   `json:"reverse_of,omitempty"` // the relation that has the same edges the other way round
	MeanInDegree float64  `json:"mean_in_degree"`
	MaxInDegree  int      `json:"max_in_degree"`
	NoInEdge     int64    `json:"nodes_without_in_edges"`
	BothWays     *float64 `json:"pairs_both_ways,omitempty"` // share, as read; nil if not sampled
	// Encoding describes how the edges were stored, if the dataset says it.
	Encoding *store.RelationEncoding `json:"encoding,omitempty"`
	Columns  []string                `json:"columns,omitempty"` // beside the neighbours: "weight f32"
	Bytes    int64                   `json:"bytes"`
	// EdgeSplit counts held-out edges. Edges counts the others, the edges to train on.
	EdgeSplit *inspectedEdgeSplit `json:"edge_split,omitempty"`
}

type inspectedEdgeSplit struct {
	Name  string            `json:"name"`
	Valid inspectedHeldPart `json:"valid"`
	Test  inspectedHeldPart `json:"test"`
}

type inspectedHeldPart struct {
	Edges        int64 `json:"edges"`
	SrcNegatives int64 `json:"src_negatives,omitempty"` // in the place of each edge's source
	DstNegatives int64 `json:"dst_negatives,omitempty"`
	Pool         int64 `json:"pool,omitempty"` // pairs that are no edges
	Bytes        int64 `json:"bytes"`
}

func inspectHeld(h *store.HeldOut) inspectedHeldPart {
	in := inspectedHeldPart{Edges: h.Edges, Bytes: h.Src.Bytes + h.Dst.Bytes}
	for _, more := range []struct {
		f *store.File
		n *int64
	}{{h.SrcNegatives, &in.SrcNegatives}, {h.DstNegatives, &in.DstNegatives}, {h.PoolSrc, &in.Pool}, {h.PoolDst, nil}} {
		if more.f != nil {
			in.Bytes += more.f.Bytes
		}
		if more.f != nil && more.n != nil {
			*more.n = more.f.Cols
		}
	}
	if h.PoolSrc != nil {
		in.Pool = h.PoolSrc.Rows
	}
	for _, c := range h.Columns {
		in.Bytes += c.Values.Bytes
	}
	return in
}

func (p inspectedHeldPart) String() string {
	text := count(p.Edges)
	for _, more := range []struct {
		n    int64
		what string
	}{{p.SrcNegatives, "sources"}, {p.DstNegatives, "destinations"}} {
		if more.n > 0 {
			text += fmt.Sprintf(", each with %s negative %s", count(more.n), more.what)
		}
	}
	if p.Pool > 0 {
		text += fmt.Sprintf(", with %s negative pairs", count(p.Pool))
	}
	return text
}

type inspectedTable struct {
	Name     string `json:"name"`
	NodeType string `json:"node_type,omitempty"`
	Relation string `json:"relation,omitempty"` // instead, for a table of edges
	Stream   string `json:"stream,omitempty"`   // instead, for a table of events
	Dim      int64  `json:"dim"`
	DType    string `json:"dtype"`
	RowBytes int64  `json:"row_bytes"`
	Stride   int64  `json:"stride"`
	Shards   int    `json:"shards"`
	Bytes    int64  `json:"bytes"`
	// Made, Seed, Normalize and Encodings describe the columns, if the dataset does.
	Made      string           `json:"made,omitempty"`
	Seed      uint64           `json:"seed,omitempty"`
	Normalize string           `json:"normalize,omitempty"`
	Encodings []store.Encoding `json:"encodings,omitempty"`
}

type inspectedLabel struct {
	Name       string   `json:"name"`
	NodeType   string   `json:"node_type"`
	Classes    int64    `json:"classes"`
	Multi      bool     `json:"multi"`
	Numbers    bool     `json:"numbers,omitempty"`
	Missing    int64    `json:"missing"` // nodes without a label, or of a multi-label the cells
	ClassNames []string `json:"class_names,omitempty"`
}

type inspectedSplit struct {
	Name     string `json:"name"`
	NodeType string `json:"node_type"`
	Train    int64  `json:"train"`
	Valid    int64  `json:"valid"`
	Test     int64  `json:"test"`
	NoEdge   int64  `json:"no_edge"` // nodes of all parts that receive no edge
}

func newInspect() *cobra.Command {
	var asJSON bool
	var ids, html string
	cmd := &cobra.Command{
		Use:   "inspect DATASET",
		Short: "Show counts, degrees, tables and sizes of a dataset",
		Args:  exactArgs("DATASET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("ids") {
				if html != "" {
					return misuse(errors.New("--ids and --html: choose one of them"))
				}
				return printIDs(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], ids)
			}
			if err := checkHTML(html); err != nil {
				return err
			}
			ds, err := openAny(cmd.ErrOrStderr(), args[0], 0)
			if err != nil {
				return err
			}
			defer ds.Close()
			var in inspection
			if err := store.Guard(func() (err error) { in, err = inspect(ds); return err }); err != nil {
				return err
			}
			if html != "" {
				d, err := inspectionPage(cmd.Context(), ds, in)
				if err == nil {
					err = writeHTML(html, d)
				}
				if err != nil {
					return err
				}
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), in)
			}
			printInspection(cmd.OutOrStdout(), in)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	cmd.Flags().StringVar(&html, "html", "", "also "+htmlHelp("what is printed, and degrees, classes and ranges of columns,"))
	cmd.Flags().StringVar(&ids, "ids", "", "print a line of JSON for each node of this type instead: its stored number and your id")
	return cmd
}

// inspect reads the offsets and the labels, and nothing larger.
func inspect(ds *store.Dataset) (inspection, error) {
	m := ds.Manifest()
	said, err := ds.Encodings()
	if err != nil {
		return inspection{}, err
	}
	if said == nil {
		said = new(store.Encodings)
	}
	in := inspection{Name: m.Name, Path: ds.Path(), Seal: m.Seal, Version: m.Version, Created: m.Created, Order: m.Order, Part: m.Part, Bytes: m.Bytes(), Provenance: m.Provenance}
	for i, t := range m.NodeTypes {
		t.Count = m.StoredNodes(i)
		row, err := inspectNodes(t, ds.IDs(i))
		if err != nil {
			return in, err
		}
		row.Bare = !slices.ContainsFunc(m.Tables, func(table store.Table) bool { return table.NodeType == t.Name })
		in.NodeTypes = append(in.NodeTypes, row)
		in.Nodes += t.Count
	}
	for i := range m.Relations {
		g := ds.Graph(i)
		r := inspectedRelation{Key: g.Relation.Key(), Edges: g.Edges(), Symmetric: g.Relation.Symmetric, ReverseOf: g.Relation.ReverseOf, Bytes: g.Bytes(), NoInEdge: int64(g.Nodes())}
		for _, c := range g.Relation.Columns {
			r.Columns = append(r.Columns, fmt.Sprintf("%s %v", c.Name, c.Elem))
			r.Bytes += c.Values.Bytes
		}
		for d := range g.Degrees() {
			r.MaxInDegree = max(r.MaxInDegree, d)
			r.NoInEdge--
		}
		if g.Nodes() > 0 {
			r.MeanInDegree = float64(r.Edges) / float64(g.Nodes())
		}
		if pairs := m.Provenance.Counts[store.PairsCompared]; pairs > 0 && len(m.Relations) == 1 {
			r.BothWays = new(float64(m.Provenance.Counts[store.PairsBothWays]) / float64(pairs))
		}
		r.Encoding = said.Relation(r.Key)
		if s := g.Relation.EdgeSplit; s != nil {
			r.EdgeSplit = &inspectedEdgeSplit{s.Name, inspectHeld(&s.Valid), inspectHeld(&s.Test)}
		}
		in.Relations = append(in.Relations, r)
		in.Edges += r.Edges
	}
	for i := range m.Streams {
		in.Streams = append(in.Streams, inspectStream(ds.Events(i)))
	}
	for i, t := range m.Tables {
		f := ds.Features(i)
		row := inspectedTable{Name: t.Name, NodeType: t.NodeType, Relation: t.Relation, Stream: t.Stream, Dim: t.Dim, DType: t.Elem.String(), RowBytes: int64(f.RowBytes()), Shards: len(t.Shards)}
		if of := said.Of(&t); of != nil {
			row.Made, row.Seed, row.Normalize, row.Encodings = of.Made, of.Seed, of.Normalize, of.Columns
		}
		for _, s := range t.Shards {
			row.Stride = s.Stride
			row.Bytes += s.Bytes
		}
		in.Tables = append(in.Tables, row)
	}
	for i, l := range m.Labels {
		labels := ds.Labels(i)
		row := inspectedLabel{Name: l.Name, NodeType: l.NodeType, Classes: l.Classes, Multi: l.Multi, Numbers: l.Numbers, ClassNames: l.ClassNames}
		for v := range l.Values.Rows {
			if l.Numbers {
				if !labels.Has(store.NodeID(v)) {
					row.Missing++
				}
			} else if l.Multi {
				for _, b := range labels.Bits(store.NodeID(v)) {
					if b == store.MissingBit {
						row.Missing++
					}
				}
			} else if labels.Class(store.NodeID(v)) < 0 {
				row.Missing++
			}
		}
		in.Labels = append(in.Labels, row)
		in.Classes += l.Classes
	}
	for i, s := range m.Splits {
		row := inspectedSplit{Name: s.Name, NodeType: s.NodeType, Train: s.Train.Rows, Valid: s.Valid.Rows, Test: s.Test.Rows}
		sets := ds.Split(i)
		for _, nodes := range [][]store.NodeID{sets.Train, sets.Valid, sets.Test} {
			row.NoEdge += int64(ds.Unreached(s.NodeType, nodes))
		}
		in.Splits = append(in.Splits, row)
	}
	in.Training = inspectReach(m)
	return in, nil
}

// inspectNodes shows a node type by the first and the last of its nodes.
func inspectNodes(t store.NodeType, ids store.IDs) (inspectedNodes, error) {
	row := inspectedNodes{Name: t.Name, Count: t.Count, IDs: "numbers"}
	if ids.HasNames() {
		row.IDs = "texts"
	}
	if t.Count == 0 {
		return row, nil
	}
	for _, end := range []struct {
		to *string
		v  store.NodeID
	}{{&row.First, 0}, {&row.Last, store.NodeID(t.Count - 1)}} {
		if *end.to = fmt.Sprint(ids.Original(end.v)); ids.HasNames() {
			name, err := ids.Name(end.v)
			if err != nil {
				return row, err
			}
			*end.to = strconv.Quote(name)
		}
	}
	return row, nil
}

func printInspection(w io.Writer, in inspection) {
	line := func(key, format string, args ...any) {
		printf(w, "%-10s "+format+"\n", append([]any{key}, args...)...)
	}
	line("dataset", "%s (%s), %s, format %d", in.Name, in.Path, size(in.Bytes), in.Version)
	line("sealed", "%s, %s", in.Created.Format(time.DateTime+" MST"), in.Seal)
	if p := in.Part; p != nil {
		line("part", "%d of %d, owners by %s, of the dataset with seal %s", p.Index, p.Parts, p.Owner, p.Of)
		line("", "nodes, edges and features are its own; labels and splits are the whole's")
	}
	for _, t := range in.NodeTypes {
		bare := ""
		if t.Bare {
			bare = ", without features"
		}
		line("nodes", "%s: %s, numbered by %s order%s", t.Name, count(t.Count), in.Order, bare)
		if t.IDs == "texts" {
			line("", "their ids are texts: the first is %s, the last %s", t.First, t.Last)
		}
	}
	for _, r := range in.Relations {
		kind := "directed"
		if r.Symmetric {
			kind = "symmetric"
		}
		line("edges", "%s: %s %s, in-degree mean %.1f, max %s, none at %s nodes, %s", r.Key, count(r.Edges), kind, r.MeanInDegree, count(int64(r.MaxInDegree)), count(r.NoInEdge), size(r.Bytes))
		if r.BothWays != nil {
			line("", "%.2g %% of the connected pairs had edges in both directions as they were read", 100**r.BothWays)
		}
		if r.ReverseOf != "" {
			line("", "the reverse of %s", r.ReverseOf)
		}
		if s := r.EdgeSplit; s != nil {
			line("", "held out by %s, %s: valid %v; test %v", s.Name, size(s.Valid.Bytes+s.Test.Bytes), s.Valid, s.Test)
		}
		if len(r.Columns) > 0 {
			line("", "each with %s", strings.Join(r.Columns, ", "))
		}
	}
	for _, s := range in.Streams {
		printStream(line, s)
	}
	for _, t := range in.Tables {
		name := t.Name
		if t.Stream != "" {
			name += " of " + t.Stream
		} else if t.Relation != "" {
			name += " of " + t.Relation
		} else if len(in.NodeTypes) > 1 {
			name += " of " + t.NodeType
		}
		line("features", "%s: %d × %s, rows of %d bytes every %d, %d shards, %s", name, t.Dim, t.DType, t.RowBytes, t.Stride, t.Shards, size(t.Bytes))
		if text := columnsText(t); text != "" {
			line("", "%s", text)
		}
	}
	for _, l := range in.Labels {
		name := l.Name
		if len(in.NodeTypes) > 1 {
			name += " of " + l.NodeType
		}
		of := "nodes"
		if l.Multi {
			of = "cells"
		}
		what := fmt.Sprintf("%d classes", l.Classes)
		if l.Numbers {
			what = "numbers"
		}
		line("labels", "%s: %s, missing in %s %s", name, what, count(l.Missing), of)
	}
	for _, s := range in.Splits {
		unreached := ""
		if s.NoEdge > 0 && len(in.Relations) > 0 {
			unreached = fmt.Sprintf("; no edge leads to %s of them", count(s.NoEdge))
		}
		line("split", "%s: %s train, %s valid, %s test%s", s.Name, count(s.Train), count(s.Valid), count(s.Test), unreached)
	}
	printReach(w, in.Training)
	line("source", "%s by %s", in.Provenance.Source, in.Provenance.Tool)
	for _, p := range in.made() {
		line("", "%s %s", p[0], p[1])
	}
	for _, n := range in.Provenance.Notes {
		line("note", "%s", n)
	}
}

// columnsText describes the first few columns of a table. It returns "" if only their number is
// known.
func columnsText(t inspectedTable) string {
	const most = 12
	var texts []string
	if t.Made != "" {
		made := "made by " + t.Made
		if t.Seed != 0 {
			made += fmt.Sprintf(" with seed %d", t.Seed)
		}
		texts = append(texts, made)
	}
	if t.Normalize != "" {
		texts = append(texts, "normalised by "+t.Normalize)
	}
	for i, c := range t.Encodings {
		if c.Name == "" && c.From == "" && c.Kind != store.FoldedColumns {
			continue
		}
		if i == most {
			texts = append(texts, "…")
			break
		}
		texts = append(texts, columnText(c))
	}
	return strings.Join(texts, ", ")
}

// columnText describes a column in a few words.
func columnText(c store.Encoding) string {
	text := clean(c.Name)
	if c.Name == "" {
		text = "from " + clean(c.From)
	}
	switch {
	case c.Kind == store.FoldedColumns:
		text = fmt.Sprintf("%s columns that are known by their checksum", count(c.Width))
	case c.Encoder == store.HashedCategory:
		text += fmt.Sprintf(" (hashed into %d columns)", c.Width)
	case c.Kind == store.DateColumn:
		text += fmt.Sprintf(" (date: %s", strings.Join(c.Parts, ", "))
		if c.Reference != "" {
			text += " until " + c.Reference
		}
		text += ")"
	case c.Kind == store.CategoryColumn:
		bucket := ""
		if c.Unknown == store.UnknownBucket {
			bucket = " and a bucket for unknown ones"
		}
		text += fmt.Sprintf(" (%d categories%s, %s)", len(c.Categories), bucket, c.Encoder)
	case c.Width > 1 && c.Missing == store.MissingIndicator:
		text += fmt.Sprintf(" (%d numbers)", c.Width-1)
	case c.Width > 1:
		text += fmt.Sprintf(" (%d numbers)", c.Width)
	}
	if c.Unit != "" {
		text += " in " + clean(c.Unit)
	}
	if scale := c.ScaleText(); scale != "" {
		text += ", scaled by " + scale
	}
	if c.Missing != "" {
		text += ", missing by " + c.Missing
	}
	return text
}

// made returns the options that the dataset was made with and the counts of its source, each with
// its value as text. Options without a value are left out.
func (in *inspection) made() (pairs [][2]string) {
	for _, m := range []map[string]string{in.Provenance.Options, counts(in.Provenance.Counts)} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if m[k] != "" {
				pairs = append(pairs, [2]string{k, m[k]})
			}
		}
	}
	return pairs
}

func counts(m map[string]int64) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[k] = count(v)
	}
	return out
}
