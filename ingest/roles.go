package ingest

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
)

// Arrays and columns with these names have a role in a graph. The first name goes before the
// others. PyTorch Geometric, DGL, OGB, the heterophilous graphs of Platonov et al. and many
// notebooks use them. PartNames name masks and lists of nodes, by [Part]. A name is no proof: the
// values must fit, and a reader names the columns that it took, and the option that undoes it.
var (
	LabelNames = []string{"y", "node_labels", "node_label", "labels", "label"}
	SplitNames = []string{"split", "data_split", "partition", "part", "subset", "set", "fold"}
	PartNames  = [3][]string{
		{"train_mask", "train_masks", "is_train", "in_train", "train_idx", "train_index", "train_nodes", "idx_train",
			"train_ids", "split_idx.train", "split.train", "training", "train"},
		{"val_mask", "val_masks", "valid_mask", "valid_masks", "is_val", "is_valid", "in_val", "in_valid", "val_idx", "valid_idx",
			"val_index", "valid_index", "val_nodes", "valid_nodes", "idx_val", "idx_valid", "val_ids", "valid_ids", "split_idx.valid",
			"split_idx.val", "split.valid", "split.val", "validation", "valid", "val"},
		{"test_mask", "test_masks", "is_test", "in_test", "test_idx", "test_index", "test_nodes", "idx_test", "test_ids",
			"split_idx.test", "split.test", "testing", "test"},
	}
)

// ClassNames are further names of columns that are labels. Arrays may have them for the ends of
// edges.
var ClassNames = []string{"class", "target"}

// IsSplitName reports whether a name means a split and nothing else. The other SplitNames may be
// features or classes.
func IsSplitName(name string) bool {
	name = SnakeName(name[strings.LastIndexByte(name, '/')+1:])
	return name == "split" || name == "fold" || strings.HasSuffix(name, "_split")
}

// IsMaskName reports whether an array of zeros and ones with this name is a mask, and not a list. A
// node type and a slash may stand before the name.
func IsMaskName(name string) bool {
	name = SnakeName(name[strings.LastIndexByte(name, '/')+1:])
	return strings.Contains(name, "mask") || strings.HasPrefix(name, "is_") || strings.HasPrefix(name, "in_")
}

// SnakeName writes a name in small letters, with _ between its words: trainMask and "Train Mask"
// are train_mask.
func SnakeName(name string) string {
	var b strings.Builder
	small := false // the last letter was one
	for _, r := range strings.TrimSpace(name) {
		if r == ' ' || r == '-' {
			r = '_'
		}
		if unicode.IsUpper(r) && small {
			b.WriteByte('_')
		}
		small = unicode.IsLower(r) || unicode.IsDigit(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Called returns the first column that has one of the names, in the order of names; -1 without one.
func Called(columns []string, names ...string) int {
	for _, name := range names {
		if i := slices.IndexFunc(columns, func(c string) bool { return SnakeName(c) == name }); i >= 0 {
			return i
		}
	}
	return -1
}

// MaskColumns returns the columns that are named as the masks of a split, by part; -1 without one.
func MaskColumns(columns []string) (masks [3]int) {
	for part, names := range PartNames {
		masks[part] = Called(columns, names...)
	}
	return masks
}

// MaskOf reads a cell of a mask. An empty cell is false.
func MaskOf(cell []byte) (in, ok bool) {
	switch string(bytes.ToLower(bytes.TrimSpace(cell))) {
	case "1", "1.0", "true", "t", "yes":
		return true, true
	case "0", "0.0", "false", "f", "no", "":
		return false, true
	}
	return false, false
}

// NoPart is the part of a node that is in no part of a split.
const NoPart = -1

var partWords = map[string]int{
	"train": int(Train), "training": int(Train), "valid": int(Valid), "val": int(Valid), "validation": int(Valid),
	"dev": int(Valid), "test": int(Test), "testing": int(Test), "none": NoPart, "": NoPart,
}

// PartOf reads the name of a part of a split. An empty cell and "none" are NoPart.
func PartOf(cell []byte) (part int, ok bool) {
	part, ok = partWords[string(bytes.ToLower(bytes.TrimSpace(LabelText(cell))))]
	return part, ok
}

// PartNumber reads the number of a part of a split: 0 is to train, 1 to validate, 2 to test.
func PartNumber(cell []byte) (part int, ok bool) {
	for part, words := range [3][2]string{{"0", "0.0"}, {"1", "1.0"}, {"2", "2.0"}} {
		if text := string(bytes.TrimSpace(cell)); text == words[0] || text == words[1] {
			return part, true
		}
	}
	return NoPart, false
}

// missingWords stand for a missing value in some tables, and are names of classes in others.
var missingWords = []string{"unknown", "?", "-", "missing", "unlabeled", "unlabelled", "undefined", "na", "n.a."}

// MayBeMissing reports whether a word may stand for a missing value. Only the user knows.
func MayBeMissing(word string) bool {
	return slices.Contains(missingWords, strings.ToLower(strings.TrimSpace(word)))
}

// ColumnSample counts the values that the first rows of a table have in a column.
type ColumnSample struct {
	Rows, Missing, Integers, Fractions int
	Values                             map[string]int // at most maxSampled of them
	First                              string         // value
	Large                              bool           // some integers are beyond MostFeature
}

const maxSampled = 2000

// MostFeature is the largest integer that float32 tells from its neighbours.
const MostFeature = 1 << 24

// Classes reports whether the values may be classes: texts or integers that are few or repeat.
func (c *ColumnSample) Classes() bool {
	return c.Fractions == 0 && len(c.Values) > 0 && (len(c.Values) <= manyClasses || 4*len(c.Values) <= c.Rows)
}

// Add counts a cell. number reports whether it is a number, and whole whether it is the integer n.
func (c *ColumnSample) Add(cell []byte, n int64, whole, number bool) {
	c.Rows++
	if len(LabelText(cell)) == 0 {
		c.Missing++
		return
	}
	if c.First == "" {
		c.First = string(cell)
	}
	switch {
	case whole:
		c.Integers++
		c.Large = c.Large || n > MostFeature || n < -MostFeature
	case number:
		c.Fractions++
	}
	if c.Values == nil {
		c.Values = map[string]int{}
	}
	if len(c.Values) < maxSampled {
		c.Values[string(cell)]++
	}
}

// All reports whether every value is one that fits accepts.
func (c *ColumnSample) All(fits func(cell []byte) bool) bool {
	for v := range c.Values {
		if !fits([]byte(v)) {
			return false
		}
	}
	return len(c.Values) > 0
}
