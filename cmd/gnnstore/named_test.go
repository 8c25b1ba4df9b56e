package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamed(t *testing.T) {
	for _, c := range []struct {
		sets  []string
		plain string
		of    map[string]string
		text  string
	}{
		{nil, "15,10", nil, "15,10"},
		{[]string{"5, 4"}, "5,4", nil, "5,4"},
		{[]string{"5", "6"}, "6", nil, "6"},
		{[]string{"cites=5 , 5"}, "15,10", map[string]string{"cites": "5,5"}, "cites=5,5"},
		{[]string{"3,3 cites=5,5", "a__b__c=0,1"}, "3,3", map[string]string{"cites": "5,5", "a__b__c": "0,1"}, "3,3 a__b__c=0,1 cites=5,5"},
	} {
		plain := "15,10"
		n := &named{kind: "N", plain: &plain}
		for _, s := range c.sets {
			require.NoError(t, n.Set(s))
		}
		require.Equal(t, c.plain, plain)
		require.Equal(t, c.of, n.of)
		require.Equal(t, c.text, n.String())
	}
	plain := ""
	for _, bad := range []string{"", " ", "5 6", "cites=", "=5", "cites=5 5 6"} {
		require.Error(t, (&named{kind: "N", plain: &plain}).Set(bad), bad)
	}
	require.Error(t, (&named{kind: "TYPE=INPUT"}).Set("table"))
}
