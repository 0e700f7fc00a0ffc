package api

import (
	"errors"
	"fmt"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// jsonCodec refuses fields that a message does not have. Who writes JSON by hand misspells some,
// and a place without its offset, or a message without its fingerprint, would be understood wrongly
// and without a word.
type jsonCodec struct{ name string }

// withCodecs has connect use ours.
func withCodecs(batch int) connect.HandlerOption {
	return connect.WithHandlerOptions(connect.WithCodec(codec{batch}),
		connect.WithCodec(jsonCodec{"json"}),
		connect.WithCodec(jsonCodec{"json; charset=utf-8"})) // both by the name in Content-Type
}

func (c jsonCodec) Name() string { return c.name }

func (c jsonCodec) Marshal(message any) ([]byte, error) { return c.MarshalAppend(nil, message) }

// MarshalAppend is an optional part of a codec.
func (jsonCodec) MarshalAppend(to []byte, message any) ([]byte, error) {
	if m, ok := message.(proto.Message); ok {
		return protojson.MarshalOptions{}.MarshalAppend(to, m)
	}
	return nil, notAMessage("marshal", message)
}

func (jsonCodec) Unmarshal(data []byte, message any) error {
	m, ok := message.(proto.Message)
	switch {
	case !ok:
		return notAMessage("unmarshal", message)
	case len(data) == 0:
		return errors.New("the body is empty, send a JSON object")
	}
	if err := protojson.Unmarshal(data, m); err != nil {
		return fmt.Errorf("not the JSON of a %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return nil
}

// explained tells those who call a method by hand, in a way that connect refuses without a word,
// how to call it.
func explained(next http.Handler) http.Handler {
	understood := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case methods[r.URL.Path] == "":
			next.ServeHTTP(w, r)
		case r.Method != http.MethodPost:
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "call this with POST", http.StatusMethodNotAllowed)
		case !understood.IsSupported(r):
			http.Error(w, "send Content-Type: application/json, or that of gRPC",
				http.StatusUnsupportedMediaType)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
