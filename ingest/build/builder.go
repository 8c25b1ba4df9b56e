package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/store"
)

// Build reads src and writes the dataset out, which must not exist: whole, or on an error not at
// all. src is read and not closed. Options choose among these:
//
// Order. "degree" numbers nodes by how often they appear in neighbour lists, most first, so that
// what training reads most is a prefix of every table; "original" keeps the rows' order. The ids
// that users see are the source's in both.
//
// Undirected adds reverses in relations from a node type to itself. Other relations are stored as
// given, which is noted; when there is no relation of the first kind, it is an error. If nodes have
// labels and the only relation looks like an undirected graph with each edge once, Undirected is
// the default, which is noted; Directed turns it off. See reciprocity.go.
//
// Reverse makes a relation rev_NAME of each relation, from its destinations to its sources, whose
// edges have the columns and numbers of those that they reverse. A relation that Undirected makes
// symmetric gets none, nor does one whose reverse the source has: itself, or another of as many
// edges, the same ones turned round by a sum of 128 bits. That is noted. Reverse is the default if
// Schema.BackWanted is set and OneWay is not.
//
// Features. Made features become the table "feat" of every node type that has none in the source.
// When every type has some, the made ones take their place, which the Report says under Dropped.
// Whatever threads there are, they depend on the seed and the source alone.
//
//   - "degree": three columns, 1, ln(1+in-degree), ln(1+out-degree), by the edges as stored.
//   - "random:D": independent standard normal values.
//   - "fastrp:D": an embedding of each node's neighbourhood; see fastrp.go for the formula.
//   - "mean": the mean of the rows of a node's in-neighbours, in rounds; see mean.go. It never replaces the source's own.
//   - "none": no features are made, and none are missed.
//
// Split. "given" resolves the source's splits. "random:a/b/c" parts the labelled nodes at random,
// or all nodes where nothing is labelled. "per-class:t/v" takes t training and v validation nodes
// of each class, and tests on the other labelled ones (Shchur et al., Pitfalls of Graph Neural
// Network Evaluation, 2018). Both are drawn over the source's rows, so they do not depend on Order.
// Streams have splits of events: "given", or "time:a/b/c", by the quantiles a and a+b of their
// times. Up to the first an event trains, up to the second it validates, beyond it tests.
//
// AllowLeak. A column of features that goes one to one with the classes of all labelled nodes, or
// is the number to learn but for scale and offset, is refused unless it is named here, or that may
// be chance: see leak.go. A column without a name is TABLE:NUMBER, and a whole row TABLE.
//
// EdgeSplit. "random:a/b/c" holds shares b and c of the edges out of the topology, of all relations
// or, as in "buys=random:a/b/c", of one. They go by a hash of the pair of nodes, so shares are met
// as a coin meets them, and equal edges go together, in either direction. "time:COLUMN:a/b/c" goes
// by a column of the edges, or as src.COLUMN of their sources: the earliest share trains, and equal
// times stay together. Reverses, the order of nodes and made features come from the edges that are
// left.
func Build(ctx context.Context, src ingest.Source, out string, o Options) (_ *Report, err error) {
	start := time.Now()
	p, err := o.effective()
	if err != nil {
		return nil, err
	}
	b := &builder{
		plan: *p, src: src, out: filepath.Clean(out), // without the slash at the end, which hides the parent
		meter: meter{report: p.Progress}, saved: start, sums: map[string]uint64{},
	}
	b.begin()
	defer b.freeMemory()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	var schemaErr error
	b.w, err = store.Create(b.out, store.WriterOptions{FS: p.FS, Continue: func(work string) *store.Manifest {
		if schemaErr = b.readSchema(ctx); schemaErr == nil {
			return b.readJournal(work)
		}
		return b.anyJournal(work) // the source may come back
	}})
	if err != nil {
		return nil, err
	}
	sealed := false
	defer func() {
		if sealed {
			return
		}
		defer func() {
			if err != nil && strings.Contains(err.Error(), "\n") { // several that were joined
				err = oneLine{err}
			}
		}()
		if lerr := b.leave(err); lerr != nil && err != nil {
			err = fmt.Errorf("%w; clearing up failed as well: %w", err, lerr)
		} else if b.kept {
			err = fmt.Errorf("%w: %d passes are done and kept in %s.partial; the same command goes on after them", err, b.journaled, b.out)
		}
	}()
	if b.schema == nil && schemaErr == nil {
		schemaErr = b.readSchema(ctx)
	}
	if schemaErr != nil {
		return nil, schemaErr
	}
	if err := b.openJournal(); err != nil {
		return nil, err
	}
	if err := b.checkMemory(); err != nil {
		return nil, err
	}
	if err := b.checkSpace(ctx); err != nil { // by what is declared, so that nobody waits for hours of reading
		return nil, err
	}
	b.begun = true
	if err := b.runPhases(ctx); err != nil {
		return nil, err
	}
	if b.journaled > 0 {
		// A journal that names no files: they go now, and a kill from here on loses nothing. What
		// is summed up below is not in it, or the next Build would have it twice.
		b.freeMemory()
		if err := b.save(); err != nil {
			return nil, err
		}
	}
	if bad := b.extras.BadRows; bad != nil {
		if n, first := bad(); n > 0 {
			b.note("%d rows could not be read and were passed over, the first of them: %v", n, first)
		}
	}
	if remarks := b.extras.Remarks; remarks != nil {
		for _, remark := range remarks() {
			b.note("%s", remark)
		}
	}
	if b.state.Skipped > 0 {
		b.note("%d edges were passed over, the first of them: %s", b.state.Skipped, b.state.FirstSkipped)
	}
	b.noteDirection()
	b.sumReport()
	if b.state.Spill != "" {
		if err := b.area.RemoveAll(); err != nil {
			return nil, err
		}
	}
	if err := b.w.AddEncodings(b.encodings()); err != nil {
		return nil, err
	}
	m, err := b.w.Seal(store.Manifest{Name: b.report.Name, Order: string(b.Order), Provenance: b.provenance()})
	if err != nil {
		return nil, err
	}
	sealed = true
	b.countUnreached()
	b.report.Memory, b.report.PeakRSSBytes, b.report.PeakFileBytes = b.Memory, b.meter.peakOwn, b.meter.peakFile
	b.report.Seal, b.report.Bytes, b.report.Seconds = m.Seal, m.Bytes(), time.Since(start).Seconds()
	return b.report, nil
}

// oneLine is an error of several lines in one.
type oneLine struct{ error }

func (e oneLine) Error() string { return strings.ReplaceAll(e.error.Error(), "\n", "; ") }
func (e oneLine) Unwrap() error { return e.error }

// builder is one Build under way. The phases fill it from top to bottom.
type builder struct {
	plan
	src    ingest.Source
	extras ingest.Extras // of src
	out    string
	w      *store.Writer
	meter  meter
	report *Report

	schema   *ingest.Schema  // the source's, with reverses behind its relations
	given    int             // relations of the source
	mirrored []int           // those that the ones behind are made from: see reverse.go
	nodes    []*nodes        // by Schema.NodeTypes
	makes    map[string]bool // node types that get made features
	// aggregates are columns of the edges, by node type.
	aggregates map[string][]aggregate
	means      []meanPlan   // of them, in the order of making, where they are means
	splits     []*partition // those to be written

	edgeSplits []*edgeSplit // by relation, nil where no edge is held out

	// See journal.go.
	state     *state
	area      *extsort.Area
	work      string          // the writer's directory for us
	saved     time.Time       // when the journal was last written, or Build began
	saving    time.Duration   // how long writing it took
	passed    map[string]bool // the passes that are done; see did
	heap      int64           // the limit that was set last
	journaled int             // passes that are in the journal on disk
	begun     bool            // what an interrupted Build left is taken over
	kept      bool            // what is done stays for the next Build
	resumed   *state          // read from a journal
	discarded []extsort.Bucket
	sums      map[string]uint64 // of the arrays in the journal

	cached         tableCache
	held, mostHeld int64 // see budget.go
	halved         bool  // a pass has two users of room
}

// begin makes the empty report and state.
func (b *builder) begin() {
	b.report = &Report{
		Path: b.out, Order: b.Order,
		// Empty, not absent, in JSON.
		NodeTypes: []NodeTypeReport{}, Relations: []RelationReport{}, Tables: []TableReport{}, Labels: []LabelReport{},
		Splits: []SplitReport{}, EdgeSplits: []EdgeSplitReport{}, Dropped: []string{}, Notes: []string{}, Passes: []PassReport{},
	}
	b.state = &state{Report: b.report, Arrays: map[string]extsort.Bucket{}}
}

// freeMemory gives back all memory outside the heap.
func (b *builder) freeMemory() {
	for _, n := range b.nodes {
		for _, a := range n.arrays() {
			b.release(a.buf)
		}
	}
	_ = b.freeTimes(context.Background()) // it does not fail
	for _, p := range b.splits {
		b.release(&p.of)
	}
}

func (b *builder) addMeter(n int) { b.meter.add(n) }

// sumReport puts together what was counted.
func (b *builder) sumReport() {
	for i, of := range b.relations() {
		r := b.state.Relations[i].Report
		r.ReverseOf = b.state.Relations[i].ReverseOf
		r.Columns, r.Left = []string{}, append([]string{}, of.Left...) // empty, not absent, in JSON
		for _, c := range of.Columns {
			r.Columns = append(r.Columns, c.Name)
		}
		b.report.Relations = append(b.report.Relations, r)
	}
	for _, r := range b.state.Relations {
		if r.Stream != nil {
			b.report.Streams = append(b.report.Streams, r.Stream.Report)
		}
	}
	for _, t := range b.state.Tables {
		b.report.Tables = append(b.report.Tables, t.Report)
	}
}

func (b *builder) typeOf(name string) *nodes {
	return b.nodes[b.schema.NodeType(name)]
}

// readSchema reads the form of the graph and refuses what cannot be built, before anything large is
// read.
func (b *builder) readSchema(ctx context.Context) error {
	b.extras = b.src.Extras()
	given, err := b.src.Schema(ctx)
	if err != nil {
		return err
	}
	s := *given
	b.schema = &s
	if b.report.Name = b.Name; b.Name == "" {
		b.report.Name = store.CleanName(s.Name) // the name of a file, as often as not
	}
	for _, text := range s.Skipped {
		b.drop("%s", text)
	}
	for _, check := range []func() error{func() error { return checkSchema(&s) }, b.checkStreams, func() error { b.wantUndirected(ctx); return nil }, b.checkUndirected, b.addReverses, b.chooseEdgeSplits, b.checkPolicies, b.checkDuplicates, b.chooseFeatures, b.chooseAggregates, b.chooseSplit} {
		if err := check(); err != nil {
			return err
		}
	}
	b.state.Relations = make([]relation, len(s.Relations))
	for i, r := range s.Relations {
		if r.Stream != nil {
			b.state.Relations[i].Stream = &streamState{}
		}
	}
	for _, t := range s.NodeTypes {
		b.nodes = append(b.nodes, &nodes{name: t.Name, number: len(b.nodes), count: int(max(t.Count, 0)), kind: t.IDs, gathered: t.Gathered})
		b.state.Counts = append(b.state.Counts, max(t.Count, 0))
	}
	b.state.Key, err = b.key()
	return err
}

// checkPolicies refuses what cannot be kept together.
func (b *builder) checkPolicies() error {
	if b.SelfLoops != SelfLoopsAdd {
		return nil
	}
	for _, r := range b.schema.Relations {
		if r.Src == r.Dst && (len(r.Columns) > 0 || b.EdgeIDs || b.hasEdgeTable(r.Key())) {
			return fmt.Errorf("{self_loops} add: edges of relation %s have columns or numbers, and an added loop has none; choose keep or drop", r.Key())
		}
	}
	return nil
}

// checkSchema finds references to nothing and things that are named twice. It stops at the first,
// which is a reader's fault or a file's, not a user's list of mistakes.
func checkSchema(s *ingest.Schema) error {
	if len(s.NodeTypes) == 0 {
		return errors.New("the source has no nodes")
	}
	named := map[string]bool{}
	// The dataset would refuse a name that has no place in a path, hours later.
	words := func(kind string, names ...string) error {
		for _, n := range names {
			if clean := store.CleanWord(n); clean != n {
				return fmt.Errorf("%s %.100q: names are up to 100 letters, digits, _ and -, without a _ at either end or two in a row; as in %s", kind, n, clean)
			}
		}
		return nil
	}
	again := func(kind, key string) error {
		if named[kind+" "+key] {
			return fmt.Errorf("%s %s: the source has two of that name", kind, key)
		}
		named[kind+" "+key] = true
		return nil
	}
	isType := func(kind, key, nodeType string) error {
		if !named["node type "+nodeType] {
			return fmt.Errorf("%s %s: there is no node type %q", kind, key, nodeType)
		}
		return nil
	}
	for _, t := range s.NodeTypes {
		if t.Count > math.MaxUint32 {
			return tooManyNodes(t.Name, t.Count)
		}
		if t.Count < 0 && t.IDs == ingest.RowIDs {
			return fmt.Errorf("node type %s: %d nodes", t.Name, t.Count)
		}
		if t.Gathered && t.IDs == ingest.RowIDs {
			return fmt.Errorf("node type %s: its nodes are to be gathered from edges that call them by their rows; this is a fault of the reader, please report it", t.Name)
		}
		if err := cmp.Or(words("node type", t.Name), again("node type", t.Name)); err != nil {
			return err
		}
	}
	for _, r := range s.Relations {
		key := r.Key()
		if err := cmp.Or(words("relation", r.Name), again("relation", key), isType("relation", key, r.Src), isType("relation", key, r.Dst)); err != nil {
			return err
		}
		for _, c := range r.Columns {
			if err := cmp.Or(words("column", c.Name), again("column", key+"/"+c.Name)); err != nil {
				return err
			}
			if size := c.Elem.Size(); c.Elem == store.F64 && r.Stream == nil || c.Name == store.EdgeID || c.Name == "offsets" || c.Name == "neighbors" || size != 1 && size != 4 && size != 8 {
				return fmt.Errorf("relation %s: column %s (%v): columns have elements of 1, 4 or 8 bytes, and names that are not %s, offsets or neighbors",
					key, c.Name, c.Elem, store.EdgeID)
			}
		}
	}
	for _, t := range s.Tables {
		if err := cmp.Or(words("table", t.Name), again("table", ownerOf(t)+"/"+t.Name), checkOwner(s, t, isType), checkRows(s, "table", t.Name, t.NodeType)); err != nil {
			return err
		}
		if t.Dim < 1 {
			return fmt.Errorf("table %s: %d columns; a feature table has at least one", t.Name, t.Dim)
		}
	}
	for _, l := range s.Labels {
		if err := cmp.Or(words("label", l.Name), again("label", l.NodeType+"/"+l.Name), isType("label", l.Name, l.NodeType), checkRows(s, "label", l.Name, l.NodeType)); err != nil {
			return err
		}
		if l.Classes < 0 || l.Multi && l.Classes == 0 || l.Numbers && (l.Multi || l.Classes > 0) {
			return fmt.Errorf("label %s: %d classes", l.Name, l.Classes)
		}
	}
	for _, p := range s.Splits {
		if err := cmp.Or(words("split", p.Name), again("split", p.Name), isType("split", p.Name, p.NodeType)); err != nil {
			return err
		}
	}
	return nil
}

// checkRows refuses rows of nodes whose order nobody knows beforehand.
func checkRows(s *ingest.Schema, kind, name, nodeType string) error {
	for _, t := range s.NodeTypes {
		if t.Name == nodeType && t.Gathered {
			return fmt.Errorf("%s %s: the nodes of type %s are those that edges name, so no row is known to be one's; this is a fault of the reader, please report it",
				kind, name, nodeType)
		}
	}
	return nil
}

// ownerOf returns the owner of a table's rows: a node type or the key of a relation.
func ownerOf(t ingest.Table) string {
	return cmp.Or(t.Relation, t.NodeType)
}

// checkOwner checks that the owner of a table's rows exists.
func checkOwner(s *ingest.Schema, t ingest.Table, isType func(kind, key, nodeType string) error) error {
	if t.Relation == "" {
		return isType("table", t.Name, t.NodeType)
	}
	if s.Relation(t.Relation) >= 0 {
		return nil
	}
	return fmt.Errorf("table %s: there is no relation %q", t.Name, t.Relation)
}

// checkUndirected notes the relations that Undirected leaves as they are.
func (b *builder) checkUndirected() error {
	if !b.Undirected {
		return nil
	}
	applies := 0
	for _, r := range b.schema.Relations {
		if r.Src == r.Dst {
			applies++
		} else if !b.Reverse {
			b.note("relation %s joins two node types and is stored as given: {undirected} adds reverses within a type only", r.Key())
		}
	}
	if applies == 0 {
		remedy := "leave it out, or choose {reverse}"
		if b.Reverse {
			remedy = "leave it out"
		}
		return fmt.Errorf("{undirected}: the source has no relation from a node type to itself, so there is nothing to reverse; %s", remedy)
	}
	return nil
}
