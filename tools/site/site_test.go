package main

import (
	"bytes"
	"maps"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

// made returns the files of the site of a small tree, in which the topic tried has the text.
func made(t *testing.T, text string) (map[string][]byte, error) {
	t.Helper()
	tree := fstest.MapFS{
		"README.md":                       {Data: []byte("# gnnstore\n\nSee [memory](cmd/gnnstore/topics/memory.md).\n")},
		"cmd/gnnstore/topics/memory.md":   {Data: []byte("# Memory: what it takes\n\n## How much?\n\nMuch.\n")},
		"cmd/gnnstore/topics/picture.svg": {Data: []byte("<svg/>")},
		"store/graph.go":                  {Data: []byte("package store")},
		"cmd/gnnstore/topics/tried.md":    {Data: []byte(text)},
	}
	s, err := gather(tree, fstest.MapFS{"gnnstore_eval.md": {Data: []byte("## gnnstore eval\n\nUp to [gnnstore](gnnstore.md).\n")},
		"gnnstore.md": {Data: []byte("## gnnstore\n")}})
	if err != nil {
		return nil, err
	}
	return s.files()
}

func TestLinks(t *testing.T) {
	for link, want := range map[string]string{
		"memory.md":               `href="../topics/memory.html"`,
		"memory.md#how-much":      `href="../topics/memory.html#how-much"`,
		"#title":                  `href="#title"`,
		"../../../README.md":      `href="../index.html"`,
		"../../../store/graph.go": `href="` + repository + `store/graph.go"`,
		"https://example.org/a":   `href="https://example.org/a"`,
	} {
		files, err := made(t, "# Title\n\n[link]("+link+")\n")
		require.NoError(t, err, link)
		require.Contains(t, string(files["topics/tried.html"]), want, link)
	}
	for link, want := range map[string]string{
		"memroy.md":           "cmd/gnnstore/topics/memroy.md is not in the source tree",
		"memory.md#how-many":  "cmd/gnnstore/topics/memory.md has no heading of this name",
		"javascript:alert(1)": "only https, http and paths",
		"//example.org":       "only https, http and paths",
		"/etc/passwd":         "only https, http and paths",
	} {
		_, err := made(t, "# Title\n\n[link]("+link+")\n")
		require.ErrorContains(t, err, want, link)
		require.ErrorContains(t, err, "cmd/gnnstore/topics/tried.md: ", link)
	}
	_, err := made(t, "# Title\n\n![](nothing.svg)\n")
	require.ErrorContains(t, err, "a picture is missing")
	files, err := made(t, "# Title\n\n![](picture.svg)\n")
	require.NoError(t, err)
	require.Equal(t, "<svg/>", string(files["pictures/picture.svg"]))
	require.Contains(t, string(files["commands/gnnstore_eval.html"]), `href="../commands/gnnstore.html"`)
}

func TestMarkupIsText(t *testing.T) {
	files, err := made(t, "# <script>alert(1)</script>\n\nA <img src=x onerror=alert(1)> and `<b>`.\n")
	require.NoError(t, err)
	page := string(files["topics/tried.html"])
	require.NotContains(t, page, "<script>")
	require.NotContains(t, page, "<img")
	require.Contains(t, page, "<code>&lt;b&gt;</code>")
}

// TestSiteOfThisTree makes the site of the source tree, but for the help of commands. Each link
// leads to a file of the site or to a web address, and no page loads anything from elsewhere.
func TestSiteOfThisTree(t *testing.T) {
	s, err := gather(os.DirFS("../.."), fstest.MapFS{})
	require.NoError(t, err)
	require.Greater(t, len(s.pages), 40)
	files, err := s.files()
	require.NoError(t, err)
	for name, text := range maps.All(files) {
		if path.Ext(name) != ".html" {
			continue
		}
		doc, err := html.Parse(bytes.NewReader(text))
		require.NoError(t, err)
		for n := range doc.Descendants() {
			require.NotContains(t, []string{"script", "iframe", "object", "style"}, n.Data, name)
			for _, a := range n.Attr {
				if a.Key != "href" && a.Key != "src" {
					continue
				}
				to, _, _ := strings.Cut(a.Val, "#")
				if strings.HasPrefix(to, "http") {
					require.Equal(t, "a", n.Data, "%s loads %s", name, to)
				} else if to != "" {
					require.Contains(t, files, path.Join(path.Dir(name), to), "%s links %s", name, a.Val)
				}
			}
		}
	}
}

func TestFolderHasFiles(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, empty(dir))
	require.NoError(t, empty(dir+"/absent"))
	require.NoError(t, os.WriteFile(dir+"/file", nil, 0o666))
	require.ErrorContains(t, empty(dir), "has files")
	require.Error(t, empty(dir+"/file"))
}
