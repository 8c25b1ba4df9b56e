package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCalledAs(t *testing.T) {
	hash := strings.Repeat("0123456789abcdef", 4)
	for _, c := range []struct{ arg, file, want string }{
		{"gnnstore", "/usr/bin/gnnstore", "gnnstore"},
		{"./gnnstore", "/home/me/gnnstore", "./gnnstore"},
		{"/opt/gnn/gnnstore-cuda", "/opt/gnn/gnnstore-cuda", "/opt/gnn/gnnstore-cuda"},
		{"/home/me/a b/gnnstore", "/home/me/a b/gnnstore", "gnnstore"},
		{"/tmp/go-build12/b001/exe/gnnstore", "/tmp/go-build12/b001/exe/gnnstore", "go run ./cmd/gnnstore"},
		{"/cache/ab/" + hash + "-d/gnnstore", "/cache/ab/" + hash + "-d/gnnstore", "go run ./cmd/gnnstore"},
		{"/tmp/go-build12/b001/gnnstore.test", "/tmp/go-build12/b001/gnnstore.test", "gnnstore"},
		{"./gnnstore", "", "./gnnstore"},
	} {
		require.Equal(t, c.want, calledAs(c.arg, c.file), c)
	}
	require.Equal(t, "gnnstore", called())
}
