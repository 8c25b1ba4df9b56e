package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/trace"
)

func TestWithFlags(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "",
		"{kappa} 0: at least 1":            "--kappa 0: at least 1",
		"{lr_every}, {lr_gamma}: only one": "--lr-every, --lr-gamma: only one",
		"a larger {memory_bytes}, {host_bytes} or {engine} ({fanout}); lower {lr}": "a larger --memory, --host-memory or --disk-engine (--fanout); lower --lr",
		"{steps} -1\n{tmp}: full\n{features} degree":                               "--steps -1\n--tmp: full\n--features degree",
		"as by {reverse}; {reverse}=false stores them":                             "as by --reverse; --reverse=false stores them",
		// What no flag has, and what is part of a path or of a quoted value, is the user's.
		"{colour} {} {Kappa} { kappa }":                 "{colour} {} {Kappa} { kappa }",
		"run runs/{seed}: it is no run; {run} another":  "run runs/{seed}: it is no run; --run another",
		`{seed}/a.gnn: no split "{split}" {lr}x {{lr}}`: `{seed}/a.gnn: no split "{split}" {lr}x {{lr}}`,
	} {
		require.Equal(t, want, withFlags(text))
		require.Equal(t, want, withFlags(want))
	}
	r := resultWithFlags(&run.Result{Error: "lower {lr}", Advice: "a larger {hidden}", AutoEpochs: &run.AutoEpochs{Reason: "{epochs} N", Ended: "{patience}"}})
	require.Equal(t, &run.Result{Error: "lower --lr", Advice: "a larger --hidden", AutoEpochs: &run.AutoEpochs{Reason: "--epochs N", Ended: "--patience"}}, r)
}

// TestOneFlagPerKey checks that a key has one flag in all tables, and that some command has it.
func TestOneFlagPerKey(t *testing.T) {
	known := map[string]bool{}
	for _, cmd := range newRoot(&logOptions{form: textLog}, nil).Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
	}
	flags := flagNames()
	for _, table := range keyTables() {
		for key, flag := range table {
			require.Equal(t, flag, flags[key], key)
			require.True(t, known[flag], flag)
		}
	}
}

// TestEveryKeyHasAFlag checks that every option of a run and of a trace has a flag. Texts in train
// and ingest may name only such keys, and no flags.
func TestEveryKeyHasAFlag(t *testing.T) {
	flags := flagNames()
	for _, options := range []any{run.Options{}, trace.Options{}} {
		for _, key := range jsonKeys(reflect.TypeOf(options)) {
			require.Contains(t, flags, key)
		}
	}
	arguments := regexp.MustCompile(`^--[a-z-]+$`)
	check := func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		ast.Inspect(file, func(n ast.Node) bool {
			text, ok := n.(*ast.BasicLit)
			if !ok || text.Kind != token.STRING {
				return true
			}
			s, err := strconv.Unquote(text.Value)
			require.NoError(t, err)
			switch {
			case path == "../../ingest/export/streams.go" && arguments.MatchString(s): // of Report.Streams
			case path == "../../ingest/lines/scanner.go" && strings.HasSuffix(s, " --long"): // of zstd
			default:
				require.NotRegexp(t, `--([a-z%]|$)`, s, path)
			}
			for _, key := range keyPattern.FindAllStringSubmatch(s, -1) {
				require.Contains(t, flags, key[1], "%s: %s", path, s)
			}
			return true
		})
		return err
	}
	for _, room := range []string{"../../train", "../../ingest"} {
		require.NoError(t, filepath.WalkDir(room, check))
	}
}

// jsonKeys returns the keys of a struct and of the structs in it, except the cache's: texts name
// only its budgets.
func jsonKeys(options reflect.Type) (keys []string) {
	for i := range options.NumField() {
		f := options.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case key == "-" || key == "cache" && f.Type.Kind() == reflect.Struct:
		case f.Type.Kind() == reflect.Struct:
			keys = append(keys, jsonKeys(f.Type)...)
		default:
			keys = append(keys, key)
		}
	}
	return keys
}
