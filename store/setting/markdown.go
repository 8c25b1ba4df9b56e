package setting

import (
	"fmt"
	"strings"
)

// markdown is Table.Markdown.
func (list options) markdown() string {
	names := keyNames{list.flags(), "`--", "`"}
	var b strings.Builder
	for i := range list {
		x := &list[i]
		if x.group != "" {
			fmt.Fprintf(&b, "\n## %s\n\n| flag | what it sets | default | when resumed |\n|---|---|---|---|\n", x.group)
		}
		flag := "--" + x.flag
		if !x.isSwitch() {
			flag += " " + kindOf(x.value)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", flag, cell(names.in(x.help)), cell(shown(x.value.String())), x.resumed)
	}
	return b.String()
}

// kindOf returns the name of the kind of a value, as in help.
func kindOf(v Value) string {
	switch kind := v.Type(); kind {
	case "float64":
		return "float"
	case "uint64":
		return "uint"
	default:
		return kind
	}
}

// shown returns a default as help shows it: nothing for 0 and false.
func shown(text string) string {
	if text == "0" || text == "false" {
		return ""
	}
	return text
}

// cell escapes text for a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
