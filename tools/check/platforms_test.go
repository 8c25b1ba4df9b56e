package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlatforms: what only another system lacks is found, in bodies of functions as well.
func TestPlatforms(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	write("go.mod", "module example\n\ngo 1.24\n")
	write("all.go", "package example\n\nimport \"syscall\"\n\nfunc f() int { return flag + len([1]int{}) }\n\nvar _ = syscall.EIO\n")
	write("flag_linux.go", "package example\n\nimport \"syscall\"\n\nconst flag = syscall.O_NONBLOCK\n")
	write("flag_darwin.go", "package example\n\nimport \"syscall\"\n\nconst flag = syscall.O_NONBLOCK\n")
	var out strings.Builder
	ok, err := checkPlatforms(&out, dir)
	require.NoError(t, err)
	require.True(t, ok, out.String())
	require.Equal(t, "ok: 1 packages for linux/arm64\nok: 1 packages for darwin/arm64\n", out.String())

	write("all.go", "package example\n\nimport \"syscall\"\n\nfunc f() int { return flag + syscall.MADV_HUGEPAGE }\n")
	out.Reset()
	ok, err = checkPlatforms(&out, dir)
	require.NoError(t, err)
	require.False(t, ok)
	require.Contains(t, out.String(), "ok: 1 packages for linux/arm64\n")
	require.Regexp(t, `darwin/arm64: .*all.go:5:38: undefined: syscall.MADV_HUGEPAGE\n`, out.String())

	write("all.go", "package example\n\nfunc f() int {\n")
	_, err = checkPlatforms(&out, dir)
	require.Error(t, err)
}
