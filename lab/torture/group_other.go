//go:build !unix

package torture

// Here only the process itself can be ended, and not be asked to.
func (c *child) lead() {}
func (c *child) ask()  {}
func (c *child) kill() { _ = c.cmd.Process.Kill() }
