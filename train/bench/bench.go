// Package bench measures the speed of the kernels, the sampler and a training step on this machine.
//
// A [Case] is one thing to time; [Cases] lists them for a kernel set, at the sizes of a training
// step. [Ceilings] has the best rates of the machine, so that a rate can be given as a share of
// them. Nothing here prints: gnnstore bench and tools/bench do. A [Trainer] is one update without
// the run around it.
//
// A Case holds memory only between Prepare and the function that it returns to give it back. One
// goroutine uses them. Start at [Cases].
package bench

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"time"

	"github.com/gnnstore/gnnstore/kernels"
)

// Options configures a measurement. The zero value works.
type Options struct {
	Set      kernels.Set       // default the fastest one
	Products kernels.Precision // kernels.Float32, the default, or kernels.BF16
	Threads  int               // default GOMAXPROCS
	Time     time.Duration     // of each case, at least; default 200 ms
	Filter   *regexp.Regexp    // of names; default all
}

func (o Options) withDefaults() (Options, error) {
	set, err := kernels.ParseSet(string(o.Set), o.Products)
	if err != nil {
		return o, err
	}
	o.Set = set
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.Time <= 0 {
		o.Time = 200 * time.Millisecond
	}
	return o, nil
}

// Case is one thing to time.
type Case struct {
	Name    string // a Go benchmark name without the prefix: Adam/rows=256/cols=256
	Prepare func() Job
}

// Job is a Case with its operands in memory, which Free gives back.
type Job struct {
	Run, Free func()
	Work

	be    kernels.Backend // or nil
	cycle int             // runs after which the work is the same again, if that is not each run
}

// count sets Flops and Moved to what the backend counts in the mean of a run.
func (j *Job) count() {
	before, ok := kernels.Work{}, false
	if j.be != nil {
		before, ok = kernels.WorkOf(j.be)
	}
	if !ok {
		return
	}
	runs := max(j.cycle, 1)
	for range runs {
		j.Run()
	}
	after, _ := kernels.WorkOf(j.be)
	work := after.Sub(before)
	j.Flops, j.Moved = float64(work.ProductFlops)/float64(runs), float64(work.OperandBytes)/float64(runs)
}

// Work is the mean work of one run; a kind of work that does not bound it is 0. Flops counts the
// operations of products. Bytes are read, and Moved are the bytes of operands: see kernels.Work.
type Work struct{ Flops, Bytes, Moved, Edges, Seeds float64 }

// Metric is a rate.
type Metric struct {
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// Result is a Case that was timed.
type Result struct {
	Name    string   `json:"name"`
	Runs    int      `json:"runs"`
	NsPerOp float64  `json:"ns_per_op"`
	Metrics []Metric `json:"metrics"`
}

// String returns the result as go test prints it, so that benchstat reads it.
func (r Result) String() string {
	s := fmt.Sprintf("Benchmark%s\t%8d\t%12.0f ns/op", r.Name, r.Runs, r.NsPerOp)
	for _, m := range r.Metrics {
		s += fmt.Sprintf("\t%10.2f %s", m.Value, m.Unit)
	}
	return s
}

// Run measures the ceilings, and then every case that o.Filter matches. It calls started with the
// ceilings and each with every result as it comes. It ends with ctx, between two cases.
func Run(ctx context.Context, o Options, started func(Ceilings), each func(Result)) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	all := Cases(o.Set, o.Products, o.Threads)
	var chosen []Case
	for _, c := range all {
		if o.Filter == nil || o.Filter.MatchString(c.Name) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no benchmark matches %s; names are like %s, and MatMul or Step match several", o.Filter, all[0].Name)
	}
	top := MeasureCeilings(o.Set, o.Products, o.Threads, o.Time)
	started(top)
	for _, c := range chosen {
		if err := ctx.Err(); err != nil {
			return err
		}
		job := c.Prepare()
		job.count()
		runs, mean := Time(job.Run, o.Time)
		job.Free()
		each(Result{c.Name, runs, float64(mean), job.Rates(mean, top)})
	}
	return nil
}

// Time runs run once to warm up, and then for at least d. It returns how often that was and how
// long each took in the mean.
func Time(run func(), d time.Duration) (runs int, each time.Duration) {
	run()
	start := time.Now()
	for {
		run()
		runs++
		if spent := time.Since(start); spent >= d {
			return runs, spent / time.Duration(runs)
		}
	}
}

// Rates returns the work in a second, given the time of a run, and its shares of the known
// ceilings. Work with products has their bound, too.
func (w Work) Rates(each time.Duration, top Ceilings) []Metric {
	rates := []Metric{}
	rate := func(amount float64, unit string, scale, ceiling float64, share string) {
		if amount == 0 {
			return
		}
		perSecond := amount / each.Seconds()
		rates = append(rates, Metric{perSecond / scale, unit})
		if ceiling > 0 {
			rates = append(rates, Metric{100 * perSecond / ceiling, share})
		}
	}
	rate(w.Flops, "GFLOP/s", 1e9, top.Flops, "%peak")
	rate(w.Bytes, "GB/s", 1e9, top.Bytes, "%read")
	rate(w.Edges, "Medges/s", 1e6, 0, "")
	rate(w.Seeds, "seeds/s", 1, 0, "")
	if b := top.Bound(w.Flops, w.Moved); b.Products > 0 && b.Bytes > 0 {
		rates = append(rates, Metric{1e3 * b.Products, "products-ms"}, Metric{1e3 * b.Bytes, "bytes-ms"},
			Metric{100 * b.Seconds() / each.Seconds(), "%bound"})
	}
	return rates
}
