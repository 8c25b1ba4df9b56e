package setting

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Value reads and prints one option. It is a pflag.Value.
type Value interface {
	// Set reads the text of a flag.
	Set(text string) error
	// String prints the value as Set reads it.
	String() string
	// Type names the kind of value in help.
	Type() string
}

// What a Value may also do.
type (
	checker  interface{ wrong() string } // completes "{key} value: "; empty where nothing is wrong
	chooser  interface{ choices() []string }
	switched interface{ switched() bool } // a flag without a value sets it
	// partial is a Value that flags may set in part. Given reports whether they set the part that
	// has the option's own key.
	partial interface{ Given() bool }
)

// names are words that stand for values of type T.
type names[T comparable] []named[T]

type named[T comparable] struct {
	word  string
	value T
}

func (n names[T]) value(word string) (v T, ok bool) {
	for _, x := range n {
		if x.word == word {
			return x.value, true
		}
	}
	return v, false
}

func (n names[T]) word(v T) (word string, ok bool) {
	for _, x := range n {
		if x.value == v {
			return x.word, true
		}
	}
	return "", false
}

// neither returns the error for text that is neither a name nor what it should be.
func (n names[T]) neither(text, should string) error {
	if len(n) == 0 {
		return fmt.Errorf("%q is not %s", text, should)
	}
	return fmt.Errorf("%q is neither %s nor %s", text, strings.Join(n.choices(), ", "), should)
}

func (n names[T]) choices() (words []string) {
	for _, x := range n {
		words = append(words, x.word)
	}
	return words
}

// Number is a whole number or a float. Words may stand for further values.
type Number[N int | int64 | uint64 | float64] struct {
	at    *N
	kind  string
	names names[N]
	// Bounds. If open, the bounds themselves are excluded.
	least, most       N
	hasLeast, hasMost bool
	open              bool
}

// Int returns a Number that sets at.
func Int(at *int) *Number[int] { return &Number[int]{at: at, kind: "int"} }

// Int64 returns a Number that sets at.
func Int64(at *int64) *Number[int64] { return &Number[int64]{at: at, kind: "int"} }

// Uint returns a Number from 0 on that sets at.
func Uint(at *uint64) *Number[uint64] { return &Number[uint64]{at: at, kind: "uint64"} }

// Float returns a Number that sets at.
func Float(at *float64) *Number[float64] { return &Number[float64]{at: at, kind: "float64"} }

// Or lets a word stand for a value.
func (v *Number[N]) Or(word string, value N) *Number[N] {
	v.names = append(v.names, named[N]{word, value})
	return v
}

// AtLeast refuses lower values.
func (v *Number[N]) AtLeast(least N) *Number[N] {
	v.least, v.hasLeast = least, true
	return v
}

// AtMost refuses higher values.
func (v *Number[N]) AtMost(most N) *Number[N] {
	v.most, v.hasMost = most, true
	return v
}

// Between refuses values that are not above low and below high.
func (v *Number[N]) Between(low, high N) *Number[N] {
	v.least, v.most, v.hasLeast, v.hasMost, v.open = low, high, true, true, true
	return v
}

// Kind sets the kind of value in help.
func (v *Number[N]) Kind(kind string) *Number[N] {
	v.kind = kind
	return v
}

// Set reads a number or a name. If there are names, it refuses numbers below the least, which is 0
// by default, and negative numbers that have a name.
func (v *Number[N]) Set(text string) error {
	if value, ok := v.names.value(text); ok {
		*v.at = value
		return nil
	}
	n, err := parse[N](text)
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("%q is out of range", text)
	}
	if err != nil || len(v.names) > 0 && v.below(n) {
		return v.names.neither(text, v.should())
	}
	*v.at = n
	return nil
}

func (v *Number[N]) below(n N) bool {
	if _, ok := v.names.word(n); ok && n < 0 {
		return true
	}
	return n < v.least
}

// should describes the numbers that Set takes.
func (v *Number[N]) should() string {
	var zero N
	switch any(zero).(type) {
	case float64:
		return "a number"
	case uint64:
		return "a whole number from 0 on"
	}
	if len(v.names) > 0 {
		return fmt.Sprintf("a number from %v on", v.least)
	}
	return "a whole number"
}

// parse reads a number in decimal, or a whole one in hexadecimal after 0x.
func parse[N int | int64 | uint64 | float64](text string) (n N, err error) {
	base := 10
	if digits := strings.TrimPrefix(text, "-"); strings.HasPrefix(digits, "0x") || strings.HasPrefix(digits, "0X") {
		base = 0
	}
	switch at := any(&n).(type) {
	case *int:
		var wide int64
		wide, err = strconv.ParseInt(text, base, strconv.IntSize)
		*at = int(wide)
	case *int64:
		*at, err = strconv.ParseInt(text, base, 64)
	case *uint64:
		*at, err = strconv.ParseUint(text, base, 64)
	case *float64:
		*at, err = strconv.ParseFloat(text, 64)
	}
	return n, err
}

func (v *Number[N]) String() string {
	if word, ok := v.names.word(*v.at); ok {
		return word
	}
	if f, ok := any(*v.at).(float64); ok {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return fmt.Sprint(*v.at)
}

// Type names the kind of number.
func (v *Number[N]) Type() string { return v.kind }

func (v *Number[N]) choices() []string { return v.names.choices() }

func (v *Number[N]) wrong() string {
	n := *v.at
	if _, ok := v.names.word(n); ok {
		return ""
	}
	low, high := v.hasLeast && !(n >= v.least), v.hasMost && !(n <= v.most) // NaN is both
	if v.open {
		low, high = !(n > v.least), !(n < v.most)
	}
	if !low && !high {
		return ""
	}
	text := fmt.Sprintf("at least %v", v.least)
	switch {
	case v.open:
		text = fmt.Sprintf("above %v and below %v", v.least, v.most)
	case v.hasMost:
		text = fmt.Sprintf("from %v to %v", v.least, v.most)
	}
	for _, word := range v.names.choices() {
		text += ", or " + word
	}
	return text
}

// Size is a number of bytes, such as 4GiB. Words may stand for further values.
type Size struct {
	at    *int64
	names names[int64]
}

// Bytes returns a Size that sets at.
func Bytes(at *int64) *Size { return &Size{at: at} }

// Or lets a word stand for a value.
func (v *Size) Or(word string, value int64) *Size {
	v.names = append(v.names, named[int64]{word, value})
	return v
}

// Set reads a size, or a name.
func (v *Size) Set(text string) error {
	if value, ok := v.names.value(text); ok {
		*v.at = value
		return nil
	}
	n, ok := parseBytes(text)
	if !ok {
		return v.names.neither(text, "a size such as 0, 1MiB or 4GiB")
	}
	*v.at = n
	return nil
}

func (v *Size) String() string {
	if word, ok := v.names.word(*v.at); ok {
		return word
	}
	return FormatBytes(*v.at)
}

// Type is "size".
func (*Size) Type() string { return "size" }

func (v *Size) choices() []string { return v.names.choices() }

var sizeUnits = []struct {
	suffix string
	bytes  float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

func parseBytes(text string) (n int64, ok bool) {
	number, unit := text, 1.0
	for _, u := range sizeUnits {
		if cut, ok := strings.CutSuffix(text, u.suffix); ok {
			number, unit = strings.TrimSpace(cut), u.bytes
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !(v >= 0 && v*unit < math.MaxInt64/2) || strings.ContainsAny(number, "xXeEpP_+") {
		return 0, false
	}
	return int64(v * unit), true
}

// FormatBytes prints n exactly, as Size reads it: in the largest of GiB, MiB and KiB that divides
// it.
func FormatBytes(n int64) string {
	for _, u := range []struct {
		suffix string
		bytes  int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}

// Count is a large number, such as 40M.
type Count struct {
	at    *int64
	least int64
}

// Counted returns a Count that sets at, to least or more. If 0 is less than that, it means not
// given, and String prints no text.
func Counted(at *int64, least int64) *Count { return &Count{at, least} }

// Set reads a number such as 2.5k, with k, M or G for thousands, millions and billions. It must
// come to a whole number.
func (v *Count) Set(text string) error {
	number, unit := text, 1.0
	for suffix, u := range map[string]float64{"k": 1e3, "M": 1e6, "G": 1e9} {
		if cut, ok := strings.CutSuffix(text, suffix); ok {
			number, unit = cut, u
		}
	}
	f, err := strconv.ParseFloat(number, 64)
	if n := f * unit; err != nil || !(n >= float64(v.least) && n < 1<<53) || n != math.Trunc(n) || strings.ContainsAny(number, "xXeEpP_+-") {
		return fmt.Errorf("%q is not a number such as 1000, 2.5k, 40M or 1.6G", text)
	}
	*v.at = int64(f * unit)
	return nil
}

func (v *Count) String() string {
	if *v.at == 0 && v.least > 0 {
		return ""
	}
	return strconv.FormatInt(*v.at, 10)
}

// Type is "count".
func (*Count) Type() string { return "count" }

func (v *Count) wrong() string {
	if *v.at < v.least {
		return fmt.Sprintf("at least %d", v.least)
	}
	return ""
}

// Text is any text, or one of some words.
type Text struct {
	get     func() string
	set     func(string)
	only    []string // none: any text
	hints   []string
	names   names[string]
	aliases names[string]
	empty   string
	commas  bool
}

// Word returns a Text that sets at, to one of these words if there are any.
func Word[S ~string](at *S, only ...S) *Text {
	return &Text{get: func() string { return string(*at) }, set: func(text string) { *at = S(text) }, only: plain(only)}
}

// plain returns words as strings.
func plain[S ~string](words []S) (texts []string) {
	for _, w := range words {
		texts = append(texts, string(w))
	}
	return texts
}

// Or lets a word stand for another text: Set stores that, and String prints the word.
func (v *Text) Or(word, text string) *Text {
	v.names = append(v.names, named[string]{word, text})
	return v
}

// Alias lets Set read a word as another text.
func (v *Text) Alias(word, text string) *Text {
	v.aliases = append(v.aliases, named[string]{word, text})
	return v
}

// Empty makes String print a word for the empty text.
func (v *Text) Empty(word string) *Text {
	v.empty = word
	return v
}

// Commas lets a file write the text as a list.
func (v *Text) Commas() *Text {
	v.commas = true
	return v
}

// Hint adds words for completion.
func Hint[S ~string](v *Text, words ...S) *Text {
	v.hints = append(v.hints, plain(words)...)
	return v
}

// Set stores text, or what a word stands for.
func (v *Text) Set(text string) error {
	if other, ok := v.names.value(text); ok {
		text = other
	} else if other, ok := v.aliases.value(text); ok {
		text = other
	}
	v.set(text)
	return nil
}

func (v *Text) String() string {
	text := v.get()
	if word, ok := v.names.word(text); ok {
		return word
	}
	return cmp.Or(text, v.empty)
}

// Type is "string".
func (*Text) Type() string { return "string" }

func (v *Text) choices() []string { return slices.Concat(v.names.choices(), v.hints, v.only) }

func (v *Text) wrong() string {
	text := v.get()
	if _, ok := v.names.word(text); ok || len(v.only) == 0 || slices.Contains(v.only, text) {
		return ""
	}
	words := append(v.names.choices(), v.only...)
	if len(words) == 1 {
		return "there is " + words[0]
	}
	last := len(words) - 1
	return "there are " + strings.Join(words[:last], ", ") + " and " + words[last]
}

// OneOf lists two or more words for people, as in "a, b or c".
func OneOf[S ~string](words []S) string {
	var b strings.Builder
	for i, w := range words {
		switch i {
		case 0:
		case len(words) - 1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}

// Switch is on or off.
type Switch struct{ at *bool }

// Bool returns a Switch that sets at.
func Bool(at *bool) Switch { return Switch{at} }

// Set reads true or false.
func (v Switch) Set(text string) (err error) {
	on, err := strconv.ParseBool(text)
	if err != nil {
		return fmt.Errorf("%q is neither true nor false", text)
	}
	*v.at = on
	return nil
}

func (v Switch) String() string { return strconv.FormatBool(*v.at) }

// Type is "bool".
func (Switch) Type() string { return "bool" }

func (Switch) switched() bool { return true }

// Shorthand is a flag without a value that sets another option to one text.
type Shorthand struct {
	of   Value
	text string
}

// Short returns a Shorthand that sets of to text.
func Short(of Value, text string) Shorthand { return Shorthand{of, text} }

// Set sets the other option. It takes no text but "true".
func (v Shorthand) Set(text string) error {
	if text != "" && text != "true" {
		return fmt.Errorf("%q: it takes no value", text)
	}
	return v.of.Set(v.text)
}

func (v Shorthand) String() string { return "" }

// Type is "bool".
func (Shorthand) Type() string { return "bool" }

func (Shorthand) switched() bool { return true }

// Slice is a list of values of one kind, with commas between them.
type Slice[T any] struct {
	at   *[]T
	elem func(*T) Value
	kind string
	set  bool
}

// Each returns a Slice that sets at. elem returns the Value of one element.
func Each[T any, V Value](at *[]T, elem func(*T) V) *Slice[T] {
	return &Slice[T]{at: at, elem: func(x *T) Value { return elem(x) }, kind: "strings"}
}

// Ints returns a Slice of whole numbers that sets at.
func Ints(at *[]int) *Slice[int] { return Each(at, Int).Kind("ints") }

// Kind sets the kind of value in help.
func (v *Slice[T]) Kind(kind string) *Slice[T] {
	v.kind = kind
	return v
}

// Set reads values. The first call replaces what was there, and later ones add to it.
func (v *Slice[T]) Set(text string) error {
	var list []T
	if v.set {
		list = slices.Clone(*v.at)
	}
	var errs []error
	if text != "" {
		for word := range strings.SplitSeq(text, ",") {
			var x T
			errs = append(errs, v.elem(&x).Set(strings.TrimSpace(word)))
			list = append(list, x)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	*v.at, v.set = list, true
	return nil
}

func (v *Slice[T]) String() string {
	var words []string
	for _, x := range *v.at {
		words = append(words, v.elem(&x).String())
	}
	return strings.Join(words, ",")
}

// Type names the kind of values.
func (v *Slice[T]) Type() string { return v.kind }

func (v *Slice[T]) choices() []string {
	var x T
	if c, ok := v.elem(&x).(chooser); ok {
		return c.choices()
	}
	return nil
}

// Texts is a list of texts.
type Texts struct {
	at       *[]string
	repeated bool // each flag is one text, else several with commas between
	set      bool
}

// Words returns Texts with commas between them. A text in double quotes may hold commas.
func Words(at *[]string) *Texts { return &Texts{at: at} }

// Repeated returns Texts that take one text from each flag.
func Repeated(at *[]string) *Texts { return &Texts{at: at, repeated: true} }

// Set reads texts. The first call replaces what was there, and later ones add to it.
func (v *Texts) Set(text string) error {
	list := []string{text}
	if !v.repeated {
		list = []string{}
		if text != "" {
			var err error
			if list, err = csv.NewReader(strings.NewReader(text)).Read(); err != nil {
				return err
			}
		}
	}
	if v.set {
		list = slices.Concat(*v.at, list)
	}
	*v.at, v.set = list, true
	return nil
}

func (v *Texts) String() string {
	if len(*v.at) == 0 {
		return ""
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	if err := w.Write(*v.at); err != nil {
		return err.Error() // a Builder has none
	}
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// Type is "strings" in help, and "stringArray" if each has a flag of its own.
func (v *Texts) Type() string {
	if v.repeated {
		return "stringArray"
	}
	return "strings"
}

// Custom is a value with a parser of its own.
type Custom[T fmt.Stringer] struct {
	at    *T
	parse func(string) (T, error)
}

// Parsed returns a Custom that sets at.
func Parsed[T fmt.Stringer](at *T, parse func(string) (T, error)) Custom[T] {
	return Custom[T]{at, parse}
}

// Set stores what the parser reads.
func (v Custom[T]) Set(text string) error {
	x, err := v.parse(text)
	if err == nil {
		*v.at = x
	}
	return err
}

func (v Custom[T]) String() string { return (*v.at).String() }

// Type is "string".
func (Custom[T]) Type() string { return "string" }

// ParseInts reads whole numbers with commas between. Empty text means no numbers.
func ParseInts(text string) (numbers []int, err error) {
	if text == "" {
		return nil, nil
	}
	var errs []error
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil {
			errs = append(errs, fmt.Errorf("%q is not a number; write them with commas between, as in 15,10,5", word))
		}
		numbers = append(numbers, n)
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	return numbers, nil
}

// FormatInts is the inverse of ParseInts.
func FormatInts(numbers []int) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}
