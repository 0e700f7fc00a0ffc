package testkit

import "go.uber.org/goleak"

// ToxiproxyLeaks are the goroutines that toxiproxy leaves for ever when a connection breaks while
// bytes are on their way, and those of a proxy that was given up for that.
func ToxiproxyLeaks() (leaks []goleak.Option) {
	for _, function := range []string{
		".(*ToxicLink).read", ".(*ToxicLink).write", ".(*ToxicLink).AddToxic",
		"/toxics.(*ToxicStub).Run",
		".(*ToxicCollection).AddToxicJson", ".(*Proxy).server", ".(*Proxy).freeBlocker",
		".(*Proxy).Stop",
	} {
		leaks = append(leaks, goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2"+function))
	}
	return leaks
}
