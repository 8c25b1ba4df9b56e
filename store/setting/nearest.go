package setting

import (
	"slices"

	"github.com/agnivade/levenshtein"
)

// Nearest returns the word that a misspelt name most likely means: the word with the fewest edits
// from name. It allows one edit for every three letters of name, rounded up, and returns "" if no
// word is so near. Of equally near words it returns the first in alphabetical order.
func Nearest(name string, words []string) string {
	nearest, least := "", (len([]rune(name))+2)/3
	for _, word := range slices.Sorted(slices.Values(words)) {
		edits := levenshtein.ComputeDistance(name, word)
		if edits < least || edits == least && nearest == "" {
			nearest, least = word, edits
		}
	}
	return nearest
}
