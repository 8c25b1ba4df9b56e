package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/task"
)

// Short reports whether err says that a run does not fit in memory. A smaller batch, fewer
// neighbours or a narrower network may fit.
func Short(err error) bool {
	var short *plan.NotEnough
	var refused *kernels.MemoryError
	var long *task.ListsTooLong
	return errors.As(err, &short) || errors.As(err, &refused) || errors.As(err, &long)
}

// Fitting adds to refused, the error of a run that does not fit in memory, the options that fit:
// "…; {batch} 300 fits". given are the options as the user gave them, and settled the ones in
// effect. opens opens a run with other options and closes it without training: if it fails, they do
// not fit.
func Fitting(ctx context.Context, refused error, given, settled Options, opens func(Options) error) error {
	f := fitting{refused: refused, given: given, settled: settled, opens: opens}
	if advice := f.advice(); advice != "" && ctx.Err() == nil {
		return fmt.Errorf("%w; %s", refused, advice)
	}
	return refused
}

// fitting searches for options that fit.
type fitting struct {
	refused        error
	given, settled Options
	opens          func(Options) error
	tried          []string // names of the options that were made smaller
	least          error    // the error of batch 1
}

// littleBatch: training is slow with a batch below 1/littleBatch of the wanted one, so other
// options are tried, too.
const littleBatch = 10

// advice returns the end of the message, or "" if there is nothing to say.
func (f *fitting) advice() string {
	var ways []string
	add := func(way string) {
		if way != "" {
			ways = append(ways, way)
		}
	}
	batch := f.batch()
	if batch > 0 {
		add(fmt.Sprintf("{batch} %d", batch))
	}
	if batch < f.settled.Batch/littleBatch || batch == 0 {
		add(f.fanouts(false))
		if len(ways) == 0 {
			add(f.fanouts(true))
		}
		add(f.hidden())
	}
	switch {
	case len(ways) > 0:
		return strings.Join(ways, ", or ") + " fits"
	case len(f.tried) == 0:
		return ""
	}
	last := len(f.tried) - 1
	text := "no smaller " + f.tried[last] + " fits"
	if last > 0 {
		text = "no smaller " + strings.Join(f.tried[:last], ", ") + " or " + f.tried[last] + " fits"
	}
	var short, wanted *plan.NotEnough
	if errors.As(f.least, &short) && errors.As(f.refused, &wanted) && short.MiB() < wanted.MiB() {
		text += fmt.Sprintf("; {batch} 1 needs %d MiB", short.MiB())
	}
	return text
}

// fits reports whether a run fits after change has made options smaller. keys names these options.
func (f *fitting) fits(change func(o *Options), keys ...string) bool {
	o := f.given
	o.Left = maps.Clone(o.Left)
	for _, key := range keys {
		delete(o.Left, key)
	}
	change(&o)
	err := f.opens(o)
	if err != nil && slices.Equal(keys, []string{"batch"}) && o.Batch == 1 {
		f.least = err
	}
	return err == nil
}

// batch returns the largest round batch below the one in effect that fits, or 0.
func (f *fitting) batch() int {
	return f.largest("{batch}", roundSizes(f.settled.Batch), func(n int) bool {
		return f.fits(func(o *Options) { o.Batch = n }, "batch")
	})
}

// hidden returns the largest hidden width that fits, as text. It tries a half, a quarter and so on
// of the width in effect.
func (f *fitting) hidden() string {
	var widths []int
	for w := f.settled.Hidden / 2; w > 0; w /= 2 {
		widths = append([]int{w}, widths...)
	}
	n := f.largest("{hidden}", widths, func(n int) bool {
		return f.fits(func(o *Options) { o.Hidden = n }, "hidden")
	})
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("{hidden} %d", n)
}

// fanouts returns the largest fanouts that fit, as text: with a batch of 1 if one is set, else with
// the wanted batch.
func (f *fitting) fanouts(one bool) string {
	most := 0
	for _, n := range f.settled.Fanouts {
		if n == sample.All {
			n = manyNeighbors
		}
		most = max(most, n)
	}
	if len(f.settled.RelationFanouts) > 0 { // these would stay as large as they are
		most = 0
	}
	n := f.largest("{fanout}", roundSizes(most), func(n int) bool {
		change, keys := func(o *Options) { o.Fanouts = fewer(f.settled.Fanouts, n, most) }, []string{"fanout"}
		if one {
			return f.fits(func(o *Options) { change(o); o.Batch = 1 }, append(keys, "batch")...)
		}
		return f.fits(change, keys...)
	})
	if n == 0 {
		return ""
	}
	text := "{fanout} " + FanoutText(fewer(f.settled.Fanouts, n, most), nil)
	if one {
		text = "{batch} 1 with " + text
	}
	return text
}

// manyNeighbors stands for sample.All in the search: the largest fanout that it tries is then 100.
const manyNeighbors = 101

// fewer scales fanouts by n/most, so that the largest, most, becomes n. All becomes n, too.
func fewer(fanouts []int, n, most int) []int {
	less := slices.Clone(fanouts)
	for i, k := range less {
		switch {
		case k == sample.All:
			less[i] = n
		case k > 0:
			less[i] = max(1, k*n/most)
		}
	}
	return less
}

// largest returns the largest size that fits, or 0 if none does. sizes ascend. It notes in f.tried
// that the option what was tried.
func (f *fitting) largest(what string, sizes []int, fits func(n int) bool) int {
	if len(sizes) == 0 {
		return 0
	}
	if !slices.Contains(f.tried, what) {
		f.tried = append(f.tried, what)
	}
	if !fits(sizes[0]) {
		return 0
	}
	rest := sizes[1:]
	return sizes[sort.Search(len(rest), func(i int) bool { return !fits(rest[i]) })]
}

// roundSizes returns the numbers from 1 to below n that have one digit other than 0, ascending.
func roundSizes(n int) (all []int) {
	for unit := 1; unit < n; unit *= 10 {
		for k := unit; k < min(n, 10*unit); k += unit {
			all = append(all, k)
		}
	}
	return all
}
