package graphfile

import "bytes"

// rowText reads rows, which next makes one by one, as text.
type rowText struct {
	next  func(text []byte) ([]byte, error) // appends a row; io.EOF after the last
	text  []byte
	given int // of text
	err   error
}

// textBytes is the text that is made before it is read.
const textBytes = 32 << 10

func newRows(header string, next func(text []byte) ([]byte, error)) *rowText {
	return &rowText{next: next, text: append([]byte(header), '\n')}
}

func (r *rowText) Read(b []byte) (int, error) {
	if r.given == len(r.text) {
		r.text, r.given = r.text[:0], 0
	}
	for r.err == nil && len(r.text) < textBytes {
		r.text, r.err = r.next(r.text)
	}
	if r.given == len(r.text) {
		return 0, r.err
	}
	n := copy(b, r.text[r.given:])
	r.given += n
	return n, nil
}

// appendRow appends cells without commas and quotes as a row.
func appendRow(text []byte, cells ...[]byte) []byte {
	for i, cell := range cells {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, cell...)
	}
	return append(text, '\n')
}

// appendQuoted appends a cell in quotes, which may hold anything.
func appendQuoted(text, cell []byte) []byte {
	text = append(text, '"')
	for {
		quote := bytes.IndexByte(cell, '"')
		if quote < 0 {
			return append(append(text, cell...), '"')
		}
		text = append(append(text, cell[:quote+1]...), '"')
		cell = cell[quote+1:]
	}
}

// appendHeader returns the header with names.
func appendHeader(names []string) string {
	var text []byte
	for i, name := range names {
		if i > 0 {
			text = append(text, ',')
		}
		text = appendQuoted(text, []byte(name))
	}
	return string(text)
}
