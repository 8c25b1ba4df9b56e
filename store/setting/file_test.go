package setting

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// read sets the options of a file, and returns the first error.
func read(text string) (*job, *Bound[job], error) {
	o := &job{Mode: "slow", Width: 4, Sizes: []int{15, 10}}
	b := Bind(pflag.NewFlagSet("", pflag.ContinueOnError), table, o)
	lines, err := ReadLines("f", []byte(text))
	if err != nil {
		return o, b, err
	}
	for _, l := range lines {
		if flag, _, ok := b.Find(l.Name); ok {
			if err := b.Read(flag, l); err != nil {
				return o, b, err
			}
		}
	}
	return o, b, nil
}

// TestReadLines: a file gives options as flags do.
func TestReadLines(t *testing.T) {
	for text, want := range map[string]job{
		"deep: true\nwidth: 9\ncap: 1MiB\n":     {Mode: "slow", Deep: true, Width: 9, Sizes: []int{15, 10}, Cap: 1 << 20},
		"cap_bytes: 5\nmode: \"fast\"":          {Mode: "fast", Width: 4, Sizes: []int{15, 10}, Cap: 5},
		"cap-bytes: 5\nother: 1":                {Mode: "slow", Width: 4, Sizes: []int{15, 10}, Cap: 5},
		"quick: true":                           {Mode: "fast", Width: 4, Sizes: []int{15, 10}},
		"sizes: [1, 2]":                         {Mode: "slow", Width: 4, Sizes: []int{1, 2}},
		"sizes: 1,2 a=3":                        {Mode: "slow", Width: 4, Sizes: []int{1, 2}, Own: map[string][]int{"a": {3}}},
		"sizes: [\"1,2\", b=3]":                 {Mode: "slow", Width: 4, Sizes: []int{1, 2}, Own: map[string][]int{"b": {3}}},
		"sizes:\n  a: [1, 2]\n  b: 3":           {Mode: "slow", Width: 4, Sizes: []int{15, 10}, Own: map[string][]int{"a": {1, 2}, "b": {3}}},
		`{"rate": 1e-3, "width": 0x10}`:         {Mode: "slow", Width: 16, Rate: 0.001, Sizes: []int{15, 10}},
		"width: &w 8 # anchors without aliases": {Mode: "slow", Width: 8, Sizes: []int{15, 10}},
	} {
		o, b, err := read(text)
		require.NoError(t, err, text)
		require.NoError(t, b.Err(), text)
		require.Equal(t, want, *o, text)
	}
	_, b, err := read("cap_bytes: 5\nquick: true")
	require.NoError(t, err)
	for key, given := range map[string]bool{"cap_bytes": true, "mode": true, "width": false} {
		require.Equal(t, given, b.Given(key), key)
	}
}

func TestReadLinesRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "f: there is nothing in it",
		"# nothing\n":                 "f: there is nothing in it",
		"a: 1\n---\nb: 2":             "f: it has several documents",
		"- 1":                         "f: line 1: options are expected here",
		"a: 1\n\tb: 2":                "f: line 2: not YAML: ",
		"a: [1":                       "not YAML: ",
		"a: \x00":                     "f: not YAML: ",
		"a: \xff":                     "f: not YAML: ",
		"a: 1\n[b]: 2":                "f: line 2: the name of an option is expected here",
		strings.Repeat("[", 20_000):   "f: line 1: not YAML: ",
		"rate: &x 1\nwidth: *x":       "*x: aliases are not followed; write the value itself",
		"width: !!str 1":              "!!str: tags are not read; write the value alone",
		"sizes: !x [1]":               "it takes one value, and here are several",
		"sizes: {a: !x [1]}":          "a: !x: tags are not read",
		"width:":                      "there is no value; write one, or leave the option out",
		"width: ~":                    "there is no value",
		"width: [1, 2]":               "it takes one value, and here are several",
		"mode: [fast]":                "it takes one value, and here are several",
		"width: {a: 1}":               "it takes one value, and here are several",
		"sizes: [[1]]":                "a list or a mapping is too deep here",
		"sizes: {a: {b: 1}}":          "a: a list or a mapping is too deep here",
		"sizes: {a: 1, a: 2}":         "a is there twice",
		"sizes: {[a]: 1}":             "a list or a mapping is too deep here",
		"sizes: {a: ~}":               "a: there is no value",
		"sizes: []":                   `"": write 1,2 or NAME=1,2`,
		"width: wide":                 `"wide" is not a whole number`,
		"deep: yes":                   `"yes" is neither true nor false`,
		"quick: false":                `"false": it takes no value`,
		"sizes: &x [1]\nrate: [*x]":   "it takes one value",
		"sizes: {<<: {a: 1}}":         "<<: a list or a mapping is too deep here",
		"width: 99999999999999999999": "is out of range",
	} {
		_, b, err := read(text)
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "\n", text)
		require.NoError(t, b.Err(), "the error is reported once")
	}
}

// TestYAML: the text has every option with its help, and reading it gives the same options.
func TestYAML(t *testing.T) {
	o, b := parsed(t, "--deep --width 9 --sizes a=1 --sizes 7 --quick")
	text := b.YAML()
	require.Equal(t, `
# FIRST

# how
mode: fast

# columns of deep a|b
width: 9

#rate: 0

# SECOND

deep: true

sizes: 7 a=1

#cap: 0
`, text)
	again, c, err := read(text)
	require.NoError(t, err)
	require.Equal(t, o, again)
	require.Equal(t, text, c.YAML())

	// Also the lines behind '#', if the '#' goes.
	_, _, err = read(strings.NewReplacer("#rate", "rate", "#cap", "cap").Replace(text))
	require.NoError(t, err)
}

// TestScalar: any text comes back from its YAML.
func TestScalar(t *testing.T) {
	for _, text := range []string{"", "a b", "a: b", "a #b", "- x", "true", "~", "null", "*x", "&x y", "!!str a", "'a", "\"a\"", " a ", "\t", "a\nb", "[1", "{", "@", "`", "é\u2028", "1,2 a=3", "%", "|", ">", "a:", ": b", "0x1F", "<<"} {
		read, err := readScalar(text)
		require.NoError(t, err, "%q", text)
		require.Equal(t, text, read)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		read, err := readScalar(text)
		require.NoError(t, err, "%q", text)
		require.Equal(t, text, read)
	})
}

func readScalar(text string) (string, error) {
	lines, err := ReadLines("f", []byte(Setting("mode", text, true)))
	if err != nil {
		return "", err
	}
	return lines[0].Text()
}

// TestChoices: choices are the values that differ and the values that data may choose, no others.
func TestChoices(t *testing.T) {
	d := job{Mode: "slow", Width: 4, Rate: 0.5}
	o := d
	o.Sizes = []int{3}
	require.Equal(t, []Choice{{"sizes", "sizes", "3"}}, table.Choices(&o, &d))
	o.Deep, o.Mode = true, "fast"
	require.Equal(t, []Choice{
		{"mode", "mode", "fast"}, {"width", "width", "4"}, {"deep", "deep", "true"}, {"sizes", "sizes", "3"},
	}, table.Choices(&o, &d))
}

// FuzzReadLines: options that a text sets come back from their YAML.
func FuzzReadLines(f *testing.F) {
	for _, text := range []string{"deep: true\nwidth: 9", "sizes: {a: [1, 2]}", "a: &x 1\nb: *x", `{"rate": 1}`, "sizes:\n- 1\n- a=2"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		_, b, err := read(text)
		if err != nil {
			return
		}
		_, _, err = read("any: 1\n" + b.YAML()) // without the first line, there may be comments alone
		require.NoError(t, err, b.YAML())
	})
}
