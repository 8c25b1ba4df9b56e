package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFanouts(t *testing.T) {
	given := func(flags ...string) func(string) bool {
		return func(flag string) bool { return slices.Contains(flags, flag) }
	}
	for _, c := range []struct {
		set    []string
		layers int
		given  func(string) bool
		all    []int
		own    map[string][]int
		text   string
	}{
		{nil, 0, given(), []int{15, 10}, nil, "15,10"},
		{nil, 4, given("layers"), []int{15, 10, 5, 5}, nil, "15,10"},
		{[]string{"7"}, 0, given("fanout"), []int{7}, nil, "7"},
		{[]string{"7, 3 ,-1"}, 0, given("fanout"), []int{7, 3, -1}, nil, "7,3,-1"},
		{[]string{"7,3", "2,1"}, 0, given("fanout"), []int{2, 1}, nil, "2,1"},
		{[]string{"cites=4,0"}, 0, given("fanout"), []int{15, 10}, map[string][]int{"cites": {4, 0}}, "cites=4,0"},
		{[]string{"cites=1,2,3"}, 3, given("fanout", "layers"), []int{15, 10, 5}, map[string][]int{"cites": {1, 2, 3}}, "cites=1,2,3"},
		{[]string{"15,10", "cites=1,2"}, 2, given("fanout", "layers"), []int{15, 10}, map[string][]int{"cites": {1, 2}}, "15,10 cites=1,2"},
		{[]string{"writes=9,8 5,4", "a__cites__a=1, 2"}, 0, given("fanout"), []int{5, 4},
			map[string][]int{"writes": {9, 8}, "a__cites__a": {1, 2}}, "5,4 a__cites__a=1,2 writes=9,8"},
	} {
		f := newFanouts([]int{15, 10}, nil)
		for _, s := range c.set {
			require.NoError(t, f.Set(s))
		}
		all, own, err := f.read(c.layers, c.given)
		require.NoError(t, err)
		require.Equal(t, c.all, all)
		require.Equal(t, c.own, own)
		require.Equal(t, c.text, f.String())
		again := newFanouts([]int{15, 10}, nil)
		require.NoError(t, again.Set(c.text))
		require.Equal(t, c.text, again.String())
	}
	require.Equal(t, "15,10 a=1 b=2,3", fanoutsText([]int{15, 10}, map[string][]int{"b": {2, 3}, "a": {1}}))
	f := newFanouts([]int{15, 10}, nil)
	require.NoError(t, f.Set("cites=1,x 2,y"))
	_, _, err := f.read(0, given("fanout"))
	require.EqualError(t, err, `--fanout "2,y": "y" is not a number; write one a layer, as in 15,10,5`+"\n"+
		`--fanout "1,x": "x" is not a number; write one a layer, as in 15,10,5`)
}
