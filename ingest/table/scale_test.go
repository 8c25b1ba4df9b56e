package table

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
)

// scaledColumn reads a column of numbers by a schema with this line.
func scaledColumn(t testing.TB, spec string, cells ...string) ([]float32, graph, error) {
	t.Helper()
	dir := files{"s.yaml": "nodes: [{type: a, files: n.csv, features: [x], " + spec + "}]\n" + pairs,
		"n.csv": "id,x\n" + strings.Join(numbered(cells), "\n") + "\n", "e.csv": "x,y\n0,0\n"}.write(t)
	g, err := read(dir, Options{})
	return g.rows["a/feat"], g, err
}

// numbered puts a number before each cell, so that no line is empty.
func numbered(cells []string) (lines []string) {
	for i, c := range cells {
		lines = append(lines, fmt.Sprintf("%d,%s", i, c))
	}
	return lines
}

// byDefinition scales numbers by the definitions in the documentation, in the obvious way.
func byDefinition(rule string, all []float64) (scaled []float64) {
	n := float64(len(all))
	sum, squares := 0.0, 0.0
	for _, x := range all {
		sum += x
	}
	for _, x := range all {
		squares += (x - sum/n) * (x - sum/n)
	}
	for _, x := range all {
		below, equal := 0.0, 0.0
		for _, y := range all {
			if y < x {
				below++
			} else if y == x {
				equal++
			}
		}
		rank := (below + equal/2) / n
		scaled = append(scaled, map[string]float64{
			store.ScaleStandard: (x - sum/n) / math.Sqrt(squares/n),
			store.ScaleMinMax:   (x - slices.Min(all)) / (slices.Max(all) - slices.Min(all)),
			store.ScaleLog:      math.Copysign(math.Log(1+math.Abs(x)), x),
			store.ScaleRank:     rank,
			store.ScaleQuantile: math.Sqrt2 * math.Erfinv(2*rank-1),
		}[rule])
	}
	return scaled
}

// TestScales: every scale is as it is defined, on numbers with ties, of both signs, and far beyond
// the range of 16 bits.
func TestScales(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var numbers []float64
	var cells []string
	for i := range 700 {
		x := math.Round(random.NormFloat64() * 3)
		if i%7 == 0 {
			x = random.NormFloat64() * 1e9
		}
		numbers, cells = append(numbers, x), append(cells, fmt.Sprint(x))
	}
	for _, rule := range store.Scales {
		rows, g, err := scaledColumn(t, "scale: "+rule, cells...)
		require.NoError(t, err)
		for i, want := range byDefinition(rule, numbers) {
			require.InDelta(t, want, rows[i], 1e-6*max(1, math.Abs(want)), "%s of %v", rule, numbers[i])
		}
		require.Empty(t, g.schema.Skipped)
		if rule != store.ScaleLog {
			require.Less(t, slices.Max(rows), float32(65504), "fits in 16 bits")
		}
	}
}

// TestScaleOfVectors: each number of a list has its own scale, and numbers as large as 32 bits hold
// are scaled without overflow.
func TestScaleOfVectors(t *testing.T) {
	rows, _, err := scaledColumn(t, "scale: {x: minmax}", "1;1e38", "3;-1e38", "2;0")
	require.NoError(t, err)
	require.Equal(t, []float32{0, 1, 1, 0, 0.5, 0.5}, rows)
	rows, _, err = scaledColumn(t, "scale: {x: standard}", "3e38", "-3e38")
	require.NoError(t, err)
	require.Equal(t, []float32{1, -1}, rows)
	rows, _, err = scaledColumn(t, "scale: log", "-1e30", "0", "-0", "1e30")
	require.NoError(t, err)
	require.InDelta(t, math.Log(1e30), rows[3], 1e-5)
	require.Equal(t, -rows[3], rows[0])
	require.Equal(t, []float32{0, 0}, rows[1:3])
	rows, _, err = scaledColumn(t, "scale: standard", "1700000000", "1700000001", "1700000002") // float32 has steps of 128 there
	require.NoError(t, err)
	require.InDelta(t, math.Sqrt(1.5), rows[2], 1e-6)
}

// TestScaleOfMissing: a mean and a 0 are scaled as numbers, and a 0 beside an indicator is not. A
// 0 counts in what is learnt, and the others do not.
func TestScaleOfMissing(t *testing.T) {
	for spec, want := range map[string][]float32{
		"missing: mean, scale: minmax":      {0, 1, 0.5, 0.5},
		"missing: 0, scale: minmax":         {0.2, 1, 0, 0.6},
		"missing: indicator, scale: minmax": {0, 0, 1, 0, 0, 1, 0.5, 0},
		"missing: mean, scale: rank":        {1. / 6, 5. / 6, 0.5, 0.5},
		"missing: 0, scale: rank":           {0.375, 0.875, 0.125, 0.625},
	} {
		rows, _, err := scaledColumn(t, spec, "1", "5", "", "3")
		require.NoError(t, err)
		require.Equal(t, want, rows, spec)
	}
	_, _, err := scaledColumn(t, "scale: standard", "1", "", "3")
	require.ErrorContains(t, err, "n.csv: line 3: column x: a number is missing")
}

// TestScaleOfLittle: one row, or one number in all rows, is scaled to 0, or to the middle, and a
// note says so. What is no finite number is refused with its line.
func TestScaleOfLittle(t *testing.T) {
	for rule, want := range map[string]float32{"standard": 0, "minmax": 0, "rank": 0.5, "quantile": 0, "log": float32(math.Log(6))} {
		for _, cells := range [][]string{{"5"}, {"5", "5.0", "5e0"}} {
			rows, g, err := scaledColumn(t, "scale: "+rule, cells...)
			require.NoError(t, err)
			require.Equal(t, slices.Repeat([]float32{want}, len(cells)), rows, rule)
			if rule != "log" {
				require.Equal(t, []string{"column x: a number of it is the same in all rows, so that scale: " + rule + " tells nothing; leave the column out"}, g.schema.Skipped)
			}
		}
	}
	for cell, want := range map[string]string{
		"inf": "column x: +Inf is not a finite number of 32 bits", "-1e39": "is not a finite number of 32 bits", "nan": "a number is missing", "word": `"word" is not a number`,
	} {
		_, _, err := scaledColumn(t, "scale: standard", "1", cell)
		require.ErrorContains(t, err, want, cell)
	}
	_, _, err := scaledColumn(t, "scale: standard, missing: 0", "", "nan")
	require.ErrorContains(t, err, "column x of")
	require.ErrorContains(t, err, "has no numbers in its first rows")
}

// TestScaleSchema: what cannot be scaled is refused, and a misspelt word names the nearest one.
func TestScaleSchema(t *testing.T) {
	for spec, want := range map[string]string{
		"scale: standart":                          `s.yaml: line 1: scale "standart": did you mean standard? choose standard, minmax, log, rank or quantile`,
		"scale: {x: zscore}":                       `scale "zscore": choose standard, minmax`,
		"scale: {y: log}":                          "scale y: it is not among the features; list it there as well",
		"scale: [x]":                               "one word",
		"scale: {x: log, x: log}":                  "there twice",
		"scale: {x: log}, categorical: [x]":        "scale x: it is categorical, and categories are no numbers to scale; leave it out here, or out of categorical",
		"scale: {x: log}, hash: {x: 4}":            "leave it out here, or out of hash",
		"scale: {x: log}, dates: {x: [month]}":     "scale x: of a date, only year and age are numbers to scale",
		"scale: {x: log}, max_categories: {x: 30}": "leave it out here, or out of categorical",
	} {
		_, _, err := scaledColumn(t, spec, "1", "2")
		require.ErrorContains(t, err, want, spec)
		require.NotContains(t, err.Error(), "\n")
	}
	wide := strings.Repeat("1;", 200) + "1"
	_, _, err := scaledColumn(t, "scale: rank", wide, wide)
	require.ErrorContains(t, err, "s.yaml: line 1: scale: column x: rank and quantile are for 200 numbers of a row at most; choose standard, minmax or log")
}

// TestScaleLike: tables that follow a dataset are scaled by what it learnt, to the same bits,
// whatever else is in them. The dataset keeps it as text.
func TestScaleLike(t *testing.T) {
	var n strings.Builder
	n.WriteString("a,b,c,d,v\n")
	random := rand.New(rand.NewPCG(3, 4))
	var rows []string
	for range 3000 {
		x := random.NormFloat64()
		rows = append(rows, fmt.Sprintf("%v,%v,%v,%v,%v;%v", x, x*1e-30, math.Exp(3*x), math.Exp(-x), x+1, 1/x))
	}
	n.WriteString(strings.Join(rows, "\n") + "\n")
	spec := "features: [a, b, c, d, v], scale: {a: standard, b: minmax, c: rank, d: log, v: quantile}, missing: {a: mean, v: indicator}"
	dir := files{"s.yaml": "nodes: [{type: a, files: n.csv, " + spec + "}]\n" + pairs, "n.csv": n.String(), "e.csv": "x,y\n0,0\n"}.write(t)
	want, err := read(dir, Options{})
	require.NoError(t, err)
	l := learnt(t, dir)
	text, err := l.Encodings.Encode()
	require.NoError(t, err)
	l.Encodings, err = store.DecodeEncodings(text)
	require.NoError(t, err)
	for _, spec := range []string{"features: [d, v, c, b, a]", spec, "features: [v, a, b, c, d], scale: {c: rank}"} {
		g, err := follows(t, l, spec, "a,b,c,d,v\n"+strings.Join(rows[2990:], "\n")+"\n,0,0,0,\n")
		require.NoError(t, err, spec)
		all := want.rows["a/feat"]
		require.Equal(t, all[2990*7:], g.rows["a/feat"][:70])
		require.Equal(t, []float32{0, 0, 1}, g.rows["a/feat"][74:])
		require.InDelta(t, 0, g.rows["a/feat"][70], 1e-6, "the mean")
	}
	again, err := read(dir, Options{Like: l})
	require.NoError(t, err)
	require.Equal(t, want.rows, again.rows)
	for spec, want := range map[string]string{
		"features: [a, b, c, d, v], scale: minmax":      "column a is scaled by standard there; write scale: {a: standard}, or leave it out of scale",
		"features: [a, b, c, d, v], categorical: [a]":   "column a is a number there; leave it out of categorical",
		"features: [a, b, c, d, v], hash: {c: 7}":       "column c is a number there; leave it out of hash",
		"features: [a, b, c, d, v], dates: {c: [year]}": "column c is a number there, and no date; leave it out of dates",
	} {
		_, err := follows(t, l, spec, "a,b,c,d,v\n"+rows[0]+"\n")
		require.ErrorContains(t, err, want, spec)
	}
}

// TestScaleOfEdges: features of edges are scaled like features of nodes.
func TestScaleOfEdges(t *testing.T) {
	g, err := read(files{"s.yaml": "edges: [{type: \"n:to:n\", files: e.csv, src: a, dst: b, features: [x], scale: minmax}]\n",
		"e.csv": "a,b,x\n0,1,2\n1,0,6\n1,1,3\n"}.write(t), Options{})
	require.NoError(t, err)
	require.Equal(t, []float32{0, 1, 0.25}, g.rows["n__to__n/feat"])
}

// TestSketch: with more numbers than are kept, ranks are within 0.3 % of the true ones on each kind
// of distribution, and the result depends on the order of the rows alone.
func TestSketch(t *testing.T) {
	const n = 60_000
	random := rand.New(rand.NewPCG(5, 6))
	for name, draw := range map[string]func(i int) float64{
		"normal":    func(int) float64 { return random.NormFloat64() },
		"rising":    func(i int) float64 { return float64(i) },
		"falling":   func(i int) float64 { return -float64(i * i) },
		"tail":      func(int) float64 { return math.Exp(4 * random.NormFloat64()) },
		"near":      func(i int) float64 { return 1.7e9 + float64(i%5000)*1e-3 },
		"an atom":   func(i int) float64 { return max(0, random.NormFloat64()-1.5) },
		"two atoms": func(i int) float64 { return float64(i%3%2) + float64(i%1000/999)*random.Float64() },
		"few":       func(i int) float64 { return float64(i * i % 997) },
	} {
		numbers := make([]float64, n)
		var s, again sketch
		for i := range numbers {
			numbers[i] = draw(i)
			s.add(numbers[i])
		}
		for _, x := range numbers {
			again.add(x)
		}
		of := s.scaling()
		require.Equal(t, of, again.scaling(), name)
		require.LessOrEqual(t, len(of.Knots), store.MaxKnots, name)
		require.Less(t, len(s.levels), 8)
		slices.Sort(numbers)
		require.Equal(t, []float64{numbers[0], numbers[n-1]}, []float64{of.Knots[0], of.Knots[len(of.Knots)-1]}, name)
		tolerance := 0.003
		if name == "few" {
			tolerance = 1e-12
		}
		for i := 0; i < n; i += 37 {
			low, _ := slices.BinarySearch(numbers, numbers[i])
			high, _ := slices.BinarySearch(numbers, math.Nextafter(numbers[i], math.Inf(1)))
			require.InDelta(t, float64(low+high)/2/n, of.Share(numbers[i]), tolerance, "%s: %v", name, numbers[i])
		}
	}
}

// TestScaleSkipsBadRows: nothing is learnt from a row that is passed over.
func TestScaleSkipsBadRows(t *testing.T) {
	dir := files{"s.yaml": "nodes: [{type: a, files: n.csv, id: id, features: [x, y], scale: minmax}]\n" + pairs,
		"n.csv": "id,x,y\n0,1,1\n1,900,what\n2,3,5\n", "e.csv": "x,y\n0,0\n"}.write(t)
	g, err := read(dir, Options{SkipBad: 1})
	require.NoError(t, err)
	require.Equal(t, []float32{0, 0, 1, 1}, g.rows["a/feat"])
	s, err := Open(filepath.Join(dir, "s.yaml"), Options{SkipBad: 1})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// TestLearnFrom: means, scales and newest dates are learnt from the training rows alone, where the
// schema says so.
func TestLearnFrom(t *testing.T) {
	open := func(spec string) (graph, error) {
		return read(files{"s.yaml": "nodes: [{type: a, files: n.csv, features: [x, y, on], dates: {on: [age]}, missing: {x: mean}, scale: {x: minmax, y: rank}, " + spec + "}]\n" + pairs,
			"n.csv": "x,y,on,part,m\n1,7,2020-01-01,train,1\n900,9,2024-01-01,test,0\n3,8,2021-01-01,train,1\n,1,2019-01-01,,0\n", "e.csv": "x,y\n0,0\n"}.write(t), Options{})
	}
	for _, spec := range []string{"split: part, learn_from: train", "masks: {train: m}, learn_from: train"} {
		g, err := open(spec)
		require.NoError(t, err, spec)
		year := float32(366 / 365.25)
		require.InDeltaSlice(t, []float32{0, 0.25, year, 449.5, 0.75, -1095 / 365.25, 1, 0.75, 0, 0.5, 0.25, 731 / 365.25}, g.rows["a/feat"], 1e-6, spec)
	}
	g, err := open("split: part, learn_from: all")
	require.NoError(t, err)
	require.InDelta(t, 1, g.rows["a/feat"][3], 1e-6)
	for spec, want := range map[string]string{
		"learn_from: train":              "learn_from: train: the rows do not say which of them train; name their column with split, or with masks",
		"split: part, learn_from: trian": `learn_from "trian": did you mean train? choose all or train`,
	} {
		_, err := open(spec)
		require.ErrorContains(t, err, want)
	}
	_, err = read(files{"s.yaml": "nodes: [{type: a, files: n.csv, features: [x], scale: standard, split: p, learn_from: train}]\n" + pairs,
		"n.csv": "x,p\n1,test\n", "e.csv": "x,y\n0,0\n"}.write(t), Options{})
	require.ErrorContains(t, err, "scale: column x has no number to learn standard from; leave the column out")
}

// BenchmarkScale measures what a rule costs for each number: to learn it, and to apply it.
func BenchmarkScale(b *testing.B) {
	random := rand.New(rand.NewPCG(7, 8))
	numbers := make([]float64, 1<<16)
	for i := range numbers {
		numbers[i] = math.Exp(random.NormFloat64())
	}
	for _, rule := range store.Scales {
		s := &scaler{word: word{text: rule}}
		learn := func() {
			s.begin()
			for i := range numbers {
				s.learn(numbers[i : i+1])
			}
			s.settle()
		}
		learn()
		b.Run("learn/rule="+rule, func(b *testing.B) {
			for b.Loop() {
				learn()
			}
			b.ReportMetric(float64(b.N)*float64(len(numbers))/b.Elapsed().Seconds(), "rows/s")
		})
		b.Run("apply/rule="+rule, func(b *testing.B) {
			sum := 0.0
			for b.Loop() {
				for _, x := range numbers {
					sum += s.scale(0, x)
				}
			}
			b.ReportMetric(float64(b.N)*float64(len(numbers))/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
