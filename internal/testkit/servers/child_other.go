//go:build !linux

package servers

import "syscall"

// childAttr cannot tie the child's life to ours here; watchParent still does half of it.
func childAttr(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// descendants are not known here: a kill reaches the process and its group.
func descendants(int) []int { return nil }
