package storetest

import (
	"os"
	"testing"
)

// Long skips a test that takes seconds and has a quicker relative, unless GNNSTORE_LONG is set.
// .ci/run sets it.
func Long(t testing.TB) {
	t.Helper()
	if os.Getenv("GNNSTORE_LONG") == "" {
		t.Skip("a long test, and GNNSTORE_LONG is not set")
	}
}
