package store

import "strings"

// CleanWord turns s into a valid name for a node type, relation, table, label or split. Each run of
// characters other than ASCII letters, digits and - becomes one _, and there is none at either end.
// A valid name comes back unchanged. Text without any such character becomes "unnamed".
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
