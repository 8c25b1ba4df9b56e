package main

import (
	"maps"
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/gnnstore/gnnstore/train/run"
)

// Libraries name an option by its JSON key in braces, as in "{kappa} 0: at least 1": see the
// package comments of run and ingest. Every text of theirs that is printed or recorded passes here,
// where the flag takes the place of the key.

var keyPattern = regexp.MustCompile(`\{([a-z0-9_]+)\}`)

// withFlags puts flags in place of the keys in text. A key is replaced only where a flag has it and
// it stands as a word by itself, so that braces in paths and values of the user stay.
func withFlags(text string) string {
	keys := keyPattern.FindAllStringSubmatchIndex(text, -1)
	if keys == nil {
		return text
	}
	var b strings.Builder
	done, flags := 0, flagNames()
	for _, at := range keys {
		start, end := at[0], at[1]
		flag, known := flags[text[at[2]:at[3]]]
		before := start == 0 || strings.ContainsRune(" \n(", rune(text[start-1]))
		after := end == len(text) || strings.ContainsRune(" \n):;,=", rune(text[end]))
		if known && before && after {
			b.WriteString(text[done:start] + "--" + flag)
			done = end
		}
	}
	return b.String() + text[done:]
}

// flagNames returns the flag of each key that a message may name. A key that the command line has
// in braces is the user's word, a path perhaps, and stays.
var flagNames = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for _, flags := range keyTables() {
		maps.Copy(names, flags)
	}
	typed := strings.Join(os.Args, " ")
	maps.DeleteFunc(names, func(key, _ string) bool { return strings.Contains(typed, "{"+key+"}") })
	return names
})

// keyTables returns the flag of each key, by command. A key has the same flag in all of them.
func keyTables() []map[string]string {
	return []map[string]string{
		{"run": "run", "resume": "resume", "sample": "sample", "parts": "parts", "by": "by"}, // flags outside tables
		ingestTable.Flags(), generateTable.Flags(), run.Table.Flags(), evalTable.Flags(), predictTable.Flags(), traceTable.Flags(),
	}
}

// resultWithFlags has flags in the texts of r, whoever made it.
func resultWithFlags(r *run.Result) *run.Result {
	r.Error, r.Advice = withFlags(r.Error), withFlags(r.Advice)
	epochsWithFlags(r.AutoEpochs)
	return r
}

func epochsWithFlags(a *run.AutoEpochs) {
	if a != nil {
		a.Reason, a.Ended = withFlags(a.Reason), withFlags(a.Ended)
	}
}
