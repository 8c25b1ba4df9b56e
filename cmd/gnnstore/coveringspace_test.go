package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// choice is a value of a flag. With the flag "" it is a kind of data.
type choice struct{ flag, value string }

func (c choice) String() string {
	if c.flag == "" {
		return "data (" + c.value + ")"
	}
	return "--" + c.flag + "=" + c.value
}

// share is one of several equal parts of all pairs. The zero value has all pairs.
type share struct{ part, parts int }

func (s share) has(pair [2]int) bool { return s.parts == 0 || (pair[0]+pair[1])%s.parts == s.part }

// UnmarshalText reads PART/PARTS.
func (s *share) UnmarshalText(text []byte) error {
	if _, err := fmt.Sscanf(string(text), "%d/%d", &s.part, &s.parts); err != nil || s.part < 0 || s.part >= s.parts {
		return fmt.Errorf("%q is not PART/PARTS, such as 0/2", text)
	}
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (s share) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%d/%d", s.part, s.parts), nil }

// space has the choices of a command, and the pairs of different flags that a run had or a refusal
// named.
type space struct {
	command string
	share   share // only pairs of this share count
	choices []choice
	index   map[choice]int
	made    map[[2]int]bool // pairs that a run had
	refused map[[2]int]bool // pairs that were refused by the name of one of them
	open    int
}

func newSpace(command string, meets share, covered map[string][]string, others ...choice) *space {
	s := &space{command: command, share: meets, choices: others, index: map[choice]int{}, made: map[[2]int]bool{}, refused: map[[2]int]bool{}}
	for _, name := range slices.Sorted(maps.Keys(covered)) {
		for _, value := range covered[name] {
			s.choices = append(s.choices, choice{name, value})
		}
	}
	for i, c := range s.choices {
		s.index[c] = i
		for _, d := range s.choices[:i] {
			if _, open := s.pair(c, d); open {
				s.open++
			}
		}
	}
	return s
}

// pair returns the key of two choices. open reports whether neither a run nor a refusal has covered
// them.
func (s *space) pair(a, b choice) (key [2]int, open bool) {
	key = [2]int{min(s.index[a], s.index[b]), max(s.index[a], s.index[b])}
	return key, a.flag != b.flag && s.share.has(key) && !s.made[key] && !s.refused[key]
}

// cover marks all pairs of have as run, and returns how many were open.
func (s *space) cover(have []choice) (fresh int) {
	for i, a := range have {
		for _, b := range have[:i] {
			if key, open := s.pair(a, b); open {
				s.made[key] = true
				fresh++
			}
		}
	}
	s.open -= fresh
	return fresh
}

// pick adds up to most choices to have. It prefers choices with many open pairs among them.
func (s *space) pick(rng *rand.Rand, have []choice, most int, barred func(have []choice, c choice) bool) []choice {
	taken := map[string]bool{}
	for _, c := range have {
		taken[c.flag] = true
	}
	for len(have) < most {
		best, score := choice{}, 0
		for range 24 {
			c := s.choices[rng.IntN(len(s.choices))]
			if c.flag == "" || taken[c.flag] || barred(have, c) {
				continue
			}
			fresh := 0
			for _, h := range have {
				if _, open := s.pair(c, h); open {
					fresh++
				}
			}
			if fresh > score {
				best, score = c, fresh
			}
		}
		if score == 0 {
			break
		}
		for _, c := range append(companions[best.flag], best) {
			if !taken[c.flag] && s.known(c) {
				have, taken[c.flag] = append(have, c), true
			}
		}
	}
	return have
}

// known reports whether the command has a choice.
func (s *space) known(c choice) bool {
	_, ok := s.index[c]
	return ok
}
