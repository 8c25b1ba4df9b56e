package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// fanouts is --fanout: numbers for all relations, and for some relations their own, as text.
type fanouts struct {
	named
	all string
}

const (
	fanoutUsage   = "neighbours drawn at each hop from the seeds; -1: all; repeat as RELATION=15,10 for one relation, 0 leaves it out"
	relationUsage = "the one relation to use, by name or SRC__NAME__DST (default all)"
)

// defaultFanout is filled up with its last number for deeper networks.
var defaultFanout = []int{15, 10, 5}

func newFanouts(all []int, own map[string][]int) *fanouts {
	f := &fanouts{all: fanoutText(all)}
	f.named = named{kind: "15,10 or RELATION=15,10", plain: &f.all, of: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		f.of[name] = fanoutText(own[name])
	}
	return f
}

// read gives the numbers for all relations, and those of relations that have their own. Where
// --layers is given and the former are not, they are the default for as many.
func (f *fanouts) read(layers int, given func(flag string) bool) (all []int, own map[string][]int, err error) {
	var errs []error
	if given("layers") && !(given("fanout") && f.given) {
		for l := range min(max(layers, 0), 64) {
			all = append(all, defaultFanout[min(l, len(defaultFanout)-1)])
		}
	} else if f.all == "" && layers == 0 { // of a run without layers
	} else if all, err = parseFanout(f.all); err != nil {
		errs = append(errs, err)
	}
	for _, name := range slices.Sorted(maps.Keys(f.of)) {
		numbers, err := parseFanout(f.of[name])
		if err != nil {
			errs = append(errs, err)
		}
		if own == nil {
			own = map[string][]int{}
		}
		own[name] = numbers
	}
	return all, own, errors.Join(errs...)
}

// parseFanout reads a number a layer, with commas between them.
func parseFanout(text string) (fanouts []int, err error) {
	var errs []error
	for s := range strings.SplitSeq(text, ",") {
		k, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil {
			errs = append(errs, fmt.Errorf("--fanout %q: %q is not a number; write one a layer, as in 15,10,5", text, s))
			continue
		}
		fanouts = append(fanouts, k)
	}
	return fanouts, errors.Join(errs...)
}

// fanoutsText is fanouts for people, those of relations with their names.
func fanoutsText(all []int, own map[string][]int) string {
	text := fanoutText(all)
	for _, name := range slices.Sorted(maps.Keys(own)) {
		text += " " + name + "=" + fanoutText(own[name])
	}
	return text
}

// fanoutText is fanouts as --fanout takes them.
func fanoutText(fanouts []int) string {
	texts := make([]string, len(fanouts))
	for i, k := range fanouts {
		texts[i] = strconv.Itoa(k)
	}
	return strings.Join(texts, ",")
}
