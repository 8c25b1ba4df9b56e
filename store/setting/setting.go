// Package setting declares options: each once, in a row of a Table. The row has the key of the
// option in JSON and in messages, its flag, its help, the value that it sets, the runs that have
// it, and whether a resumed run may change it. Flags, grouped help, refusals and the rule for
// resuming follow from the table.
package setting

import (
	"errors"
	"fmt"
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
	// In returns the value that the option has in a T. Setting it changes the T.
	In func(*T) Value
	// For is the set of runs that have this option. Default: all.
	For *Audience[T]
	// Free reports whether a resumed run may have another value. Default: it may not.
	Free func(now *T) bool
	// FreeText tells people what a resumed run may do with the option. Default: that it may change,
	// if Free is set, else that it stays.
	FreeText string
	// ByData lets a run choose the value by its data, unless somebody gave it.
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
	if d.Flag != "" {
		return d.Flag
	}
	return strings.ReplaceAll(d.Key, "_", "-")
}

// text returns the option's value in o as its flag would read it.
func (d Of[T]) text(o *T) string { return d.In(o).String() }

// Text returns an option of o as its flag would read it.
func (t Table[T]) Text(o *T, key string) string {
	for _, d := range t {
		if d.Key == key {
			return d.text(o)
		}
	}
	return ""
}

// Flags returns the name of the flag for each key.
func (t Table[T]) Flags() map[string]string {
	flags := map[string]string{}
	for _, d := range slices.Backward(t) { // of two flags of one key the first counts
		for _, key := range append(d.Parts, d.Key) {
			flags[key] = d.FlagName()
		}
	}
	return flags
}

// Check returns an error for each option of o whose value is out of bounds, or that this run does
// not have. An option with its default is never wrong.
func (t Table[T]) Check(o, defaults *T) error {
	return t.check(o, defaults, func(text string) string { return text })
}

// check is Check. names puts names in place of the keys in braces.
func (t Table[T]) check(o, defaults *T, names func(string) string) error {
	var errs []error
	for _, d := range t {
		v := d.In(o)
		text := v.String()
		if text == d.text(defaults) {
			continue
		}
		wrong := ""
		if d.For != nil && !d.For.Has(o) {
			wrong = d.For.Why(o)
		} else if c, ok := v.(checker); ok {
			wrong = c.wrong()
		}
		if wrong == "" {
			continue
		}
		about := names("{" + d.Key + "}")
		if s, ok := v.(switched); !ok || !s.switched() {
			about += " " + text
		}
		errs = append(errs, fmt.Errorf("%s: %s", about, names(wrong)))
	}
	return errors.Join(errs...)
}

// Fill copies each option that was not given from defaults to o. given takes a key.
func (t Table[T]) Fill(o, defaults *T, given func(key string) bool) error {
	for _, d := range t {
		if given(d.Key) {
			continue
		}
		if text := d.text(defaults); text != d.text(o) {
			if err := d.In(o).Set(text); err != nil {
				return fmt.Errorf("{%s}: %w", d.Key, err)
			}
		}
	}
	return nil
}

// Left returns the keys of options that were not given and that a run may choose by its data.
func (t Table[T]) Left(given func(key string) bool) (left map[string]bool) {
	for _, d := range t {
		if d.ByData && !given(d.Key) {
			if left == nil {
				left = map[string]bool{}
			}
			left[d.Key] = true
		}
	}
	return left
}

// Difference is an option with different values in two Ts, as its flag would read them.
type Difference struct{ Key, Now, Then string }

// Diff returns the options that differ between now and then although a resumed run must not change
// them, in the order of their keys.
func (t Table[T]) Diff(now, then *T) (all []Difference) {
	for _, d := range t {
		if d.Free != nil && d.Free(now) {
			continue
		}
		a, b := d.text(now), d.text(then)
		if a != b && !slices.ContainsFunc(all, func(x Difference) bool { return x.Key == d.Key }) {
			all = append(all, Difference{d.Key, a, b})
		}
	}
	slices.SortFunc(all, func(a, b Difference) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// keyNames puts flags in place of keys.
type keyNames struct {
	flags         map[string]string
	before, after string
}

// in returns text with flags in place of the keys in braces.
func (n keyNames) in(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		key, after, closed := strings.Cut(rest, "}")
		if flag, known := n.flags[key]; closed && known {
			b.WriteString(n.before + flag + n.after)
			text = after
		} else {
			b.WriteByte('{')
			text = rest
		}
	}
}

// Annotations of flags.
const (
	GroupOf   = "gnnstore_group"   // the heading in help
	ChoicesOf = "gnnstore_choices" // the words that it takes, for completion
)

// Bound is a table whose flags set the options of one T.
type Bound[T any] struct {
	table  Table[T]
	at     *T
	values []Value
	flags  *pflag.FlagSet
	names  keyNames
	errs   []error // of texts that could not be read
}

// reader sets a Value and keeps the error, so that all errors are reported together.
type reader struct {
	Value
	flag string
	errs *[]error
}

func (r reader) Set(text string) error {
	for _, err := range apart(r.Value.Set(text)) {
		*r.errs = append(*r.errs, fmt.Errorf("--%s: %w", r.flag, err))
	}
	return nil
}

// apart returns the errors that were joined in err.
func apart(err error) (all []error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			all = append(all, apart(err)...)
		}
		return all
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// Err returns the errors of all flags whose text could not be read.
func (b *Bound[T]) Err() error { return errors.Join(b.errs...) }

// Bind adds the flags of t to f. They set the options of o, and show its values as defaults. Text
// that a flag cannot read does not end parsing: see Err.
func Bind[T any](f *pflag.FlagSet, t Table[T], o *T) *Bound[T] {
	b := &Bound[T]{table: t, at: o, flags: f, names: keyNames{t.Flags(), "--", ""}}
	group := ""
	for _, d := range t {
		if d.Group != "" {
			group = d.Group
		}
		v := d.In(o)
		flag := f.VarPF(reader{v, d.FlagName(), &b.errs}, d.FlagName(), "", b.names.in(d.Help))
		flag.Annotations = map[string][]string{GroupOf: {group}}
		if c, ok := v.(chooser); ok {
			flag.Annotations[ChoicesOf] = c.choices()
		}
		if s, ok := v.(switched); ok && s.switched() {
			flag.NoOptDefVal = "true"
		}
		b.values = append(b.values, v)
	}
	return b
}

// Check returns Err and the table's Check of the options, with flags in place of keys.
func (b *Bound[T]) Check(defaults *T) error {
	return errors.Join(b.Err(), b.table.check(b.at, defaults, b.names.in))
}

// Given reports whether a flag gave the option.
func (b *Bound[T]) Given(key string) bool {
	for i, d := range b.table {
		if d.Key == key && b.flags.Changed(d.FlagName()) {
			if p, ok := b.values[i].(partial); !ok || p.Given() {
				return true
			}
		}
	}
	return false
}

// changed reports whether any flag of the key was given.
func (b *Bound[T]) changed(key string) bool {
	return slices.ContainsFunc(b.table, func(d Of[T]) bool { return d.Key == key && b.flags.Changed(d.FlagName()) })
}

// Apply sets the options that flags gave in o as well.
func (b *Bound[T]) Apply(o *T) error {
	if err := b.Err(); err != nil {
		return err
	}
	for i, d := range b.table {
		if _, short := b.values[i].(Shorthand); short || !b.changed(d.Key) {
			continue // the row of the option itself has what a shorthand set
		}
		if err := d.In(o).Set(b.values[i].String()); err != nil {
			return fmt.Errorf("{%s}: %w", d.Key, err)
		}
	}
	return nil
}
