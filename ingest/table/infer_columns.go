package table

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/parquet"
	"github.com/gnnstore/gnnstore/store"
)

const (
	largestHalf = 65504 // the largest number of 16 bits
	// heavyTail is the ratio of the largest number to the median from which log is proposed. Of
	// 1000 numbers of a normal distribution around 0 it is 5, and of an exponential one 10.
	heavyTail = 50
	// farFromOne is the size from which numbers drown other columns: standard is proposed then, and
	// for numbers that are all below its inverse.
	farFromOne = 10.0
	// rowsOfTexts is the least number of rows in which texts with many values are judged.
	rowsOfTexts = 100
	// proposed numbers of columns, for a person to change
	proposedCategories, proposedHash = 50, 32
)

// measured counts the dates of a column in the first rows, and measures its numbers and texts.
type measured struct {
	dates   int // cells
	timed   int // dates with a time of the day
	zoned   int // dates with a time zone
	sizes   []float64
	longest int // bytes of a text
}

// addDate notes a cell that is a date.
func (m *measured) addDate(v *value) bool {
	if v.Kind != parquet.Text {
		return false
	}
	t, zone, dated := lines.ParseInstant(v.Text)
	if !dated {
		m.longest = max(m.longest, len(v.Text))
		return false
	}
	m.dates++
	if t.Sec%86400 != 0 || t.Nanos != 0 {
		m.timed++
	}
	if zone == lines.Zoned {
		m.zoned++
	}
	return true
}

// addNumber notes the size of a number.
func (m *measured) addNumber(x float32) { m.sizes = append(m.sizes, math.Abs(float64(x))) }

// tail returns the largest number and the median of those that are not 0, by size.
func (m *measured) tail() (largest, median float64) {
	sizes := slices.DeleteFunc(slices.Clone(m.sizes), func(x float64) bool { return x == 0 })
	if len(sizes) == 0 {
		return 0, 0
	}
	slices.Sort(sizes)
	return sizes[len(sizes)-1], sizes[len(sizes)/2]
}

// heavy reports whether some numbers are far larger than most.
func (m *measured) heavy() bool {
	largest, median := m.tail()
	return largest >= 100 && largest >= heavyTail*median
}

// scale returns the scale to propose for numbers, and why; "" for none.
func (m *measured) scale() (rule, why string) {
	largest, median := m.tail()
	switch {
	case m.heavy():
		return store.ScaleLog, fmt.Sprintf("the largest number, %.4g, is %.0f times the median", largest, largest/median)
	case largest > largestHalf:
		return store.ScaleStandard, fmt.Sprintf("numbers up to %.4g, and 16 bits end at %d", largest, largestHalf)
	case largest > farFromOne || largest > 0 && largest < 1/farFromOne:
		return store.ScaleStandard, fmt.Sprintf("up to %.4g, and best near 1", largest)
	}
	return "", ""
}

// dated reports whether all cells that are not missing are dates of one form.
func (c *guessed) dated(rows int) bool {
	return c.dates > 0 && c.dates+c.missing+c.absent == rows && (c.zoned == 0 || c.zoned == c.dates)
}

// amount reports whether a column of large integers has a long tail, which ids and times have not.
func (c *guessed) amount(rows int) bool {
	return c.large && !c.odd && c.missing+c.absent == 0 && c.integers+c.floats == rows && c.heavy()
}

// manyTexts returns the key to propose for a column of texts with many values that repeat; "" for
// other columns.
func (c *guessed) manyTexts(rows int) string {
	present := rows - c.missing - c.absent
	switch {
	case present < rowsOfTexts || c.integers+c.floats+c.lists+c.dates > 0 || c.longest > ingest.MaxCategory:
		return ""
	case len(c.values)*4 <= present:
		return "max_categories"
	case len(c.values)*4 <= present*3:
		return "hash"
	}
	return ""
}

// proposal gathers the lines of an entry about single columns.
type proposal struct {
	features, categories       []string
	capped, hashed             []*guessed
	dates, scaled, missingDate []*guessed
}

// number lists a column of numbers.
func (p *proposal) number(c *guessed) {
	p.features = append(p.features, c.key())
	if rule, _ := c.scale(); rule != "" && c.lists == 0 {
		p.scaled = append(p.scaled, c)
	}
}

// date lists a column of dates.
func (p *proposal) date(c *guessed) {
	p.features, p.dates = append(p.features, c.key()), append(p.dates, c)
	if c.missing+c.absent > 0 {
		p.missingDate = append(p.missingDate, c)
	}
}

// write writes the features and how they are encoded.
func (p *proposal) write(b *bytes.Buffer, rows int) {
	if len(p.features) == 0 {
		return
	}
	fmt.Fprintf(b, "    features: %s # columns of numbers", quotes(p.features))
	if len(p.capped)+len(p.hashed)+len(p.dates) > 0 {
		b.WriteString(", and others as the next lines say")
	}
	if len(p.categories) > 0 {
		fmt.Fprintf(b, ", and of few different texts\n    categorical: %s", quotes(p.categories))
	}
	b.WriteString("\n")
	line := func(key string, columns []*guessed, word func(c *guessed) string, why func(c *guessed) string) {
		var pairs, reasons []string
		for _, c := range columns {
			pairs = append(pairs, quote(c.key())+": "+word(c))
			reasons = append(reasons, c.key()+": "+why(c))
		}
		if len(columns) > 0 {
			fmt.Fprintf(b, "    %s: {%s} # %s\n", key, strings.Join(pairs, ", "), plain(strings.Join(reasons, "; ")))
		}
	}
	values := func(c *guessed) string {
		return fmt.Sprintf("%d different texts in the first %d rows", len(c.values), rows)
	}
	line("max_categories", p.capped, func(*guessed) string { return fmt.Sprint(proposedCategories) }, values)
	line("hash", p.hashed, func(*guessed) string { return fmt.Sprint(proposedHash) }, values)
	line("scale", p.scaled, func(c *guessed) string { rule, _ := c.scale(); return rule },
		func(c *guessed) string { _, why := c.scale(); return why })
	line("dates", p.dates, func(c *guessed) string {
		if c.timed > 0 {
			return "[year, month, weekday, hour, age]"
		}
		return "[year, month, weekday, age]"
	}, func(c *guessed) string { return "its cells are dates; its age is until the newest one" })
	line("missing", p.missingDate, func(*guessed) string { return string(indicate) },
		func(c *guessed) string {
			return fmt.Sprintf("%d of the first %d rows have none", c.missing+c.absent, rows)
		})
}
