package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// stage is a row of the list of stages.
type stage struct {
	number int
	name   string
	limit  time.Duration
	data   []string // the kinds of datasets that it wants
	run    func(t *turn) error
	apart  bool // it runs only if it is named
}

// visit is one run of stages on a machine. It is one goroutine's.
type visit struct {
	folder string // of the programs
	work   string // of datasets and runs
	data   string // a folder of datasets that are there already, or ""
	small  bool
	stdout io.Writer
	log    io.Writer
	end    time.Time
	grace  time.Duration // between SIGTERM and SIGKILL for a program whose time is over
	env    []string      // of the programs
	cublas string        // the folder of cuBLAS, "" where none was found

	makings map[string]*making // of datasets, by kind
}

// turn is a stage under way. Its context ends when its time is over.
type turn struct {
	*visit
	ctx     context.Context
	figures []string
	short   []string // figures that miss their target
}

// note adds a key figure.
func (t *turn) note(format string, args ...any) {
	t.figures = append(t.figures, fmt.Sprintf(format, args...))
}

// target adds a key figure that misses its target unless ok. Small runs have no targets.
func (t *turn) target(ok bool, want, format string, args ...any) {
	figure := fmt.Sprintf(format, args...)
	if !ok && !t.small {
		figure += " (" + want + ")"
		t.short = append(t.short, figure)
	}
	t.figures = append(t.figures, figure)
}

// skipError is the reason why a stage cannot run on this machine.
type skipError string

func (e skipError) Error() string { return string(e) }

// The results of a stage.
const (
	passed  = "pass"
	slow    = "slow" // right, with a figure that misses its target
	failed  = "fail"
	skipped = "skip"
)

// outcome is the result of a stage, with its figures.
type outcome struct {
	Stage   int      `json:"stage"`
	Name    string   `json:"name"`
	Result  string   `json:"result"`
	Seconds float64  `json:"seconds"`
	Figures []string `json:"figures"`
	Error   string   `json:"error,omitempty"` // why it failed or was skipped
}

// String returns the line of a stage. Errors are cut to their first line.
func (o outcome) String() string {
	parts := o.Figures
	if o.Error != "" {
		first, _, _ := strings.Cut(o.Error, "\n")
		parts = append([]string{first}, parts...)
	}
	figures := strings.Join(parts, ", ")
	return fmt.Sprintf("stage %d  %-12s %-5s %6.1f s   %s", o.Stage, o.Name, o.Result, o.Seconds, figures)
}

// choose returns the stages with these numbers, in the order of the list. Without numbers it
// returns all that are not apart.
func choose(all []stage, numbers []string) ([]stage, error) {
	wanted := map[int]bool{}
	for _, s := range all {
		if len(numbers) == 0 && !s.apart {
			wanted[s.number] = true
		}
	}
	for _, s := range numbers {
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil, fmt.Errorf("stage %q is no number", s)
		}
		wanted[n] = true
	}
	var chosen []stage
	for _, s := range all {
		if wanted[s.number] {
			chosen = append(chosen, s)
			delete(wanted, s.number)
		}
	}
	for n := range wanted {
		return nil, fmt.Errorf("there is no stage %d", n)
	}
	return chosen, nil
}

// leastTime is the time below which no stage is begun.
const leastTime = 2 * time.Second

// run runs stages one after the other, and prints a line for each. Datasets are made beside the
// stages that need none, and not beside the first two, which time copies and the compiler.
func (v *visit) run(chosen []stage) []outcome {
	ctx, cancel := context.WithDeadline(context.Background(), v.end)
	defer v.awaitData()
	defer cancel()
	var all []outcome
	for _, s := range chosen {
		if s.number > 1 {
			for _, later := range chosen {
				for _, kind := range later.data {
					if v.at(kind) == "" {
						v.make(ctx, kind)
					}
				}
			}
		}
		o := v.one(s)
		fmt.Fprintln(v.stdout, o)
		fmt.Fprintf(v.log, "\n%v\n", o)
		all = append(all, o)
	}
	return all
}

// one runs a stage for as long as it may, and as time is left.
func (v *visit) one(s stage) (o outcome) {
	o = outcome{Stage: s.number, Name: s.name}
	left := time.Until(v.end)
	if left < leastTime {
		o.Result, o.Error = skipped, "no time is left"
		return o
	}
	limit := min(s.limit*time.Duration(v.pick(1, 4)), left) // kernels on the host take longer
	fmt.Fprintf(v.log, "\n== stage %d, %s: at most %.0f s\n", s.number, s.name, limit.Seconds())
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	t, start := &turn{visit: v, ctx: ctx}, time.Now()
	err := s.run(t)
	o.Seconds, o.Figures = time.Since(start).Seconds(), t.figures
	var skip skipError
	switch {
	case errors.As(err, &skip):
		o.Result, o.Error = skipped, string(skip)
	case err != nil:
		o.Result, o.Error = failed, err.Error()
	case len(t.short) > 0:
		o.Result = slow
	default:
		o.Result = passed
	}
	return o
}

// anyFailed reports whether a stage failed.
func anyFailed(outcomes []outcome) bool {
	for _, o := range outcomes {
		if o.Result == failed {
			return true
		}
	}
	return false
}
