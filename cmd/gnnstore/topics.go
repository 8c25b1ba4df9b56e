package main

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/cobra"
)

// topicFiles has the help topics in Markdown. `gnnstore help NAME` prints topics/NAME.md.
//
//go:embed topics/*.md
var topicFiles embed.FS

// newTopics returns a command for each topic. Such a command only prints its topic.
func newTopics() (topics []*cobra.Command) {
	names, err := fs.Glob(topicFiles, "topics/*.md")
	if err != nil {
		panic(err) // the pattern is wrong
	}
	for _, name := range names {
		text, err := topicFiles.ReadFile(name)
		if err != nil {
			panic(err) // the binary has the file
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
		topic := &cobra.Command{Use: strings.TrimSuffix(path.Base(name), ".md"), Short: title}
		topic.SetHelpFunc(func(cmd *cobra.Command, _ []string) { printTopic(cmd.OutOrStdout(), string(text)) })
		topics = append(topics, topic)
	}
	return topics
}

// printTopic prints Markdown as it is, or formats it for reading if w is a terminal.
func printTopic(w io.Writer, text string) {
	tty := screenOf(w)
	if tty == nil {
		fmt.Fprint(w, text)
		return
	}
	fmt.Fprint(tty, formatTopic(text, min(columnsOf(tty), 100)))
}

const bold, regular = "\x1b[1m", "\x1b[0m"

// formatTopic formats the Markdown that topics use for a terminal of width columns. Headings are
// bold, paragraphs and items of lists are wrapped, and code is indented. A row of a table becomes
// its first cell in bold and the other cells below it.
func formatTopic(text string, width int) string {
	var b strings.Builder
	var paragraph []string
	indent := "" // of the lines after the first
	flush := func() {
		if len(paragraph) > 0 {
			indented(&b, strings.Join(paragraph, " "), indent, width)
		}
		paragraph, indent = nil, ""
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		heading := strings.TrimLeft(line, "#")
		switch {
		case heading != line && strings.HasPrefix(heading, " "):
			flush()
			fmt.Fprintf(&b, "%s%s%s\n", bold, unquote(heading[1:]), regular)
		case strings.HasPrefix(line, "    ") && len(paragraph) == 0, line == "":
			flush()
			b.WriteString(line + "\n")
		case strings.HasPrefix(line, "|"):
			flush()
			header := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|--") || i+1 < len(lines) && strings.HasPrefix(lines[i+1], "| --")
			if header || strings.HasPrefix(line, "|--") || strings.HasPrefix(line, "| --") {
				continue
			}
			row(&b, line, width)
		case strings.HasPrefix(line, "- "):
			flush()
			paragraph, indent = []string{line}, "  "
		default:
			paragraph = append(paragraph, strings.TrimSpace(line))
		}
	}
	flush()
	return b.String()
}

// row writes a row of a table.
func row(b *strings.Builder, line string, width int) {
	line = strings.ReplaceAll(strings.Trim(line, "| "), `\|`, "\x00")
	for i, cell := range strings.Split(line, "|") {
		cell = strings.ReplaceAll(strings.TrimSpace(cell), "\x00", "|")
		if i == 0 {
			fmt.Fprintf(b, "%s%s%s\n", bold, unquote(cell), regular)
		} else if cell != "" {
			b.WriteString("    ")
			indented(b, cell, "    ", width)
		}
	}
}

// indented writes text in lines of at most width columns. Lines after the first begin with indent.
func indented(b *strings.Builder, text, indent string, width int) {
	text = strings.Join(strings.Fields(unquote(text)), " ")
	b.WriteString(strings.Join(wrap(text, width-len(indent)), "\n"+indent) + "\n")
}

// unquote returns text without the marks of code, of emphasis, and of links, whose addresses are
// left out.
func unquote(text string) string {
	for {
		before, rest, found := strings.Cut(text, "](")
		open := strings.LastIndex(before, "[")
		_, after, closed := strings.Cut(rest, ")")
		if !found || open < 0 || !closed {
			return strings.NewReplacer("`", "", "**", "", `\*`, "*").Replace(text)
		}
		text = before[:open] + before[open+1:] + after
	}
}
