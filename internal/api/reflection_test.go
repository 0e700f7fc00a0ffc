package api

import (
	"slices"
	"testing"

	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kdedup/kdedup/api/kdedup/v1/kdedupv1connect"
	"github.com/kdedup/kdedup/idempotency/memory"
)

// A tool that knows nothing of kdedup finds the services and their methods.
func TestToolsFindTheServicesByReflection(t *testing.T) {
	server, _ := inMemory(t, Options{Keys: memory.New()}, "orders")
	client := grpcreflect.NewClient(clearText(t), server.URL())
	stream := client.NewStream(t.Context())
	defer func() { _, _ = stream.Close() }()
	services, err := stream.ListServices()
	if err != nil {
		t.Fatal(err)
	}
	for service, method := range map[protoreflect.FullName]string{
		kdedupv1connect.ClaimServiceName: "Judge", kdedupv1connect.IdempotencyServiceName: "Begin",
	} {
		if !slices.Contains(services, service) {
			t.Errorf("there are %v, and no %s", services, service)
		}
		files, err := stream.FileContainingSymbol(service)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, file := range files {
			for _, s := range file.GetService() {
				for _, m := range s.GetMethod() {
					found = found || string(service) == file.GetPackage()+"."+s.GetName() &&
						m.GetName() == method
				}
			}
		}
		if !found {
			t.Errorf("%s has no method %s", service, method)
		}
	}
}
