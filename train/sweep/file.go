package sweep

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/run"
)

// Keys of a grid beside the options of runs.
const (
	datasetKey = "dataset"
	runKey     = "run"
	trialsKey  = "trials"
	seedsKey   = "seeds"
	halvingKey = "halving"
)

var ownKeys = []string{datasetKey, runKey, trialsKey, seedsKey, halvingKey}

// measureKeys are the options that decide what evaluation measures.
var measureKeys = []string{
	"task", "target", "edge_label", "metric", "split", "corrupt", "eval", "eval_nodes", "eval_edges", "eval_negatives", "eval_bytes", "stream",
}

// NewGrid returns a grid that varies nothing.
func NewGrid() *Grid {
	return &Grid{Seeds: 1, seed: run.DefaultOptions().Seed, lines: map[string]int{}, kept: map[string]bool{}}
}

// Keep keeps the options that the grid has so far: Take ignores later lines for them. So the
// command line overrides the file.
func (g *Grid) Keep() {
	for key := range g.lines {
		g.kept[key] = true
	}
	clear(g.lines)
}

// bindOptions binds the options of a run to flags, which read texts as the flags of train do.
func bindOptions() (*setting.Bound[run.Options], *pflag.FlagSet) {
	o := run.DefaultOptions().ForFlags()
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	return setting.Bind(f, run.Table, &o), f
}

// canonical returns the value of a flag as the flag prints it: 0.1 for 1e-1.
func canonical(flag, text string) (string, error) {
	b, f := bindOptions()
	if err := b.Give(flag, text); err != nil {
		return "", err
	}
	return f.Lookup(flag).Value.String(), nil
}

// Take adds a line of a file to the grid. A list of values varies the option, and so does a range,
// such as {log: [0.001, 0.1]}. One value fixes it. Errors name neither the file nor the line.
func (g *Grid) Take(l setting.Line) error {
	b, _ := bindOptions()
	flag, key, inTable := b.Find(l.Name)
	if !inTable {
		key = strings.ReplaceAll(l.Name, "-", "_")
	}
	if g.kept[key] {
		return nil
	}
	if first, again := g.lines[key]; again {
		if first == l.Number {
			return errors.New("it is given twice; leave one of them out")
		}
		return fmt.Errorf("line %d sets it already; leave one of them out", first)
	}
	g.lines[key] = l.Number
	switch {
	case inTable:
		return g.takeOption(b, flag, key, l)
	case key == halvingKey:
		return g.takeHalving(l)
	case slices.Contains(ownKeys, key):
		text, err := l.Text()
		if err == nil {
			err = g.setOwn(key, text)
		}
		return err
	}
	return fmt.Errorf("a sweep has no such option; gnnstore help options lists them%s",
		didYouMean(strings.ReplaceAll(l.Name, "_", "-"), slices.Concat(b.FlagNames(), ownKeys)))
}

// didYouMean returns the end of a message that names the known word nearest to an unknown one, or
// "" if none is near.
func didYouMean(word string, known []string) string {
	if near := setting.Nearest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}

// errTestOfSome refuses options that would measure the test part of other settings.
var errTestOfSome = errors.New("a sweep measures the test part for the setting that it chose, and for no other; leave it out")

func (g *Grid) setOwn(key, text string) (err error) {
	number := func(least, most int) (n int) {
		if n, err = strconv.Atoi(text); err != nil || n < least || n > most {
			err = fmt.Errorf("%q is not a number from %d to %d", text, least, most)
		}
		return n
	}
	if text == "" {
		return errors.New("it is empty; give a value, or leave it out")
	}
	switch key {
	case datasetKey:
		g.Dataset = text
	case runKey:
		g.Run = text
	case trialsKey:
		g.Trials = number(1, MostRuns)
	case seedsKey:
		g.Seeds = number(1, MostRuns)
	}
	return err
}

// SetTrials sets Trials, and fails for a number that a file may not have either.
func (g *Grid) SetTrials(n int) error { return g.give(trialsKey, strconv.Itoa(n)) }

// SetSeeds sets Seeds, and fails for a number that a file may not have either.
func (g *Grid) SetSeeds(n int) error { return g.give(seedsKey, strconv.Itoa(n)) }

func (g *Grid) give(key, text string) error {
	g.lines[key] = 0
	return g.setOwn(key, text)
}

// takeHalving reads halving: true, or its settings.
func (g *Grid) takeHalving(l setting.Line) error {
	items, err := l.Items()
	if err != nil {
		return err
	}
	g.Halving = &Halving{}
	if items == nil {
		if text, err := l.Text(); err != nil || text != "true" {
			return errors.Join(err, errors.New("write {min_epochs: 2, eta: 3}, or true for the defaults"))
		}
	}
	into := map[string]*int{"eta": &g.Halving.Eta, "min_epochs": &g.Halving.MinEpochs, "rungs": &g.Halving.Rungs}
	for _, item := range items {
		at := into[strings.ReplaceAll(item.Name, "-", "_")]
		if at == nil {
			return fmt.Errorf("%.60s: halving has the keys eta, min_epochs and rungs, each once", item.Name)
		}
		delete(into, strings.ReplaceAll(item.Name, "-", "_"))
		text, err := item.Text()
		if err == nil {
			if *at, err = strconv.Atoi(text); err != nil || *at < 1 {
				err = fmt.Errorf("%q is not a number from 1 on", text)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", item.Name, err)
		}
	}
	return g.Halving.validate()
}

// SetHalving turns halving on.
func (g *Grid) SetHalving(h Halving) error {
	g.lines[halvingKey] = 0
	g.Halving = &h
	return h.validate()
}

// Fix gives an option one value, as its flag reads it.
func (g *Grid) Fix(c setting.Choice) error {
	g.lines[c.Key] = 0
	return g.fix(c)
}

func (g *Grid) fix(c setting.Choice) (err error) {
	switch c.Key {
	case "seed":
		if g.seed, err = strconv.ParseUint(c.Text, 0, 64); err != nil {
			return err
		}
	case "eval_test":
		return errTestOfSome
	}
	g.Fixed = append(g.Fixed, c)
	return nil
}

// takeOption adds an option of runs, fixed or varying.
func (g *Grid) takeOption(b *setting.Bound[run.Options], flag, key string, l setting.Line) error {
	a := Axis{Key: key, Flag: flag}
	items, err := l.Items()
	if err != nil {
		return err
	}
	if len(items) == 1 && slices.Contains(append(rangeKinds, "values"), items[0].Name) && !strings.Contains(b.Kind(flag), "=") {
		return g.takeItem(b, a, items[0])
	}
	if items != nil && !strings.Contains(b.Kind(flag), "=") {
		return fmt.Errorf("one of {uniform: [A, B]}, {log: [A, B]}, {int: [A, B]}, {log_int: [A, B]} and {values: [A, B, C]} may stand here")
	}
	texts, listed, err := b.Alternatives(flag, l)
	if err != nil {
		return err
	}
	if listed {
		return g.vary(a, texts)
	}
	text, err := canonical(flag, texts[0])
	if err != nil {
		return err
	}
	return g.fix(setting.Choice{Key: key, Flag: flag, Text: text})
}

// Vary adds an option that varies, from the text of --vary: NAME=VALUE,VALUE or NAME={log: [0.001,
// 0.1]}. Blanks separate values that are lists themselves: fanout=15,10 5,5.
func (g *Grid) Vary(text string) error {
	name, values, ok := strings.Cut(text, "=")
	b, _ := bindOptions()
	flag, key, inTable := b.Find(name)
	switch {
	case !ok:
		return errors.New("write NAME=VALUE,VALUE")
	case !inTable:
		return fmt.Errorf("%.60s is no option of runs%s", name, didYouMean(name, b.FlagNames()))
	}
	if values = strings.TrimSpace(values); strings.HasPrefix(values, "{") || strings.HasPrefix(values, "[") {
		lines, err := setting.ReadLines("vary", []byte(flag+": "+values))
		if err != nil {
			return errors.New("it is neither a list nor a range; write [VALUE, VALUE], or {log: [0.001, 0.1]}")
		}
		return g.Take(lines[0])
	}
	if _, again := g.lines[key]; again {
		return errors.New("it is given twice; leave one of them out")
	}
	g.lines[key] = 0
	if b.TakesList(flag) {
		return g.vary(Axis{Key: key, Flag: flag}, strings.Fields(values))
	}
	if values == "" {
		return g.vary(Axis{Key: key, Flag: flag}, nil)
	}
	return g.vary(Axis{Key: key, Flag: flag}, strings.Split(values, ","))
}

// takeItem adds an option whose value is a range, or a list after the word values.
func (g *Grid) takeItem(b *setting.Bound[run.Options], a Axis, item setting.Line) error {
	words, err := item.Words()
	if err != nil {
		return err
	}
	if item.Name == "values" {
		return g.vary(a, words)
	}
	if err := mayVary(a.Key); err != nil {
		return err
	}
	a.Range.Kind = item.Name
	kind := b.Kind(a.Flag)
	whole := slices.Contains([]string{"int", "count", "steps"}, kind)
	switch {
	case !whole && kind != "float64":
		return errors.New("it takes no range; list its values")
	case whole != a.Range.whole():
		return fmt.Errorf("it takes %s, so its range is %s or %s", map[bool]string{true: "whole numbers", false: "fractions"}[whole],
			map[bool]string{true: Int, false: Uniform}[whole], map[bool]string{true: LogInt, false: Log}[whole])
	case len(words) != 2:
		return fmt.Errorf("a range has two ends, as in {%s: [%s]}", item.Name, map[bool]string{true: "32, 256", false: "0.001, 0.1"}[whole])
	}
	for i, into := range []*float64{&a.Range.Low, &a.Range.High} {
		text, err := canonical(a.Flag, words[i])
		if err == nil {
			*into, err = strconv.ParseFloat(text, 64)
		}
		if err != nil || math.Abs(*into) > 1<<53 || math.IsNaN(*into) {
			return fmt.Errorf("%q is not a number that a range may end with", words[i])
		}
	}
	switch r := a.Range; {
	case r.Low >= r.High:
		return fmt.Errorf("the range from %s to %s is empty; give the lower end first", words[0], words[1])
	case r.Low <= 0 && (r.Kind == Log || r.Kind == LogInt):
		return fmt.Errorf("%s begins at %s, which has no logarithm; begin above 0", r.Kind, words[0])
	}
	g.Axes = append(g.Axes, a)
	return nil
}

// vary adds an axis of values.
func (g *Grid) vary(a Axis, texts []string) error {
	if err := mayVary(a.Key); err != nil {
		return err
	}
	if len(texts) == 0 {
		return errors.New("the list is empty; give values, or leave the option out")
	}
	if len(texts) > MostRuns {
		return fmt.Errorf("the list has %d values, and a sweep has at most %d runs; give a range, and trials: N", len(texts), MostRuns)
	}
	for _, text := range texts {
		value, err := canonical(a.Flag, text)
		if err != nil {
			return err
		}
		if slices.Contains(a.Texts, value) {
			return fmt.Errorf("%s is there twice; leave one out", value)
		}
		a.Texts = append(a.Texts, value)
	}
	g.Axes = append(g.Axes, a)
	return nil
}

// mayVary returns an error if an option may not vary: settings that differ in it cannot be
// compared, or have the same results.
func mayVary(key string) error {
	row := run.Table[slices.IndexFunc(run.Table, func(d setting.Of[run.Options]) bool { return d.Key == key })]
	o := run.DefaultOptions()
	switch {
	case key == "seed":
		return errors.New("seeds: K trains each setting by K seeds, from seed on; leave the list out")
	case key == "eval_test":
		return errTestOfSome
	case slices.Contains(measureKeys, key):
		return errors.New("it decides what is measured, so settings with other values cannot be compared; give it one value")
	case row.Free != nil && row.Free(&o) && !slices.Contains([]string{"epochs", "init", "init_rows"}, key):
		return errors.New("it changes no result, so settings would be alike; give it one value")
	}
	return nil
}
