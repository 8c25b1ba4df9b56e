package build

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/gnnstore/gnnstore/kernels"
)

// pass is one pass over the data. Build runs it, and a forecast adds up its cost. Both find it in
// builder.phases, so a pass cannot be in one of them only.
type pass struct {
	name  string // no other pass has it
	total int64  // items that are counted or declared, for progress; -1: unknown
	unit  string
	cost  cost
	run   func(ctx context.Context) error
	// parts replaces run if the number of passes is not known before their turn. The cost is the
	// sum of theirs.
	parts func(do func(pass))
}

// cost is a forecast of a pass.
type cost struct {
	items   int64
	seconds float64 // of all workers; a slow disk adds to them
	// Bytes.
	spillRead, spillWritten, written, datasetRead int64
	// leaves: what the pass reads stays in the spill, and what it writes takes no time of its own.
	// Else what it reads goes when the pass is done.
	leaves         bool
	padding        int64    // of the sections written, where written leaves it out
	unknown, notes []string // for the plan
}

// phase is a step of Build: either passes, or work between them. Work leaves nothing on disk, so a
// Build that goes on does it again.
type phase struct {
	work func(ctx context.Context) error
	// passes calls do with each pass in order. After do returns, it may read the results of that
	// pass. Once a pass has failed, do does nothing.
	passes func(s *sizes, do func(pass))
}

// phases lists what Build does between the schema and the seal, in order.
func (b *builder) phases() []phase {
	return []phase{
		{work: b.beginDictionaries},
		{passes: b.readNodes},
		{work: b.findLeaks},
		{work: b.readTimes},
		{passes: b.findTimes},
		{work: b.boundTimes},
		{passes: b.readEdges},
		{passes: b.joinEdges},
		{work: b.freeTimes},
		{work: b.checkSpace},
		{work: b.readSplits},
		{work: b.freeTables},
		{passes: b.mergeEdges},
		{passes: b.findReverses},
		{passes: b.reverseEdges},
		{passes: b.numberNodes},
		{passes: b.renumberEdges},
		{work: b.checkEvents},
		{passes: b.writeStreams},
		{passes: b.writeTopology},
		{passes: b.writeShared},
		{work: b.checkEdgesLeft},
		{passes: b.writeEdgeSplits},
		{passes: b.writeTables},
		{passes: b.makeEventTables},
		{passes: b.makeTables},
		{passes: b.makeAggregates},
		{passes: b.writeLabels},
		{passes: b.writeSplits},
		{passes: b.writeIDs},
	}
}

// runPhases does all the work and all passes that are not done yet.
func (b *builder) runPhases(ctx context.Context) error {
	for _, p := range b.phases() {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if p.work != nil {
			err = p.work(ctx)
		} else {
			p.passes(b.counted(), b.runner(ctx, &err))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// runner runs passes until one fails, and sets err.
func (b *builder) runner(ctx context.Context, err *error) func(pass) {
	return func(p pass) {
		if *err == nil {
			*err = b.runPass(ctx, p)
		}
	}
}

// runPass runs a pass unless it is done already, and notes that it is.
func (b *builder) runPass(ctx context.Context, p pass) (err error) {
	if p.parts != nil {
		p.parts(b.runner(ctx, &err))
		return err
	}
	if b.did(p.name) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	b.meter.begin(p.name, p.total, p.unit)
	// setting the limit stops all goroutines
	if heap := max(b.Memory-kernels.HostBytes()-kernels.MaxSpareBytes-b.room()/2, baseBytes); heap != b.heap {
		b.heap = heap
		debug.SetMemoryLimit(heap)
	}
	start := time.Now()
	written, read := b.area.Traffic()
	if err := p.run(ctx); err != nil {
		return err
	}
	items := b.meter.end()
	if err := ctx.Err(); err != nil { // a pass without chunks has not looked at ctx
		return err
	}
	r := PassReport{Name: p.name, Items: items, Unit: p.unit, Seconds: time.Since(start).Seconds()}
	r.SpillWritten, r.SpillRead = b.area.Traffic()
	r.SpillWritten, r.SpillRead = r.SpillWritten-written, r.SpillRead-read
	r.SpillPeak = b.area.Held()
	b.report.Passes = append(b.report.Passes, r)
	if time.Since(b.saved) >= max(journalEvery, saveShare*b.saving) || b.test.journal {
		began := time.Now()
		if err := b.save(); err != nil {
			return err
		}
		b.saving = time.Since(began)
	}
	if b.test.done != nil {
		b.test.done(p.name)
	}
	return nil
}

// did reports whether a pass is done.
func (b *builder) did(pass string) bool {
	if len(b.passed) > len(b.report.Passes) { // the report is older than a journal's
		b.passed = nil
	}
	if b.passed == nil {
		b.passed = map[string]bool{}
	}
	for _, p := range b.report.Passes[len(b.passed):] { // names differ
		b.passed[p.Name] = true
	}
	return b.passed[pass]
}
