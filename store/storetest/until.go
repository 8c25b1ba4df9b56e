package storetest

import (
	"flag"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// CheckUntil checks property as rapid.Check does, and repeats that until every count in seen is
// positive. A few draws may miss a rare case by chance; if fifty rounds miss it, CheckUntil fails
// the test.
func CheckUntil(t *testing.T, property func(*rapid.T), seen map[string]*int) {
	t.Helper()
	missing := ""
	for range 50 {
		rapid.Check(t, property)
		missing = ""
		for name, n := range seen {
			if *n == 0 {
				missing = name
			}
		}
		if missing == "" {
			return
		}
	}
	require.Fail(t, "no draw has: "+missing)
}

// Fewer makes rapid check a property n times, unless the command line sets another number.
func Fewer(t *testing.T, n int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() != checks.DefValue {
		return
	}
	if testing.Short() {
		n = max(n/5+1, 5) // rapid makes a fifth of these checks
	}
	require.NoError(t, checks.Value.Set(strconv.Itoa(n)))
	t.Cleanup(func() { _ = checks.Value.Set(checks.DefValue) })
}
