package store

import "strings"

// CleanWord makes s the name of a node type, relation, table, label or split: what is not an ASCII
// letter, a digit or - becomes _, one for a run of them and none at either end. A name that may be
// one comes back as it is, and text without any letter or digit as "unnamed".
func CleanWord(s string) string {
	if checkNames("", s) == nil {
		return s
	}
	words := strings.FieldsFunc(s, func(c rune) bool { return c == '_' || !wordRune(c) })
	clean := strings.Join(words, "_")
	clean = strings.TrimRight(clean[:min(len(clean), maxPart)], "_")
	if clean == "" {
		return "unnamed"
	}
	return clean
}
