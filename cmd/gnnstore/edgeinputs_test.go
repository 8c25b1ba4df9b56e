package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEdgeInputs(t *testing.T) {
	e := newEdgeInputs(nil)
	require.Nil(t, e.read())
	require.NoError(t, e.Set("rates=rating, time"))
	require.NoError(t, e.Set("rates=stars user__likes__item=when"))
	require.Equal(t, map[string][]string{"rates": {"rating", "time", "stars"}, "user__likes__item": {"when"}}, e.read())
	require.Equal(t, "rates=rating,time,stars user__likes__item=when", e.String())

	again := newEdgeInputs(e.read()) // those of a run that is resumed
	require.Equal(t, e.String(), edgeInputsText(again.read()))
	require.NoError(t, again.Set("rates=time"))
	require.Equal(t, map[string][]string{"rates": {"time"}, "user__likes__item": {"when"}}, again.read())

	for _, bad := range []string{"", "rates", "=time", "rates="} {
		require.EqualError(t, newEdgeInputs(nil).Set(bad), `"`+bad+`": write RELATION=COLUMN,COLUMN`)
	}
}
