//go:build !race

// With the race detector, the buffers of a step are on the Go heap: its memory hardly depends on
// the batch.

package graph

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
)

// namedOption matches an option that an error names as fitting.
var namedOption = regexp.MustCompile(`\{(batch|fanout|hidden)\} ([\d,]+)`)

// TestRefusalNamesWhatFits: for several tasks and budgets, a run opens with each option that the
// error names, and not with the next larger value.
func TestRefusalNamesWhatFits(t *testing.T) {
	nodes := open(t, storetest.Communities(6000, 4, 8, 64, 2))
	links := open(t, linked(3000))
	types := openTyped(t, storetest.Library(3000, 4, 1))
	wide := run.DefaultOptions()
	wide.Hidden, wide.EvalBytes = 64, 0
	pairs := wide
	pairs.Task, pairs.Metric = run.LinkTask, metric.ROCAUC
	rsage := wide
	rsage.Kind = model.RSAGE
	deep := wide
	deep.Layers, deep.Fanouts = 3, []int{10, 10, 10}
	one := wide
	one.Batch, one.Layers, one.Hidden, one.Fanouts = 1, 4, 128, []int{7, 7, 7, 7}
	broad := wide
	broad.Batch, broad.Hidden, broad.Fanouts = 1, 1024, []int{1, 1}
	kinds := map[string]int{}
	for name, c := range map[string]struct {
		ds *store.Dataset
		o  run.Options
	}{
		"nodes": {nodes, wide}, "links": {links, pairs}, "types": {types, rsage}, "deep": {nodes, deep}, "one": {nodes, one}, "broad": {nodes, broad},
	} {
		opens := func(o run.Options) error {
			c, err := openCore(t.Context(), c.ds, o, run.Hooks{}, internal{})
			if err == nil {
				c.Close()
			}
			return err
		}
		var short *plan.NotEnough
		least := func(o run.Options) int64 {
			o.MemoryBytes = 8 << 20
			require.ErrorAs(t, opens(o), &short, name)
			return short.MiB()
		}
		o := c.o
		most := least(o)
		o.Batch = 1
		for i := range o.Fanouts {
			o.Fanouts = slices.Repeat([]int{1}, i+1)
		}
		floor := least(o)
		o = c.o
		for _, memory := range []int64{most - 1, (most + floor) / 2, floor, floor - 2} {
			if memory >= most {
				continue
			}
			o.MemoryBytes = memory << 20
			_, err := MakePlan(t.Context(), c.ds, o)
			require.ErrorAs(t, err, &short, name)
			advice := err.Error()[strings.LastIndex(err.Error(), ")")+1:]
			all := namedOption.FindAllStringSubmatch(advice, -1)
			if strings.Contains(advice, "no smaller") || strings.Contains(advice, "{batch} 1 with") {
				kinds["none"]++
				continue
			}
			require.NotEmpty(t, all, err)
			for _, m := range all {
				kinds[m[1]]++
				fits, larger := o, o
				require.NoError(t, setOption(&fits, m[1], m[2], 0))
				require.NoError(t, opens(fits), "%s: %s of %s", name, m[0], err)
				require.NoError(t, setOption(&larger, m[1], m[2], 1))
				require.ErrorAs(t, opens(larger), &short, "%s: above %s of %s", name, m[0], err)
			}
		}
	}
	for _, kind := range []string{"batch", "fanout", "hidden", "none"} {
		require.Positive(t, kinds[kind], kinds)
	}
}

// setOption sets an option to the value that an error names, or to the value that many steps above
// it.
func setOption(o *run.Options, name, value string, above int) error {
	first, _, _ := strings.Cut(value, ",")
	n, err := strconv.Atoi(first)
	if err != nil {
		return err
	}
	notch := 1
	for 10*notch <= n {
		notch *= 10
	}
	switch name {
	case "batch":
		o.Batch = min(o.Batch, n+above*notch)
	case "hidden":
		o.Hidden = n << above
	case "fanout":
		most := o.Fanouts[0]
		next := min(most, n+above*notch)
		o.Fanouts = append([]int{}, o.Fanouts...)
		for i := range o.Fanouts {
			o.Fanouts[i] = max(1, o.Fanouts[i]*next/most)
		}
	default:
		return errors.New(name)
	}
	return nil
}

// TestWorkersPlanNamesWhatFits: a plan for several workers that does not fit names a batch that
// fits.
func TestWorkersPlanNamesWhatFits(t *testing.T) {
	ds := open(t, storetest.Communities(6000, 4, 8, 64, 2))
	o := run.DefaultOptions()
	o.Hidden, o.EvalBytes, o.MemoryBytes, o.Dist = 128, 0, 200<<20, dist.Local.Text(4)
	_, err := MakeWorkersPlan(t.Context(), ds, o, nil)
	require.ErrorContains(t, err, "for 4 workers is not enough")
	m := regexp.MustCompile(`; \{batch\} (\d+) fits$`).FindStringSubmatch(err.Error())
	require.NotNil(t, m, err)
	_, err = fmt.Sscan(m[1], &o.Batch)
	require.NoError(t, err)
	_, err = MakeWorkersPlan(t.Context(), ds, o, nil)
	require.NoError(t, err)
}

// TestListsTooLongNameWhatFits: an error about lists of negatives names a batch that fits.
func TestListsTooLongNameWhatFits(t *testing.T) {
	ds := open(t, linked(3000))
	o := linkOptions()
	o.Batch, o.Negatives, o.MemoryBytes = 1000, "uniform:5000", 100<<20
	_, err := MakePlan(t.Context(), ds, o)
	require.ErrorContains(t, err, "take fewer")
	m := regexp.MustCompile(`; \{batch\} (\d+) fits$`).FindStringSubmatch(err.Error())
	require.NotNil(t, m, err)
	_, err = fmt.Sscan(m[1], &o.Batch)
	require.NoError(t, err)
	_, err = MakePlan(t.Context(), ds, o)
	require.NoError(t, err)
}
