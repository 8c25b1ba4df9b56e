package main

import (
	"fmt"
	"slices"
)

// series has repeated measurements of one thing.
type series []float64

func (s series) sorted() series { return slices.Sorted(slices.Values(s)) }

// median is the middle one, or the mean of the two in the middle.
func (s series) median() float64 {
	v := s.sorted()
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// over is, for every measurement of s, its ratio to the one of t that was its turn: noise that
// lasts longer than a turn falls out.
func (s series) over(t series) series {
	r := make(series, len(s))
	for i := range s {
		r[i] = s[i] / t[i]
	}
	return r
}

// spread prints the median and, in brackets, the smallest and the largest.
func (s series) spread(format string) string {
	v := s.sorted()
	return fmt.Sprintf(format+" ("+format+"–"+format+")", s.median(), v[0], v[len(v)-1])
}
