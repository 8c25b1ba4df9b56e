package build

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// telling is a source with named columns. It fills missing numbers with 0.
type telling struct {
	*fake
	columns []store.Encoding
	read    int // rows, by those who want gaps
}

func (s *telling) Extras() ingest.Extras {
	return ingest.Extras{Describe: s.Describe, UnfilledRows: s.UnfilledRows}
}

func (s *telling) Describe() ingest.Description {
	return ingest.Description{Tables: [][]store.Encoding{s.columns}}
}

func (s *telling) Rows(ctx context.Context, i int, emit func(ingest.RowChunk) error) error {
	return s.fake.Rows(ctx, i, func(c ingest.RowChunk) error {
		values := make([]float32, len(c.Values))
		for k, x := range c.Values {
			if x == x {
				values[k] = x
			}
		}
		return emit(ingest.RowChunk{Place: c.Place, Values: values})
	})
}

func (s *telling) UnfilledRows(ctx context.Context, i int, emit func(ingest.RowChunk) error) error {
	return s.fake.Rows(ctx, i, func(c ingest.RowChunk) error {
		s.read += len(c.Values) / s.schema.Tables[i].Dim
		return emit(c)
	})
}

// tellingOf returns a source of n nodes, each with a class and a row.
func tellingOf(n int, columns []store.Encoding, class func(v int) int32, row func(v int) []float32) *telling {
	f := &fake{
		schema: ingest.Schema{
			Name: "told", NodeTypes: []ingest.NodeType{{Name: "user", Count: int64(n)}}, Relations: []ingest.Relation{{Src: "user", Name: "knows", Dst: "user", Edges: 1}},
			Tables: []ingest.Table{{Name: "feat", NodeType: "user", Dim: len(row(0))}}, Labels: []ingest.Label{{Name: "label", NodeType: "user"}},
		},
		edges: map[int][][2]int64{0: {{0, 1}}}, rows: map[int][]float32{}, labels: map[int][]int32{}, chunk: 1000,
	}
	for v := range n {
		f.labels[0], f.rows[0] = append(f.labels[0], class(v)), append(f.rows[0], row(v)...)
	}
	return &telling{fake: f, columns: columns}
}

func number(name string) store.Encoding {
	return store.Encoding{Name: name, Kind: store.NumberColumn, Width: 1}
}

func ofLeak(t *testing.T, s *telling, o Options) (*Report, error) {
	o.Split, o.DType = "random:0.6/0.2/0.2", F32
	return Build(context.Background(), s, filepath.Join(t.TempDir(), "x.gnn"), o)
}

// TestLeaksAreRefused: a column of any kind that tells the label is refused, also in disguise.
func TestLeaksAreRefused(t *testing.T) {
	class := func(v int) int32 { return int32(v * 7 % 3) }
	noise := func(v int) float32 { return float32(rand.New(rand.NewPCG(1, uint64(v))).NormFloat64()) }
	hot := func(i int32) []float32 { r := make([]float32, 3); r[i] = 1; return r }
	nan := float32(math.NaN())
	category := store.Encoding{Name: "plan", Kind: store.CategoryColumn, Encoder: store.OneHot, Width: 3, Categories: []string{"a", "b", "c"}}
	index := store.Encoding{Name: "plan", Kind: store.CategoryColumn, Encoder: store.CategoryIndex, Width: 1, Categories: []string{"a", "b", "c"}}
	for name, c := range map[string]struct {
		columns []store.Encoding
		row     func(v int) []float32
		column  string // in the message
	}{
		"a number":                 {[]store.Encoding{number("age"), number("plan")}, func(v int) []float32 { return []float32{noise(v), 5 - 2*float32(class(v))} }, "column plan"},
		"a category in columns":    {[]store.Encoding{category, number("age")}, func(v int) []float32 { return append(hot((class(v)+1)%3), noise(v)) }, "column plan"},
		"a category by its number": {[]store.Encoding{index, number("age")}, func(v int) []float32 { return []float32{float32((class(v) + 2) % 3), noise(v)} }, "column plan"},
		"what is missing": {[]store.Encoding{number("age"), number("plan")}, func(v int) []float32 {
			return []float32{noise(v), []float32{nan, 0, 1}[class(v)]} // filled with 0, it has two values
		}, "column plan"},
		"a column without a name": {nil, func(v int) []float32 { return []float32{noise(v), float32(class(v)), 7} }, "column feat:1"},
		"a row of all columns":    {nil, func(v int) []float32 { return append(hot(class(v)), 7) }, "columns of table feat together"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ofLeak(t, tellingOf(300, c.columns, class, c.row), Options{})
			require.ErrorContains(t, err, c.column)
			require.ErrorContains(t, err, "at all 300 nodes that have one, so a network would read what it is to learn; leave it out of the features, or say {allow_leak} ")
			require.NotContains(t, err.Error(), "\n")
			_, allow, _ := strings.Cut(err.Error(), "{allow_leak} ")
			r, err := ofLeak(t, tellingOf(300, c.columns, class, c.row), Options{AllowLeak: []string{allow}})
			require.NoError(t, err)
			require.Contains(t, strings.Join(r.Notes, "\n"), "{allow_leak} "+allow+" lets it be")
		})
	}
	_, err := ofLeak(t, tellingOf(300, nil, class, func(v int) []float32 { return []float32{noise(v)} }), Options{AllowLeak: []string{"plan"}})
	require.ErrorContains(t, err, "{allow_leak} plan: there is no column of that name among the features")
}

// TestLeaksOfNumbers: a column that equals the number to learn, but for scale and offset, is
// refused.
func TestLeaksOfNumbers(t *testing.T) {
	price := func(v int) float32 { return float32(rand.New(rand.NewPCG(2, uint64(v))).NormFloat64()) * 40 }
	bits := func(v int) int32 { return int32(math.Float32bits(price(v))) }
	s := tellingOf(200, []store.Encoding{number("age"), number("cents")}, bits, func(v int) []float32 { return []float32{float32(v), 3 - 100*price(v)} })
	s.schema.Labels[0].Numbers = true
	_, err := ofLeak(t, s, Options{})
	require.ErrorContains(t, err, "column cents is the label, but for scale and offset, at all 200 nodes that have one")
	s = tellingOf(200, []store.Encoding{number("age"), number("cents")}, bits, func(v int) []float32 {
		return []float32{float32(v), 3 - 100*price(v) + float32(v%5)}
	})
	s.schema.Labels[0].Numbers = true
	r, err := ofLeak(t, s, Options{})
	require.NoError(t, err)
	require.Contains(t, strings.Join(r.Notes, "\n"), "column cents goes with the label nearly as a line does")
	for _, few := range []int{10, 16} { // 2/10! is more than 1e-12, and 2/16! less
		s = tellingOf(few, []store.Encoding{number("cents")}, bits, func(v int) []float32 { return []float32{price(v) / 8} })
		s.schema.Labels[0].Numbers = true
		r, err = ofLeak(t, s, Options{})
		if few == 16 {
			require.ErrorContains(t, err, "column cents is the label, but for scale and offset, at all 16 nodes")
			continue
		}
		require.NoError(t, err)
		require.Contains(t, strings.Join(r.Notes, "\n"), "that may be chance, since they are few")
	}
}

// TestHonestFeaturesAreNotRefused: columns that tell much of the label, or all of it by chance, are
// taken.
func TestHonestFeaturesAreNotRefused(t *testing.T) {
	class := func(v int) int32 { return int32(v % 2) }
	column := []store.Encoding{number("x")}
	// A column that is one to one but for the last of many nodes, behind all that is read first.
	n := leakRows + 10
	s := tellingOf(n, column, class, func(v int) []float32 {
		if v == n-1 {
			return []float32{1 - float32(class(v))}
		}
		return []float32{float32(class(v))}
	})
	r, err := ofLeak(t, s, Options{})
	require.NoError(t, err)
	require.NotContains(t, strings.Join(r.Notes, "\n"), "lets it be")

	// Many values for each class: a note.
	r, err = ofLeak(t, tellingOf(2000, column, class, func(v int) []float32 { return []float32{float32(class(v))*100 + float32(v%50)} }), Options{})
	require.NoError(t, err)
	require.Contains(t, strings.Join(r.Notes, "\n"), "column x tells the label of 98.0 % of the first 1024 nodes that have one: is it known before the label is?")

	// A class of four nodes, and forty nodes in all: chance.
	r, err = ofLeak(t, tellingOf(400, column, func(v int) int32 { return min(int32(v/4), 1) }, func(v int) []float32 { return []float32{min(float32(v/4), 1)} }), Options{})
	require.NoError(t, err)
	require.Contains(t, strings.Join(r.Notes, "\n"), "that may be chance, since they are few")
	r, err = ofLeak(t, tellingOf(40, column, class, func(v int) []float32 { return []float32{float32(class(v))} }), Options{}) // 2·20!²/40! is 1.5e-11
	require.NoError(t, err)
	require.Contains(t, strings.Join(r.Notes, "\n"), "that may be chance, since they are few")

	// One class alone, and columns of zeros and ones that tell one class of three.
	for name, s := range map[string]*telling{
		"one class":   tellingOf(300, column, func(int) int32 { return 0 }, func(int) []float32 { return []float32{1} }),
		"one of many": tellingOf(300, nil, func(v int) int32 { return int32(v % 3) }, func(v int) []float32 { return []float32{float32(v % 3 / 2), float32(v % 7)} }),
	} {
		_, err = ofLeak(t, s, Options{})
		require.NoError(t, err, name)
	}
}

// TestHonestFeaturesCostFewRows: the search stops once no column is left, whatever labels are
// missing.
func TestHonestFeaturesCostFewRows(t *testing.T) {
	s := tellingOf(100_000, nil, func(v int) int32 {
		if v%10 > 0 {
			return -1
		}
		return int32(v / 10 % 2)
	}, func(v int) []float32 { return []float32{float32(v % 31), float32(v % 3)} })
	_, err := ofLeak(t, s, Options{})
	require.NoError(t, err)
	require.LessOrEqual(t, s.read, sampleRead+1000, "rows read of 100,000")
}

// TestLeaksOfSeveralClasses: a column that equals one of a node's several classes is refused.
func TestLeaksOfSeveralClasses(t *testing.T) {
	s := tellingOf(200, []store.Encoding{number("a"), number("b")}, func(int) int32 { return 0 }, func(v int) []float32 {
		return []float32{float32(v % 7), 1 - float32(v/3%2)}
	})
	s.schema.Labels[0].Multi, s.schema.Labels[0].Classes = true, 2
	s.labels[0] = nil
	for v := range 200 {
		s.labels[0] = append(s.labels[0], int32(v%5/4), int32(v/3%2))
	}
	_, err := ofLeak(t, s, Options{})
	require.ErrorContains(t, err, "column b tells the label")
}
