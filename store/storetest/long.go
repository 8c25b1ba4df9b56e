package storetest

import (
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"testing"
)

// Long skips a test that takes seconds, if a quicker one is like it. GNNSTORE_LONG=1 runs all such
// tests, and GNNSTORE_LONG=0/2 and 1/2 run half of them each. .ci/run sets one of these. Without
// them, go test ./... takes some three minutes on two cores.
func Long(t testing.TB) {
	t.Helper()
	long := os.Getenv("GNNSTORE_LONG")
	part, parts := uint32(0), uint32(1)
	if strings.Contains(long, "/") {
		if n, err := fmt.Sscanf(long, "%d/%d", &part, &parts); n < 2 || part >= parts {
			t.Fatalf("GNNSTORE_LONG=%s: want 1, or a part such as 0/2: %v", long, err)
		}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(t.Name())) // never fails
	if long == "" || h.Sum32()%parts != part {
		t.Skipf("a long test, and GNNSTORE_LONG is %q", long)
	}
}
