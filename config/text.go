package config

import (
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
)

// maxSecretBytes bounds a secret's file, so that a wrong path cannot fill the memory.
const maxSecretBytes = 64 << 10

// textHook reads text as what its field needs, after replacing ${NAME}. Its errors are
// *Error without a path.
func textHook(variables *expander) mapstructure.DecodeHookFuncValue {
	return func(from, to reflect.Value) (any, error) {
		if from.Kind() != reflect.String {
			return from.Interface(), nil
		}
		text, err := variables.expand(from.String())
		if err != nil {
			return nil, err
		}
		switch to.Interface().(type) {
		case Secret:
			return readSecret(text)
		case time.Duration:
			return parsed(text, parseDuration)
		case Bytes:
			return parsed(text, parseBytes)
		case int:
			return parsed(text, strconv.Atoi)
		case float64:
			return parsed(text, parseNumber)
		case bool:
			return parsed(text, parseBool)
		case []string:
			return splitList(text), nil
		case Fingerprint:
			return Fingerprint{Of: text}, nil
		default:
			return text, nil
		}
	}
}

// parsed puts a parser's error into our form.
func parsed[T any](text string, parse func(string) (T, error)) (any, error) {
	value, err := parse(text)
	if err != nil {
		return nil, &Error{Problem: fmt.Sprintf("must be %s, got %q", formOf(reflect.TypeFor[T]()),
			text)}
	}
	return value, nil
}

// parseDuration is time.ParseDuration with days, which stand first: 7d, 1d12h.
func parseDuration(text string) (time.Duration, error) {
	const day = 24 * time.Hour
	head, rest, hasDays := strings.Cut(text, "d")
	if !hasDays {
		return time.ParseDuration(text)
	}
	days, err := strconv.ParseUint(head, 10, 32)
	if err != nil || rest == "" {
		return bounded(days, 0, err)
	}
	part, err := time.ParseDuration(rest)
	if part < 0 || part >= day {
		err = strconv.ErrRange
	}
	return bounded(days, part, err)
}

// bounded is days and part together, unless a time.Duration cannot hold them.
func bounded(days uint64, part time.Duration, err error) (time.Duration, error) {
	const day = 24 * time.Hour
	if err == nil && days > uint64(math.MaxInt64/day)-1 {
		err = strconv.ErrRange
	}
	return time.Duration(days)*day + part, err
}

func parseNumber(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

// parseBool takes only the two words: with 1, t or yes a typing error could pass for an answer.
func parseBool(text string) (bool, error) {
	if text != "true" && text != "false" {
		return false, strconv.ErrSyntax
	}
	return text == "true", nil
}

// splitList splits at commas; blank elements are left out.
func splitList(text string) []string {
	list := []string{}
	for element := range strings.SplitSeq(text, ",") {
		if element = strings.TrimSpace(element); element != "" {
			list = append(list, element)
		}
	}
	return list
}

// readSecret follows file:PATH and otherwise returns the text. One newline at the end of the file
// is left out, and a byte order mark at its beginning, because editors put them there.
func readSecret(text string) (Secret, error) {
	path, inFile := strings.CutPrefix(text, "file:")
	if !inFile {
		return Secret(text), nil
	}
	file, err := os.Open(path)
	if err != nil {
		return "", &Error{Problem: fmt.Sprintf("read secret: %v", err)}
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxSecretBytes+1))
	switch {
	case err != nil:
		return "", &Error{Problem: fmt.Sprintf("read secret: %v", err)}
	case len(content) > maxSecretBytes:
		return "", &Error{Problem: fmt.Sprintf("read secret: %s is longer than %d bytes", path,
			maxSecretBytes)}
	}
	text = string(content)
	if strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") {
		return "", &Error{Problem: fmt.Sprintf("read secret: %s is written in UTF-16", path),
			Remedy: "save it as UTF-8"}
	}
	text = strings.TrimPrefix(text, "\ufeff") // a byte order mark, which editors put there
	secret := strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	if secret == "" {
		return "", &Error{Problem: fmt.Sprintf("read secret: %s is empty", path)}
	}
	return Secret(secret), nil
}
