package setting

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// option is a row of a Table, together with the value that one T has for it.
type option struct {
	key     string
	parts   []string
	flag    string
	group   string // empty: the previous option's
	help    string
	brief   string // help for the first screen; empty: not there
	value   Value
	refused string // why the T does not have the option; empty: it does
	free    bool   // a resumed run may change it
	resumed string // free, as text for people
	byData  bool
}

type options []option

// isSwitch reports whether the flag of the option needs no value.
func (x *option) isSwitch() bool {
	s, ok := x.value.(switched)
	return ok && s.switched()
}

func (list options) flags() map[string]string {
	flags := map[string]string{}
	for _, x := range slices.Backward(list) { // if a key has two flags, the first one stays
		for _, key := range append(x.parts, x.key) {
			flags[key] = x.flag
		}
	}
	return flags
}

// check is Table.Check. Errors have the names of names in place of keys.
func (list options) check(defaults options, names keyNames) error {
	var errs []error
	for i := range list {
		x := &list[i]
		text := x.value.String()
		if text == defaults[i].value.String() {
			continue
		}
		wrong := x.refused
		if c, ok := x.value.(checker); ok && wrong == "" {
			wrong = c.wrong()
		}
		if wrong == "" {
			continue
		}
		about := names.in("{" + x.key + "}")
		if !x.isSwitch() {
			about += " " + text
		}
		errs = append(errs, fmt.Errorf("%s: %s", about, names.in(wrong)))
	}
	return errors.Join(errs...)
}

func (list options) fill(defaults options, given func(key string) bool) error {
	for i, x := range list {
		text := defaults[i].value.String()
		if given(x.key) || text == x.value.String() {
			continue
		}
		if err := x.value.Set(text); err != nil {
			return fmt.Errorf("{%s}: %w", x.key, err)
		}
	}
	return nil
}

func (list options) left(given func(key string) bool) (left map[string]bool) {
	for _, x := range list {
		if x.byData && !given(x.key) {
			if left == nil {
				left = map[string]bool{}
			}
			left[x.key] = true
		}
	}
	return left
}

// Difference is an option whose values in two Ts differ. Now and Then are as its flag reads them.
type Difference struct{ Key, Now, Then string }

func (list options) diff(then options) (all []Difference) {
	for i, x := range list {
		a, b := x.value.String(), then[i].value.String()
		if a != b && !x.free {
			all = append(all, Difference{x.key, a, b})
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
	GroupOf   = "gnnstore_group"   // the heading above the flag in help
	BriefOf   = "gnnstore_brief"   // the text on the first screen of help
	ChoicesOf = "gnnstore_choices" // the words that the flag takes, for completion
)

// bound connects options to the flags that set them.
type bound struct {
	options options
	flags   *pflag.FlagSet
	names   keyNames
	errs    []error // of texts that could not be read
}

func bind(f *pflag.FlagSet, list options) *bound {
	b := &bound{options: list, flags: f, names: keyNames{list.flags(), "--", ""}}
	group := ""
	for i := range list {
		x := &list[i]
		if x.group != "" {
			group = x.group
		}
		flag := f.VarPF(reader{x.value, x.flag, &b.errs}, x.flag, "", b.names.in(x.help))
		flag.Annotations = map[string][]string{GroupOf: {group}}
		if x.brief != "" {
			flag.Annotations[BriefOf] = []string{b.names.in(x.brief)}
		}
		if c, ok := x.value.(chooser); ok {
			flag.Annotations[ChoicesOf] = c.choices()
		}
		if x.isSwitch() {
			flag.NoOptDefVal = "true"
		}
	}
	return b
}

// Err returns the errors of all flags whose text could not be read.
func (b *bound) Err() error { return errors.Join(b.errs...) }

// Given reports whether a flag gave the option.
func (b *bound) Given(key string) bool {
	for _, x := range b.options {
		if x.key == key && b.flags.Changed(x.flag) {
			if p, ok := x.value.(partial); !ok || p.Given() {
				return true
			}
		}
	}
	return false
}

// Changed reports whether any flag of the key was given.
func (b *bound) Changed(key string) bool {
	return slices.ContainsFunc(b.options, func(x option) bool { return x.key == key && b.flags.Changed(x.flag) })
}

// apply sets the options that flags gave in others.
func (b *bound) apply(others options) error {
	if err := b.Err(); err != nil {
		return err
	}
	for i, x := range b.options {
		if _, short := x.value.(Shorthand); short || !b.Changed(x.key) {
			continue // a shorthand set the option in its own row, which is copied
		}
		if err := others[i].value.Set(x.value.String()); err != nil {
			return fmt.Errorf("{%s}: %w", x.key, err)
		}
	}
	return nil
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

// apart returns the errors that err joins, or err alone.
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
