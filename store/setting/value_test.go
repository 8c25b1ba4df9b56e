package setting

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestValues: each value prints its text so that it can read it again, and refuses other text.
func TestValues(t *testing.T) {
	type level string
	var (
		n     int
		u     uint64
		f     float64
		size  int64
		many  int64
		word  level
		short level
		on    bool
		list  []int
	)
	auto := func() Value { return Int(&n).Or("auto", -1).Or("inf", math.MaxInt32) }
	for name, c := range map[string]struct {
		make func() Value
		good map[string]string // text, and how it is printed
		bad  map[string]string // text, and the error
	}{
		"int": {func() Value { return Int(&n) }, map[string]string{"7": "7", "-7": "-7", "0x10": "16", "-0x10": "-16", "010": "10", "08": "8"},
			map[string]string{"": `"" is not a whole number`, "1.5": `"1.5" is not a whole number`, "1_0": `"1_0" is not a whole number`, "99999999999999999999": `"99999999999999999999" is out of range`}},
		"auto": {auto, map[string]string{"auto": "auto", "inf": "inf", "0": "0", "200": "200"},
			map[string]string{"-1": `"-1" is neither auto, inf nor a number from 0 on`, "x": `"x" is neither auto, inf nor a number from 0 on`}},
		"from 1": {func() Value { return Int(&n).Or("auto", -1).AtLeast(1) }, map[string]string{"auto": "auto", "1": "1"},
			map[string]string{"0": `"0" is neither auto nor a number from 1 on`}},
		"uint": {func() Value { return Uint(&u) }, map[string]string{"18446744073709551615": "18446744073709551615"},
			map[string]string{"-1": `"-1" is not a whole number from 0 on`}},
		"float": {func() Value { return Float(&f) }, map[string]string{"0.003": "0.003", "1e-7": "1e-07", "1": "1"}, map[string]string{"x": `"x" is not a number`}},
		"size": {func() Value { return Bytes(&size) },
			map[string]string{"0": "0", "1MiB": "1MiB", "1.5KiB": "1536", "4GiB": "4GiB", "2 GB": "1953125KiB", "10kB": "10000", "7B": "7"},
			map[string]string{"": `"" is not a size such as 0, 1MiB or 4GiB`, "-1": `"-1" is not a size such as 0, 1MiB or 4GiB`}},
		"size or name": {func() Value { return Bytes(&size).Or("auto", -1).Or("rest", -2) }, map[string]string{"rest": "rest", "auto": "auto", "1TiB": "1024GiB"},
			map[string]string{"x": `"x" is neither auto, rest nor a size such as 0, 1MiB or 4GiB`}},
		"count": {func() Value { return Counted(&many, 1) }, map[string]string{"40M": "40000000", "2.5k": "2500", "1.6G": "1600000000"},
			map[string]string{"0": `"0" is not a number such as 1000, 2.5k, 40M or 1.6G`, "0.5": `"0.5" is not a number such as 1000, 2.5k, 40M or 1.6G`}},
		"count from 0": {func() Value { return Counted(&many, 0) }, map[string]string{"0": "0", "20M": "20000000"},
			map[string]string{"-0": `"-0" is not a number such as 1000, 2.5k, 40M or 1.6G`}},
		"word": {func() Value { return Word(&word, "high").Or("plain", "").Alias("top", "high") }, map[string]string{"plain": "plain", "top": "high", "low": "low"}, nil},
		"switch": {func() Value { return Bool(&on) }, map[string]string{"true": "true", "false": "false", "1": "true"},
			map[string]string{"yes": `"yes" is neither true nor false`}},
		"short": {func() Value { return Short(Word(&short), "on") }, map[string]string{"true": "", "": ""}, map[string]string{"false": `"false": it takes no value`}},
		"list":  {func() Value { return Ints(&list) }, map[string]string{"7, 3 ,-1": "7,3,-1", "": "", "010,020": "10,20"}, map[string]string{"7,x": `"x" is not a whole number`}},
	} {
		for text, printed := range c.good {
			v := c.make()
			require.NoError(t, v.Set(text), name)
			require.Equal(t, printed, v.String(), name)
			if printed != "" {
				require.NoError(t, v.Set(v.String()), name)
			}
		}
		for text, want := range c.bad {
			require.EqualError(t, c.make().Set(text), want, name)
		}
	}
	require.EqualValues(t, "on", short)
	for _, text := range []string{"1e30", "NaN", "inf", "1MiBB", "GiB", "0x10", "99999999TiB"} {
		require.Error(t, Bytes(&size).Set(text), text)
	}
}

// TestListsAdd: the first flag of a list replaces the default, and the next ones add to it.
func TestListsAdd(t *testing.T) {
	list := []int{15, 10}
	v := Ints(&list)
	require.NoError(t, v.Set("1"))
	require.NoError(t, v.Set("2,3"))
	require.Equal(t, []int{1, 2, 3}, list)
}

// TestBounds: a value out of bounds has an explanation.
func TestBounds(t *testing.T) {
	n, f, word := 0, 0.0, "x"
	for want, v := range map[string]checker{
		"at least 1":                     Int(&n).AtLeast(1),
		"at least 1, or auto":            Int(&n).Or("auto", -1).AtLeast(1),
		"from 1 to 9":                    Int(&n).AtLeast(1).AtMost(9),
		"above 0 and below 1e+06":        Float(&f).Between(0, 1e6),
		"there are best and epoch":       Word(&word, "best", "epoch"),
		"there is none":                  Word(&word, "none"),
		"there are auto, full and other": Word(&word, "full", "other").Or("auto", ""),
	} {
		require.Equal(t, want, v.wrong())
	}
	for _, n := range []int{-1, 1, 9} {
		require.Empty(t, Int(&n).Or("auto", -1).AtLeast(1).AtMost(9).wrong())
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), -1, 1e6} {
		require.NotEmpty(t, Float(&f).Between(0, 1e6).wrong(), fmt.Sprint(f))
	}
	for _, f := range []float64{math.NaN(), math.Inf(-1)} {
		require.NotEmpty(t, Float(&f).AtLeast(0).AtMost(1).wrong(), fmt.Sprint(f))
	}
}

// TestByName reads texts and lists by name.
func TestByName(t *testing.T) {
	shared := map[string]string{"a": "x", "b": "y"}
	texts := shared
	v := PerName(&texts, "TYPE=INPUT")
	require.Equal(t, "a=x b=y", v.String())
	require.NoError(t, v.Set("a=z c=1 , 2"))
	require.Equal(t, "a=z b=y c=1,2", v.String())
	require.Equal(t, map[string]string{"a": "x", "b": "y"}, shared, "a map that others have stays")
	for _, bad := range []string{"", " ", "a", "a=", "=x"} {
		require.EqualError(t, v.Set(bad), fmt.Sprintf("%q: write TYPE=INPUT", bad))
	}

	lists := map[string][]string{"rates": {"old"}}
	l := ListPerName(&lists, "RELATION=COLUMN,COLUMN")
	require.NoError(t, l.Set("rates=rating, time"))
	require.NoError(t, l.Set("rates=stars user__likes__item=when"))
	require.Equal(t, map[string][]string{"rates": {"rating", "time", "stars"}, "user__likes__item": {"when"}}, lists)
	require.Equal(t, "rates=rating,time,stars user__likes__item=when", l.String())
	for _, bad := range []string{"", "rates", "=time", "rates="} {
		require.EqualError(t, l.Set(bad), fmt.Sprintf("%q: write RELATION=COLUMN,COLUMN", bad))
	}
}

func TestIntsByName(t *testing.T) {
	for _, c := range []struct {
		set   []string
		all   []int
		own   map[string][]int
		text  string
		given bool
	}{
		{nil, []int{15, 10}, nil, "15,10", false},
		{[]string{"7, 3 ,-1"}, []int{7, 3, -1}, nil, "7,3,-1", true},
		{[]string{"7,3", "2,1"}, []int{2, 1}, nil, "2,1", true},
		{[]string{"cites=4,0"}, []int{15, 10}, map[string][]int{"cites": {4, 0}}, "cites=4,0", false},
		{[]string{"15,10", "cites=1,2"}, []int{15, 10}, map[string][]int{"cites": {1, 2}}, "15,10 cites=1,2", true},
		{[]string{"writes=9,8 5,4", "a__cites__a=1, 2"}, []int{5, 4}, map[string][]int{"writes": {9, 8}, "a__cites__a": {1, 2}}, "5,4 a__cites__a=1,2 writes=9,8", true},
	} {
		all, own := []int{15, 10}, map[string][]int(nil)
		v := IntsPerName(&all, &own, "N")
		for _, s := range c.set {
			require.NoError(t, v.Set(s))
		}
		require.Equal(t, c.all, all)
		require.Equal(t, c.own, own)
		require.Equal(t, c.text, v.String())
		require.Equal(t, c.given, v.Given())
		require.NoError(t, v.Set(c.text))
		require.Equal(t, c.text, v.String())
	}
	all, own := []int{15, 10}, map[string][]int{"b": {2, 3}, "a": {1}}
	require.Equal(t, "15,10 a=1 b=2,3", IntsPerName(&all, &own, "N").String())
	for bad, want := range map[string]string{
		"": `"": write N`, "5 6": `"5 6": write N`, "cites=": `"cites=": write N`, "=5": `"=5": write N`, "cites=5 5 6": `"cites=5 5 6": write N`,
		"cites=1,x 2,y": `"x" is not a number; write them with commas between, as in 15,10,5` + "\n" + `"y" is not a number; write them with commas between, as in 15,10,5`,
	} {
		require.EqualError(t, IntsPerName(&all, &own, "N").Set(bad), want)
	}
}
