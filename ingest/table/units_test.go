package table

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
)

// TestUnits: a schema names units of columns. What cannot be a unit is refused with its line.
func TestUnits(t *testing.T) {
	dir := files{"s.yaml": "nodes: [{type: a, files: n.csv, features: [a, b, c], categorical: [c], " +
		"units: {a: km/h, b: °C}}]\n" + pairs,
		"n.csv": "a,b,c\n1,2;3,x\n", "e.csv": "x,y\n0,0\n"}.write(t)
	s, err := Open(dir+"/s.yaml", Options{})
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Schema(t.Context())
	require.NoError(t, err)
	var units []string
	for _, c := range s.Describe().Tables[0] {
		units = append(units, c.Unit)
	}
	require.Equal(t, []string{"km/h", "°C", ""}, units)
	for spec, want := range map[string]string{
		"units: m":                              `s.yaml: line 1: units: want a unit for each column, as in {height: cm}`,
		"units: [m]":                            `line 1: units: want a unit for each column`,
		"units: {b: m}":                         "line 1: units b: it is not among the features; list it there as well",
		"units: {a: }":                          "line 1: a unit is expected here, which is one word",
		"units: {a: \"\"}":                      "line 1: ",
		"units: {a: \"m\\ns\"}":                 "a unit is a word of 1 to 64 bytes, as in cm or m/s²",
		"units: {a: " + strings.Repeat("m", 65): "a unit is a word of 1 to 64 bytes",
		"categorical: [a], units: {a: m}":       "units a: it is categorical, and categories have no unit; leave it out here",
		"units: {a: m, a: s}":                   "",
	} {
		if strings.Count(spec, "{") > strings.Count(spec, "}") {
			spec += "}"
		}
		dir := files{"s.yaml": "nodes: [{type: a, files: n.csv, features: [a], " + spec + "}]\n" + pairs,
			"n.csv": "a\n1\n", "e.csv": "x,y\n0,0\n"}.write(t)
		_, err := read(dir, Options{})
		require.Error(t, err, spec)
		require.ErrorContains(t, err, want, spec)
		require.NotContains(t, err.Error(), "\n")
	}
	require.True(t, store.FitsUnit("m/s²"))
}
