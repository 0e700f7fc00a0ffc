// Package editdistance tells how far two names are apart, for hints at what may be meant.
package editdistance

// Between is the Levenshtein distance in bytes: how many must be put in, taken out or replaced to
// make one name of the other.
func Between(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Closest is the candidate that is nearest to a name, or empty: one letter in three may be another.
// As gives the form in which names are compared.
func Closest(name string, candidates []string, as func(string) string) string {
	best, limit := "", max(1, len(name)/3)
	for _, candidate := range candidates {
		if d := Between(as(name), as(candidate)); d <= limit && candidate != "" {
			best, limit = candidate, d-1
		}
	}
	return best
}
