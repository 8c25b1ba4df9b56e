package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/dist/rounds"
	"github.com/gnnstore/gnnstore/train/graph"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
)

// findWorkers resolves --dist auto for this process. It returns the connection of the workers, and
// their number if --dist has it.
func (o *trainOptions) findWorkers() (dist.Way, int, error) {
	way, workers, err := dist.ParseWay(o.Dist)
	if err != nil {
		return "", 0, fmt.Errorf("--dist %w", err)
	}
	if processes, _ := dist.Launched(os.Getenv); o.plan && way == dist.MPI && processes <= 1 { // none is started
		if workers == 0 {
			return "", 0, errors.New("--dist mpi: a plan starts no processes; say how many there will be: --dist mpi:V")
		}
		return way, workers, nil
	}
	if way, err = way.Resolve(os.Getenv); err != nil {
		return "", 0, err
	}
	if way == dist.MPI && o.plan {
		return "", 0, errors.New("--plan runs in one process: start it without mpirun")
	}
	if o.given.Given("dist") || way == dist.MPI {
		o.Dist = way.Text(workers)
	}
	return way, workers, nil
}

// takeParts sets --parallel and --dist if path is a directory of parts: there is one worker for
// each part.
func (o *trainOptions) takeParts(path string, way dist.Way, workers int) error {
	if path == "" || !store.IsParts(path) {
		return nil
	}
	parts, err := store.CountParts(path)
	if err != nil {
		return err
	}
	if o.given.Given("dist") && way != dist.Local {
		workers = 1
	}
	_, err = o.useParts(path, parts, dist.Local, workers)
	return misuse(err)
}

// useParts sets --parallel and --dist for a dataset of so many parts. workers is their number as it
// was given, or 0. useParts returns the number of workers.
func (o *trainOptions) useParts(path string, parts int, way dist.Way, workers int) (int, error) {
	switch {
	case o.plan:
		return 0, fmt.Errorf("--plan: %s holds parts, and a plan is made for a whole dataset; give that one, and --dist %s",
			path, dist.MPI.Text(parts))
	case o.given.Given("parallel") && !o.ByOwners() && o.Parallel != run.AutoParallel:
		return 0, fmt.Errorf("--parallel %s: %s holds parts, and each worker has only one of them; "+
			"take --parallel %s or %s, or give the whole dataset", o.Parallel, path, run.ByParts, run.Cooperative)
	case workers > 0 && workers != parts:
		return 0, fmt.Errorf("--dist %s: %s holds %d parts; give each of them a worker: --dist %s",
			o.Dist, path, parts, way.Text(parts))
	}
	if o.Dist = way.Text(parts); o.Parallel != run.Cooperative {
		o.Parallel = run.ByParts
	}
	return parts, nil
}

// parseNetwork reads --network, or returns nil if it is not given.
func (o *trainOptions) parseNetwork(way dist.Way) (*plan.Link, error) {
	switch {
	case o.network == "":
		return nil, nil
	case !o.plan:
		return nil, fmt.Errorf("--network %s: it goes with --plan; --parallel auto measures the network", o.network)
	case way != dist.MPI:
		return nil, fmt.Errorf("--network %s: it goes with --dist mpi:V; workers of one process exchange in memory", o.network)
	}
	link, err := plan.ParseLink(o.network)
	if err != nil {
		return nil, fmt.Errorf("--network %w", err)
	}
	return &link, nil
}

// planWorkers prints what a run of several workers would take.
func planWorkers(ctx context.Context, stdout io.Writer, ds *store.Dataset, o *trainOptions, link *plan.Link) error {
	p, err := graph.MakeWorkersPlan(ctx, ds, o.Options, link)
	if err != nil {
		return err
	}
	for i := range p.Ways {
		p.Ways[i].Refused = withFlags(p.Ways[i].Refused)
	}
	if o.json {
		return printJSON(stdout, p)
	}
	machines := "on one machine"
	if p.Machine == 1 {
		machines = "on a machine each, like this one"
	}
	printf(stdout, "%d workers, %s. Each: %s\n", p.Workers, machines, p.Memory)
	network := map[string]string{
		"given": "--network " + o.network, "measured": "measured in this process",
		"assumed": "assumed, as --network " + graph.AssumedNetwork,
	}[p.LinkFrom]
	printf(stdout, "a worker sends %s a second, and a small exchange takes %s (%s)\n", size(int64(p.Link.BytesPerSecond)),
		time.Duration(p.Link.Latency*1e9).Round(time.Microsecond), network)

	fmt.Fprintln(stdout, "\na step, by each way; the stages run beside each other, and the slowest one decides:")
	head := []string{"", "takes"}
	var rows, bytes [][]string
	for _, w := range p.Ways {
		if w.Refused != "" {
			continue
		}
		if len(head) == 2 {
			for _, s := range w.Stages {
				head = append(head, s.Name)
			}
			rows = append(rows, head)
		}
		row := []string{w.Way, seconds(w.Seconds)}
		for _, s := range w.Stages {
			row = append(row, seconds(s.Seconds))
		}
		rows = append(rows, row)
		n := func(bytes float64) string { return size(int64(bytes)) }
		bytes = append(bytes, []string{
			w.Way, count(int64(w.InputRows)), n(w.RowBytes), n(w.ListBytes),
			n(w.Sent.IDs), n(w.Sent.Lists), n(w.Sent.Rows), n(w.Sent.Hidden), n(w.Sent.Gradients), n(w.MostSent),
		})
	}
	tabulate(stdout, rows)
	fmt.Fprintln(stdout, "\na worker in a step, on average:")
	tabulate(stdout, append([][]string{
		{"", "feature rows", "rows read", "lists read", "ids sent", "lists sent", "rows sent", "hidden rows sent", "gradients sent", "busiest worker sends"},
	}, bytes...))
	for _, w := range p.Ways {
		if w.Refused != "" {
			printf(stdout, "%s is refused: %s\n", w.Way, w.Refused)
		}
	}
	printf(stdout, "\nadvised: --parallel %s", p.Advised)
	if p.Way != p.Advised {
		printf(stdout, "; the run takes %s", p.Way)
	}
	printf(stdout, ", limited by %s\nan epoch of %s steps: about %s; judged by %d steps that were drawn\n", p.LimitingStage,
		count(int64(p.Steps)), seconds(p.EpochSeconds), p.Drawn)
	return nil
}

// resumeWorkers sets Dist to the number of workers that the run had.
func (o *trainOptions) resumeWorkers(record *run.Record) {
	if o.Dist = ""; record.Workers > 1 {
		o.Dist = dist.Local.Text(record.Workers)
	}
}

// start is the run that process 0 has found. It tells all processes of it.
type start struct {
	Record []byte `json:"record,omitempty"` // of a run that is resumed
	Done   bool   `json:"done,omitempty"`   // and that has ended
	Parts  int    `json:"parts,omitempty"`  // of the dataset, if each worker has a part
	// Topology is the file of --topology. Only process 0 reads it, so all processes have the same
	// rounds.
	Topology *topologyFile `json:"topology,omitempty"`
}

// trainProcesses trains in processes that a launcher has started. Worker 0, in the first of them,
// has the run directory, and prints.
func trainProcesses(cmd *cobra.Command, dataset string, o *trainOptions, workers int) error {
	ctx, stdout, stderr := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	host, err := dist.Open(dist.Options{
		Way: dist.MPI, Workers: workers, Library: o.MPILibrary, Timeout: o.DistTimeout, Getenv: os.Getenv,
		Fatal: func(err error) { printf(stderr, "gnnstore: %s\n", withFlags(oneLine(err))) },
	})
	if err != nil {
		return err
	}
	defer host.Close()
	var dir *run.Dir
	text, err := host.Agree(ctx, func() ([]byte, error) {
		var record *run.Record
		var s start
		if !o.resume || !run.Begun(o.run) {
			if store.IsParts(dataset) {
				s.Parts, err = store.CountParts(dataset)
			}
			if err == nil {
				s.Topology, err = readTopology(o.Topology)
			}
			if err != nil {
				return nil, err
			}
			return json.Marshal(s)
		}
		if dir, record, err = run.Open(o.run); err != nil {
			return nil, err
		}
		again, err := run.ResumeOptions(record, o.given)
		if err != nil {
			return nil, err
		}
		r, ok, err := dir.Finished()
		if err == nil && ok && r.Covers(again) {
			s.Done, err = true, o.print(stdout, r)
		}
		if err == nil && !s.Done {
			s.Topology, err = readTopology(again.Topology)
		}
		if err == nil {
			s.Record, err = record.Encode()
		}
		if err != nil {
			return nil, err
		}
		return json.Marshal(s)
	})
	if dir != nil {
		defer dir.Close()
	}
	var s start
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil || s.Done {
		return err
	}
	// fail tells the other processes of an error before Run.
	fail := func(err error) error {
		return host.Run(ctx, func(context.Context, *dist.Group) error { return err })
	}
	openDir := o.newDir(dataset)
	if s.Record != nil {
		record, err := run.DecodeRecord(s.Record)
		if err != nil {
			return fail(err)
		}
		if o.Options, err = run.ResumeOptions(record, o.given); err != nil {
			return misuse(fail(err))
		}
		host.Timeout = o.DistTimeout
		if err := o.Resumes(record.Options); err != nil {
			return fail(fmt.Errorf("resume %s: %w", o.run, err))
		}
		if workers == 0 {
			workers = max(record.Workers, host.Processes())
		}
		o.modelGiven, openDir = true, func() (*run.Dir, error) { return dir, nil }
		if dataset == "" {
			dataset = record.Dataset
		}
	} else if dataset == "" {
		return misuse(fail(fmt.Errorf("%s holds no run, so DATASET is missing", o.run)))
	} else {
		if s.Parts > 0 {
			if workers, err = o.useParts(dataset, s.Parts, dist.MPI, workers); err != nil {
				return misuse(fail(err))
			}
		}
		if o.resume { // else it was done before
			err = o.complete()
		}
		if err != nil {
			return misuse(fail(err))
		}
	}
	if workers > 0 {
		if err := host.SetWorkers(workers); err != nil {
			return err
		}
	}
	o.Dist = dist.MPI.Text(host.Workers())
	if err := o.exchangeBy(host, s.Topology); err != nil {
		return fail(err)
	}
	return o.trainBy(ctx, host, stdout, stderr, dataset, openDir)
}

// topologyFile is a file of links between workers: its path, and its text as it was read.
type topologyFile struct {
	Path string `json:"path"`
	Text []byte `json:"text"`
}

// readTopology reads and checks the file of --topology. It returns nil if path is empty.
func readTopology(path string) (*topologyFile, error) {
	if path == "" {
		return nil, nil
	}
	text, err := readBounded(path, rounds.MaxBytes+1)
	if err != nil {
		return nil, fmt.Errorf("--topology: %w; name another file, or take --topology none", err)
	}
	if _, err := rounds.Parse(path, text); err != nil {
		return nil, fmt.Errorf("--topology %w", err)
	}
	return &topologyFile{path, text}, nil
}

// readBounded reads at most so many bytes of a file.
func readBounded(path string, most int64) ([]byte, error) {
	f, err := store.OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// exchangeBy makes the workers of host exchange in the rounds of a topology. Nil: all messages go
// at once.
func (o *trainOptions) exchangeBy(host *dist.Host, file *topologyFile) error {
	if o.Topology = ""; file == nil {
		return nil
	}
	o.Topology = file.Path
	t, err := rounds.Parse(file.Path, file.Text)
	if err != nil {
		return fmt.Errorf("--topology %w", err)
	}
	return host.SetTopology(t)
}

// trainBy trains by the workers of this process. Only worker 0 prints.
func (o *trainOptions) trainBy(
	ctx context.Context, host *dist.Host, stdout, stderr io.Writer, path string, openDir func() (*run.Dir, error),
) error {
	interrupted := make([]*interruptedError, host.Workers())
	err := host.Run(ctx, func(ctx context.Context, g *dist.Group) error {
		own, out, notes := *o, stdout, stderr
		if g.Rank() > 0 {
			own.listen, out, notes = "", io.Discard, io.Discard
		}
		err := trainWorker(ctx, out, notes, path, &own, openDir, g)
		if errors.As(err, &interrupted[g.Rank()]) { // it has ended well
			return nil
		}
		return err
	})
	var others *dist.WorkerError
	switch i := slices.IndexFunc(interrupted, func(e *interruptedError) bool { return e != nil }); {
	case errors.As(err, &others) && !host.First():
		return &quietError{err}
	case err != nil || i < 0:
		return err
	case i > 0:
		return &quietError{interrupted[i]}
	}
	return interrupted[0]
}

// quietError is an error that another process prints.
type quietError struct{ error }

func (e *quietError) Unwrap() error { return e.error }

// allWorkers describes what all workers did, for the figures of one. It returns "" for one worker.
func allWorkers(w *run.WorkersOf) string {
	if w == nil {
		return ""
	}
	return fmt.Sprintf("%d workers: rows %s, read from disk %s, sent %s, time in exchanges %s. Below: worker %d", len(w.InputRows),
		spread(w.InputRows, count), spread(w.DiskBytes, size), spread(w.SentBytes, size), spread(w.WaitSeconds, seconds), w.Rank)
}

// spread describes a figure of all workers: its sum, and the largest.
func spread[N int64 | float64](each []N, text func(N) string) string {
	var sum, most N
	of := 0
	for p, n := range each {
		if sum += n; n > most {
			most, of = n, p
		}
	}
	if most == 0 {
		return text(0)
	}
	return fmt.Sprintf("%s (worker %d most, %s)", text(sum), of, text(most))
}

// workersText describes the workers of a run in a line.
func workersText(rec *run.Record) string {
	type process struct {
		host string
		pid  int
	}
	var all []process
	workers := map[process][]string{}
	for _, p := range rec.Peers {
		of := process{p.Host, p.PID}
		if workers[of] == nil {
			all = append(all, of)
		}
		workers[of] = append(workers[of], fmt.Sprint(p.Rank))
	}
	var each []string
	for _, p := range all {
		ranks := workers[p]
		text := ranks[0]
		if n := len(ranks); n > 1 {
			text += " to " + ranks[n-1]
		}
		each = append(each, fmt.Sprintf("%s on %s (process %d)", text, p.host, p.pid))
	}
	s := fmt.Sprintf("%d workers, %s: %s", rec.Workers, rec.Options.Parallel, strings.Join(each, ", "))
	if library := rec.Peers[0].Library; library != "" {
		s += "; " + library
	}
	return s
}
