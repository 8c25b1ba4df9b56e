package setting

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// YAML returns the options as a file that ReadLines reads, each with its help above it. Options
// that were not given are commented out.
func (b *bound) YAML() string {
	var text strings.Builder
	for i := range b.options {
		x := &b.options[i]
		if x.group != "" {
			fmt.Fprintf(&text, "\n# %s\n", strings.ToUpper(x.group))
		}
		if _, short := x.value.(Shorthand); short {
			continue // the option has a row of its own
		}
		text.WriteByte('\n')
		comment(&text, keyNames{b.options.flags(), "", ""}.in(x.help))
		text.WriteString(Setting(x.flag, x.value.String(), b.Changed(x.key)))
	}
	return text.String()
}

// Setting returns the line of an option in a file. It is commented out if the option was not given.
func Setting(name, text string, given bool) string {
	switch {
	case given:
		return name + ": " + scalar(text) + "\n"
	case text == "":
		return "#" + name + ":\n"
	}
	return "#" + name + ": " + scalar(text) + "\n"
}

// comment writes text as comment lines of at most 100 columns.
func comment(b *strings.Builder, text string) {
	line := "#"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > 100 && line != "#" {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	if line != "#" {
		b.WriteString(line + "\n")
	}
}

// scalar returns YAML that ReadLines reads as text. Quotes are added only where they are needed.
func scalar(text string) string {
	var root yaml.Node
	if !strings.ContainsAny(text, "\n\r") && yaml.Load([]byte("k: "+text+"\n"), &root) == nil && root.Content[0].Kind == yaml.MappingNode &&
		len(root.Content[0].Content) == 2 {
		read, err := word(root.Content[0].Content[1])
		if n := root.Content[0].Content[1]; err == nil && read == text && n.Style == 0 && n.Anchor == "" {
			return text
		}
	}
	var quoted bytes.Buffer
	e := json.NewEncoder(&quoted)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		panic(err) // a string can always be encoded
	}
	return strings.TrimSuffix(quoted.String(), "\n")
}
