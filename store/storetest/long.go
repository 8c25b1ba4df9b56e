package storetest

import (
	"os"
	"testing"
)

// Long skips a test unless GNNSTORE_LONG is set, as .ci/run sets it. It is for tests that take
// seconds and that have quicker relatives. Without them go test ./... takes at most three minutes
// on two cores.
func Long(t testing.TB) {
	t.Helper()
	if os.Getenv("GNNSTORE_LONG") == "" {
		t.Skip("GNNSTORE_LONG is not set, and this takes long")
	}
}
