package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/store"
)

// chooseFeatures decides which node types get made features.
func (b *builder) chooseFeatures() error {
	has := map[string]bool{}
	for _, t := range b.schema.Tables {
		if t.Relation == "" {
			has[t.NodeType] = true
		}
	}
	b.makes = map[string]bool{}
	if b.features.kind == "mean" {
		return b.chooseMeans(has)
	}
	if b.features.kind == "" || b.features.kind == "none" {
		if len(has) == 0 && b.features.kind == "" && !b.schema.Featureless {
			if none := b.schema.NoFeatures; none != "" {
				return fmt.Errorf("%s; or choose {features} %s", none, featureChoices)
			}
			return errors.New("the source has no features: choose {features} " + featureChoices)
		}
		bare := false
		for _, t := range b.schema.NodeTypes {
			if !has[t.Name] {
				b.note("node type %s has no features", t.Name)
				bare = true
			}
		}
		if bare && b.features.kind == "" && !b.schema.Featureless {
			b.note("training learns rows for nodes without features, but nodes of a later graph have no such rows: {features} fastrp:128 makes columns from the neighbourhood")
		}
		return nil
	}
	replace := len(has) == len(b.schema.NodeTypes)
	for _, t := range b.schema.NodeTypes {
		b.makes[t.Name] = replace || !has[t.Name]
	}
	if b.features.kind == "degree" {
		b.note("degrees alone tell little about a node: {features} fastrp:128 makes columns from its neighbourhood instead")
	}
	for _, t := range b.schema.Tables {
		if replace && t.Relation == "" {
			b.drop("features %s of node type %s: {features} %s takes their place", t.Name, t.NodeType, b.Features)
		}
	}
	if b.Normalize == NormalizeRow && (replace || len(has) == 0) {
		return fmt.Errorf("{normalize} row: it is for features that are read, and {features} %s makes all of them; leave one of the two out", b.Features)
	}
	return nil
}

// replaced reports whether made features replace one of the source's tables, which is passed over.
func (b *builder) replaced(t ingest.Table) bool { return t.Relation == "" && b.makes[t.NodeType] }

// tableState is one table under way, as the journal keeps it.
type tableState struct {
	Report  TableReport      `json:"report"`
	Buckets []extsort.Bucket `json:"buckets,omitempty"` // rows by stored id, on their way
	Memory  int64            `json:"memory,omitempty"`  // by which the buckets were sized
}

// writeTables writes the source's tables. It writes rows at once if they come in stored order, if
// the source gives them in any order, or if all fit in memory. Otherwise it sorts them first.
func (b *builder) writeTables(s *sizes, do func(pass)) {
	for i, t := range b.schema.Tables {
		if b.replaced(t) {
			continue
		}
		rows, log := s.rows(b, t), s.rows(b, t)*int64(t.Dim*b.elem().Size()+4)
		name := "features " + ownerOf(t) + "/" + t.Name
		c := b.tableCost(t, rows)
		run := func(ctx context.Context) error { return b.readTable(ctx, i, t) }
		if b.hasRowsAt(i, t) {
			run = func(ctx context.Context) error {
				return b.makeTable(ctx, t, false, func(rows []uint32, dst []float32) { b.extras.RowsAt(i, rows, dst) })
			}
		}
		if b.sortsRows(i, t, rows) {
			do(pass{name: "sort " + name, total: b.tableRows(t), unit: "rows",
				cost: cost{items: rows, seconds: c.seconds, spillWritten: log},
				run:  func(ctx context.Context) error { return b.sortRows(ctx, i, t) }})
			c.seconds, c.spillRead = 0, log
			run = func(ctx context.Context) error { return b.writePlaced(ctx, t) }
		}
		do(pass{name: "write " + name, total: b.storedRows(t), unit: "rows", cost: c, run: run})
	}
}

// tableCost is the cost of a table whose rows are written at once.
func (b *builder) tableCost(t ingest.Table, rows int64) cost {
	width := b.width(t)
	written := rows*b.rowBytes(width) + sectionOverhead
	return cost{items: rows, seconds: float64(rows*int64(width)) / rateValues, written: written}
}

// hasRowsAt reports whether the source has the rows of table i in any order.
func (b *builder) hasRowsAt(i int, t ingest.Table) bool {
	return t.Relation == "" && b.extras.RowsAt != nil && b.extras.RowsAt(i, nil, nil)
}

// sortsRows reports whether the rows of table i are sorted before they are written.
func (b *builder) sortsRows(i int, t ingest.Table, rows int64) bool {
	if k := b.streamOf(t.Relation); k >= 0 {
		return b.state.Relations[k].Read && !b.state.Relations[k].inOrder()
	}
	if t.Relation != "" || b.Order == OrderOriginal || b.hasRowsAt(i, t) {
		return false
	}
	name := "features " + ownerOf(t) + "/" + t.Name
	// An interrupted Build may have had less memory, and have sorted them already; or more.
	if b.did("sort "+name) || b.did("write "+name) {
		return b.did("sort " + name)
	}
	return !extsort.PlacerFits(rows, t.Dim*b.elem().Size(), cmp.Or(b.test.placed, b.room()/2))
}

// readTable reads table i of the source. It writes the rows as they come, or in stored order from
// memory.
func (b *builder) readTable(ctx context.Context, i int, t ingest.Table) error {
	w, err := b.newTable(t, false)
	if err != nil {
		return err
	}
	if w.stored != nil {
		if w.placer, err = b.area.NewPlacer("", b.tableRows(t), t.Dim*b.elem().Size(), b.room()/2); err != nil {
			return err
		}
		defer w.placer.Free()
	} else if err := w.open(); err != nil {
		return err
	}
	if err := w.read(ctx, i); err != nil {
		return err
	}
	if w.stored != nil {
		if err := w.open(); err != nil {
			return err
		}
		if err := w.placer.Each(w.writeRows(ctx)); err != nil {
			return err
		}
	}
	return w.close()
}

// sortRows reads table i of the source and sorts its rows on disk by their places in the dataset.
func (b *builder) sortRows(ctx context.Context, i int, t ingest.Table) error {
	rows, width := b.storedRows(t), t.Dim*b.elem().Size()
	w, err := b.newTable(t, false)
	if err != nil {
		return err
	}
	memory, err := b.forPlacer(rows, width, b.room()/4*3)
	if err != nil {
		return err
	}
	memory = min(memory, max(rows*int64(width)-1, 1)) // it must not fit: passes leave their results on disk
	if k := b.streamOf(t.Relation); k >= 0 {
		buf, err := extsort.Buffer(rowBytes, 1<<20)
		if err != nil {
			return err
		}
		defer buf.Close()
		w.placed = &placed{area: b.area, log: b.state.Relations[k].Stream.Places[0], buf: buf.Bytes()}
	}
	if w.placer, err = b.area.NewPlacer(fmt.Sprintf("table-%d", i), rows, width, memory); err != nil {
		return err
	}
	err = w.read(ctx, i)
	buckets, err := extsort.CloseAfter(err, w.placer.Close)
	if err != nil {
		return err
	}
	b.state.Tables = append(b.state.Tables, tableState{Report: w.rep, Buckets: buckets, Memory: memory})
	return nil
}

// writePlaced writes the rows of the table that was sorted last.
func (b *builder) writePlaced(ctx context.Context, t ingest.Table) error {
	w, err := b.newTable(t, false)
	if err != nil {
		return err
	}
	if err := w.open(); err != nil {
		return err
	}
	s := &b.state.Tables[len(b.state.Tables)-1]
	if err := b.area.Placed(s.Buckets, b.storedRows(t), t.Dim*b.elem().Size(), s.Memory, w.writeRows(ctx)); err != nil {
		return err
	}
	b.discard(s.Buckets...)
	s.Buckets = nil
	return w.closeRows()
}

// storedRows is the number of rows that a table has in the dataset: of a stream, without the events
// that were passed over.
func (b *builder) storedRows(t ingest.Table) int64 {
	if k := b.streamOf(t.Relation); k >= 0 {
		return b.state.Relations[k].Stream.Report.Events
	}
	return b.tableRows(t)
}

// tableRows is the number of rows that a table must have.
func (b *builder) tableRows(t ingest.Table) int64 {
	if t.Relation == "" {
		return int64(b.typeOf(t.NodeType).count)
	}
	return b.state.Relations[b.schema.Relation(t.Relation)].Report.EdgesRead
}

func (b *builder) elem() store.Elem {
	if b.DType == F32 {
		return store.F32
	}
	return store.F16
}

// tableWriter converts the rows of a table and takes them to where they belong.
type tableWriter struct {
	b      *builder
	spec   ingest.Table
	count  int64
	stored []store.NodeID       // nil: rows go where they come
	rows   *store.FeatureWriter // of the dataset; nil while rows are sorted
	placer *extsort.Placer
	// aggregates follow the columns of each row; nil where there are none.
	aggregates []aggregate
	aggregator *aggregator
	placed     *placed // of events that are not in the order of time; else nil
	from       origin
	out        []byte // converted rows
	scaled     []float32
	rep        TableReport
	rounding
}

func (b *builder) newTable(spec ingest.Table, made bool) (*tableWriter, error) {
	w := &tableWriter{b: b, spec: spec, count: b.tableRows(spec),
		rep: TableReport{Name: spec.Name, NodeType: spec.NodeType, Relation: spec.Relation, Dim: b.width(spec), DType: b.DType, Made: made}}
	if spec.Relation == "" {
		w.stored = b.typeOf(spec.NodeType).storedIDs()
	}
	if b.firstTable(spec) {
		w.aggregates = b.aggregates[spec.NodeType]
		for _, a := range w.aggregates {
			w.rep.Aggregates = append(w.rep.Aggregates, b.nameOf(a))
		}
	}
	if k := b.streamOf(spec.Relation); k >= 0 {
		w.rep.Relation, w.rep.Stream = "", b.schema.Relations[k].Name
	}
	if b.DType == F16 {
		w.begin(spec.Dim)
	}
	return w, nil
}

// open begins the table in the dataset.
func (w *tableWriter) open() (err error) {
	if k := w.b.streamOf(w.spec.Relation); k >= 0 {
		w.rows, err = w.b.w.AddStreamTable(w.spec.Name, w.rep.Stream, w.b.elem(), w.b.state.Relations[k].Stream.Report.Events, w.spec.Dim)
	} else if w.spec.Relation != "" {
		w.rows, err = w.b.w.AddEdgeTable(w.spec.Name, w.spec.Relation, w.b.elem(), w.count, w.spec.Dim)
	} else {
		if w.aggregates != nil {
			if w.aggregator, err = w.b.newAggregator(w.spec.NodeType); err != nil {
				return err
			}
		}
		w.rows, err = w.b.w.AddTable(w.spec.Name, w.spec.NodeType, w.b.elem(), w.count, w.rep.Dim)
	}
	return err
}

// putRows writes n rows from first on, with the aggregates of their nodes behind them.
func (w *tableWriter) putRows(ctx context.Context, first int64, n int, rows []byte) (err error) {
	if w.aggregator != nil {
		if rows, err = w.aggregator.widen(ctx, first, n, rows); err != nil {
			return err
		}
	}
	return w.rows.PutRows(store.NodeID(first), rows)
}

// closeRows ends the table in the dataset.
func (w *tableWriter) closeRows() error {
	err := w.rows.Close()
	if w.aggregator != nil {
		err = errors.Join(err, w.aggregator.close())
	}
	return err
}

// what names, in messages, the things that have a row each.
func (w *tableWriter) what() string {
	if w.rep.Stream != "" {
		return "events of stream " + w.rep.Stream
	}
	if w.spec.Relation != "" {
		return "edges of relation " + w.spec.Relation
	}
	return "nodes of type " + w.spec.NodeType
}

// read takes the rows of table i of the source.
func (w *tableWriter) read(ctx context.Context, i int) error {
	err := w.b.src.Rows(ctx, i, func(c ingest.RowChunk) error { return w.put(ctx, c) })
	if err != nil {
		return err
	}
	if missing := w.b.extras.MissingRows; missing != nil {
		w.rep.Missing = missing(i)
	}
	return w.check()
}

// put takes the rows of a chunk.
func (w *tableWriter) put(ctx context.Context, c ingest.RowChunk) error {
	dim := w.spec.Dim
	if len(c.Values)%dim != 0 {
		return fmt.Errorf("%s: the reader gave %d values for rows of %d; this is a fault of the reader, please report it", c.File, len(c.Values), dim)
	}
	n := len(c.Values) / dim
	if err := w.from.follow(ctx, c.Place, n); err != nil {
		return err
	}
	if w.from.next > w.count {
		return fmt.Errorf("%s: row %d (counting from 0) and there are %d %s; are features and graph of one dataset?", c.File, w.count, w.count, w.what())
	}
	width := dim * w.b.elem().Size()
	if cap(w.out) < n*width {
		w.out = make([]byte, n*width)
	}
	out := w.out[:n*width]
	if err := w.convert(c.Place, c.Values, out); err != nil {
		return err
	}
	w.b.addMeter(n)
	if w.placer == nil {
		return w.putRows(ctx, c.First, n, out)
	}
	for k := range n {
		if w.placed != nil {
			place, ok, err := w.placed.next()
			if err != nil {
				return err
			}
			if ok {
				w.placer.Put(place, out[k*width:(k+1)*width])
			}
			continue
		}
		w.placer.Put(storedID(w.stored, uint32(c.First)+uint32(k)), out[k*width:(k+1)*width])
	}
	return w.placer.Err()
}

// writeRows writes rows that were placed.
func (w *tableWriter) writeRows(ctx context.Context) func(first int64, rows []byte) error {
	width := w.spec.Dim * w.b.elem().Size()
	return func(first int64, rows []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if w.from.next == 0 { // not counted while reading
			w.b.addMeter(len(rows) / width)
		}
		return w.putRows(ctx, first, len(rows)/width, rows)
	}
}

// check refuses a table for what the whole of it has shown.
func (w *tableWriter) check() error {
	if w.from.next < w.count {
		return fmt.Errorf("%s: %d rows for the %d %s; is the file complete?", w.from.name("table "+w.spec.Name), w.from.next, w.count, w.what())
	}
	return w.checkRounding()
}

// close ends the table and reports it.
func (w *tableWriter) close() error {
	w.b.state.Tables = append(w.b.state.Tables, tableState{Report: w.rep})
	return w.closeRows()
}
