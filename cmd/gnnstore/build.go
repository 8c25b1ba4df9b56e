package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// fits refuses a budget that the process could not use.
func (o *buildOptions) fits() error {
	if o.plan {
		return nil
	}
	return addressSpace("--memory is "+size(o.Memory), o.Memory, lessMemory)
}

// run builds the dataset, or with --plan prints what that would take.
func (o *buildOptions) run(ctx context.Context, stdout, stderr io.Writer, source ingest.Source, out string) error {
	if o.plan {
		plan, err := build.PlanBuild(ctx, source, out, o.Options)
		if plan != nil {
			if o.json {
				if jerr := printJSON(stdout, plan); jerr != nil {
					return jerr
				}
			} else {
				printPlan(stdout, plan)
			}
		}
		return err
	}
	report, err := buildShown(ctx, stderr, source, out, o.Options)
	if err != nil {
		return err
	}
	if o.json {
		return printJSON(stdout, report)
	}
	printReport(stdout, report)
	if report.Seconds < worthTelling {
		return nil
	}
	// After the build, which refuses an output that exists before it reads anything; a source has
	// its schema by now.
	if plan, err := build.PlanBuild(ctx, source, out, o.Options); err == nil {
		printPasses(stderr, report, plan)
	}
	return nil
}

// buildShown builds a dataset and shows progress on stderr.
func buildShown(ctx context.Context, stderr io.Writer, source ingest.Source, out string, o build.Options) (*build.Report, error) {
	p := newProgress(stderr)
	defer p.clear()
	o.Progress = func(at ingest.Progress) { p.show(at.Stage, at.Done, at.Total, at.Unit) }
	return build.Build(ctx, source, out, o)
}

func printPlan(w io.Writer, p *build.Plan) {
	rows := [][]string{{"pass", "over", "about", "spill read", "spill written", "dataset"}}
	reread := slices.ContainsFunc(p.Passes, func(s build.PassPlan) bool { return s.DatasetRead > 0 })
	if reread {
		rows[0] = append(rows[0], "and of it read")
	}
	for _, s := range p.Passes {
		row := []string{s.Name, count(s.Items) + " " + s.Unit, duration(s.Seconds), size(s.SpillRead), size(s.SpillWritten), size(s.Written)}
		if reread {
			row = append(row, size(s.DatasetRead))
		}
		rows = append(rows, row)
	}
	tabulate(w, rows)
	printf(w, "%-9s about %s, and more where the source is slow to read\n", "time", duration(p.Seconds))
	printf(w, "%-9s %s allowed, %s is the least that works\n", "memory", size(p.Memory), size(p.LeastMemory))
	printf(w, "%-9s %s in the end; at most %s of spill on the way, and %s at one time\n", "disk", size(p.Bytes), size(p.SpillBytes), size(p.DiskBytes))
	for _, u := range p.Unknown {
		printf(w, "%-9s %s\n", "unknown", u)
	}
	for _, n := range p.Notes {
		printf(w, "%-9s %s\n", "note", n)
	}
}

// classMap lists the number of each class by its name, the first few and the last. It returns "" if
// the names are the numbers.
func classMap(names []string) string {
	const most = 6
	var b strings.Builder
	same := true
	for i, name := range names {
		if same = same && name == strconv.Itoa(i); i == most-1 && len(names) > most {
			b.WriteString("…, ")
		}
		if i < most-1 || i == len(names)-1 {
			printf(&b, "%.40s → %d, ", name, i)
		}
	}
	if same {
		return ""
	}
	return b.String()
}

// mostShown is the largest number of relations that a report prints one by one. A knowledge graph
// may have thousands.
const mostShown = 100

// worthTelling is the duration from which a build reports its passes unasked.
const worthTelling = 30.0 // seconds

// printPasses shows what the passes of a long build took, beside what was expected.
func printPasses(w io.Writer, r *build.Report, plan *build.Plan) {
	expected := map[string]float64{}
	for _, p := range plan.Passes {
		expected[p.Name] = p.Seconds
	}
	rows := [][]string{{"pass", "over", "took", "expected", "spill read", "spill written"}}
	for _, p := range r.Passes {
		about := "-"
		if s, ok := expected[p.Name]; ok {
			about = duration(s)
		}
		rows = append(rows, []string{p.Name, count(p.Items) + " " + p.Unit, duration(p.Seconds), about, size(p.SpillRead), size(p.SpillWritten)})
	}
	tabulate(w, rows)
	printf(w, "memory: at most %s of %s, and %s of mapped files\n", size(r.PeakRSSBytes), size(r.Memory), size(r.PeakFileBytes))
}

// duration prints seconds that may be hours.
func duration(s float64) string {
	if s < 60 {
		return seconds(s)
	}
	return (time.Duration(s) * time.Second).String()
}

func printReport(w io.Writer, r *build.Report) {
	name := func(e build.RelationReport) string {
		if len(r.Relations) > 1 {
			return e.Key
		}
		return "edges"
	}
	wide := 9 // names of types and relations, which stand below one another
	for _, t := range r.NodeTypes {
		wide = max(wide, len(t.Name))
	}
	for _, e := range r.Relations {
		wide = max(wide, len(name(e)))
	}
	for _, t := range r.NodeTypes {
		printf(w, "%-*s %s nodes, by %s\n", wide, t.Name, count(t.Count), r.Order)
	}
	shown := r.Relations[:min(len(r.Relations), mostShown)]
	for _, e := range shown {
		if e.ReverseOf != "" && e.EdgesRead == 0 {
			printf(w, "%-*s %s edges, the reverse of %s\n", wide, name(e), count(e.Edges), e.ReverseOf)
			continue
		}
		printf(w, "%-*s %s edges from %s read", wide, name(e), count(e.Edges), count(e.EdgesRead))
		for _, c := range []struct {
			n    int64
			what string
		}{
			{e.ReverseAdded, "reverse edges added"}, {e.DuplicatesMerged, "duplicates merged"}, {e.Duplicates - e.DuplicatesMerged, "duplicates kept"},
			{e.HeldOut, "held out"}, {e.SelfLoops, "self loops"}, {e.SelfLoopsDropped, "of them dropped"}, {e.SelfLoopsAdded, "self loops added"}, {e.Skipped, "passed over"},
		} {
			if c.n > 0 {
				printf(w, ", %s %s", count(c.n), c.what)
			}
		}
		fmt.Fprintln(w)
	}
	if more := r.Relations[len(shown):]; len(more) > 0 {
		edges, read, held := int64(0), int64(0), int64(0)
		for _, e := range more {
			edges, read, held = edges+e.Edges, read+e.EdgesRead, held+e.HeldOut
		}
		printf(w, "%-*s %s edges from %s read, %s held out, of %s more relations; --json lists them\n",
			wide, "others", count(edges), count(read), count(held), count(int64(len(more))))
	}
	for _, e := range r.Relations {
		if len(e.Columns) > 0 {
			printf(w, "%-9s %s kept with each edge", "columns", strings.Join(e.Columns, ", "))
			if len(r.Relations) > 1 {
				printf(w, " of %s", e.Key)
			}
			fmt.Fprintln(w)
		}
	}
	for _, s := range r.Streams {
		of := s.Src
		if s.Src != s.Dst {
			of += " and " + s.Dst
		}
		printf(w, "%-9s %s of %s, at times %s to %s", s.Name, count(s.Events), of, plain(s.First), plain(s.Last))
		for _, c := range []struct {
			n    int64
			what string
		}{{s.SelfLoops, "self loops"}, {s.Skipped, "passed over"}} {
			if c.n > 0 {
				printf(w, ", %s %s", count(c.n), c.what)
			}
		}
		fmt.Fprintln(w)
		if s.TimeScale != 1 {
			printf(w, "%-9s differences of times %s times as long for networks\n", "scale", plain(s.TimeScale))
		}
		if s.Labels {
			printf(w, "%-9s of %s: %d classes", "labels", s.Name, s.Classes)
			if names := classMap(s.ClassNames); names != "" {
				printf(w, ", %s", strings.TrimSuffix(names, ", "))
			}
			fmt.Fprintln(w)
		}
		printf(w, "%-9s %s: %s train, %s valid, %s test events\n", "split", s.Split.Name, count(s.Split.Train), count(s.Split.Valid), count(s.Split.Test))
		if s.NodeLabels > 0 {
			printf(w, "%-9s of nodes of %s: %s, at times of their own\n", "labels", s.Name, count(s.NodeLabels))
		}
		if s.Negatives > 0 {
			printf(w, "%-9s of %s: %s that came with the source, to rank valid and test events among\n", "negatives", s.Name, count(s.Negatives))
		}
	}
	for _, t := range r.Tables {
		printf(w, "%-9s %s", "features", t.Name)
		if of := cmp.Or(t.Relation, t.Stream); of != "" {
			printf(w, " of %s", of)
		} else if len(r.NodeTypes) > 1 {
			printf(w, " of %s", t.NodeType)
		}
		printf(w, ": %d × %s", t.Dim, t.DType)
		if t.Made {
			fmt.Fprint(w, ", made")
		}
		if n := len(t.Aggregates); n > 0 {
			printf(w, ", the last %d of its edges: %s", n, lines.List(t.Aggregates))
		}
		if t.Missing > 0 {
			printf(w, ", %s nodes without are zeros; --missing-features refuse refuses them", count(t.Missing))
		}
		if t.Overflowed > 0 {
			printf(w, ", %s values clamped", count(t.Overflowed))
		}
		if t.Rounded > 0 {
			printf(w, ", %s whole numbers rounded", count(t.Rounded))
		}
		if t.Tiny > 0 && !t.Made {
			printf(w, ", %s tiny values rounded (--dtype f32 keeps them)", count(t.Tiny))
		}
		fmt.Fprintln(w)
	}
	for _, l := range r.Labels {
		printf(w, "%-9s %s", "labels", l.Name)
		if len(r.NodeTypes) > 1 {
			printf(w, " of %s", l.NodeType)
		}
		if l.Numbers {
			printf(w, ": numbers, %s nodes without\n", count(l.Missing))
			continue
		}
		printf(w, ": %d classes, %s%s nodes without\n", l.Classes, classMap(l.ClassNames), count(l.Missing))
	}
	for _, s := range r.Splits {
		printf(w, "%-9s %s: %s train, %s valid, %s test\n", "split", s.Name, count(int64(s.Train)), count(int64(s.Valid)), count(int64(s.Test)))
	}
	splits := r.EdgeSplits
	if len(splits) > mostShown {
		var sum [3]int64
		for _, s := range splits {
			sum[0], sum[1], sum[2] = sum[0]+s.Train, sum[1]+s.Valid, sum[2]+s.Test
		}
		printf(w, "%-9s %s: %s train, %s valid, %s test edges of %s relations\n",
			"split", splits[0].Name, count(sum[0]), count(sum[1]), count(sum[2]), count(int64(len(splits))))
		splits = nil
	}
	for _, s := range splits {
		of := ""
		if len(r.Relations) > 1 {
			of = " of " + s.Relation
		}
		printf(w, "%-9s %s%s: %s train, %s valid, %s test edges\n", "split", s.Name, of, count(s.Train), count(s.Valid), count(s.Test))
	}
	for _, n := range append(r.Dropped, r.Notes...) {
		printf(w, "%-9s %s\n", "note", n)
	}
	if r.Resumed > 0 {
		printf(w, "%-9s after the %d passes that an interrupted ingest had done\n", "went on", r.Resumed)
	}
	printf(w, "%-9s %s in %s, seal %s\n", "sealed", r.Path, duration(r.Seconds), r.Seal)
	printf(w, "%-9s %s on disk\n", "", size(r.Bytes))
}
