package keepers

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kdedup/kdedup/dedup/claimlog"
	"github.com/kdedup/kdedup/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

// network returns one that listens, and its address.
func network(t *testing.T, secret string) (*Network, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Listener: l, Logger: quiet}
	if secret != "" {
		settings, err := FromSecret([]byte(secret))
		if err != nil {
			t.Fatal(err)
		}
		o.TLS = func() *tls.Config { return settings }
	}
	n := New(o)
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n, l.Addr().String()
}

const secret = "0123456789abcdef0123456789abcdef"

func echo(_ context.Context, request []byte) []byte { return append([]byte("re: "), request...) }

func TestRequestsAreAnsweredWhoeverIsSlow(t *testing.T) {
	for name, secret := range map[string]string{"encrypted": secret, "on loopback": ""} {
		t.Run(name, func(t *testing.T) {
			server, address := network(t, secret)
			client, _ := network(t, secret)
			slow := make(chan struct{})
			server.Serve(func(ctx context.Context, request []byte) []byte {
				if string(request) == "slow" {
					<-slow
				}
				return echo(ctx, request)
			})
			var asking sync.WaitGroup
			want := func(request string) {
				answer, err := client.Ask(t.Context(), address, []byte(request))
				if err != nil || string(answer) != "re: "+request {
					t.Errorf("%.20q: %.20q, %v", request, answer, err)
				}
			}
			asking.Go(func() { want("slow") })
			var others sync.WaitGroup
			for i := range 50 {
				others.Go(func() { want(strings.Repeat("x", i*i*200)) })
			}
			others.Wait()
			close(slow)
			asking.Wait()
		})
	}
}

func TestOnlyWhoHasTheSecretIsAnswered(t *testing.T) {
	server, address := network(t, secret)
	asked := make(chan struct{}, 9)
	server.Serve(func(ctx context.Context, request []byte) []byte {
		asked <- struct{}{}
		return echo(ctx, request)
	})
	for name, s := range map[string]string{"another secret": strings.ToUpper(secret), "none": ""} {
		client, _ := network(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if answer, err := client.Ask(ctx, address, []byte("x")); err == nil {
			t.Errorf("%s: %q", name, answer)
		}
		cancel()
	}
	if len(asked) > 0 {
		t.Error("a stranger was listened to")
	}
	if _, err := FromSecret([]byte(secret[1:])); err == nil {
		t.Error("a short secret was taken")
	}
}

// Who asks does not tell a secret to a process that has none, or another one.
func TestAnImpostorIsNotAsked(t *testing.T) {
	impostor, address := network(t, strings.ToUpper(secret))
	impostor.Serve(func(context.Context, []byte) []byte {
		t.Error("it was asked")
		return nil
	})
	client, _ := network(t, secret)
	if _, err := client.Ask(t.Context(), address, []byte("x")); err == nil {
		t.Error("it was believed")
	}
}

func TestABatchThatIsGivenUpEndsWhatIsUnderWay(t *testing.T) {
	server, address := network(t, secret)
	client, _ := network(t, secret)
	begun, ended := make(chan struct{}), make(chan struct{})
	server.Serve(func(ctx context.Context, _ []byte) []byte {
		close(begun)
		<-ctx.Done()
		close(ended)
		return nil
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("given up")
	go func() {
		<-begun
		cancel(why)
	}()
	if _, err := client.Ask(ctx, address, []byte("x")); !errors.Is(err, why) {
		t.Error(err)
	}
	<-ended
}

func TestTooManyRequestsAreRefusedAtOnce(t *testing.T) {
	server, address := network(t, "")
	client, _ := network(t, "")
	release := make(chan struct{})
	server.Serve(func(context.Context, []byte) []byte {
		<-release
		return nil
	})
	results := make(chan error, mostRequests+1)
	for range mostRequests + 1 {
		go func() {
			_, err := client.Ask(t.Context(), address, []byte("x"))
			results <- err
		}()
	}
	if err := <-results; !errors.Is(err, claimlog.ErrBusy) {
		t.Errorf("the first answer: %v", err)
	}
	close(release)
	for range mostRequests {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

func TestAnotherProcessAtTheAddressIsFoundAgain(t *testing.T) {
	client, _ := network(t, secret)
	first, address := network(t, secret)
	first.Serve(echo)
	if _, err := client.Ask(t.Context(), address, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Ask(t.Context(), address, []byte("x")); err == nil {
		t.Error("nobody listens, and somebody answers")
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := FromSecret([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	second := New(Options{Listener: l, Logger: quiet,
		TLS: func() *tls.Config { return settings }})
	defer second.Close()
	second.Serve(echo)
	testkit.Eventually(t, 10*time.Second, "an answer", func() bool {
		answer, err := client.Ask(t.Context(), address, []byte("y"))
		return err == nil && string(answer) == "re: y"
	})
}

// Whatever comes on the port, the process goes on and answers the others.
func FuzzPort(f *testing.F) {
	whole := frame{kind: kindRequest, number: 7, payload: []byte("x")}
	f.Add(whole.append([]byte(preamble)))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add(append([]byte(preamble), 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0, 0, 1))
	f.Add(append([]byte(preamble), 0, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0, 0, 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		if readPreamble(r) != nil {
			return
		}
		for {
			f, err := readFrame(r)
			if err != nil {
				break
			}
			if cap(f.payload) > 4*len(data)+2*piece {
				t.Fatalf("%d bytes of memory for %d", cap(f.payload), len(data))
			}
			back, err := readFrame(bytes.NewReader(f.append(nil)))
			if err != nil || back.kind != f.kind || back.number != f.number ||
				!bytes.Equal(back.payload, f.payload) {
				t.Fatal(fmt.Sprint("a frame comes back as ", back, err))
			}
		}
	})
}
