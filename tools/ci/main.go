// Ci holds the steps of .ci/run that need more than a line of shell. Each command runs one proof
// and exits 1 with a line that names what failed.
//
//	go test -json ./... | go run ./tools/ci tests [-allow TEXT,…]   count tests; fail on failures and on skips not allowed
//	go run ./tools/ci skipped FILE…                                 what tests -record, and .ci/run, noted as skipped everywhere
//	go run ./tools/ci demo                                          the newcomer's first command learns
//	go run ./tools/ci flips [-times 500] [-seed N]                  no flipped bit of a dataset changes a result without a word
//	go run ./tools/ci record [-write [-cut]]                        results are those on record; older runs resume
//	go run ./tools/ci static                                        the README's build needs nothing of the system
//	go run ./tools/ci pairs [-seed N]                               options run in any two of their values, or say why not
//	go run ./tools/ci memory                                        training keeps to --memory, held to 110 % of it
//	go run ./tools/ci streams                                       no setting and no kill changes a run on a stream
//	go run ./tools/ci workers        four workers end alike in any processes, by both MPIs
//	go run ./tools/ci transcripts    the tutorials' commands print what the tutorials show
//	go run ./tools/ci spills -dataset FILE.gnn                      no spill changes a run of some ten million nodes; by hand
//	go run ./tools/ci counts|same|crash|nospace|readonly -data DIR  what the built gnnstore does with real data
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

var commands = map[string]func(ctx context.Context, args []string) error{
	"tests":       runTests,
	"skipped":     runSkipped,
	"demo":        runDemo,
	"pairs":       pairs,
	"static":      runStatic,
	"counts":      withArxiv(counts),
	"same":        withArxiv(same),
	"crash":       withArxiv(crash),
	"flips":       withBinary(flips),
	"memory":      withBinary(memory),
	"record":      withBinary(record),
	"streams":     withBinary(streams),
	"workers":     withBinary(workers),
	"transcripts": withBinary(transcripts),
	"spills":      withBinary(spills),
	"nospace":     withArxiv(noSpace),
	"readonly":    withArxiv(readOnly),
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "usage: go run ./tools/ci %s\n", strings.Join(slices.Sorted(maps.Keys(commands)), "|"))
		os.Exit(2)
	}
	// A signal ends ctx, so that mounts and temporary directories go before the process does.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := commands[os.Args[1]](ctx, os.Args[2:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "ci %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}
