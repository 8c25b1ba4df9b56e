package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// transcripts replays the commands that tutorials show, each tutorial in a folder of its own, and
// compares what they print with what the tutorials show.
//
// A block of code is a transcript if it has a line that begins with "$ ". That line is a command
// for sh, which goes on in lines that begin with "> ". The lines up to the next command are its
// output: see [transcript]. The output of a command that fails ends with its exit status: "[exit
// 1]".
func transcripts(ctx context.Context, a *arxiv) (err error) {
	files, err := filepath.Glob("cmd/gnnstore/topics/tutorial*.md")
	if err == nil && len(files) == 0 {
		err = errors.New("cmd/gnnstore/topics has no tutorial; run this in the root of the source tree")
	}
	if err != nil {
		return err
	}
	binary, err := filepath.Abs(string(a.gnnstore))
	if err != nil {
		return err
	}
	bin, err := os.MkdirTemp("", "gnnstore-transcripts-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(bin)) }()
	if err := os.Symlink(binary, filepath.Join(bin, "gnnstore")); err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		start := time.Now()
		folder := filepath.Join(bin, strings.TrimSuffix(filepath.Base(file), ".md"))
		if err := os.Mkdir(folder, 0o777); err != nil {
			return err
		}
		steps := transcript(string(text))
		for _, s := range steps {
			if err := s.replay(ctx, folder, bin); err != nil {
				return fmt.Errorf("%s:%d: $ %s\n%w", file, s.line, s.command, err)
			}
		}
		fmt.Printf("%-45s %2d commands, %.1f s\n", file, len(steps), time.Since(start).Seconds())
	}
	return nil
}

// shown is a command of a transcript, with the output that the tutorial shows.
type shown struct {
	line    int // of the command, from 1
	command string
	output  []string
}

// transcript returns the commands in the blocks of code of a Markdown text. Blocks are indented by
// four blanks.
func transcript(text string) (all []shown) {
	var at *shown
	for i, line := range strings.Split(text, "\n") {
		code, ok := strings.CutPrefix(line, "    ")
		switch command, isCommand := strings.CutPrefix(code, "$ "); {
		case !ok && line == "" && at != nil: // an empty line may be within a block
			at.output = append(at.output, "")
		case !ok:
			at = nil
		case at != nil && len(at.output) == 0 && strings.HasPrefix(code+" ", "> "):
			at.command += "\n" + strings.TrimPrefix(strings.TrimPrefix(code, ">"), " ")
		case isCommand:
			all = append(all, shown{line: i + 1, command: command})
			at = &all[len(all)-1]
		case at != nil:
			at.output = append(at.output, code)
		}
	}
	for i := range all {
		output := all[i].output
		for len(output) > 0 && output[len(output)-1] == "" {
			output = output[:len(output)-1]
		}
		all[i].output = output
	}
	return all
}

// replay runs a command in a folder and compares its output with the lines that are shown. The
// folder bin is the first of PATH.
func (s *shown) replay(ctx context.Context, folder, bin string) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", s.command)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		out = fmt.Appendf(out, "[exit %d]\n", exit.ExitCode())
	} else if err != nil {
		return err
	}
	failed := exit != nil
	for _, line := range s.output {
		failed = failed && !strings.HasPrefix(line, "[exit ")
	}
	if failed {
		return fmt.Errorf("it fails, and the tutorial shows no [exit]:\n%s", out)
	}
	return compareShown(s.output, strings.Split(strings.TrimRight(string(out), "\n"), "\n"))
}

// compareShown compares shown lines with printed ones. A shown line "…" stands for any number of
// lines. If nothing is shown, any output will do. Other lines are compared by [alike].
func compareShown(want, got []string) error {
	if len(want) == 0 {
		return nil
	}
	anywhere := false
	for _, line := range want {
		if strings.TrimSpace(line) == "…" {
			anywhere = true
			continue
		}
		at := 0
		for anywhere && at < len(got) && !alike(line, got[at]) {
			at++
		}
		if at == len(got) || !alike(line, got[at]) {
			return fmt.Errorf("shown:   %s\nprinted:\n%s", line, strings.Join(got, "\n"))
		}
		got, anywhere = got[at+1:], false
	}
	if len(got) > 0 && !anywhere {
		return fmt.Errorf("printed, but not shown:\n%s", strings.Join(got, "\n"))
	}
	return nil
}

// digits matches a number as programs print it: 1,234 or 0.5 or 6.6e-05.
const digits = `\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?`

// number matches a number in a line, and the unit behind it, which decides how the number is
// compared.
var number = regexp.MustCompile(`(` + digits + `)((?: ?(?:%|ms|µs|s|min|[kM]?/s|[kM] rows/s|B|KiB|MiB|GiB|KiB/s|MiB/s|GiB/s)(?:\b|$| |,|;|:|\)))?)`)

// alike reports whether a printed line is right for a shown one. Several blanks count as one. "…"
// in the shown line stands for any text. Whole numbers must be equal. Shares in % may differ by 6
// points, and other fractions by a fifth, since kernels of other processors add in another order.
// Times, rates and bytes may have any value.
func alike(want, got string) bool {
	var pattern strings.Builder
	pattern.WriteString(`^`)
	var numbers []string // the shown numbers; "" if any number will do
	for i, part := range strings.Split(strings.Join(strings.Fields(want), " "), "…") {
		if i > 0 {
			pattern.WriteString(`.*`)
		}
		at := 0
		for _, m := range number.FindAllStringSubmatchIndex(part, -1) {
			value, unit := part[m[2]:m[3]], strings.Trim(part[m[4]:m[5]], " ,;:)")
			pattern.WriteString(regexp.QuoteMeta(part[at:m[2]]) + `(` + digits + `)`)
			at = m[3]
			switch unit {
			case "":
				numbers = append(numbers, value)
			case "%":
				numbers = append(numbers, value+"%")
			default: // the unit may be another, and the number too
				numbers = append(numbers, "")
				pattern.WriteString(` ?\S+?`)
				at = m[4] + len(strings.TrimRight(part[m[4]:m[5]], " ,;:)"))
			}
		}
		pattern.WriteString(regexp.QuoteMeta(part[at:]))
	}
	found := regexp.MustCompile(pattern.String() + `$`).FindStringSubmatch(strings.Join(strings.Fields(got), " "))
	if found == nil {
		return false
	}
	for i, shown := range numbers {
		if !near(shown, found[i+1]) {
			return false
		}
	}
	return true
}

// near reports whether two numbers are as near as [alike] wants them.
func near(want, got string) bool {
	value, isShare := strings.CutSuffix(want, "%")
	switch {
	case want == "" || value == got:
		return true
	case !isShare && !strings.ContainsAny(value, ".e"):
		return false
	}
	a, err := strconv.ParseFloat(strings.ReplaceAll(value, ",", ""), 64)
	b, err2 := strconv.ParseFloat(strings.ReplaceAll(got, ",", ""), 64)
	if err != nil || err2 != nil {
		return false
	}
	if isShare {
		return math.Abs(a-b) <= 6
	}
	return math.Abs(a-b) <= 0.2*math.Max(math.Abs(a), math.Abs(b))
}
