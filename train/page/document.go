// Package page writes charts and tables as one HTML page that needs nothing else: no network, no
// other file. Texts may come from strangers, so the page never takes them for HTML.
//
// A [Document] has facts, sections, charts and tables, and knows nothing of runs or datasets.
// Packages live and trace, and the command inspect, make documents. [Document.Write] writes the
// page. Go draws the charts, as SVG. A script of some 150 lines shows the values at a cursor, which
// the mouse and the arrow keys move. It also updates a served page. Without the script the page can
// still be read and printed.
//
// # Size
//
// To stay below [MaxBytes], a page thins long series to their lowest and highest values, and cuts
// long texts and tables. A note or "…" marks each cut.
//
// # Why not
//
// A library of charts: the small ones draw on a canvas, which has no text for screen readers and
// prints badly; the others are several times as large as this page.
package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
)

// MaxBytes is the largest size of a page.
const MaxBytes = 100 << 10

// Document is the content of a page.
type Document struct {
	Kind   string // a word or two above the title: "training run"
	Title  string
	Status string // a word beside the title; empty: none
	Tone   Tone   // of Status
	Lead   string // a line below the title
	// Served is set if a server sends the page, and not set for a file. A served page asks for an
	// update after Poll; 0: never.
	Served   bool
	Poll     time.Duration
	Facts    []Fact
	Sections []Section
	// Made is the time when the content was read. The page shows it.
	Made time.Time
}

// Tone colours a status.
type Tone string

// The tones. Their words are classes of the style sheet.
const (
	Plain  Tone = ""
	Active Tone = "active" // something is under way
	Good   Tone = "good"
	Bad    Tone = "bad"
)

// Fact is a figure at the top of the page.
type Fact struct{ Name, Value, Note string }

// Section is a part of a page below a heading.
type Section struct {
	// Name is the identifier of the section in the page: letters and dashes.
	Name   string
	Title  string
	Text   string   // a paragraph; may be empty
	Points []string // sentences, such as advice; may be empty
	Charts []Chart
	Tables []Table
}

// Table has rows of cells below a head.
type Table struct {
	Title string
	Note  string
	// Folded closes the table until the reader opens it.
	Folded bool
	Head   []Column
	Rows   [][]Cell
}

// Column heads the cells of a table.
type Column struct {
	Name   string
	Number bool // its cells are aligned at the right
}

// Columns returns columns with the names. "#" before a name marks a column of numbers, and is not
// shown.
func Columns(names ...string) (all []Column) {
	for _, name := range names {
		text, number := strings.CutPrefix(name, "#")
		all = append(all, Column{text, number})
	}
	return all
}

// Cell is a cell of a table.
type Cell struct {
	Text string
	// Bar draws a share from 0 to 1 before the text; nil: none.
	Bar *float64
	// Series gives the cell the colour of the nth series of charts, counted from 1; 0: no colour.
	Series int
	Strong bool
}

// Class returns the CSS classes of the cell's colour.
func (c Cell) Class() string { return seriesClass(c.Series - 1) }

// Cells returns a row of plain cells.
func Cells(texts ...string) (row []Cell) {
	for _, t := range texts {
		row = append(row, Cell{Text: t})
	}
	return row
}

//go:embed page.html
var layout string

//go:embed page.css
var style string

//go:embed page.js
var script string

// Bounds of a page.
const (
	maxText   = 400  // runes of a text
	maxRows   = 200  // of a table
	maxPoints = 2400 // of all charts together

	manyPoints = 4000 // of a series, before a chart puts its series into one table
)

var pages = template.Must(template.New("page").Funcs(template.FuncMap{
	"share": func(v *float64) int { return int(1000*min(max(finite(*v), 0), 1) + 0.5) },
}).Parse(layout))

// Policy returns the Content-Security-Policy header of served pages. They may ask their own server
// alone, and no other page may frame them.
func Policy() string { return policy(true) + "; frame-ancestors 'none'" }

// policy returns the policy that a page itself has. Only a header can forbid frames.
func policy(served bool) string {
	connect := "'none'"
	if served {
		connect = "'self'"
	}
	return "default-src 'none'; script-src '" + hash(script) + "'; style-src '" + hash(style) + "'; img-src data:; " +
		"connect-src " + connect + "; base-uri 'none'; form-action 'none'"
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// view has the fields and methods that the template uses.
type view struct {
	*Document
	Policy   string
	Style    template.CSS
	Script   template.JS
	Sections []sectionView
	runes    int // of a text at most
}

// PollMS returns Poll in milliseconds.
func (v view) PollMS() int64 { return v.Poll.Milliseconds() }

// Text returns a text as a page shows it. Control characters, which may turn the direction of
// writing, become question marks. A long text is cut, and ends with "…".
func (v view) Text(text string) string { return cut(text, v.runes) }

type sectionView struct {
	Section
	Charts []drawn
	Tables []tableView
}

type tableView struct {
	Table
	ID   string
	Left int // number of rows that are not shown
}

// Write writes the page.
func (d *Document) Write(w io.Writer) error {
	text, err := d.Page()
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}

// Page returns the page. While the page is larger than MaxBytes, Page makes it again with fewer
// points, rows and letters.
func (d *Document) Page() (text []byte, err error) {
	d = d.thinned()
	for points, rows, runes := maxPoints, maxRows, maxText; ; points, rows, runes = points/2, max(rows/2, 4), runes/2 {
		if text, err = d.page(points, rows, runes); err != nil || len(text) <= MaxBytes || runes < 8 {
			return text, err
		}
	}
}

// thinned returns a copy of d whose series have about manyPoints points at most.
func (d *Document) thinned() *Document {
	thin := *d
	thin.Sections = slices.Clone(d.Sections)
	for i := range thin.Sections {
		s := &thin.Sections[i]
		s.Charts = slices.Clone(s.Charts)
		for k := range s.Charts {
			c := &s.Charts[k]
			c.Series = slices.Clone(c.Series)
			for n := range c.Series {
				c.points = max(c.points, len(c.Series[n].X))
				c.Series[n] = c.Series[n].thinned(manyPoints)
			}
		}
	}
	return &thin
}

// page returns the page with at most so many points in all charts together, rows in a table and
// runes in a text.
func (d *Document) page(points, rows, runes int) ([]byte, error) {
	series := 0
	for _, s := range d.Sections {
		for _, c := range s.Charts {
			series += len(c.Series)
		}
	}
	v := view{Document: d, Policy: policy(d.Served), Style: template.CSS(style), Script: template.JS(script),
		runes: runes}
	for _, s := range d.Sections {
		sv := sectionView{Section: s}
		for i, c := range s.Charts {
			each := min(max(points/max(series, 1), 4), 240)
			sv.Charts = append(sv.Charts, c.draw(s.Name+"-"+suffix(i), each))
		}
		for i, t := range s.Tables {
			tv := tableView{Table: t, ID: s.Name + "-table-" + suffix(i)}
			if n := len(t.Rows); n > rows {
				tv.Left, tv.Rows = n-rows, t.Rows[:rows]
			}
			sv.Tables = append(sv.Tables, tv)
		}
		v.Sections = append(v.Sections, sv)
	}
	var b bytes.Buffer
	if err := pages.Execute(&b, v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// suffix returns the nth of a, b, …, z, aa, ab, …, counted from 0.
func suffix(n int) string {
	name := ""
	for ; n >= 26; n = n/26 - 1 {
		name = string(rune('a'+n%26)) + name
	}
	return string(rune('a'+n)) + name
}

// cut returns a text of at most so many runes, without control characters: see view.Text.
func cut(text string, runes int) string {
	var b strings.Builder
	for _, c := range text {
		if runes--; runes < 0 {
			b.WriteRune('…')
			break
		}
		if unicode.IsControl(c) || unicode.In(c, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			c = '?'
		}
		b.WriteRune(c)
	}
	return b.String()
}
