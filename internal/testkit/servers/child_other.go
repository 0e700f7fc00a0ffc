//go:build !linux

package servers

import "syscall"

// childAttr cannot tie the child's life to ours here; watchParent still does half of it.
func childAttr(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// descendants are not known here: a kill reaches the process and its group.
func descendants(int) []int { return nil }

const stopped, ended = "", ""

// awaitState has nothing to wait for: no descendant is known, and the process itself is waited for.
func awaitState(int, string) {}
