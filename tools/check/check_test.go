package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const readme = "# house\n\n```\n$ go run\n```\n\n## Map\n\n```text\n" + `
store/           the dataset on disk
  internal/mapping  maps files
  storetest         tiny datasets
kernels/         the math
train/           the loop
  sample, tape      blocks; differentiation
  model             layers
cmd/gnnstore     the CLI
tools/           developer programs
  check             this one

cmd -> train, store          train -> kernels, store
store, kernels -> nothing of ours
tools -> anything but cmd; nothing -> cmd, tools
inside train: model -> tape, sample, kernels; train -> all of them
` + "```\n\n## Next\n\n```\nnoise/ -> none\n```\n"

// tree is a house in which nothing is wrong.
func tree() fstest.MapFS {
	files := map[string]string{
		"README.md":                         readme,
		"go.mod":                            "module " + module,
		"store/store.go":                    "// Package store keeps.\npackage store\n\nimport _ \"" + module + "/store/internal/mapping\"\n",
		"store/store_test.go":               source("store_test", "store", "store/storetest"),
		"store/internal/mapping/mapping.go": source("mapping"),
		"store/storetest/storetest.go":      source("storetest", "store") + "import \"os\"\n\nvar _ = os.Getenv(\"HOME\")\n",
		"kernels/kernels.go":                source("kernels"),
		"kernels/kernels_test.go":           source("kernels", "store/storetest"),
		"kernels/_gen/gen.go":               "this is not Go",
		"train/train.go":                    source("train", "train/model", "train/tape", "kernels", "store"),
		"train/sample/sample.go":            source("sample", "store"),
		"train/tape/tape.go":                source("tape", "kernels"),
		"train/model/model.go":              source("model", "train/tape", "train/sample", "kernels"),
		"cmd/gnnstore/main.go":              source("main", "train") + "import \"os\"\n\nfunc main() { os.Exit(0) }\n",
		"tools/check/main.go":               source("main", "store/storetest", "kernels"),
		"tools/lint/go.mod":                 "module lint",
		"store/doc.go":                      "// Package store keeps.\n//\n// # Imports\n//\n//\tstore -> internal; storetest -> store\npackage store\n",
		"tools/lint/pin.go":                 source("nowhere", "cmd/gnnstore"),
		"store/testdata/broken.go":          "this is not Go",
	}
	root := fstest.MapFS{}
	for name, text := range files {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

// source is a documented file of package name that imports directories of ours.
func source(name string, imports ...string) string {
	var b strings.Builder
	b.WriteString("// Package " + name + " is here.\npackage " + name + "\n\n")
	for _, dir := range imports {
		b.WriteString("import _ \"" + module + "/" + dir + "\"\n")
	}
	return b.String()
}

func TestTreeInOrder(t *testing.T) {
	var out bytes.Buffer
	ok, err := check(&out, tree())
	require.NoError(t, err)
	// cmd 2, train 2, tools 3 (store, kernels, train), model 3, and train to its three packages.
	require.Equal(t, "ok: 10 packages, 15 arrows\n", out.String())
	require.True(t, ok)
}

func TestFindings(t *testing.T) {
	const draws = "; README.md's map draws no arrow "
	for _, c := range []struct {
		name, file, text, want string
	}{
		{"between rooms", "store/bad.go", source("store", "kernels"), "store/bad.go: imports kernels" + draws + "store -> kernels"},
		{"under another build tag", "kernels/bad.go", "//go:build cuda\n\n" + source("kernels", "train"),
			"kernels/bad.go: imports train" + draws + "kernels -> train"},
		{"from tools to cmd", "tools/check/bad.go", source("main", "cmd/gnnstore"), "tools/check/bad.go: imports cmd/gnnstore" + draws + "tools -> cmd"},
		{"inside train", "train/tape/bad.go", source("tape", "train/sample"), "train/tape/bad.go: imports train/sample" + draws + "inside train: tape -> sample"},
		{"upwards inside train", "train/tape/bad.go", source("tape", "train"), "train/tape/bad.go: imports train" + draws + "inside train: tape -> train"},
		{"model says what it imports", "train/model/bad.go", source("model", "store"), "train/model/bad.go: imports store" + draws + "train -> store"},
		{"a test of another room", "kernels/bad_test.go", source("kernels", "store"), "kernels/bad_test.go: imports store" + draws + "kernels -> store"},
		{"a helper of tests", "train/bad.go", source("train", "store/storetest"), "train/bad.go: imports store/storetest, a helper of tests"},
		{"not in the map", "extra/extra.go", source("extra"), "extra: is not in README.md's map"},
		{"no comment", "kernels/kernels.go", "package kernels\n", `kernels: has no package comment that starts "Package kernels "`},
		{"a comment on something else", "kernels/kernels.go", "// Kernels are math.\npackage kernels\n", `kernels: has no package comment that starts "Package kernels "`},
		{"a long file", "kernels/long.go", "package kernels\n" + strings.Repeat("\n", 800), "kernels/long.go: has 801 lines; past 800, look for a second noun"},
		{"a promise", "kernels/bad_test.go", "package kernels\n\n// TO" + "DO: later.\n", "kernels/bad_test.go:3: TO" + "DO: keep the promise or drop it"},
		{"in a module of its own", "tools/lint/bad.go", "package nowhere\n\n// TO" + "DO: later.\n", "tools/lint/bad.go:3: TO" + "DO: keep the promise or drop it"},
		{"a name that does not tell", "store/bad.go", "package store\n\nfunc f(told int) int { return told }\n", "store/bad.go:3: told: name what it holds"},
		{"a field that does not tell", "store/bad.go", "package store\n\ntype x struct{ hall int }\n", "store/bad.go:3: hall: name what it holds"},
		{"printing", "store/bad.go", "package store\n\nimport \"fmt\"\n\nfunc f() { fmt.Println() }\n", "store/bad.go:5: fmt.Println below cmd: return a value or an error, take an option"},
		{"the environment under another name", "store/bad.go", "package store\n\nimport env \"os\"\n\nvar _ = env.Getenv(\"HOME\")\n",
			"store/bad.go:5: env.Getenv below cmd: return a value or an error, take an option"},
		{"only in the map", "README.md", strings.Replace(readme, "tools/  ", "docs/  prose\ntools/  ", 1), "docs: is in README.md's map and not in the tree"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := tree()
			root[c.file] = &fstest.MapFile{Data: []byte(c.text)}
			var out bytes.Buffer
			ok, err := check(&out, root)
			require.NoError(t, err)
			require.Equal(t, c.want+"\n", out.String())
			require.False(t, ok)
		})
	}
}

func TestAllowed(t *testing.T) {
	for name, text := range map[string]string{
		"store/long_test.go":   "// Code generated by hand; DO NOT EDIT.\npackage store\n" + strings.Repeat("\n", 900),
		"store/print_test.go":  "package store\n\nimport \"fmt\"\n\nfunc f() { fmt.Println() }\n",
		"store/sprint.go":      "package store\n\nimport \"fmt\"\n\nvar _ = fmt.Sprint(\"TO" + "DO\")\n",
		"store/ownfmt.go":      "package store\n\nvar fmt struct{ Print func() }\n\nfunc f() { fmt.Print() }\n",
		"train/model/model.go": source("model"),
	} {
		t.Run(name, func(t *testing.T) {
			root := tree()
			root[name] = &fstest.MapFile{Data: []byte(text)}
			var out bytes.Buffer
			ok, err := check(&out, root)
			require.NoError(t, err)
			require.True(t, ok, out.String())
		})
	}
}

func TestMapRefused(t *testing.T) {
	block := func(lines string) string { return "## Map\n```text\n" + lines + "\n```\n" }
	for text, want := range map[string]string{
		"# house\n":                                                        `no fenced block under a heading "Map"`,
		"## Map\n\n## Next\n```\na/  b\n```\n":                             `no fenced block under a heading "Map"`,
		block("store/"):                                                    `"store/": want a name, two spaces or more, a phrase`,
		block("a/  x\na/  y"):                                              "a stands there twice",
		block("a/  x\na -> b"):                                             "an arrow points to b, which is no directory in the map",
		block("a/  x\nb -> a"):                                             "an arrow leaves b, which is no directory in the map",
		block("a/  x\na -> nothing of ours and more"):                      "an arrow points to nothing of ours and more",
		block("a/  x\nb/  y\na -> b\nnothing -> b"):                        "a -> b is drawn, and so is nothing -> b",
		block("a/  x\ninside b: c -> d"):                                   "inside b: no such directory",
		block("a/  x\n  c  z\ninside a: c -> d"):                           "an arrow points to d",
		block("a/  x\n  c  z\ninside a: d -> c"):                           "an arrow leaves d",
		block("a/  x\nb/  y\na -> anything but cmd\nb -> nothing of ours"): "an arrow points to cmd",
	} {
		_, err := parseMap(text)
		require.ErrorContains(t, err, want, text)
	}
	root := tree()
	root["train/doc.go"] = &fstest.MapFile{Data: []byte("// Package train trains.\n//\n//\tmodel -> nowhere\npackage train\n")}
	_, err := check(io.Discard, root)
	require.EqualError(t, err, "train/doc.go: map: an arrow points to nowhere, which is no directory in the map")
}
