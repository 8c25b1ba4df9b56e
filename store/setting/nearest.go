package setting

import (
	"slices"

	"github.com/agnivade/levenshtein"
)

// Nearest returns the word that name most likely stands for by a slip of the keyboard: the one with
// the fewest edits between them, and at most one edit for every three letters of name. It returns
// "" if no word is so near. Of equally near words it returns the first in alphabetical order.
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
