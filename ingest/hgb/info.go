package hgb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/store"
)

// maxInfo bounds info.dat; IMDB's, which lists its keywords, has 291 KB.
const maxInfo = 16 << 20

// info has the names of the graph's types and classes. The types that a link joins are read from
// link.dat.
type info struct {
	Nodes struct {
		Types map[string]word `json:"node type"`
	} `json:"node.dat"`
	Links struct {
		Types map[string]struct {
			Meaning word `json:"meaning"`
		} `json:"link type"`
	} `json:"link.dat"`
	Labels struct {
		Types map[string]map[string]word `json:"node type"`
	} `json:"label.dat"`
}

// word is a name, or a number for one, in quotes or not.
type word string

func (w *word) UnmarshalJSON(text []byte) error {
	var number json.Number
	if json.Unmarshal(text, &number) == nil && text[0] != '"' {
		*w = word(number)
		return nil
	}
	return json.Unmarshal(text, (*string)(w))
}

// readInfo reads info.dat. Names are a comfort: without them, everything goes by number, and the
// error has the reason.
func (f *files) readInfo() (*info, error) {
	in := new(info)
	if !f.has("info.dat") {
		return in, fmt.Errorf("%s: not there; types and classes go by number", f.label("info.dat"))
	}
	body, err := f.open("info.dat")
	if err != nil {
		return in, err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxInfo+1))
	if err == nil && len(text) > maxInfo {
		err = fmt.Errorf("longer than %d bytes", maxInfo)
	}
	if err == nil {
		err = json.Unmarshal(withoutNaN(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))), in)
	}
	if err != nil {
		return new(info), fmt.Errorf("%s: %w; types and classes go by number", f.label("info.dat"), err)
	}
	return in, nil
}

// withoutNaN makes JSON of what Python writes for a float that is none, as IMDB's info.dat has it.
func withoutNaN(text []byte) []byte {
	inString := false
	for i := 0; i < len(text); i++ {
		switch {
		case inString && text[i] == '\\':
			i++
		case text[i] == '"':
			inString = !inString
		case !inString && text[i] == 'N' && strings.HasPrefix(string(text[i:min(i+3, len(text))]), "NaN"):
			copy(text[i:], "0  ")
		}
	}
	return text
}

// typeName returns the name of node type t.
func (in *info) typeName(t int) string {
	if name := in.Nodes.Types[strconv.Itoa(t)]; name != "" {
		return store.CleanWord(string(name))
	}
	return "type" + strconv.Itoa(t)
}

// relationName is the meaning of link type t without the names of its ends, by which it is known
// anyhow.
func (in *info) relationName(t int, src, dst string) string {
	meaning := string(in.Links.Types[strconv.Itoa(t)].Meaning)
	if meaning == "" {
		return "link" + strconv.Itoa(t)
	}
	words := strings.FieldsFunc(meaning, func(c rune) bool { return c == '-' || c == '>' })
	if len(words) > 0 && store.CleanWord(words[0]) == src {
		words = words[1:]
	}
	if len(words) > 0 && store.CleanWord(words[len(words)-1]) == dst {
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		return "to"
	}
	return store.CleanWord(strings.Join(words, "-"))
}

// classNames returns the class names of node type t, or nil unless each of the classes has one.
func (in *info) classNames(t, classes int) []string {
	known := in.Labels.Types[strconv.Itoa(t)]
	if len(known) != classes {
		return nil
	}
	names := make([]string, classes)
	for c := range names {
		name, ok := known[strconv.Itoa(c)]
		if !ok {
			return nil
		}
		names[c] = string(name)
	}
	return names
}
