package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier/disk"
)

// TestDivide: nothing is given twice, a part that is alone has all, and nobody has more than is of
// use, or less than a group wants while there is enough.
func TestDivide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Demand{Disk: disk.Costs{SecondsPerRead: 1e-5, BytesPerSecond: 1e9}}
		for range rapid.IntRange(1, 5).Draw(t, "tables") {
			n := rapid.IntRange(0, 1_000_000).Draw(t, "rows")
			d.Rows = append(d.Rows, Rows{Count: int64(n), Bytes: int64(rapid.IntRange(1, 4000).Draw(t, "row")), Index: 12, Inputs: rapid.IntRange(0, n).Draw(t, "inputs")})
		}
		for range rapid.IntRange(1, 5).Draw(t, "relations") {
			n := rapid.IntRange(1, 1_000_000).Draw(t, "nodes")
			d.Lists = append(d.Lists, Lists{Nodes: int64(n), Offsets: int64(2 * n), Bytes: rapid.Int64Range(0, 1<<30).Draw(t, "lists"), Wanted: []int64{int64(n / 3), 5}})
		}
		offsets, _ := d.lists()
		b := Budget{
			Group: rapid.IntRange(1, 50).Draw(t, "group"), Device: rapid.Int64Range(0, 1<<28).Draw(t, "device"), Host: rapid.Int64Range(0, 1<<30).Draw(t, "host"),
			Topology: offsets + rapid.Int64Range(0, 1<<30).Draw(t, "topology"),
		}
		v := d.Divide(b)
		for _, p := range []struct {
			parts []int64
			total int64
		}{{v.Device, b.Device}, {v.Host, b.Host}, {v.Topology, b.Topology}} {
			sum := int64(0)
			for _, n := range p.parts {
				require.GreaterOrEqual(t, n, int64(0))
				sum += n
			}
			require.LessOrEqual(t, sum, p.total)
			if len(p.parts) == 1 {
				require.Equal(t, p.total, sum)
			}
		}
		if len(d.Rows) > 1 {
			wanted := int64(0)
			for i, r := range d.Rows {
				_, useful := r.Need()
				require.LessOrEqual(t, v.Device[i], useful)
				require.LessOrEqual(t, v.Host[i], useful)
				wanted += min(int64(r.window()*float64(b.Group)), useful-v.Device[i])
			}
			for i, r := range d.Rows {
				if _, useful := r.Need(); wanted <= b.Host {
					require.GreaterOrEqual(t, v.Host[i], min(int64(r.window()*float64(b.Group)), useful-v.Device[i]))
				}
			}
		}
		for i, l := range d.Lists {
			require.GreaterOrEqual(t, v.Topology[i], l.Offsets)
		}
	})
}

// TestDivideByWhatItSaves: of two tables of one size, whose rows are too large to be read together,
// the one that steps read more of has more in memory.
func TestDivideByWhatItSaves(t *testing.T) {
	r := Rows{Count: 1_000_000, Bytes: 64 << 10, Index: 12}
	often, seldom := r, r
	often.Inputs, seldom.Inputs = 20_000, 100
	d := Demand{Disk: disk.Costs{SecondsPerRead: 1e-5, BytesPerSecond: 1e9}, Rows: []Rows{often, seldom}}
	v := d.Divide(Budget{Group: 4, Host: 20 << 30})
	require.Greater(t, v.Host[0], 4*v.Host[1])
}
