package store

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCleanWord(t *testing.T) {
	for in, want := range map[string]string{
		"field_of_study":               "field_of_study",
		"paper-cite-paper":             "paper-cite-paper",
		"a__b":                         "a_b",
		"_x_":                          "x",
		"movie->actor":                 "movie-_actor",
		"wireless communication":       "wireless_communication",
		"":                             "unnamed",
		"÷ / .":                        "unnamed",
		strings.Repeat("ab ", 50):      strings.Repeat("ab_", 33) + "a",
		strings.Repeat("a", 99) + " b": strings.Repeat("a", 99),
	} {
		require.Equal(t, want, CleanWord(in), in)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		clean := CleanWord(s)
		require.NoError(t, checkNames("name", clean))
		require.Equal(t, clean, CleanWord(clean))
		if checkNames("name", s) == nil {
			require.Equal(t, s, clean)
		}
	})
}
