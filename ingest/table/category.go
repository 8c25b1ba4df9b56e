package table

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/parquet"
)

const (
	maxClasses  = 1 << 16
	maxOneHot   = 1 << 10 // columns of features for one of a table
	maxIndexed  = 1 << 16
	maxCategory = 256 // bytes of one
	manyClasses = 100 // of text, beyond which they must repeat to be classes
)

// category numbers the different values of a column, which are learnt in one reading and known in the others: by value
// where all are integers, else by their bytes.
type category struct {
	most    int
	ids     map[string]int32
	names   []string // nil until known
	values  int64    // that were there
	texts   bool     // some are no integers
	least   int64    // of the integers that are not negative
	largest int64    // the largest
	many    bool     // more than most: ids is dropped
	direct  bool     // a label's integers are classes by number
}

func newCategory(most int) *category {
	return &category{most: most, ids: map[string]int32{}, least: math.MaxInt64}
}

func (c *category) len() int {
	if c == nil {
		return 0
	}
	return len(c.names)
}

// token is a cell as a category reads it: 3, 3.0 and "3" are the same.
type token struct {
	text    []byte
	number  int64
	integer bool
}

// tokenOf reads a cell; false when it is missing. The text is lent as the cell is, or in buf.
func tokenOf(v *value, buf []byte) (t token, ok bool, err error) {
	switch v.Kind {
	case parquet.Null:
		return t, false, nil
	case parquet.Int:
		t.number, t.integer = v.Int, true
	case parquet.Float:
		if v.Float != v.Float {
			return t, false, nil
		}
		if t.number, t.integer = whole(v.Float); !t.integer {
			return token{text: strconv.AppendFloat(buf[:0], v.Float, 'g', -1, 64)}, true, nil
		}
	case parquet.Text:
		if len(v.Text) == 0 || bytes.EqualFold(v.Text, []byte("nan")) {
			return t, false, nil
		}
		if len(v.Text) > maxCategory {
			return t, false, fmt.Errorf("%d bytes are no class or category", len(v.Text))
		}
		if t.number, t.integer = integer(v.Text); !t.integer {
			return token{text: v.Text}, true, nil
		}
	default:
		return t, false, fmt.Errorf("a list is no class or category")
	}
	t.text = strconv.AppendInt(buf[:0], t.number, 10)
	return t, true, nil
}

// whole gives a float that is an integer.
func whole(f float64) (int64, bool) {
	if f != math.Trunc(f) || math.Abs(f) > 1<<53 { // beyond 2⁵³ a float has lost the ones
		return 0, false
	}
	return int64(f), true
}

// integer reads 3, and 3.0 as Python writes integers that came from floats.
func integer(cell []byte) (int64, bool) {
	if c := cell[0]; c != '-' && c-'0' > 9 {
		return 0, false
	}
	left, fraction, _ := bytes.Cut(cell, []byte("."))
	if len(bytes.Trim(fraction, "0")) > 0 {
		return 0, false
	}
	v, err := strconv.ParseInt(string(left), 10, 64)
	return v, err == nil && (len(left) == 1 || left[0] != '0') // 007 is a name
}

func (c *category) learn(t token) {
	c.values++
	switch {
	case !t.integer:
		c.texts = true
	case t.number >= 0:
		c.least, c.largest = min(c.least, t.number), max(c.largest, t.number)
	}
	if _, known := c.ids[string(t.text)]; known || c.many {
		return
	}
	c.ids[string(t.text)] = 0
	if len(c.ids) > c.most {
		c.ids, c.many = map[string]int32{}, true
	}
}

// settleLabel makes classes of what was learnt: by number when integers count from 0, else by name. Negative integers are
// missing.
func (c *category) settleLabel() error {
	switch {
	case c.texts && c.many:
		return fmt.Errorf("more than %d different labels are not classes", c.most)
	case c.texts && len(c.ids) > manyClasses && 2*int64(len(c.ids)) > c.values:
		return fmt.Errorf("%d different labels on %d nodes are not classes", len(c.ids), c.values)
	case !c.texts && (c.least == 0 || c.many || c.values == 0 || c.least == math.MaxInt64):
		if c.largest > math.MaxInt32 {
			return fmt.Errorf("%d is not the number of a class", c.largest)
		}
		c.direct, c.ids = true, nil
		return nil
	}
	c.number(!c.texts)
	return nil
}

// settle numbers what was learnt of a feature.
func (c *category) settle() error {
	if c.many {
		return fmt.Errorf("more than %d different values; index takes %d, onehot %d", c.most, maxIndexed, maxOneHot)
	}
	c.number(false)
	return nil
}

// number gives each text its place; positive leaves out negative integers.
func (c *category) number(positive bool) {
	texts := make([]string, 0, len(c.ids))
	for text := range c.ids {
		if positive && text[0] == '-' {
			c.ids[text] = -1
		} else {
			texts = append(texts, text)
		}
	}
	if c.texts {
		slices.Sort(texts)
	} else {
		slices.SortFunc(texts, func(a, b string) int {
			x, _ := strconv.ParseInt(a, 10, 64)
			y, _ := strconv.ParseInt(b, 10, 64)
			return cmp.Compare(x, y)
		})
	}
	for i, text := range texts {
		c.ids[text] = int32(i)
		texts[i] = strings.ToValidUTF8(text, "\uFFFD")
	}
	c.names = texts
}

// of is the number of what was learnt.
func (c *category) of(t token) (int32, error) {
	if c.direct {
		if t.number > c.largest || !t.integer {
			return 0, fmt.Errorf("%q is new; the file changed while it was read", clip(string(t.text)))
		}
		return int32(max(t.number, -1)), nil
	}
	id, ok := c.ids[string(t.text)]
	if !ok {
		return 0, fmt.Errorf("%q is new; the file changed while it was read", clip(string(t.text)))
	}
	return id, nil
}
