// Fuzz runs every fuzz test of the module in turn, each for its share of the time, prints how often
// each ran, and goes on after a crash. It exits 1 if anything crashed; the crashing input is then
// in testdata/fuzz of the package, where it is a seed of every later test. Run it in the module's
// root:
//
//	go run ./tools/fuzz -time 1h [-only REGEX] [-draw -seed N]
//
// With -draw the time includes building. The seed draws an order, and targets run a few seconds
// each until the time is up.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	total := flag.Duration("time", time.Hour, "the `time` that all targets share, at least a second each")
	draw := flag.Bool("draw", false, "run targets in an order that -seed draws until -time is up, building included; at least one")
	seed := flag.Uint64("seed", 1, "seed of -draw")
	only := flag.String("only", "", "a `regexp` of targets, as in ingest/npy.FuzzHeader; default all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, options{*total, *only, *draw, *seed})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

type options struct {
	total time.Duration
	only  string
	draw  bool
	seed  uint64
}

// drawnShare is the time that a drawn target runs: enough for its seeds and some thousand other
// inputs.
const drawnShare = 5 * time.Second

func run(ctx context.Context, o options) error {
	pattern, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	all, err := list(ctx)
	if err != nil {
		return err
	}
	var chosen []target
	for _, t := range all {
		if pattern.MatchString(t.String()) {
			chosen = append(chosen, t)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("none of %d targets is called %s", len(all), o.only)
	}
	w, err := newWorkshop(ctx)
	if err != nil {
		return err
	}
	defer w.close()
	share, end := max(o.total/time.Duration(len(chosen)), time.Second), time.Time{}
	if o.draw {
		share, end = drawnShare, time.Now().Add(o.total)
		chosen = drawn(chosen, o.seed)
		fmt.Printf("%d targets in the order of seed %#x, %s each, for %s\n", len(chosen), o.seed, share, o.total)
	} else {
		fmt.Printf("%d targets, %s each\n", len(chosen), share.Round(100*time.Millisecond))
	}
	var crashed []string
	executions, ran := int64(0), 0
	for _, t := range chosen {
		r, late := w.fuzzBy(ctx, t, share, end, ran == 0)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if late {
			break
		}
		ran++
		executions += r.executions
		fmt.Printf("%-36s %11d executions, %7.0f a second, %d new inputs of interest\n", t, r.executions,
			float64(r.executions)/share.Seconds(), r.interesting)
		if r.err != nil {
			crashed = append(crashed, t.String())
			fmt.Printf("%s: %v\n%s\n", t, r.err, r.output)
		}
		for _, file := range r.crashers {
			fmt.Printf("%s: a new seed, %s/%s\n", t, strings.TrimPrefix(t.dir, workingDir()), file)
		}
	}
	fmt.Printf("%d executions of %d targets\n", executions, ran)
	if len(crashed) > 0 {
		return fmt.Errorf("%d of %d targets crashed: %s", len(crashed), ran, strings.Join(crashed, ", "))
	}
	return nil
}

// drawn orders targets by a seed. Targets of a package stay together, since building it takes
// longer than running them.
func drawn(targets []target, seed uint64) []target {
	var pkgs []string
	of := map[string][]target{}
	for _, t := range targets {
		if of[t.pkg] == nil {
			pkgs = append(pkgs, t.pkg)
		}
		of[t.pkg] = append(of[t.pkg], t)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	rng.Shuffle(len(pkgs), func(i, j int) { pkgs[i], pkgs[j] = pkgs[j], pkgs[i] })
	var order []target
	for _, pkg := range pkgs {
		order = append(order, of[pkg]...)
	}
	return order
}

// fuzzBy runs fuzz if it ends before end, which may be zero. late means that there was no time left
// to begin or to build. The first target is built however long that takes.
func (w *workshop) fuzzBy(ctx context.Context, t target, share time.Duration, end time.Time, first bool) (r result, late bool) {
	if end.IsZero() || first {
		return w.fuzz(ctx, t, share), false
	}
	if time.Until(end) < share {
		return r, true
	}
	building, cancel := context.WithDeadline(ctx, end.Add(-share))
	defer cancel()
	if _, output, err := w.build(building, t); err != nil {
		if building.Err() != nil {
			return r, true
		}
		return result{err: err, output: string(output)}, false
	}
	return w.fuzz(ctx, t, share), false
}

// workshop is where targets are built and run.
type workshop struct {
	dir, scratch string // of programs, and of the files that targets write
	cache        string // of inputs of interest, as go test -fuzz keeps them
	built        string // the package whose program is in dir
}

// newWorkshop makes a scratch directory, in memory if the system has a place there. Targets that
// read files write some for each execution.
func newWorkshop(ctx context.Context) (*workshop, error) {
	cache, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	w := &workshop{cache: filepath.Join(strings.TrimSpace(string(cache)), "fuzz")}
	if w.dir, err = os.MkdirTemp("", "gnnstore-fuzz-"); err != nil {
		return nil, err
	}
	w.scratch = w.dir
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err == nil && info.IsDir() {
		if w.scratch, err = os.MkdirTemp(memory, "gnnstore-fuzz-"); err != nil {
			w.scratch = w.dir // which always goes
			w.close()
			return nil, err
		}
	}
	return w, nil
}

func (w *workshop) close() {
	os.RemoveAll(w.dir)
	os.RemoveAll(w.scratch)
}

// build makes the program of a target's package, unless it was the last that was made.
func (w *workshop) build(ctx context.Context, t target) (program string, output []byte, err error) {
	program = filepath.Join(w.dir, "fuzz.test")
	if w.built != t.pkg {
		w.built = ""
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-fuzz", ".", "-o", program, t.pkg)
		cmd.WaitDelay = 5 * time.Second // compilers it started may hold its output open
		if output, err = cmd.CombinedOutput(); err == nil {
			w.built = t.pkg
		}
	}
	return program, output, err
}

// workingDir is the prefix of directories that no message needs.
func workingDir() string {
	dir, _ := os.Getwd() // "" shows them whole
	return dir + "/"
}

// A target is a fuzz test of a package.
type target struct{ pkg, dir, name string }

// String is short: ingest/npy.FuzzHeader.
func (t target) String() string {
	_, path, _ := strings.Cut(t.pkg, "/gnnstore/gnnstore/")
	return path + "." + t.name
}

// list finds the fuzz tests of all packages. go test -list would link every test of the module
// first.
func list(ctx context.Context) ([]target, error) {
	const files = "{{range .TestGoFiles}}\t{{.}}{{end}}{{range .XTestGoFiles}}\t{{.}}{{end}}"
	listed, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.ImportPath}}\t{{.Dir}}"+files, "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []target
	for line := range strings.Lines(string(listed)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		for _, file := range fields[2:] {
			source, err := os.ReadFile(filepath.Join(fields[1], file))
			if err != nil {
				return nil, err
			}
			for _, name := range targets(source) {
				all = append(all, target{pkg: fields[0], dir: fields[1], name: name})
			}
		}
	}
	return all, nil
}

var fuzzFunc = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(\w+ \*testing\.F\) \{$`)

// targets are the names of the fuzz tests in a Go file.
func targets(source []byte) []string {
	var names []string
	for _, m := range fuzzFunc.FindAllSubmatch(source, -1) {
		names = append(names, string(m[1]))
	}
	return names
}

// result has the counts of a target's run, its crashing inputs and its error.
type result struct {
	executions, interesting int64
	crashers                []string // new seeds, relative to the package
	output                  string   // of a failure
	err                     error
}

// brief is a share in which the inputs of interest of earlier runs would take all the time: it
// begins with the seeds alone.
const brief = 10 * time.Second

// overtime bounds what a target may take beside its share, to read the inputs of interest and to
// come to an end.
const overtime = 5 * time.Minute

// fuzz runs a target for a while.
func (w *workshop) fuzz(ctx context.Context, t target, share time.Duration) result {
	program, output, err := w.build(ctx, t)
	if err != nil {
		return result{err: err, output: string(output)}
	}
	ctx, cancel := context.WithTimeout(ctx, share+overtime)
	defer cancel()
	cache := filepath.Join(w.cache, filepath.FromSlash(t.pkg))
	if share < brief {
		cache = filepath.Join(w.dir, "cache", filepath.FromSlash(t.pkg))
	}
	// Go makes inputs of interest smaller for up to a minute each, in which some targets do nothing
	// else: with 1x, FuzzFolder of mag240m runs 45 times as often and finds more. An input that
	// crashes is made smaller by hand.
	cmd := exec.CommandContext(ctx, program, "-test.run=^$", "-test.fuzz=^"+t.name+"$", "-test.fuzztime="+share.String(),
		"-test.fuzzminimizetime=1x", "-test.fuzzcachedir="+cache)
	cmd.Dir, cmd.Env = t.dir, append(os.Environ(), "TMPDIR="+w.scratch)
	// The program and its workers are one group, which ends together.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	output, err = cmd.CombinedOutput()
	r := parse(string(output))
	if err != nil && !endedLate(string(output)) {
		r.err, r.output = err, string(output)
	}
	return r
}

// endedLate reports whether output is only the failure that go test -fuzz now and then prints
// because its time is up, though nothing failed (https://go.dev/issue/75804).
func endedLate(output string) bool {
	return deadlineLine.MatchString(output) && !crasherLine.MatchString(output)
}

var (
	progressLine = regexp.MustCompile(`(?m)^fuzz: elapsed: \S+, execs: (\d+) .*?(?:new interesting: (\d+))?(?: \(total: \d+\))?$`)
	deadlineLine = regexp.MustCompile(`(?m)^--- FAIL: Fuzz\w+ \(\S+\)\n    context deadline exceeded\nFAIL$`)
	crasherLine  = regexp.MustCompile(`(?m)^\s*Failing input written to (\S+)$`)
)

// parse reads what go test -fuzz says.
func parse(output string) result {
	var r result
	for _, m := range progressLine.FindAllStringSubmatch(output, -1) {
		r.executions, _ = strconv.ParseInt(m[1], 10, 64)
		if m[2] != "" {
			r.interesting, _ = strconv.ParseInt(m[2], 10, 64)
		}
	}
	for _, m := range crasherLine.FindAllStringSubmatch(output, -1) {
		r.crashers = append(r.crashers, m[1])
	}
	return r
}
