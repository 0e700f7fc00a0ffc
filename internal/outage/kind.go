package outage

import (
	"errors"
	"net"
	"regexp"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// numbers also finds those of sixteen digits, of which some are letters, as in random names.
var numbers = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`)

// Kind is equal for errors that have one cause: those of connections to the same host, those with
// the same answer of a broker, and others whose texts differ only in numbers, such as ports, and in
// the topic that they are of. What was being done when the error came does not tell causes apart.
func Kind(topic string, err error) string {
	if err == nil {
		return ""
	}
	var (
		connection *net.OpError
		answer     *kerr.Error
	)
	switch {
	case errors.As(err, &connection):
		host := ""
		if connection.Addr != nil {
			host = connection.Addr.String()
		}
		return numberless(host + " " + connection.Err.Error())
	case errors.As(err, &answer):
		return answer.Message
	}
	return Nameless(topic, err.Error())
}

// Nameless is equal for texts that differ only in numbers and in the topic.
func Nameless(topic, text string) string {
	if topic != "" {
		text = strings.ReplaceAll(text, topic, "TOPIC")
	}
	return numberless(text)
}

func numberless(text string) string { return numbers.ReplaceAllString(text, "0") }
