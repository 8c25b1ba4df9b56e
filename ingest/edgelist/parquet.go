package edgelist

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/parquet"
)

// isParquet reports whether a file is Parquet by its name.
func isParquet(path string) bool {
	ext := strings.ToLower(filepath.Ext(path))
	return ext == ".parquet" || ext == ".pq"
}

// openParquet opens a Parquet file as the text that it would be with commas and a header: line 2 is
// its first row. A list is a vector in brackets. Columns that cannot be read are empty.
func openParquet(path string) (*lines.Scanner, *parquet.File, error) {
	f, err := parquet.Open(path)
	if err != nil {
		return nil, nil, err
	}
	p := &parquetText{file: f}
	for i, c := range f.Columns() {
		p.quote([]byte(c.Name))
		p.comma(i)
		if c.Kind != parquet.Null {
			p.columns = append(p.columns, i)
		}
	}
	p.rows, p.cells = f.Rows(p.columns), make([]parquet.Value, len(p.columns))
	in, err := lines.NewMade(path, p)
	if err != nil {
		f.Close()
	}
	return in, f, err
}

// parquetText reads a Parquet file as text.
type parquetText struct {
	file    *parquet.File
	rows    *parquet.Rows
	columns []int // that are read
	cells   []parquet.Value
	text    []byte
	given   int // of text
}

func (p *parquetText) Read(b []byte) (int, error) {
	for p.given == len(p.text) {
		p.text, p.given = p.text[:0], 0
		if err := p.row(); err == io.EOF {
			return 0, err
		} else if err != nil {
			return 0, errors.New(strings.TrimPrefix(err.Error(), p.file.Name()+": ")) // which lines says
		}
	}
	n := copy(b, p.text[p.given:])
	p.given += n
	return n, nil
}

func (p *parquetText) row() error {
	if err := p.rows.Next(p.cells); err != nil {
		return err
	}
	next := 0
	for i := range p.file.Columns() {
		if next < len(p.columns) && p.columns[next] == i {
			switch c := &p.cells[next]; c.Kind {
			case parquet.Int:
				p.text = strconv.AppendInt(p.text, c.Int, 10)
			case parquet.Float:
				verb := byte('g')
				if _, whole := lines.Whole(c.Float); whole {
					verb = 'f' // with all digits, as an id has them
				}
				p.text = strconv.AppendFloat(p.text, c.Float, verb, -1, 64)
			case parquet.Text:
				p.quote(c.Text)
			case parquet.List:
				p.text = append(p.text, '[')
				for k, x := range c.List {
					if k > 0 {
						p.text = append(p.text, ' ')
					}
					p.text = strconv.AppendFloat(p.text, x, 'g', -1, 64)
				}
				p.text = append(p.text, ']')
			}
			next++
		}
		p.comma(i)
	}
	return nil
}

// comma ends cell i of a row.
func (p *parquetText) comma(i int) {
	if i == len(p.file.Columns())-1 {
		p.text = append(p.text, '\n')
	} else {
		p.text = append(p.text, ',')
	}
}

// quote appends a cell that may hold anything.
func (p *parquetText) quote(cell []byte) {
	p.text = append(p.text, '"')
	p.text = append(p.text, bytes.ReplaceAll(cell, []byte{'"'}, []byte(`""`))...)
	p.text = append(p.text, '"')
}
