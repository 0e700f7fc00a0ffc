// Package otlptest serves what takes telemetry by OTLP, for tests.
package otlptest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// OverHTTP serves until the test ends, and returns the URL.
func OverHTTP(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// OverGRPC serves what is registered until the test ends, and returns the URL.
func OverGRPC(t *testing.T, register func(*grpc.Server)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	register(server)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

// Read reads the message of a request by HTTP.
func Read(request *http.Request, message proto.Message) error {
	body, err := io.ReadAll(request.Body)
	if err == nil {
		err = proto.Unmarshal(body, message)
	}
	if kind := request.Header.Get("Content-Type"); err == nil && kind != "application/x-protobuf" {
		err = fmt.Errorf("the content is of type %q", kind)
	}
	return err
}

// Authorization is the header `authorization` of a call by gRPC.
func Authorization(ctx context.Context) string {
	headers, _ := metadata.FromIncomingContext(ctx)
	return strings.Join(headers.Get("authorization"), " ")
}
