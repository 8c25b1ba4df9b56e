package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/x448/float16"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/page"
)

// Bounds of the page of a dataset.
const (
	sampledRows  = 50_000 // rows that are read of a table, spread evenly over it
	shownColumns = 200
	shownClasses = 200
	openClasses  = 30 // a table of more classes is folded
)

// inspectionPage describes a dataset for a page: what inspect prints, degrees, classes, missing
// values and the ranges of columns. It reads offsets, labels, and some rows of tables.
func inspectionPage(ctx context.Context, ds *store.Dataset, in inspection) (*page.Document, error) {
	d := &page.Document{
		Kind: "dataset", Title: cmp.Or(in.Name, in.Path), Made: time.Now(),
		Lead: fmt.Sprintf("%s · sealed %s · format %d", in.Path, in.Created.Format(time.DateTime+" MST"), in.Version),
		Facts: []page.Fact{
			{Name: "Nodes", Value: count(in.Nodes), Note: fmt.Sprintf("numbered by %s order", in.Order)}, {Name: "Edges", Value: count(in.Edges)},
			{Name: "On disk", Value: size(in.Bytes)},
		},
	}
	if in.Classes > 0 {
		d.Facts = append(d.Facts, page.Fact{Name: "Classes", Value: count(in.Classes)})
	}
	d.Sections = append(d.Sections, graphSection(ds, in))
	err := store.Guard(func() error {
		labels, err := labelSection(ctx, ds, in)
		if err != nil {
			return err
		}
		features, err := featureSection(ctx, ds, in)
		for _, s := range []page.Section{labels, features} {
			if len(s.Tables) > 0 {
				d.Sections = append(d.Sections, s)
			}
		}
		return err
	})
	d.Sections = append(d.Sections, sourceSection(in))
	return d, err
}

// graphSection returns the section with the types, the relations and the degrees.
func graphSection(ds *store.Dataset, in inspection) page.Section {
	s := page.Section{Name: "graph", Title: "Graph"}
	for i, r := range in.Relations {
		s.Charts = append(s.Charts, degreeChart(r.Key, ds.Graph(i), r))
	}
	nodes := page.Table{Title: "Nodes", Head: page.Columns("type", "#nodes", "ids", "first id", "last id", "features")}
	for _, t := range in.NodeTypes {
		features := "yes"
		if t.Bare {
			features = "none"
		}
		nodes.Rows = append(nodes.Rows, page.Cells(t.Name, count(t.Count), t.IDs, t.First, t.Last, features))
	}
	edges := page.Table{Title: "Edges", Head: page.Columns("relation", "#edges", "kind", "#mean in-degree", "#largest", "#nodes without", "columns", "#size")}
	for _, r := range in.Relations {
		kind := "directed"
		if r.Symmetric {
			kind = "symmetric"
		}
		edges.Rows = append(edges.Rows, page.Cells(r.Key, count(r.Edges), kind, fmt.Sprintf("%.1f", r.MeanInDegree), count(int64(r.MaxInDegree)),
			count(r.NoInEdge), fmt.Sprint(len(r.Columns)), size(r.Bytes)))
	}
	s.Tables = append(s.Tables, nodes, edges)
	if len(in.Streams) > 0 {
		streams := page.Table{Title: "Streams", Head: page.Columns("stream", "from", "to", "#events", "#first time", "#last time", "#most at a node", "#size")}
		for _, e := range in.Streams {
			streams.Rows = append(streams.Rows, page.Cells(e.Name, e.Src, e.Dst, count(e.Events), plain(e.First),
				plain(e.Last), count(e.MostEvents), size(e.Bytes)))
		}
		s.Tables = append(s.Tables, streams)
	}
	for i := range s.Charts {
		s.Tables = append(s.Tables, s.Charts[i].Values())
	}
	return s
}

// degreeChart counts the nodes with in-edges by degree. Its columns double in width: 1, 2 to 3, 4
// to 7.
func degreeChart(key string, g *store.Graph, r inspectedRelation) page.Chart {
	var nodes []float64
	for degree := range g.Degrees() {
		at := 0
		for degree>>(at+1) > 0 {
			at++
		}
		for len(nodes) <= at {
			nodes = append(nodes, 0)
		}
		nodes[at]++
	}
	c := page.Chart{
		Title: "In-degrees of " + key, Form: page.Histogram, Empty: "No node has an edge.",
		X: page.Axis{Name: "in-degree"}, Y: page.Axis{Unit: page.Integer, Log: true, Zero: true},
		Note: fmt.Sprintf("%s nodes have no in-edge. Each column counts the degrees from its number up to the next column. Both axes are logarithmic.", count(r.NoInEdge)),
	}
	s := page.Series{Name: "nodes"}
	for at, n := range nodes {
		mark := page.Tick{At: float64(at), Text: fmt.Sprint(1 << at)}
		if at > 0 {
			mark.Long = fmt.Sprintf("%d to %d", 1<<at, 1<<(at+1)-1)
		}
		c.X.Ticks = append(c.X.Ticks, mark)
		if n > 0 {
			s.X, s.Y = append(s.X, float64(at)), append(s.Y, n)
		}
	}
	c.Series = []page.Series{s}
	return c
}

// labelSection counts the nodes of each class, in all and in each part of a split.
func labelSection(ctx context.Context, ds *store.Dataset, in inspection) (page.Section, error) {
	s := page.Section{Name: "labels", Title: "Labels"}
	if len(in.Labels) == 0 {
		return s, nil
	}
	t := page.Table{Head: page.Columns("labels", "of", "what", "#missing")}
	for _, l := range in.Labels {
		what := fmt.Sprintf("%d classes", l.Classes)
		if l.Numbers {
			what = "numbers"
		} else if l.Multi {
			what += ", several a node"
		}
		t.Rows = append(t.Rows, page.Cells(l.Name, l.NodeType, what, count(l.Missing)))
	}
	s.Tables = append(s.Tables, t)
	for i, l := range in.Labels {
		if l.Numbers || l.Multi {
			continue
		}
		labels, all := ds.Labels(i), make([]float64, l.Classes)
		for v := range ds.Manifest().Labels[i].Values.Rows {
			if v%(1<<20) == 0 && ctx.Err() != nil {
				return s, ctx.Err()
			}
			if c := labels.Class(store.NodeID(v)); c >= 0 && int64(c) < l.Classes {
				all[c]++
			}
		}
		s.Charts = append(s.Charts, classChart(l, all))
		s.Tables = append(s.Tables, classTable(ds, i, l, all))
	}
	return s, nil
}

func classChart(l inspectedLabel, all []float64) page.Chart {
	c := page.Chart{
		Title: "Classes of " + l.Name, Form: page.Histogram, X: page.Axis{Name: "class", Unit: page.Integer},
		Y: page.Axis{Unit: page.Integer, Zero: true}, Empty: "No node has a label.",
	}
	s := page.Series{Name: "nodes"}
	for class, n := range all {
		s.X, s.Y = append(s.X, float64(class)), append(s.Y, n)
	}
	c.Series = []page.Series{s}
	return c
}

// classTable counts the nodes of each class, in all and in each part of the first split of the node
// type.
func classTable(ds *store.Dataset, label int, l inspectedLabel, all []float64) page.Table {
	t := page.Table{Title: "Classes of " + l.Name, Folded: len(all) > openClasses, Head: page.Columns("class", "#nodes", "#share")}
	labels, total := ds.Labels(label), 0.0
	for _, n := range all {
		total += n
	}
	var parts [][]float64
	for i, split := range ds.Manifest().Splits {
		if split.NodeType != l.NodeType {
			continue
		}
		sets := ds.Split(i)
		for _, part := range []struct {
			name  string
			nodes []store.NodeID
		}{{"train", sets.Train}, {"valid", sets.Valid}, {"test", sets.Test}} {
			counts := make([]float64, len(all))
			for _, v := range part.nodes {
				if c := labels.Class(v); c >= 0 && int(c) < len(counts) {
					counts[c]++
				}
			}
			parts, t.Head = append(parts, counts), append(t.Head, page.Column{Name: part.name, Number: true})
		}
		break
	}
	for class, n := range all[:min(len(all), shownClasses)] {
		name := fmt.Sprint(class)
		if class < len(l.ClassNames) {
			name += " " + l.ClassNames[class]
		}
		share := n / max(total, 1)
		row := append(page.Cells(name, count(int64(n))), page.Cell{Text: percent(share), Bar: &share})
		for _, counts := range parts {
			row = append(row, page.Cell{Text: count(int64(counts[class]))})
		}
		t.Rows = append(t.Rows, row)
	}
	if len(all) > shownClasses {
		t.Note = fmt.Sprintf("Shown are the first %d of %s classes.", shownClasses, count(int64(len(all))))
	}
	return t
}

// columnRange sums up the values that sampled rows have in a column.
type columnRange struct {
	low, high, sum, squares float64
	known, zeros, missing   int64 // NaN is missing
}

func (c *columnRange) add(v float64) {
	if math.IsNaN(v) {
		c.missing++
		return
	}
	if c.known == 0 {
		c.low, c.high = v, v
	}
	c.low, c.high = min(c.low, v), max(c.high, v)
	c.sum, c.squares = c.sum+v, c.squares+v*v
	if c.known++; v == 0 {
		c.zeros++
	}
}

// cells returns the row of the table for a column; rows is the number of rows that were read.
func (c *columnRange) cells(name string, rows int64) []page.Cell {
	number := func(v float64) string {
		if c.known == 0 {
			return "–"
		}
		return page.Number.Text(v)
	}
	mean := c.sum / float64(max(c.known, 1))
	deviation := math.Sqrt(max(c.squares/float64(max(c.known, 1))-mean*mean, 0))
	zeros := float64(c.zeros) / float64(max(rows, 1))
	return append(page.Cells(name, number(c.low), number(mean), number(deviation), number(c.high)),
		page.Cell{Text: percent(zeros), Bar: &zeros}, page.Cell{Text: count(c.missing), Strong: c.missing > 0})
}

// featureSection returns the section with the ranges of each table's columns. It reads a sample of
// the rows.
func featureSection(ctx context.Context, ds *store.Dataset, in inspection) (page.Section, error) {
	s := page.Section{Name: "features", Title: "Features"}
	for i, t := range in.Tables {
		f := ds.Features(i)
		columns := make([]columnRange, min(f.Dim(), shownColumns))
		rows := int64(f.Rows())
		sampled := min(rows, sampledRows)
		for k := range sampled {
			if k%1000 == 0 && ctx.Err() != nil {
				return s, ctx.Err()
			}
			addRow(columns, f.RowAt(uint64(k*rows/sampled)), f.Elem())
		}
		table := page.Table{
			Title:  fmt.Sprintf("%s of %s: %d × %s", t.Name, cmp.Or(t.NodeType, t.Relation, t.Stream), t.Dim, t.DType),
			Head:   page.Columns("column", "#lowest", "#mean", "#deviation", "#highest", "#zeros", "#missing"),
			Folded: len(columns) > 20,
			Note:   fmt.Sprintf("Measured on %s of %s rows.", count(sampled), count(rows)),
		}
		names := columnNames(t, len(columns))
		for c := range columns {
			table.Rows = append(table.Rows, columns[c].cells(names[c], sampled))
		}
		if f.Dim() > len(columns) {
			table.Note += fmt.Sprintf(" Shown are the first %d of %s columns.", len(columns), count(t.Dim))
		}
		s.Tables = append(s.Tables, table)
		if filled := filledTable(t); len(filled.Rows) > 0 {
			s.Tables = append(s.Tables, filled)
		}
	}
	return s, nil
}

// addRow adds a row of little-endian numbers to the columns.
func addRow(columns []columnRange, row []byte, elem store.Elem) {
	for c := range columns {
		if elem == store.F16 {
			columns[c].add(float64(float16.Frombits(binary.LittleEndian.Uint16(row[2*c:])).Float32()))
		} else {
			columns[c].add(float64(math.Float32frombits(binary.LittleEndian.Uint32(row[4*c:]))))
		}
	}
}

// columnNames returns a name for each of the first n columns of a table: its name in the source, or
// its number if the dataset has no name.
func columnNames(t inspectedTable, n int) (names []string) {
	for _, e := range t.Encodings {
		for k := range e.Width {
			if len(names) == n {
				return names
			}
			name := cmp.Or(e.Name, fmt.Sprint(len(names)))
			switch {
			case e.Name != "" && e.Kind == store.CategoryColumn && int(k) < len(e.Categories) && e.Width > 1:
				name += " = " + e.Categories[k]
			case e.Name != "" && e.Width > 1:
				name += fmt.Sprintf(" %d", k)
			}
			if e.Unit != "" {
				name += " (" + e.Unit + ")"
			}
			names = append(names, name)
		}
	}
	for len(names) < n {
		names = append(names, fmt.Sprint(len(names)))
	}
	return names
}

// filledTable lists the columns whose missing cells ingest replaced.
func filledTable(t inspectedTable) page.Table {
	table := page.Table{Title: "Missing cells of " + t.Name + " in the source", Head: page.Columns("column", "rule", "#cells replaced")}
	for _, e := range t.Encodings {
		if e.Missing != "" {
			table.Rows = append(table.Rows, page.Cells(cmp.Or(e.Name, e.From), e.Missing, count(e.Filled)))
		}
	}
	return table
}

// sourceSection returns the section with the splits, and where the dataset comes from.
func sourceSection(in inspection) page.Section {
	s := page.Section{Name: "source", Title: "Splits and source", Points: in.Provenance.Notes}
	if len(in.Splits) > 0 {
		t := page.Table{Title: "Splits", Head: page.Columns("split", "of", "#train", "#valid", "#test", "#without in-edge")}
		for _, p := range in.Splits {
			t.Rows = append(t.Rows, page.Cells(p.Name, p.NodeType, count(p.Train), count(p.Valid), count(p.Test),
				count(p.NoEdge)))
		}
		s.Tables = append(s.Tables, t)
	}
	t := page.Table{Title: "Source", Head: page.Columns("what", "value")}
	t.Rows = append(t.Rows, page.Cells("read from", in.Provenance.Source), page.Cells("by", in.Provenance.Tool), page.Cells("seal", in.Seal))
	for _, p := range in.made() {
		t.Rows = append(t.Rows, page.Cells(p[0], p[1]))
	}
	s.Tables = append(s.Tables, t)
	return s
}
