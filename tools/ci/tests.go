package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// skippable are the reasons that a machine may have: hardware or rights that it lacks.
var skippable = []string{"no GPU", "no such CPU feature", "no root"}

func runTests(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("tests", flag.ExitOnError)
	allow := flags.String("allow", "", "more `texts`, comma-separated, that excuse a skip")
	record := flags.String("record", "", "`file` that gets a line for each test that ran or skipped, for skipped to read; default none")
	_ = flags.Parse(args) // ExitOnError
	allowed := skippable
	if *allow != "" {
		allowed = append(allowed, strings.Split(*allow, ",")...)
	}
	if *record == "" {
		return countTests(os.Stdout, io.Discard, os.Stdin, allowed)
	}
	f, err := os.OpenFile(*record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(countTests(os.Stdout, f, os.Stdin, allowed), f.Close())
}

// Words of a record: a line is one of them, a name, and for ranNot a reason, with tabs between.
const (
	ran    = "ran"
	ranNot = "skipped"
)

// runSkipped lists what stands in records as skipped and ran in no step, with the first reason.
func runSkipped(_ context.Context, args []string) error {
	var records []byte
	for _, name := range args {
		text, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // nothing has run yet
			return err
		}
		records = append(records, text...)
	}
	return listSkipped(os.Stdout, string(records), os.Getenv("GNNSTORE_DATA") != "")
}

// listSkipped prints the tests that were skipped wherever they could have run. Where there is data,
// a test that never had it is an error.
func listSkipped(w io.Writer, records string, data bool) (err error) {
	reasons, done := map[string]string{}, map[string]bool{}
	for line := range strings.Lines(records) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		switch {
		case fields[0] == ran && len(fields) == 2:
			done[fields[1]] = true
		case fields[0] == ranNot && len(fields) == 3 && reasons[fields[1]] == "":
			reasons[fields[1]] = fields[2]
		}
	}
	maps.DeleteFunc(reasons, func(name, _ string) bool { return done[name] })
	fmt.Fprintf(w, "skipped in every step: %d\n", len(reasons))
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(w, "  %s: %s\n", name, reasons[name])
		if data && strings.Contains(reasons[name], "GNNSTORE_DATA") {
			err = fmt.Errorf("%s: there is data, and no step ran it with that: name GNNSTORE_DATA in its file", name)
		}
	}
	return err
}

// A testEvent is a line of go test -json.
type testEvent struct {
	Action, Package, ImportPath, Test, Output string
}

// countTests reads what go test -json prints, shows what failed and why tests skipped, records what
// ran and what did not, and ends with one line of counts.
func countTests(w, record io.Writer, r io.Reader, allowed []string) error {
	var passed, failed, skipped, refused int
	outputs := map[string]*strings.Builder{} // by package or package and test
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e testEvent
		if !bytes.HasPrefix(lines.Bytes(), []byte("{")) || json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(w, lines.Text())
			continue
		}
		name := strings.TrimSpace(e.Package + e.ImportPath + " " + e.Test)
		if outputs[name] == nil {
			outputs[name] = &strings.Builder{}
		}
		said := outputs[name]
		switch e.Action {
		case "output", "build-output":
			said.WriteString(e.Output)
			continue
		case "fail", "build-fail":
			failed++
			fmt.Fprintf(w, "FAIL %s\n%s", name, said)
		case "pass":
			if e.Test != "" {
				passed++
				fmt.Fprintf(record, "%s\t%s\n", ran, name)
			}
		case "skip":
			if e.Test != "" { // else a package without tests
				skipped++
				verdict := "skip"
				if !containsAny(said.String(), allowed) {
					verdict = "SKIP NOT ALLOWED"
					refused++
				}
				fmt.Fprintf(w, "%s %s: %s\n", verdict, name, reason(said.String()))
				fmt.Fprintf(record, "%s\t%s\t%s\n", ranNot, name, reason(said.String()))
			}
		default:
			continue
		}
		delete(outputs, name)
	}
	if err := lines.Err(); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	switch {
	case failed > 0:
		return fmt.Errorf("%d failed", failed)
	case refused > 0:
		return fmt.Errorf("%d skipped for a reason other than %q", refused, allowed)
	case passed == 0:
		return errors.New("no test ran")
	}
	return nil
}

func containsAny(s string, texts []string) bool {
	for _, text := range texts {
		if strings.Contains(s, text) {
			return true
		}
	}
	return false
}

// reason picks from a skipped test's output what the test itself said.
func reason(output string) string {
	var said []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			said = append(said, line)
		}
	}
	return strings.Join(said, " ")
}
