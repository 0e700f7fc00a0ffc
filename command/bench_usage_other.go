//go:build !unix

package command

func used() usage { return usage{} }
