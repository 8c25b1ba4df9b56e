package trace

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/train/sample"
)

// Policy names a way to use a cache of rows.
type Policy string

// The policies: see the package comment.
const (
	Static Policy = "static"
	LRU    Policy = "lru"
	Sieve  Policy = "sieve"
	Belady Policy = "belady"
)

// Policies lists them, the one that knows least first.
var Policies = []Policy{Static, LRU, Sieve, Belady}

// Options chooses what to draw and to simulate. DefaultOptions has the defaults. Errors name an
// option by its key in braces, as in package run.
type Options struct {
	Samplers []sample.Kind `json:"samplers"`
	// Fanouts[h] is the number of neighbours drawn at hop h from the seeds, sample.All for every
	// one.
	Fanouts []int `json:"fanout"`
	// RelationFanouts are the fanouts of relations that have their own, by name or key; 0 draws
	// none.
	RelationFanouts map[string][]int `json:"relation_fanouts,omitempty"`
	LayerDependency bool             `json:"layer_dependency"`
	Poisson         bool             `json:"poisson"` // of LABOR-0
	Walk            sample.Walk      `json:"walk"`
	Split           string           `json:"split"` // empty where the target has one at most
	// Target is the type of the seeds; empty where just one has a label and a split. Relation is
	// the one relation to draw from, by name or key; empty: all of them.
	Target   string `json:"target,omitempty"`
	Relation string `json:"relation,omitempty"`
	Seed     uint64 `json:"seed"`
	// Inputs gives the input of a type's nodes, as in data.Options; other types have their first
	// table. Learnt rows are a table like any other.
	Inputs map[string]string `json:"input,omitempty"`
	// EdgeInputs gives by relation the table that its edges have rows of, as in data.Options. It is
	// traced like any other table. Default none.
	EdgeInputs map[string][]string `json:"edge_input,omitempty"`

	// Growth is the batch sizes of the growth curve; nil: powers of 4 from 64 to 16384, as far as
	// there are seeds, and from less where there are few.
	Growth []int `json:"batches"`

	// Kappas are the κ of the traces: batches that share their draws. sample.Forever is all.
	Kappas []int `json:"kappa"`
	// Smoothed lets draws drift from one seed to the next over κ batches, so that they do not
	// change at once.
	Smoothed bool `json:"-"`     // {dependent} smoothed
	Batch    int  `json:"batch"` // seeds a batch
	// Steps is the number of batches of each trace, and Epochs bounds it as well where it is not 0.
	// If both are 0, it is one epoch, at most 256 batches, but at least twice the largest finite κ,
	// counted up to 1024. With History it is at least twice as many as fill the slots, which are
	// not counted. With Workers it is 16 batches instead of 256.
	//
	// Requests are counted when the caches have filled: after as many batches as ask for more
	// different rows than the largest cache holds, half of the trace at most. If whole periods of κ
	// batches fit in the rest, as many are counted as fit, the last ones. So each change of draws
	// has the weight that it has in a long run.
	Steps  int `json:"steps"`
	Epochs int `json:"epochs"`
	// Caches are the sizes that are simulated, each under each of the policies. With several types,
	// each has caches of its own in these sizes: a share is of its rows, and a number above these
	// is all of them.
	Caches   []Capacity `json:"cache"`
	Policies []Policy   `json:"policies"`

	// History traces runs that use hidden rows again. Then caches are only simulated if Caches is
	// not empty.
	History *History `json:"history,omitempty"`

	// Workers counts the work of several workers of a training. Then the report has no Traces, and
	// each worker has caches of the sizes in Caches. Default nil: no workers are counted.
	Workers *Workers `json:"workers,omitempty"`

	Threads int    `json:"threads"` // goroutines that draw, and passes at a time
	Tmp     string `json:"tmp"`     // directory of the trace's file; empty: where the system has its temporary files
	// Progress is called now and then with the progress of a stage, by one goroutine at a time.
	// Default nil.
	Progress func(stage string, done, total int64, unit string) `json:"-"`
}

// DefaultOptions ends in seconds on a graph of a hundred thousand nodes.
func DefaultOptions() Options {
	return Options{
		Samplers: []sample.Kind{sample.NS, sample.Labor0}, Fanouts: []int{15, 10}, Walk: sample.DefaultWalk, Seed: 1,
		Kappas: []int{1, 64}, Batch: 1000, Caches: []Capacity{{Share: 0.05}, {Share: 0.2}}, Policies: Policies,
		Threads: 2,
	}
}

// Validate reports every problem that does not lie in the dataset.
func (o Options) Validate() error {
	var errs sample.Problems
	fail := errs.If
	fail(len(o.Samplers) == 0, "{samplers}: at least one of %s", sample.Names(sample.Kinds))
	fail(len(o.Kappas) == 0, "{kappa}: at least one number, or inf")
	fail(len(o.Fanouts) == 0, "{fanout}: at least one number")
	fail(len(o.Caches) > maxCaches, "{cache}: at most %d sizes", maxCaches)
	fail(len(o.EdgeInputs) > 0 && slices.ContainsFunc(o.Samplers, sample.Kind.Walks), "{edge_input}: {samplers} rw visits nodes and draws no edges; trace the others")
	twice(&errs, "{samplers}", o.Samplers)
	twice(&errs, "{kappa}", o.Kappas)
	twice(&errs, "{batches}", o.Growth)
	twice(&errs, "{policies}", o.Policies)
	twice(&errs, "{cache}", o.Caches)
	for _, k := range o.Kappas {
		fail(k < 1 && k != sample.Forever, "{kappa} %d: at least 1, or inf", k)
	}
	fanouts := true // samplers would refuse bad fanouts as well, each in turn
	for _, k := range o.Fanouts {
		bad := k != sample.All && (k < 1 || k > math.MaxInt32)
		fail(bad, "{fanout} %d: at least 1, or -1 for every neighbour", k)
		fanouts = fanouts && !bad
	}
	var own [][]int
	for _, name := range slices.Sorted(maps.Keys(o.RelationFanouts)) {
		of := o.RelationFanouts[name]
		fail(len(of) != len(o.Fanouts), "{fanout} %s has %d numbers and {layers} is %d: one a layer", name, len(of), len(o.Fanouts))
		for _, k := range of {
			bad := k < sample.All || k > math.MaxInt32
			fail(bad, "{fanout} %s %d: at least 0, or -1 for every neighbour", name, k)
			fanouts = fanouts && !bad
		}
		own = append(own, of)
	}
	for _, kind := range o.Samplers {
		known := slices.Contains(sample.Kinds, kind)
		fail(!known, "{samplers} %s: there are %s", kind, sample.Names(sample.Kinds))
		if known && fanouts {
			c := o.config(kind, 1)
			c.OfRelation = own
			errs = append(errs, c.Validate())
		}
	}
	drifts := o.Smoothed && slices.ContainsFunc(o.Kappas, func(k int) bool { return k != 1 })
	fail(drifts && slices.ContainsFunc(o.Samplers, sample.Kind.Walks),
		"{dependent} smoothed: walks have no numbers that drift; take {dependent} nested, or leave rw out of {samplers}")
	fail(o.Poisson && !slices.ContainsFunc(o.Samplers, sample.Kind.TakesPoisson), "{poisson} goes with labor0 among {samplers}")
	for _, p := range o.Policies {
		fail(!slices.Contains(Policies, p), "{policies} %s: there are %s", p, sample.Names(Policies))
	}
	for _, b := range o.Growth {
		fail(b < 1 || b > math.MaxInt32, "{batches} %d: from 1 to %d", b, math.MaxInt32)
	}
	for _, c := range o.Caches {
		fail(c.Rows < 1 && !(c.Share > 0 && c.Share <= 1),
			"{cache} %v: above 0 and at most 100%%, or a number of rows from 1", c)
	}
	fail(o.Batch < 1 || o.Batch > math.MaxInt32, "{batch} %d: from 1 to %d", o.Batch, math.MaxInt32)
	fail(o.Steps < 0 || o.Steps > math.MaxInt32,
		"{steps} %d: from 1 to %d, or 0 for as many as fit the other flags", o.Steps, math.MaxInt32)
	fail(o.Epochs < 0 || o.Epochs > math.MaxInt32,
		"{epochs} %d: from 1 to %d, or 0 for no bound", o.Epochs, math.MaxInt32)
	if o.History != nil {
		errs = append(errs, o.History.validate(len(o.Fanouts)))
	}
	if o.Workers != nil {
		errs = append(errs, o.Workers.validate(o))
	}
	fail(o.Threads < 1 || o.Threads > 1024, "{threads} %d: from 1 to 1024", o.Threads)
	return errors.Join(errs...)
}

// twice adds an error for each element that a list has more than once.
func twice[T comparable](errs *sample.Problems, option string, list []T) {
	for i, x := range list {
		errs.If(slices.Contains(list[:i], x), "%s: %v is there twice", option, x)
	}
}

// config returns the configuration of a trace of a sampler, without the fanouts of relations: only
// the dataset knows the relations' numbers.
func (o Options) config(kind sample.Kind, kappa int) sample.Config {
	return sample.Config{
		Kind: kind, Fanouts: o.Fanouts, LayerDependency: o.LayerDependency, Walk: o.Walk,
		Poisson: o.Poisson && kind.TakesPoisson(), Smoothed: o.Smoothed && kappa != 1,
	}
}

// steps returns the number of batches of a trace, if an epoch has so many.
func (o Options) steps(epoch int) int {
	n := o.Steps
	if o.Epochs > 0 && (n == 0 || n > o.Epochs*epoch) {
		n = o.Epochs * epoch
	}
	if n > 0 {
		return n
	}
	n = min(epoch, 256)
	if o.Workers != nil {
		n = min(epoch, 16)
	}
	for _, k := range o.Kappas {
		n = max(n, 2*min(k, 1024))
	}
	if o.History != nil {
		n = max(n, 2*o.History.settled(epoch))
	}
	return n
}

// Capacity is the size of a cache: a share of a table's rows, at least one of them, or where that
// is 0 a number of rows.
type Capacity struct {
	Share float64
	Rows  int64
}

// ParseCapacity reads "20%" or "60000".
func ParseCapacity(s string) (Capacity, error) {
	if number, ok := strings.CutSuffix(s, "%"); ok {
		x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err == nil && !math.IsNaN(x) {
			return Capacity{Share: x / 100}, nil
		}
	} else if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return Capacity{Rows: n}, nil
	}
	return Capacity{}, fmt.Errorf("%q is neither a share of the rows such as 20%% nor a number of them such as 60000", s)
}

// String returns text that ParseCapacity reads.
func (c Capacity) String() string {
	if c.Share != 0 || c.Rows == 0 {
		return strconv.FormatFloat(100*c.Share, 'g', 12, 64) + "%"
	}
	return strconv.FormatInt(c.Rows, 10)
}

// of returns the capacity in rows, for a table of so many rows.
func (c Capacity) of(rows int) uint32 {
	n := c.Rows
	if c.Share > 0 {
		n = max(1, int64(c.Share*float64(rows)))
	}
	return uint32(min(n, int64(rows)))
}
