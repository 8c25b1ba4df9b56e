package lines

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestVector: numbers in brackets, or parted by semicolons or commas, are a vector.
func TestVector(t *testing.T) {
	comma := Numerals{Comma: true, Group: '.'}
	for _, c := range []struct {
		n    Numerals
		cell string
		want []float32
	}{
		{Numerals{}, "[0.1 0.2]", []float32{0.1, 0.2}}, {Numerals{}, "[0.1, 0.2]", []float32{0.1, 0.2}}, {Numerals{}, "[ 1.  2. ]", []float32{1, 2}},
		{Numerals{}, "[1,2]", []float32{1, 2}}, {Numerals{}, "(1, 2)", []float32{1, 2}}, {Numerals{}, "(1,)", []float32{1}}, {Numerals{}, "[0.5]", []float32{0.5}},
		{Numerals{}, "[1e-3\n -2]", []float32{1e-3, -2}}, {Numerals{}, "0.1;0.2", []float32{0.1, 0.2}}, {Numerals{}, "1;2;", []float32{1, 2}},
		{Numerals{}, "0.5, 1", []float32{0.5, 1}}, {Numerals{}, "1,2,3", []float32{1, 2, 3}}, {Numerals{}, "[1;2]", []float32{1, 2}},
		{comma, "0,1;0,2", []float32{0.1, 0.2}}, {comma, "[0,5 1.000,5]", []float32{0.5, 1000.5}}, {comma, "[0,5, 0,7]", []float32{0.5, 0.7}}, {comma, "[1, 2]", []float32{1, 2}},
	} {
		require.True(t, c.n.IsVector([]byte(c.cell)), c.cell)
		got, err := c.n.AppendVector([]float32{9}, []byte(c.cell))
		require.NoError(t, err, c.cell)
		require.Equal(t, append([]float32{9}, c.want...), got, c.cell)
	}
	for text, want := range map[string]bool{"0,5": false, "1,234,567": false, "1": false, "": false, ",": false, "1, ": true, "a": false} {
		require.Equal(t, want, Numerals{}.IsVector([]byte(text)), text)
	}
	require.False(t, comma.IsVector([]byte("0,5, 0,7")))
	for cell, want := range map[string]string{
		"[[1 2] [3 4]]": "a list within a list, and a cell holds one vector", "[]": `"[]" is a vector without numbers`, "[ ]": "is a vector without numbers",
		"[0.1 0.2": `"[0.1 0.2": the bracket of the vector does not close`, "[": "does not close", "(1]": "does not close", "[1 nan]": `"nan" in a vector is not a finite number`,
		"[1, inf]": `"inf" in a vector is not a finite number`, "[1 ... 2]": `"..." in a vector is not a finite number`, "[1,,2]": `"" in a vector is not a finite number`,
		"[1e39]": `"1e39" in a vector is not a finite number of 32 bits`, "a;b": `"a" in a vector`, ";": "is a vector without numbers", "1]": "a list within a list",
		"[0x10]": "is not a finite number", "[1\x00]": "is not a finite number",
	} {
		_, err := Numerals{}.AppendVector(nil, []byte(cell))
		require.ErrorContains(t, err, want, cell)
		require.NotContains(t, err.Error(), "\n")
	}
}

// FuzzVector: a cell gives finite numbers, or an error of one line. Plain writes a number so that
// programs read the same value.
func FuzzVector(f *testing.F) {
	for _, cell := range []string{"[0.1 0.2]", "[0,5; 1.000]", "1'234.5", "−5 %", "(1,)", "[[1]]", "$1,000", "1 234,5"} {
		f.Add([]byte(cell), uint8(0))
		f.Add([]byte(cell), uint8(1))
	}
	f.Fuzz(func(t *testing.T, cell []byte, way uint8) {
		n := append([]Numerals{{}}, otherNumerals...)[int(way)%(len(otherNumerals)+1)]
		if n.IsVector(cell) {
			numbers, err := n.AppendVector(nil, cell)
			if err != nil {
				require.NotContains(t, err.Error(), "\n")
			}
			require.True(t, err != nil || len(numbers) > 0)
			for _, x := range numbers {
				require.Zero(t, x-x)
			}
		}
		if v, err := n.Float(cell, 64); err == nil {
			plain, ok := n.Plain(nil, cell)
			require.True(t, ok)
			again, err := Float(plain, 64)
			require.NoError(t, err)
			require.True(t, v == again || v != v)
		}
		s := Spelling{Numerals: n}
		s.Add(cell)
		require.NotContains(t, s.Remedy(), "\n")
		require.False(t, strings.Contains(s.Remedy(), "%!"), s.Remedy())
	})
}
