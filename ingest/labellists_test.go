package ingest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
)

// classesOf learns a column of lists and returns its classes and the zeros and ones of each cell.
func classesOf(t testing.TB, known *ingest.Category, cells ...string) (names []string, rows []string, err error) {
	t.Helper()
	l := ingest.NewLabelLists(known)
	for _, cell := range cells {
		if err := l.Learn([]byte(cell)); err != nil {
			return nil, nil, err
		}
	}
	if err := l.Settle(); err != nil {
		return nil, nil, err
	}
	for _, cell := range cells {
		bits, err := l.Append(nil, []byte(cell))
		if err != nil {
			return nil, nil, err
		}
		var row strings.Builder
		for _, b := range bits {
			row.WriteByte('0' + byte(b))
		}
		rows = append(rows, row.String())
	}
	return l.Names(), rows, nil
}

// TestLabelLists reads each way to write a list of labels.
func TestLabelLists(t *testing.T) {
	for _, c := range []struct{ cells, names, rows []string }{
		{[]string{"war|drama", "drama", "war"}, []string{"drama", "war"}, []string{"11", "10", "01"}},
		{[]string{"a; b", " b ;c", "c;a;a"}, []string{"a", "b", "c"}, []string{"110", "011", "101"}},
		{[]string{"a, b", "b"}, []string{"a", "b"}, []string{"11", "01"}},
		{[]string{"a, b", "c|d"}, []string{"a, b", "c", "d"}, []string{"100", "011"}}, // bars come before commas
		{[]string{"10|9", "9|"}, []string{"9", "10"}, []string{"11", "10"}},           // numbers in their order
		{[]string{"2|2.0", "x"}, []string{"2", "x"}, []string{"10", "01"}},
		{[]string{"[a, b]", "[]", "a"}, []string{"a", "b"}, []string{"11", "00", "10"}},
		{[]string{"['sci fi', 'war, cold']", `["it's"]`}, []string{"it's", "sci fi", "war, cold"}, []string{"011", "100"}},
		{[]string{"['a' 'b']", "[3 1]", "[new wave]"}, []string{"1", "3", "a", "b", "new wave"}, []string{"00110", "11000", "00001"}},
		{[]string{"[a|b, c]", "c"}, []string{"a|b", "c"}, []string{"11", "01"}}, // brackets have commas
		{[]string{"a|nan|b"}, []string{"a", "b"}, []string{"11"}},
		{[]string{"one"}, []string{"one"}, []string{"1"}},
	} {
		names, rows, err := classesOf(t, nil, c.cells...)
		require.NoError(t, err, c.cells)
		require.Equal(t, c.names, names, c.cells)
		require.Equal(t, c.rows, rows, c.cells)
	}
	names, rows, err := classesOf(t, ingest.KnownCategory([]string{"war, cold", "b"}, "the classes of x.gnn"), "war, cold", "b")
	require.NoError(t, err)
	require.Equal(t, []string{"war, cold", "b"}, names)
	require.Equal(t, []string{"10", "01"}, rows)
	_, _, err = classesOf(t, ingest.KnownCategory([]string{"a", "b"}, "the classes of x.gnn"), "a|c")
	require.EqualError(t, err, `"c" is none of the classes of x.gnn`)
	for cell, want := range map[string]string{
		"['a, b]":                       "a list has the quote ' without its end",
		"[a, b":                         "a list begins with [ and has no ]",
		"[a, [b]]":                      `a list of labels has '[' in it, and holds texts or numbers`,
		"[{a: 1}]":                      `a list of labels has '{' in it, and holds texts or numbers`,
		"a|" + strings.Repeat("z", 300): "300 bytes are no class or category",
	} {
		_, _, err := classesOf(t, nil, cell)
		require.EqualError(t, err, want)
	}
}

func TestListsLabels(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"a", "b", "a|b"}, "a|b"},
		{[]string{"a", "b", "a, b"}, "a, b"},
		{[]string{"a", "b", "b; a", "b;a"}, "b; a"},
		{[]string{"a", "[b]", "[a, b]"}, "[a, b]"},
		{[]string{"a|b", "b", "a|c"}, "a|b"},
		{[]string{"a|b", "a|c"}, ""}, // names such as tr|P1|X and tr|P2|Y
		{[]string{"Smith, John", "Smith"}, ""},
		{nil, ""},
	} {
		names := map[string]int{}
		for _, n := range c.names {
			names[n] = 0
		}
		require.Equal(t, c.want, ingest.ListsLabels(names), c.names)
	}
}

// FuzzLabelLists: each cell has the classes that a column of all cells learns from it, and no more.
func FuzzLabelLists(f *testing.F) {
	for _, seed := range []string{"a|b\nb", "[a, 'b c']\n[]", "1;2\n2.0", "a, b\n['", "[1 2]\nx,", "\xff|\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, column string) {
		cells := strings.Split(column, "\n")
		names, rows, err := classesOf(t, nil, cells...)
		if err != nil {
			require.NotContains(t, err.Error(), "the file changed")
			return
		}
		met := make([]bool, len(names))
		for _, row := range rows {
			require.Len(t, row, len(names))
			for i := range row {
				met[i] = met[i] || row[i] == '1'
			}
		}
		require.NotContains(t, met, false)
	})
}
