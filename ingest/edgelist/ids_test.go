package edgelist

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
)

// path1500 is a list of a path, without zeros in front of its ids, for more rows than are sampled.
func path1500(tail string, more ...string) string {
	var b strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&b, "%d,%d%s\n", i, i+1, tail)
	}
	return b.String() + strings.Join(more, "\n") + "\n"
}

// TestTrapLateText: an id that is no integer as it stands is refused with its line, wherever it
// stands and whichever reading finds it, and is text where the user says so.
func TestTrapLateText(t *testing.T) {
	for id, why := range map[string]string{
		"008":      `"008" has zeros in front, which an integer would lose; say {id_type} text`,
		"3.17E+12": `"3.17E+12" is a number whose last digits are left out, as spreadsheets write long ids; export the column as text, with all digits`,
		"+8":       `"+8" is not an integer of 64 bits, as ids are; if they are text, say {id_type} text`,
	} {
		nodes := "id,f\n"
		for i := range 1501 {
			nodes += fmt.Sprintf("%d,1\n", i)
		}
		for _, c := range []struct {
			f    files
			o    Options
			want string
		}{
			{files{"edges.csv": path1500("", id+",4")}, Options{}, "edges.csv: line 1501, column 1: "},
			{files{"edges.csv": path1500("", "4,"+id)}, Options{}, "edges.csv: line 1501, column 2: "},
			{files{"edges.csv": path1500(",0.5", id+",4,0.5")}, Options{}, "edges.csv: line 1501, column 1: "},
			{files{"edges.csv": path1500(",7", "4,"+id+",7")}, Options{Events: true}, "edges.csv: line 1501, column 2: "},
			{files{"edges.csv": path1500(""), "n.csv": nodes + id + ",1\n"}, Options{Nodes: "n.csv"}, "n.csv: line 1503, column 1: "},
		} {
			dir := c.f.write(t)
			_, err := read(dir, c.o)
			require.EqualError(t, err, filepath.Join(dir, c.want)+why)
			c.o.IDType = "text"
			g, err := read(dir, c.o)
			require.NoError(t, err)
			require.Equal(t, ingest.TextIDs, g.Schema.NodeTypes[0].IDs)
		}
	}
}

// TestIDsOfManyFiles: an id that is text in one part of a list is text in all of them.
func TestIDsOfManyFiles(t *testing.T) {
	dir := files{"part_1.csv": "1,2\n", "part_2.csv": "2,03\n"}.write(t)
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	require.True(t, s.text)
	require.NoError(t, s.Close())
}

// TestSpreadsheetIDs: texts keep everything but what a spreadsheet has rounded.
func TestSpreadsheetIDs(t *testing.T) {
	dir := files{"edges.csv": "src,dst\nab,1e5\nb7,4.5E+10\nc,d\n"}.write(t)
	_, err := read(dir, Options{})
	require.EqualError(t, err, filepath.Join(dir, "edges.csv")+`: line 3, column 2: "4.5E+10" is a number whose last digits are left out, `+
		`as spreadsheets write long ids; export the column as text, with all digits; if it is text as it stands, say {id_type} text`)
	_, err = read(dir, Options{IDType: "text"})
	require.NoError(t, err)
}
