package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gnnstore/gnnstore/tools/cli"
)

// launcher starts processes by a family of MPI.
type launcher struct {
	name string
	args []string // before the number of processes
}

// launchers are the two families that Debian has. Root may start Open MPI only if it says so, and
// more processes than there are cores as well.
var launchers = []launcher{
	{"mpirun.openmpi", []string{"--allow-run-as-root", "--oversubscribe", "-n"}},
	{"mpiexec.mpich", []string{"-n"}},
}

// command is args by so many processes, not started.
func (l launcher) command(ctx context.Context, processes int, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, l.name, slices.Concat(l.args, []string{fmt.Sprint(processes)}, args)...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) } // it ends its processes
	c.WaitDelay = 10 * time.Second
	return c
}

// workers proves that the number of processes, the library, the way in which workers share a step,
// and settings of the tiers change no result of four workers; that four workers lose what one
// loses, up to rounding; and that a run goes on in other processes to the same weights after one of
// its processes was killed.
func workers(ctx context.Context, a *arxiv) error {
	for _, l := range launchers {
		if _, err := exec.LookPath(l.name); err != nil {
			return fmt.Errorf("%w: install openmpi-bin and mpich", err)
		}
	}
	mpi, err := cli.BuildTagged(ctx, a.tmp, "mpi")
	if err != nil {
		return err
	}
	if err := exchanges(ctx, a.tmp); err != nil {
		return err
	}
	dataset := filepath.Join(a.work, "computers.gnn")
	if !exists(dataset) {
		source := "ingest/sampledata/amazon_electronics_computers.npz"
		if err := a.gnnstore.Run(ctx, "ingest", "npz", source, dataset, "--undirected"); err != nil {
			return err
		}
	}
	parts := filepath.Join(a.tmp, "computers-parts")
	if err := a.gnnstore.Run(ctx, "partition", dataset, parts, "--parts", "4"); err != nil {
		return err
	}
	w := &workersProof{arxiv: a, mpi: string(mpi), dataset: dataset, parts: parts}
	if err := w.alike(ctx); err != nil {
		return err
	}
	if err := w.onRanges(ctx); err != nil {
		return err
	}
	if err := w.nearOne(ctx); err != nil {
		return err
	}
	if err := w.learnt(ctx); err != nil {
		return err
	}
	return w.killed(ctx)
}

// exchanges runs the tests of package dist that want a launcher.
func exchanges(ctx context.Context, dir string) error {
	test := filepath.Join(dir, "dist.test")
	build := exec.CommandContext(ctx, "go", "test", "-vet=off", "-tags", "mpi", "-c", "-o", test, "./train/dist")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go test -c ./train/dist: %w\n%s", err, out)
	}
	for _, l := range launchers {
		out, err := l.command(ctx, 3, test, "-test.run", "Launched", "-test.v").CombinedOutput()
		if n := bytes.Count(out, []byte("--- PASS: TestLaunched")); err != nil || n != 3 {
			return fmt.Errorf("%s -n 3 dist.test: %d of 3 passed: %w\n%s", l.name, n, err, out)
		}
		fmt.Printf("%s: three processes, three to seven workers, exchange right\n", l.name)
		for _, how := range []string{"hangs", "stopped"} {
			if err := l.named(ctx, test, how); err != nil {
				return err
			}
		}
		fmt.Printf("%s: a process whose worker hangs, and one that is stopped, are named\n", l.name)
	}
	return nil
}

// named runs TestHangs, in which a worker never comes, and finds out whether the others name it.
func (l launcher) named(ctx context.Context, test, how string) error {
	c := l.command(ctx, 3, test, "-test.run", "Hangs")
	c.Env = append(os.Environ(), "GNNSTORE_HANGS="+how)
	out, err := c.CombinedOutput()
	found := regexp.MustCompile(`waited for 1s for worker 1 of 3 \(\S+, process (\d+)\), which does not come`).FindSubmatch(out)
	if err == nil || found == nil {
		return fmt.Errorf("%s -n 3 dist.test, %s: worker 1 is not named: %v\n%s", l.name, how, err, out)
	}
	if pid, err := strconv.Atoi(string(found[1])); err == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL) // launchers leave one that is stopped
	}
	return nil
}

// workersProof trains the bundled real graph.
type workersProof struct {
	*arxiv
	mpi     string
	dataset string
	parts   string // the dataset in four parts
	runs    int
}

// withoutWhole calls work while the whole dataset is away.
func (w *workersProof) withoutWhole(work func() error) error {
	away := w.dataset + ".away"
	if err := os.Rename(w.dataset, away); err != nil {
		return err
	}
	err := work()
	return errors.Join(err, os.Rename(away, w.dataset))
}

// onParts is args for a run on the parts.
func (w *workersProof) onParts(args []string) []string {
	args = slices.Clone(args)
	args[slices.Index(args, w.dataset)] = w.parts
	return args
}

// args returns the arguments of a run in a directory of its own.
func (w *workersProof) args(more ...string) (dir string, args []string) {
	w.runs++
	dir = filepath.Join(w.tmp, fmt.Sprintf("workers-%d", w.runs))
	return dir, slices.Concat([]string{
		"train", w.dataset, "--run", dir, "--json", "--hidden", "32", "--fanout", "5,5", "--batch", "256", "--epochs", "2", "--epoch-steps", "6",
		"--eval-every", "2", "--eval", "sampled", "--eval-nodes", "500",
	}, more)
}

// trained runs a command, and reads the result that it prints.
func trained(cmd *exec.Cmd) (r cli.Trained, err error) {
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return r, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, cli.LastLine(stderr.Bytes()))
	}
	return r, json.Unmarshal(out.Bytes(), &r)
}

// alike trains by four workers in every layout, with settings of the tiers that change in turn.
func (w *workersProof) alike(ctx context.Context) error {
	openMPI, mpich := &launchers[0], &launchers[1]
	wants := map[bool]cli.Trained{} // by whether workers compute together
	for _, run := range []struct {
		by        *launcher // nil: one process, without a launcher
		processes int
		settings  string
		parts     bool // each worker has a part alone, and the whole is away
	}{
		{nil, 1, "--eval full", false},
		{nil, 1, "--parallel parts --memory 600MiB --host-memory 4MiB --policy lru --window 1 --disk-engine pread", true},
		{openMPI, 1, "--parallel independent --host-memory 2MiB --policy belady --window 4", false},
		{openMPI, 2, "--parallel parts --memory 2GiB --host-memory 5MiB --spill 128MiB --policy static --disk-engine uring", true},
		{openMPI, 4, "--parallel independent --memory 2GiB --host-memory 4MiB --spill 64MiB --workers 1", false},
		{openMPI, 4, "--parallel parts --eval full --eval-memory 64KiB", false}, // hidden rows are on disk
		{mpich, 1, "--parallel parts --disk-engine mmap --host-memory 0", true},
		{mpich, 2, "--host-memory 1MiB --policy sieve --window 2 --lookahead 0", false},
		{mpich, 4, "--parallel parts --host-memory 2MiB --policy none --workers 8", true},
		{nil, 1, "--parallel cooperative --eval full", false},
		{openMPI, 2, "--parallel cooperative --memory 600MiB --host-memory 2MiB --policy lru --window 2", true},
		{openMPI, 4, "--parallel cooperative --host-memory 4MiB --policy belady --disk-engine uring --eval full", true},
		{mpich, 4, "--parallel cooperative --host-memory 0 --workers 8 --lookahead 0", false},
	} {
		settings := strings.Fields(run.settings)
		dist := "mpi:4"
		if run.by == nil {
			dist = "local:4"
		}
		_, args := w.args(append(settings, "--dist", dist)...)
		name, away := "local:4", func(work func() error) error { return work() }
		if run.parts {
			name, away, args = name+", on parts", w.withoutWhole, w.onParts(args)
		}
		cmd := exec.CommandContext(ctx, w.mpi, args...)
		if run.by != nil {
			cmd = run.by.command(ctx, run.processes, append([]string{w.mpi}, args...)...)
			name = strings.Replace(name, "local:4", fmt.Sprintf("%s -n %d", run.by.name, run.processes), 1)
		}
		var got cli.Trained
		err := away(func() (err error) {
			got, err = trained(cmd)
			return err
		})
		if err != nil {
			return err
		}
		fmt.Printf("%s %s: losses %v, params %s\n", name, run.settings, got.Losses(), got.ParamsXXH3)
		together := slices.Contains(settings, "cooperative")
		if _, ok := wants[together]; !ok {
			wants[together] = got
		}
		want := wants[together]
		if got.ParamsXXH3 != want.ParamsXXH3 || got.ParamsXXH3 == "" || !slices.Equal(got.Losses(), want.Losses()) {
			return fmt.Errorf("%s %s changes the result: want losses %v and params %s", name, run.settings, want.Losses(), want.ParamsXXH3)
		}
		if slices.Contains(settings, "--spill") && (got.Join == nil || got.Join.Spilled == 0) {
			return fmt.Errorf("%s %s: nothing was spilled", name, run.settings)
		}
	}
	return nil
}

// onRanges trains on parts that go by edges, by four workers in one process and in four.
func (w *workersProof) onRanges(ctx context.Context) error {
	near := filepath.Join(w.tmp, "computers-near")
	if err := w.gnnstore.Run(ctx, "partition", w.dataset, near, "--parts", "4", "--by", "ldg"); err != nil {
		return err
	}
	var losses [2][]float64
	var params [2]string
	for i, dist := range []string{"local:4", "mpi:4"} {
		_, args := w.args("--eval", "full", "--dist", dist)
		args[slices.Index(args, w.dataset)] = near
		cmd := exec.CommandContext(ctx, w.mpi, args...)
		if i == 1 {
			cmd = launchers[0].command(ctx, 4, append([]string{w.mpi}, args...)...)
		}
		got, err := trained(cmd)
		if err != nil {
			return err
		}
		losses[i], params[i] = got.Losses(), got.ParamsXXH3
	}
	if params[0] != params[1] || params[0] == "" || !slices.Equal(losses[0], losses[1]) {
		return fmt.Errorf("on parts by ldg, one process ends with losses %v and params %s, four with %v and %s",
			losses[0], params[0], losses[1], params[1])
	}
	fmt.Printf("on parts by ldg, one process and four: losses %v, params %s\n", losses[0], params[0])
	return nil
}

// nearOne trains by one worker, and by four in two ways, at a learning rate so low that rounding
// stays small. The losses must agree.
func (w *workersProof) nearOne(ctx context.Context) error {
	var one []float64
	for _, how := range []string{"--dist off", "--dist local:4", "--dist local:4 --parallel cooperative"} {
		_, args := w.args(append(strings.Fields(how), "--lr", "3e-5", "--dropout", "0")...)
		r, err := trained(exec.CommandContext(ctx, string(w.gnnstore), args...))
		if err != nil {
			return err
		}
		if one == nil {
			one = r.Losses()
		}
		for i, x := range one {
			if d := math.Abs(r.Losses()[i]-x) / x; !(d < 1e-5) {
				return fmt.Errorf("%s loses %v where one worker loses %v: %.1e of it apart, want 1e-5", how, r.Losses(), one, d)
			}
		}
		fmt.Printf("at a low rate: %s: losses %v\n", how, r.Losses())
	}
	return nil
}

// learnt trains learnt rows at their owners, in one process and in four on parts, and measures the
// run by as many workers.
func (w *workersProof) learnt(ctx context.Context) error {
	more := []string{"--parallel", "parts", "--input", "node=embed:16", "--clip-norm", "0.1", "--checkpoint-every", "4"}
	_, args := w.args(append(more, "--dist", "local:4")...)
	want, err := trained(exec.CommandContext(ctx, string(w.gnnstore), args...))
	if err != nil {
		return err
	}
	l := launchers[0]
	dir, args := w.args(append(more, "--host-memory", "64KiB", "--window", "2")...)
	var got cli.Trained
	err = w.withoutWhole(func() (err error) {
		if got, err = trained(l.command(ctx, 4, append([]string{w.mpi}, w.onParts(args)...)...)); err != nil {
			return err
		}
		out, err := l.command(ctx, 2, w.mpi, "eval", dir, w.parts).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s -n 2 eval: %w: %s", l.name, err, cli.LastLine(out))
		}
		return err
	})
	if err != nil {
		return err
	}
	if got.ParamsXXH3 != want.ParamsXXH3 || got.ParamsXXH3 == "" {
		return fmt.Errorf("learnt rows by %s -n 4, on parts: params %s, want %s", l.name, got.ParamsXXH3, want.ParamsXXH3)
	}
	fmt.Printf("%s -n 4, on parts: learnt rows and weights %s, as in one process\n", l.name, got.ParamsXXH3)
	return nil
}

// killed kills one of four processes, which keep hidden rows, and has two of the other family go
// on.
func (w *workersProof) killed(ctx context.Context) error {
	more := []string{
		"--epochs", "6", "--checkpoint-every", "3", "--history", "--history-start", "2", "--t-stale", "8", "--history-lag", "3",
	}
	wants := map[bool]string{} // weights, by whether workers compute together
	for _, together := range []bool{false, true} {
		way := map[bool]string{false: "parts", true: "cooperative"}[together]
		_, args := w.args(append(more, "--dist", "local:4", "--parallel", way)...)
		want, err := trained(exec.CommandContext(ctx, string(w.gnnstore), args...))
		if err != nil {
			return err
		}
		wants[together] = want.ParamsXXH3
	}
	for i, way := range []string{"independent", "parts", "cooperative"} {
		i %= len(launchers)
		l := launchers[i]
		dir, args := w.args(append(more, "--parallel", way)...)
		away, want := func(work func() error) error { return work() }, wants[way == "cooperative"]
		if way != "independent" {
			way, away, args = way+" on parts", w.withoutWhole, w.onParts(args)
		}
		var got cli.Trained
		err := away(func() error {
			if err := w.killOne(ctx, l, dir, args); err != nil {
				return err
			}
			resume := []string{w.mpi, "train", "--resume", "--run", dir, "--json"}
			var err error
			got, err = trained(launchers[1-i].command(ctx, 2, resume...))
			return err
		})
		if err != nil {
			return err
		}
		if got.ParamsXXH3 != want {
			return fmt.Errorf("a run of which %s lost a process went on to params %s, want %s", l.name, got.ParamsXXH3, want)
		}
		if way == "parts on parts" {
			if err := w.predicts(ctx, launchers[1-i], dir); err != nil {
				return err
			}
		}
		fmt.Printf("%s -n 4, %s, one killed; went on by %s -n 2 to params %s\n",
			l.name, way, launchers[1-i].name, got.ParamsXXH3)
	}
	return nil
}

// predicts compares predictions over the parts, by four processes, with those over the whole.
func (w *workersProof) predicts(ctx context.Context, l launcher, dir string) error {
	apart, whole := dir+"-parts.csv", dir+"-whole.csv"
	err := w.withoutWhole(func() error {
		out, err := l.command(ctx, 4, w.mpi, "predict", dir, w.parts, apart).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s -n 4 predict: %w: %s", l.name, err, cli.LastLine(out))
		}
		return err
	})
	if err == nil {
		err = w.gnnstore.Run(ctx, "predict", dir, w.dataset, whole)
	}
	if err != nil {
		return err
	}
	a, err := os.ReadFile(apart)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(whole)
	if err == nil && !bytes.Equal(a, b) {
		err = fmt.Errorf("predictions over parts, in %s, are not those over the whole, in %s", apart, whole)
	}
	if err == nil {
		fmt.Printf("%s -n 4: predictions over parts equal those over the whole, %d bytes\n", l.name, len(b))
	}
	return err
}

// killOne starts a run by four processes, and kills the last of them once there is a checkpoint.
func (w *workersProof) killOne(ctx context.Context, l launcher, dir string, args []string) error {
	cmd := l.command(ctx, 4, append([]string{w.mpi}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for killed := false; ; {
		select {
		case err := <-ended:
			if !killed || err == nil {
				return fmt.Errorf("%s: it ended with %v before a process was killed: %s", l.name, err, cli.LastLine(out.Bytes()))
			}
			return nil
		case <-time.After(20 * time.Millisecond):
		}
		there, err := filepath.Glob(filepath.Join(dir, "checkpoints", "*.safetensors"))
		if err != nil || len(there) == 0 || killed {
			continue
		}
		pid, err := lastPeer(dir)
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			return errors.Join(err, cmd.Cancel(), <-ended)
		}
		killed = true
	}
}

// lastPeer returns the process of the last worker on record.
func lastPeer(dir string) (pid int, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		return 0, err
	}
	var record struct {
		Peers []struct {
			PID int `json:"pid"`
		} `json:"peers"`
	}
	if err := json.Unmarshal(text, &record); err != nil {
		return 0, err
	}
	if len(record.Peers) == 0 {
		return 0, errors.New("run.json names no workers")
	}
	return record.Peers[len(record.Peers)-1].PID, nil
}
