//go:build unix

package torture

import "syscall"

// lead makes the process the first of a group, which its descendants belong to.
func (c *child) lead() { c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// The group may be over already.
func (c *child) ask()  { _ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGTERM) }
func (c *child) kill() { _ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) }
