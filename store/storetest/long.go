package storetest

import (
	"os"
	"testing"
)

// Long skips a test that takes seconds, and whose like runs anyway. A whole check sets
// GNNSTORE_LONG, as .ci/run does. So go test ./... takes at most three minutes on two cores.
func Long(t testing.TB) {
	t.Helper()
	if os.Getenv("GNNSTORE_LONG") == "" {
		t.Skip("GNNSTORE_LONG is not set, and this takes long")
	}
}
