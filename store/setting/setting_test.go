package setting

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

type job struct {
	Mode  string
	Width int
	Rate  float64
	Deep  bool
	Sizes []int
	Own   map[string][]int
	Cap   int64
}

var deep = &Audience[job]{Has: func(o *job) bool { return o.Deep }, Why: func(*job) string { return "it goes with {deep}" }}

var table = Table[job]{
	{Key: "mode", Group: "First", Help: "how", In: func(o *job) Value { return Word(&o.Mode, "fast", "slow") }},
	{Key: "width", Help: "columns of {deep} a|b", For: deep, ByData: true, In: func(o *job) Value { return Int(&o.Width).AtLeast(1) }},
	{Key: "rate", Free: func(o *job) bool { return o.Mode == "slow" }, In: func(o *job) Value { return Float(&o.Rate) }},
	{Key: "deep", Group: "Second", In: func(o *job) Value { return Bool(&o.Deep) }},
	{Key: "sizes", Parts: []string{"own"}, In: func(o *job) Value { return IntsPerName(&o.Sizes, &o.Own, "1,2 or NAME=1,2") }},
	{Key: "cap_bytes", Flag: "cap", Free: Always[job], In: func(o *job) Value { return Bytes(&o.Cap) }},
	{Key: "mode", Flag: "quick", In: func(o *job) Value { return Short(Word(&o.Mode), "fast") }},
}

func parsed(t *testing.T, args string) (*job, *Bound[job]) {
	o := &job{Mode: "slow", Width: 4, Sizes: []int{15, 10}}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	b := Bind(f, table, o)
	require.NoError(t, f.Parse(strings.Fields(args)), args)
	return o, b
}

// TestBind: flags set the options, Given reports them, and Apply sets them in another T as well.
func TestBind(t *testing.T) {
	o, b := parsed(t, "--deep --width 9 --sizes a=1 --cap 1MiB --quick")
	require.Equal(t, job{Mode: "fast", Width: 9, Deep: true, Sizes: []int{15, 10}, Own: map[string][]int{"a": {1}}, Cap: 1 << 20}, *o)
	for key, given := range map[string]bool{"mode": true, "width": true, "rate": false, "deep": true, "cap_bytes": true, "sizes": false, "none": false} {
		require.Equal(t, given, b.Given(key), key)
	}
	other := job{Mode: "slow", Rate: 0.5, Sizes: []int{7}, Own: map[string][]int{"b": {2}}}
	require.NoError(t, b.Apply(&other))
	require.Equal(t, job{
		Mode: "fast", Width: 9, Rate: 0.5, Deep: true, Sizes: []int{7}, Own: map[string][]int{"a": {1}, "b": {2}}, Cap: 1 << 20,
	}, other)

	// The last flag counts, in another T too.
	for args, mode := range map[string]string{"--quick --mode slow": "slow", "--mode slow --quick": "fast", "--quick": "fast"} {
		o, b := parsed(t, args)
		require.Equal(t, mode, o.Mode, args)
		other := job{Mode: "odd"}
		require.NoError(t, b.Apply(&other))
		require.Equal(t, mode, other.Mode, args)
	}

	f := b.flags.Lookup("cap")
	require.Equal(t, []string{"Second"}, f.Annotations[GroupOf])
	require.Equal(t, []string{"fast", "slow"}, b.flags.Lookup("mode").Annotations[ChoicesOf])
	require.Nil(t, f.Annotations[ChoicesOf])
	require.Equal(t, map[string]string{"mode": "mode", "width": "width", "rate": "rate", "deep": "deep", "sizes": "sizes", "own": "sizes", "cap_bytes": "cap"}, table.Flags())
	require.Equal(t, map[string]bool{"width": true}, table.Left(func(string) bool { return false }))
	require.Nil(t, table.Left(func(key string) bool { return key == "width" }))
}

// TestCheck: an option that a run does not have is refused unless it has its default, and so is a
// value that no run can follow.
func TestCheck(t *testing.T) {
	defaults := job{Mode: "slow", Width: 4}
	for args, want := range map[string][]string{
		"":                         nil,
		"--width 4":                nil,
		"--width 9":                {"{width} 9: it goes with {deep}"},
		"--deep --width 9":         nil,
		"--deep --width 0":         {"{width} 0: at least 1"},
		"--quick --deep --width 0": {"{width} 0: at least 1"},
		"--mode odd --width 0":     {"{mode} odd: there are fast and slow", "{width} 0: it goes with {deep}"},
		"--mode fast --cap 4GiB":   nil,
		"--mode fast --sizes 1,2":  nil,
	} {
		o, _ := parsed(t, args)
		got := ""
		if err := table.Check(o, &defaults); err != nil {
			got = err.Error()
		}
		require.Equal(t, strings.Join(want, "\n"), got, args)
	}
}

// TestBoundCheck: errors name flags, and include text that could not be read.
func TestBoundCheck(t *testing.T) {
	_, b := parsed(t, "--width 9 --rate fast --sizes x,y --cap much")
	require.EqualError(t, b.Check(&job{Mode: "slow", Width: 4, Sizes: []int{15, 10}}), `--rate: "fast" is not a number
--sizes: "x" is not a number; write them with commas between, as in 15,10,5
--sizes: "y" is not a number; write them with commas between, as in 15,10,5
--cap: "much" is not a size such as 0, 1MiB or 4GiB
--width 9: it goes with --deep`)
	require.Error(t, b.Apply(&job{}))
	o, b := parsed(t, "")
	require.NoError(t, b.Check(o))
}

// TestFillAndDiff: what was not given has the value of the defaults, and a resumed run differs
// where it must not.
func TestFillAndDiff(t *testing.T) {
	o, b := parsed(t, "--width 9")
	defaults := job{Mode: "fast", Width: 1, Rate: 0.25, Sizes: []int{10}, Cap: 5}
	require.NoError(t, table.Fill(o, &defaults, b.Given))
	require.Equal(t, job{Mode: "fast", Width: 9, Rate: 0.25, Sizes: []int{10}, Cap: 5}, *o)

	then := *o
	now := *o
	now.Rate, now.Cap, now.Sizes = 1, 7, nil
	require.Equal(t, []Difference{{"rate", "1", "0.25"}, {"sizes", "", "10"}}, table.Diff(&now, &then))
	now.Mode = "slow"
	require.Equal(t, []Difference{{"mode", "slow", "fast"}, {"sizes", "", "10"}}, table.Diff(&now, &then), "a slow run may have another rate")
}

func TestMarkdown(t *testing.T) {
	o, _ := parsed(t, "--cap 1MiB")
	require.Equal(t, `
## First

| flag | what it sets | default | when resumed |
|---|---|---|---|
| `+"`--mode string`"+` | how | slow | stays |
| `+"`--width int`"+` | columns of `+"`--deep`"+` a\|b | 4 | stays |
| `+"`--rate float`"+` |  |  | may change |

## Second

| flag | what it sets | default | when resumed |
|---|---|---|---|
| `+"`--deep`"+` |  |  | stays |
| `+"`--sizes 1,2 or NAME=1,2`"+` |  | 15,10 | stays |
| `+"`--cap size`"+` |  | 1MiB | may change |
| `+"`--quick`"+` |  |  | stays |
`, table.Markdown(o))
}
