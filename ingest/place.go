package ingest

import "fmt"

// Place is the origin of a chunk, for messages: row First+i of File is the chunk's i-th.
type Place struct {
	File  string
	First int64 // number of the chunk's first row in its section, from 0
	Lines Lines // of the rows, where File is a text of lines
}

// Lines knows the lines of a chunk's rows, from 1. Usually each row is on the line behind the row
// before it, so a few entries are enough.
type Lines struct{ runs []lineRun }

// lineRun holds rows on lines that follow each other.
type lineRun struct {
	row  int   // the first
	line int64 // its line
}

// Add notes the line of a row. Rows are added in their order.
func (l *Lines) Add(row int, line int64) {
	if n := len(l.runs); n > 0 {
		if last := l.runs[n-1]; last.line+int64(row-last.row) == line {
			return
		}
	}
	l.runs = append(l.runs, lineRun{row, line})
}

// of returns the line of a row, 0 if it is not known.
func (l *Lines) of(row int) (line int64) {
	for _, r := range l.runs {
		if r.row <= row {
			line = r.line + int64(row-r.row)
		}
	}
	return line
}

// Edge names the file and the i-th edge or event of a chunk: by its line if it has one, and else by
// its number from 1. what is "edge" or "event".
func (p *Place) Edge(i int, what string) string {
	if line := p.Lines.of(i); line > 0 {
		return fmt.Sprintf("%s: line %d", p.File, line)
	}
	return fmt.Sprintf("%s: %s %d (counting from 1)", p.File, what, p.First+int64(i)+1)
}

// Row names the file and the i-th row of a chunk: by its line if it has one, and else by its number
// from 0, as arrays and nodes are numbered.
func (p *Place) Row(i int) string {
	if line := p.Lines.of(i); line > 0 {
		return fmt.Sprintf("%s: line %d", p.File, line)
	}
	return fmt.Sprintf("%s: row %d (counting from 0)", p.File, p.First+int64(i))
}
