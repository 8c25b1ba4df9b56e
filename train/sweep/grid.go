package sweep

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/store/setting"
)

// MostRuns is the largest number of runs of a sweep.
const MostRuns = 10000

// Grid has the options of a sweep, fixed and varying. [NewGrid] makes an empty one, and [Grid.Take]
// fills it.
type Grid struct {
	Dataset string
	Run     string           // directory; empty: the caller chooses
	Fixed   []setting.Choice // options with one value
	Axes    []Axis           // options that vary, in the order of the file
	Trials  int              // settings drawn at random; 0: all combinations
	Seeds   int              // runs of each setting, by as many seeds from the option seed on
	Halving *Halving         // nil: all settings train to their end

	seed  uint64          // the option seed
	lines map[string]int  // by key, the line that set it; 0: a flag
	kept  map[string]bool // keys that lines of a file do not replace
}

// Axis is an option that varies: over Texts, or within a range.
type Axis struct {
	Key, Flag string
	Texts     []string // the values, as the flag prints them; nil: Range has the values
	Range     Range
}

// Range is an interval to draw numbers from.
type Range struct {
	Kind      string // one of rangeKinds
	Low, High float64
}

// Kinds of ranges. Numbers of Log and LogInt have evenly distributed logarithms.
const (
	Uniform = "uniform"
	Log     = "log"
	Int     = "int"
	LogInt  = "log_int"
)

var rangeKinds = []string{Uniform, Log, Int, LogInt}

// whole reports whether all numbers of the range are whole.
func (r Range) whole() bool { return r.Kind == Int || r.Kind == LogInt }

// String describes the values of the axis.
func (a Axis) String() string {
	if a.Texts != nil {
		return strings.Join(a.Texts, ", ")
	}
	return fmt.Sprintf("%s %s to %s", a.Range.Kind, floatText(a.Range.Low), floatText(a.Range.High))
}

func floatText(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// size returns the number of values of the axis, or 0 if they are too many to count.
func (a Axis) size() uint64 {
	switch {
	case a.Texts != nil:
		return uint64(len(a.Texts))
	case a.Range.whole():
		return uint64(a.Range.High-a.Range.Low) + 1
	}
	return 0
}

// Setting is one choice of a value for each axis. Numbers count from 1.
type Setting struct {
	Number  int
	Choices []setting.Choice
}

// String writes the choices, each option as its key in braces.
func (s Setting) String() string {
	var all []string
	for _, c := range s.Choices {
		all = append(all, "{"+c.Key+"} "+c.Text)
	}
	return strings.Join(all, " ")
}

// Settings returns all combinations, with the last axis varying fastest, or Trials drawn ones. A
// drawn setting depends on the seed, its number and the axes. So more trials add settings, and
// leave the first ones as they are.
func (g *Grid) Settings() ([]Setting, error) {
	if g.Trials > 0 {
		return g.drawn()
	}
	for _, a := range g.Axes {
		if a.Texts == nil {
			return nil, fmt.Errorf("%s has a range; give the number of settings to draw by trials: N", a.Flag)
		}
	}
	n, many := g.count()
	if err := g.tooMany(n, many); err != nil {
		return nil, err
	}
	settings := make([]Setting, n)
	for i := range settings {
		settings[i] = Setting{i + 1, make([]setting.Choice, len(g.Axes))}
		rest := i
		for k, a := range slices.Backward(g.Axes) {
			settings[i].Choices[k] = a.choice(a.Texts[rest%len(a.Texts)])
			rest /= len(a.Texts)
		}
	}
	return settings, nil
}

func (a Axis) choice(text string) setting.Choice {
	return setting.Choice{Key: a.Key, Flag: a.Flag, Text: text}
}

// count returns the number of different settings. many is set if they are beyond counting.
func (g *Grid) count() (n uint64, many bool) {
	n = 1
	for _, a := range g.Axes {
		high, low := bits.Mul64(n, a.size())
		if a.size() == 0 || high > 0 {
			return 0, true
		}
		n = low
	}
	return n, false
}

// tooMany returns an error if n settings, or many, need more than MostRuns runs.
func (g *Grid) tooMany(n uint64, many bool) error {
	switch {
	case !many && n <= MostRuns/uint64(g.Seeds):
		return nil
	case many:
		return fmt.Errorf("the grid has more than %d settings, and a sweep has at most %d runs; draw some at random by trials: N", uint64(math.MaxUint64), MostRuns)
	case g.Seeds > 1:
		return fmt.Errorf("%d settings by %d seeds: a sweep has at most %d runs; try fewer values, or draw settings at random by trials: N", n, g.Seeds, MostRuns)
	}
	return fmt.Errorf("%d settings: a sweep has at most %d runs; try fewer values, or draw settings at random by trials: N", n, MostRuns)
}

// mostDraws bounds the draws of one setting, since a draw may repeat an earlier setting.
const mostDraws = 10000

// drawn draws Trials different settings.
func (g *Grid) drawn() ([]Setting, error) {
	if err := g.tooMany(uint64(g.Trials), false); err != nil {
		return nil, err
	}
	if n, many := g.count(); !many && n < uint64(g.Trials) {
		return nil, fmt.Errorf("trials %d: there are %d different settings; give at most as many, or for lists leave trials out", g.Trials, n)
	}
	var settings []Setting
	seen := map[string]bool{}
	for i := range g.Trials {
		for draw := 0; ; draw++ {
			if draw == mostDraws {
				return nil, fmt.Errorf("trials %d: only %d different settings were found; give wider ranges, or fewer trials", g.Trials, i)
			}
			s := Setting{Number: i + 1}
			for _, a := range g.Axes {
				s.Choices = append(s.Choices, a.choice(a.draw(g.random(a, i, draw))))
			}
			if text := s.String(); !seen[text] {
				seen[text] = true
				settings = append(settings, s)
				break
			}
		}
	}
	return settings, nil
}

// random returns the source of random numbers for an axis, a trial and a draw.
func (g *Grid) random(a Axis, trial, draw int) *rand.Rand {
	return rand.New(rand.NewPCG(g.seed, xxh3.HashString(fmt.Sprintf("%s %d %d", a.Key, trial, draw))))
}

// drawnDigits is the number of digits of a drawn fraction. Few digits keep commands readable.
const drawnDigits = 4

// draw draws a value of the axis, as text.
func (a Axis) draw(r *rand.Rand) string {
	if a.Texts != nil {
		return a.Texts[r.IntN(len(a.Texts))]
	}
	low, high := a.Range.Low, a.Range.High
	var x float64
	switch a.Range.Kind {
	case Uniform:
		x = low + r.Float64()*(high-low)
	case Log, LogInt:
		x = math.Exp(math.Log(low) + r.Float64()*(math.Log(high)-math.Log(low)))
	case Int:
		return strconv.FormatInt(int64(low)+int64(r.Uint64N(a.size())), 10)
	}
	if a.Range.Kind == LogInt {
		return strconv.FormatInt(int64(min(max(math.Round(x), low), high)), 10)
	}
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', drawnDigits, 64), 64)
	return floatText(min(max(x, low), high))
}
