package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// turns is a comparison. Its sides do the same work in turns: A, B, A, B. Its columns are the
// figures that a table shows. T has the figures of a turn. A new comparison is a list of sides, a
// list of columns and a line that names what was compared.
type turns[T any] struct {
	sides   []*side[T]
	columns []column[T]
	check   func(s *side[T], turn T) error  // after each turn; nil: nothing has to hold
	after   func(ctx context.Context) error // after each round; nil: nothing
}

// side is one way to do the work.
type side[T any] struct {
	name  string
	turn  func(ctx context.Context) (T, error)
	base  *side[T] // whose figures columns compare with; nil: they show no ratios
	turns []T      // measured, one a round
}

// column is a figure of a turn.
type column[T any] struct {
	name, format string
	of           func(turn T) float64
	show         func(format string, own, base series) string // nil: series.spread; base is nil where there is none
	text         func(turn T) string                          // of the last turn, instead of a figure
}

// run lets each side have so many turns.
func (t *turns[T]) run(ctx context.Context, rounds int) error {
	for range rounds {
		for _, s := range t.sides {
			turn, err := s.turn(ctx)
			if err == nil {
				s.turns = append(s.turns, turn)
			}
			if err == nil && t.check != nil {
				err = t.check(s, turn)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		if t.after == nil {
			continue
		}
		if err := t.after(ctx); err != nil {
			return err
		}
	}
	return nil
}

// figures has the column's figure of each turn of s.
func (t *turns[T]) figures(s *side[T], column int) series {
	all := make(series, len(s.turns))
	for i, turn := range s.turns {
		all[i] = t.columns[column].of(turn)
	}
	return all
}

// over divides the figures of a by the figures of b.
func (t *turns[T]) over(a, b *side[T], column int) series {
	return t.figures(a, column).over(t.figures(b, column))
}

// print prints a table with a row for each side.
func (t *turns[T]) print(w io.Writer, first string) {
	t.head(w, first)
	for _, s := range t.sides {
		t.row(w, s)
	}
}

// head begins a table whose first column has the names.
func (t *turns[T]) head(w io.Writer, first string) {
	columns := "| " + strings.TrimPrefix(first+" |", " ")
	for _, c := range t.columns {
		columns += " " + c.name + " |"
	}
	tableHead(w, columns)
}

// row prints the row of s.
func (t *turns[T]) row(w io.Writer, s *side[T]) {
	fmt.Fprintf(w, "| %s |%s\n", s.name, t.cells(s))
}

// cells returns the cells of s, but for its name.
func (t *turns[T]) cells(s *side[T]) (cells string) {
	for i, c := range t.columns {
		if c.text != nil {
			cells += " " + c.text(s.turns[len(s.turns)-1]) + " |"
			continue
		}
		own, base := t.figures(s, i), series(nil)
		if s.base != nil {
			base = t.figures(s.base, i)
		}
		if c.show == nil {
			c.show = spread
		}
		cells += strings.TrimSuffix(" "+c.show(c.format, own, base), " ") + " |"
	}
	return cells
}

// ratios prints a row of ratios, turn by turn.
func ratios(w io.Writer, name string, all ...series) {
	fmt.Fprintf(w, "| %s |", name)
	for _, r := range all {
		fmt.Fprintf(w, " %s |", r.spread("%.2f"))
	}
	fmt.Fprintln(w)
}

// The ways to show the figures of a column.
func spread(format string, own, _ series) string { return own.spread(format) }

func last(format string, own, _ series) string { return fmt.Sprintf(format, own[len(own)-1]) }

// beside shows the median and, in brackets, the median of its ratio to the base.
func beside(format string, own, base series) string {
	return fmt.Sprintf(format+" (%.2f)", own.median(), own.over(base).median())
}

func ratio(format string, own, base series) string { return own.over(base).spread(format) }

// inverse shows the ratio of the base to the side, and nothing of a side without a base.
func inverse(format string, own, base series) string {
	if base == nil {
		return ""
	}
	return base.over(own).spread(format)
}

// series has repeated measurements of one thing.
type series []float64

func (s series) sorted() series { return slices.Sorted(slices.Values(s)) }

// median is the middle one, or the mean of the two in the middle.
func (s series) median() float64 {
	v := s.sorted()
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// over divides each measurement of s by the one of t in the same turn. That cancels noise that
// lasts longer than a turn.
func (s series) over(t series) series {
	r := make(series, len(s))
	for i := range s {
		r[i] = s[i] / t[i]
	}
	return r
}

// times multiplies every measurement.
func (s series) times(factor float64) series {
	r := make(series, len(s))
	for i := range s {
		r[i] = factor * s[i]
	}
	return r
}

// spread prints the median and, in brackets, the smallest and the largest.
func (s series) spread(format string) string {
	v := s.sorted()
	return fmt.Sprintf(format+" ("+format+"–"+format+")", s.median(), v[0], v[len(v)-1])
}
