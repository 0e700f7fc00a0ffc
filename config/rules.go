package config

import (
	"cmp"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The rules that many settings share. Each reports to p and names the setting by its path.

func (p *problems) require(path, value string) bool {
	if value == "" {
		p.add(path, "", "is required")
	}
	return value != ""
}

func oneOf[T ~string](p *problems, path string, value T, allowed ...T) bool {
	if slices.Contains(allowed, value) {
		return true
	}
	words := make([]string, len(allowed))
	for i, word := range allowed {
		words[i] = string(word)
	}
	p.add(path, didYouMean(string(value), words), "must be %s, got %q", orList(words), value)
	return false
}

// orList is "a, b or c".
func orList(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// within checks both limits, which are allowed values.
func within[T cmp.Ordered](p *problems, path string, value, low, high T) {
	if value < low {
		p.add(path, "", "must be at least %v, got %v", low, value)
	} else if value > high {
		p.add(path, "", "must be at most %v, got %v", high, value)
	}
}

var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

func (p *problems) topicName(path, name string) {
	if !topicName.MatchString(name) || name == "." || name == ".." {
		p.add(path, "", "must be a topic name (1 to 249 of letters, digits, '.', '_', '-'; not . "+
			"or ..), got %q", name)
	}
}

var cassandraName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_]{0,47}$`)

func (p *problems) cassandraName(path, name string) {
	if !cassandraName.MatchString(name) {
		p.add(path, "",
			"must be a letter and then letters, digits and _, at most 48 in all, got %q", name)
	}
}

var postgresName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)

func (p *problems) postgresName(path, name string) {
	if !postgresName.MatchString(name) {
		p.add(path, "", "must be a lower-case letter and then lower-case letters, digits and _, "+
			"at most 48 in all, got %q", name)
	}
}

// addresses checks a list of servers, each host:port or a host alone.
func (p *problems) addresses(path string, list []string) {
	if len(list) == 0 {
		p.add(path, "", "is required, at least one host:port")
	}
	for i, address := range list {
		if !isServer(address) {
			p.add(path+"["+strconv.Itoa(i)+"]", "", "must be host:port or a host, got %q", address)
		}
	}
}

func isServer(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil { // no port; a host name has no colon, an IPv6 address has several
		return isHost(address) && (!strings.Contains(address, ":") || net.ParseIP(address) != nil)
	}
	return isHost(host) && isPort(port, 1)
}

func isHost(host string) bool {
	return host != "" && !strings.ContainsAny(host, " \t\r\n/,@[]\"'")
}

func isPort(port string, lowest int) bool {
	n, err := strconv.Atoi(port)
	return err == nil && n >= lowest && n <= 65535
}

// readable checks a file that is only read later.
func (p *problems) readable(path, file string) {
	if file == "" {
		return
	}
	f, err := os.Open(file)
	if err != nil {
		p.add(path, "", "must be a readable file: %v", err)
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		p.add(path, "", "must be a readable file: %s is a directory", file)
	}
}
