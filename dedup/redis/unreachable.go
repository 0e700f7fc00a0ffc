package redis

import "strings"

// Unreachable reports whether an error of Open is the answer of a server that does not serve yet:
// it loads its file, or has no master.
func Unreachable(err error) bool {
	if err == nil {
		return false
	}
	for _, state := range []string{"LOADING ", "MASTERDOWN ", "CLUSTERDOWN ",
		"all sentinels specified in configuration are unreachable"} {
		if strings.Contains(err.Error(), state) {
			return true
		}
	}
	return false
}
