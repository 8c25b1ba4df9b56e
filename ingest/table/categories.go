package table

import (
	"fmt"
	"strconv"

	"github.com/zeebo/xxh3"
	"go.yaml.in/yaml/v4"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// numeric reports whether the cells of the column are numbers.
func (f *feature) numeric() bool { return f.category == nil && f.hashed == 0 && f.dates == nil }

// categoryKey returns the key that makes the column categorical.
func (f *feature) categoryKey() string {
	if f.hashed > 0 {
		return "hash"
	}
	return "categorical"
}

// appendHashed appends 1 or -1 in one of the columns, both chosen by the hash of the category, and
// zeros in the others. The sign makes two categories that share a column cancel on average, as in
// scikit-learn's FeatureHasher.
func (f *feature) appendHashed(row []float32, t ingest.Token, there bool) []float32 {
	at := len(row)
	row = append(row, make([]float32, f.hashed)...)
	if there {
		h := xxh3.Hash(t.Text)
		sign := float32(1)
		if h&1 == 1 {
			sign = -1
		}
		row[at+int(h>>1%uint64(f.hashed))] = sign
	}
	return row
}

// counts calls set for each column of a mapping from columns to numbers from 1 to most, and for all
// columns if there is one number.
func (d *document) counts(
	o *object, key string, most int, taken map[string]*feature,
	all func(n int), set func(f *feature, column word, n int),
) {
	number := func(w word) int {
		n, err := strconv.Atoi(w.text)
		if err != nil || n < 1 || n > most {
			d.errorf(w.line, "%s %q: it is a number from 1 to %d", key, lines.ClipText(w.text), most)
		}
		return n
	}
	n := o.keys[key]
	switch {
	case n == nil:
		return
	case n.Kind != yaml.MappingNode && all != nil:
		all(number(o.word(key)))
		return
	case n.Kind != yaml.MappingNode:
		d.errorf(n.Line, "%s: want a number for each column, as in {user_agent: 32}", key)
		return
	}
	d.object(n, key) // keys are unique
	for i := 0; i+1 < len(n.Content); i += 2 {
		column, n := d.word(n.Content[i], "a column"), number(d.word(n.Content[i+1], "a number"))
		if f := taken[column.text]; f != nil {
			set(f, column, n)
		} else {
			d.errorf(column.line, "%s %s: it is not among the features; list it there as well", key, lines.ClipText(column.text))
		}
	}
}

// hash reads which texts are hashed, and into how many columns.
func (d *document) hash(o *object, taken map[string]*feature) {
	d.counts(o, "hash", maxOneHot, taken, nil, func(f *feature, column word, n int) {
		if f.category != nil {
			d.errorf(column.line, "hash %s: it is categorical as well; choose hash, which learns nothing, or categorical", lines.ClipText(column.text))
		}
		f.hashed, f.dim = n, n
	})
}

// maxCategories reads how many categories have a number of their own. The others share the number
// of unknown ones.
func (d *document) maxCategories(o *object, taken map[string]*feature) {
	const key = "max_categories"
	all := func(n int) {
		for _, f := range taken {
			if f.category != nil {
				f.cap(n)
			}
		}
	}
	d.counts(o, key, maxOneHot-1, taken, all, func(f *feature, column word, n int) {
		switch {
		case f.hashed > 0:
			d.errorf(column.line, "%s %s: it is hashed, and any number of texts share its columns; leave it out here", key, lines.ClipText(column.text))
		case f.category == nil: // it need not be listed twice
			f.newCategory()
			fallthrough
		default:
			f.cap(n)
		}
	})
}

// cap keeps the most frequent categories, and makes a number for all others.
func (f *feature) cap(n int) {
	f.keep, f.bucket = n, true
	f.category.KeepMost(n)
}

// checkKinds refuses columns that are two things at once.
func (d *document) checkKinds(features []*feature) {
	for _, f := range features {
		if f.keep > 0 && !f.named { // a rule for all columns is for those without a cap
			f.rule = unknownDefault
		}
		switch {
		case f.dates != nil && (f.category != nil || f.hashed > 0):
			d.errorf(f.line, "column %s is a date and categorical; list it under dates or %s alone", lines.ClipText(f.text), f.categoryKey())
		case f.keep > 0 && f.rule != unknownDefault && f.rule != unknownBucket:
			d.errorf(f.line, "column %s has max_categories, and unknown: %s; a column for the other categories has the unknown ones, too: leave unknown out",
				lines.ClipText(f.text), f.rule)
		}
	}
}

// pruned notes the columns that had more categories than can be counted.
func pruned(tables []matrix) (notes []string) {
	for _, t := range tables {
		for _, f := range t.features {
			if f.category != nil && f.category.Pruned() {
				notes = append(notes, fmt.Sprintf("column %s: it has more categories than can be counted one by one; of those that are "+
					"about as frequent as the last of the %d, some may be missing", lines.ClipText(f.text), f.keep))
			}
		}
	}
	return notes
}
