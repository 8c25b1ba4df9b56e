package table

import (
	"go.yaml.in/yaml/v4"

	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/store"
)

// units reads the units of columns, as in {height: cm}. They are kept with the dataset, and
// compared by {like}; numbers are not converted.
func (d *document) units(o *object, taken map[string]*feature) {
	n := o.keys["units"]
	if n == nil {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.errorf(n.Line, "units: want a unit for each column, as in {height: cm}")
		return
	}
	d.object(n, "units") // keys are unique
	for i := 0; i+1 < len(n.Content); i += 2 {
		column, unit := d.word(n.Content[i], "a column"), d.word(n.Content[i+1], "a unit")
		f := taken[column.text]
		switch {
		case f == nil:
			d.errorf(column.line, "units %s: it is not among the features; list it there as well", lines.ClipText(column.text))
		case f.category != nil || f.hashed > 0:
			d.errorf(column.line, "units %s: it is categorical, and categories have no unit; leave it out here",
				lines.ClipText(column.text))
		case !store.FitsUnit(unit.text):
			d.errorf(unit.line, "units %s: %q: a unit is a word of 1 to %d bytes, as in cm or m/s²",
				lines.ClipText(column.text), lines.ClipText(unit.text), store.MaxUnit)
		case f.dates != nil && lines.Units[unit.text] == 0:
			d.errorf(unit.line, "units %s: %q is no unit of counts since 1970; choose s, ms, us or ns, or leave it out if dates are written as dates",
				lines.ClipText(column.text), lines.ClipText(unit.text))
		default:
			f.unit = unit.text
			if f.dates != nil {
				f.dates.unit = lines.Units[unit.text]
			}
		}
	}
}
