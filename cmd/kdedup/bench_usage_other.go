//go:build !unix

package main

func used() usage { return usage{} }
