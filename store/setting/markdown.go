package setting

import (
	"cmp"
	"fmt"
	"strings"
)

// Markdown describes the options, with their values in o as defaults: a heading and a table for
// each group.
func (t Table[T]) Markdown(o *T) string {
	names := keyNames{t.Flags(), "`--", "`"}
	var b strings.Builder
	for _, d := range t {
		if d.Group != "" {
			fmt.Fprintf(&b, "\n## %s\n\n| flag | what it sets | default | when resumed |\n|---|---|---|---|\n", d.Group)
		}
		v := d.In(o)
		flag := "--" + d.FlagName()
		if s, ok := v.(switched); !ok || !s.switched() {
			flag += " " + kindOf(v)
		}
		resumed := "stays"
		if d.Free != nil {
			resumed = cmp.Or(d.FreeText, "may change")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", flag, cell(names.in(d.Help)), cell(shown(v.String())), resumed)
	}
	return b.String()
}

// kindOf names the kind of a value as help does.
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

// shown is a default as help shows it: nothing if it is zero.
func shown(text string) string {
	if text == "0" || text == "false" {
		return ""
	}
	return text
}

// cell escapes text for a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
