// Package setting declares options: each once, in a row of a Table. The row has the option's key in
// JSON and in messages, its flag, its help, the value that it sets, the set of runs that have it,
// and the rule for resumed runs. Flags, grouped help, checks, files of options and the comparison
// of a resumed run's options follow from the table.
package setting

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Of declares one option of a T.
type Of[T any] struct {
	// Key names the option in JSON, and in messages, in braces. Parts are further keys in JSON that
	// the same flag sets.
	Key   string
	Parts []string
	// Flag is the name of its flag. Default: Key with dashes.
	Flag string
	// Group is the heading above the flag in help. Default: the previous row's.
	Group string
	Help  string // names other options by keys in braces
	// Usual puts the option on the first screen of help, there with the text of Brief. Default:
	// Help.
	Usual bool
	Brief string
	// In returns the option's Value in a T. Setting the Value changes the T.
	In func(*T) Value
	// For is the set of runs that have this option. Default: all.
	For *Audience[T]
	// Free reports whether a resumed run may have another value. Default: it may not.
	Free func(now *T) bool
	// FreeText describes for people what a resumed run may do with the option. Default: "may
	// change". It is shown only if Free is set; otherwise the text is "stays".
	FreeText string
	// ByData lets a run choose the value by its data, unless the user gave one.
	ByData bool
}

// Audience is a set of runs.
type Audience[T any] struct {
	Has func(*T) bool
	// Why completes "{key} value: " for a run that is not in the set, as "it goes with {task}
	// link".
	Why func(*T) string
}

// Table declares the options of a T, in the order of help.
type Table[T any] []Of[T]

// Pick returns the rows of some flags, in this order, with a heading above them.
func (t Table[T]) Pick(group string, flags ...string) Table[T] {
	var picked Table[T]
	for i, flag := range flags {
		at := slices.IndexFunc(t, func(d Of[T]) bool { return d.FlagName() == flag })
		d := t[at]
		if d.Group = ""; i == 0 {
			d.Group = group
		}
		picked = append(picked, d)
	}
	return picked
}

// Always is a value of Free, for an option that changes no result.
func Always[T any](*T) bool { return true }

// FlagName returns the name of the option's flag.
func (d Of[T]) FlagName() string {
	return cmp.Or(d.Flag, strings.ReplaceAll(d.Key, "_", "-"))
}

// of returns the options of o. All other code works on options, so that it is compiled once and not
// for each T.
func (t Table[T]) of(o *T) options {
	list := make(options, len(t))
	for i, d := range t {
		list[i] = option{
			key: d.Key, parts: d.Parts, flag: d.FlagName(), group: d.Group, help: d.Help,
			value: d.In(o), resumed: "stays", byData: d.ByData,
		}
		x := &list[i]
		if d.Usual {
			x.brief = cmp.Or(d.Brief, d.Help)
		}
		if d.For != nil && !d.For.Has(o) {
			x.refused = d.For.Why(o)
		}
		if d.Free != nil {
			x.free, x.resumed = d.Free(o), cmp.Or(d.FreeText, "may change")
		}
	}
	return list
}

// Flags returns the name of the flag for each key.
func (t Table[T]) Flags() map[string]string { return t.of(new(T)).flags() }

// Check returns an error for each option of o whose value is out of bounds, or that this run does
// not have. An option with its default is never wrong.
func (t Table[T]) Check(o, defaults *T) error {
	return t.of(o).check(t.of(defaults), keyNames{})
}

// Fill copies each option that was not given from defaults to o. given takes a key.
func (t Table[T]) Fill(o, defaults *T, given func(key string) bool) error {
	return t.of(o).fill(t.of(defaults), given)
}

// Left returns the keys of options that were not given and that a run may choose by its data.
func (t Table[T]) Left(given func(key string) bool) map[string]bool {
	return t.of(new(T)).left(given)
}

// Choices returns the values that flags must give to get the options of o: the values that differ
// from defaults, and the values that a run may otherwise choose by its data.
func (t Table[T]) Choices(o, defaults *T) []Choice { return t.of(o).choices(t.of(defaults)) }

// Diff returns the options that differ between now and then although a resumed run must not change
// them, in the order of their keys.
func (t Table[T]) Diff(now, then *T) []Difference { return t.of(now).diff(t.of(then)) }

// Markdown describes the options, with their values in o as defaults: a heading and a table for
// each group.
func (t Table[T]) Markdown(o *T) string { return t.of(o).markdown() }

// Bound is a table whose flags set the options of one T.
type Bound[T any] struct {
	*bound
	table Table[T]
	at    *T
}

// Bind adds the flags of t to f. They set the options of o, and show its values as defaults. Text
// that a flag cannot read does not end parsing: see Err.
func Bind[T any](f *pflag.FlagSet, t Table[T], o *T) *Bound[T] {
	return &Bound[T]{bind(f, t.of(o)), t, o}
}

// Check returns Err and the table's Check of the options, with flags in place of keys.
func (b *Bound[T]) Check(defaults *T) error {
	return errors.Join(b.Err(), b.table.of(b.at).check(b.table.of(defaults), b.names))
}

// Apply sets the options that flags gave in o as well.
func (b *Bound[T]) Apply(o *T) error { return b.apply(b.table.of(o)) }
