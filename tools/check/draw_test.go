package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDraw: a seed gives the same comments each time, each with its code, and never one twice.
func TestDraw(t *testing.T) {
	root := tree()
	root["store/store.go"].Data = []byte("// Package store keeps.\npackage store\n\n// a is one.\nvar a = 1 // it is odd\n\n//go:embed x\nvar b string\n")
	packages, err := load(root)
	require.NoError(t, err)
	draw := func(n int, seed uint64) string {
		var out bytes.Buffer
		drawComments(&out, packages, n, seed)
		return out.String()
	}
	all := draw(1000, 1)
	require.Contains(t, all, "store/store.go:4\n    // a is one.\n    var a = 1 // it is odd\n")
	require.Contains(t, all, "store/store.go:5\n    var a = 1 // it is odd\n")
	require.NotContains(t, all, "go:embed")
	require.Equal(t, 1, strings.Count(all, "store/store.go:4\n"))
	require.Equal(t, draw(3, 7), draw(3, 7))
	require.NotEqual(t, draw(3, 7), draw(3, 8))
}
