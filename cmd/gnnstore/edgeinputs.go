package main

import (
	"maps"
	"slices"
	"strings"
)

// edgeInputs is --edge-input: columns of relations. What a relation is given by one flag and the
// next comes together; what it had before, by the record of a run, gives way.
type edgeInputs struct {
	named
	now map[string]bool // relations that a flag named
}

func newEdgeInputs(columns map[string][]string) *edgeInputs {
	e := &edgeInputs{named: named{kind: "RELATION=COLUMN,COLUMN", of: map[string]string{}}, now: map[string]bool{}}
	for name, of := range columns {
		e.of[name] = strings.Join(of, ",")
	}
	return e
}

func (e *edgeInputs) Set(s string) error {
	words := strings.Fields(blanksOfLists.ReplaceAllString(s, ","))
	for _, word := range words {
		one := named{kind: e.kind}
		if err := one.Set(word); err != nil {
			return err
		}
		for name, columns := range one.of {
			if e.now[name] {
				columns = e.of[name] + "," + columns
			}
			e.of[name], e.now[name] = columns, true
		}
	}
	if len(words) == 0 {
		return e.named.Set(s) // says what to write
	}
	return nil
}

// read is the columns by relation.
func (e *edgeInputs) read() (columns map[string][]string) {
	for _, name := range slices.Sorted(maps.Keys(e.of)) {
		if columns == nil {
			columns = map[string][]string{}
		}
		columns[name] = strings.Split(e.of[name], ",")
	}
	return columns
}

// edgeInputsText is columns for people.
func edgeInputsText(columns map[string][]string) string {
	return newEdgeInputs(columns).String()
}
