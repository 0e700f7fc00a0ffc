package testkit

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// kafkaProxy stands before one broker as the proxies of platforms do: clients hear of no address
// but those of the proxies, and of no request that is hidden.
type kafkaProxy struct {
	listener net.Listener
	upstream string
	gaps
	places map[string]string // of all brokers: address -> that of its proxy
	all    sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  []net.Conn
}

// gaps are what a proxy lacks.
type gaps struct {
	hidden []kmsg.Key
	untold bool // DescribeConfigs knows no topic
}

// HidingProxies starts a proxy before each broker of a Kafka, and returns their addresses. They
// answer as if the brokers did not know the hidden requests, and break the connection of a client
// that sends one. They stop with the test.
func HidingProxies(t testing.TB, brokers []string, hidden ...kmsg.Key) []string {
	t.Helper()
	return startProxies(t, brokers, gaps{hidden: hidden})
}

// RenamingProxies are as HidingProxies, and know no topic in DescribeConfigs that Metadata has: as
// those that give a tenant other names for topics, and forget them where settings are asked for.
func RenamingProxies(t testing.TB, brokers []string) []string {
	t.Helper()
	return startProxies(t, brokers, gaps{untold: true})
}

func startProxies(t testing.TB, brokers []string, lacks gaps) []string {
	t.Helper()
	meta, err := kadm.NewClient(KafkaClient(t, brokers)).BrokerMetadata(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	places := make(map[string]string)
	var proxies []*kafkaProxy
	for _, b := range meta.Brokers {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		p := &kafkaProxy{listener: listener, gaps: lacks, places: places,
			upstream: net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))}
		places[p.upstream] = listener.Addr().String()
		proxies = append(proxies, p)
	}
	var addresses []string
	for _, p := range proxies {
		p.all.Go(p.accept)
		t.Cleanup(p.close)
		addresses = append(addresses, p.listener.Addr().String())
	}
	return addresses
}

func (p *kafkaProxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.mu.Unlock()
	p.all.Wait()
}

// keep has the connections closed with the proxy, and reports whether it is still open.
func (p *kafkaProxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, conns...)
	return !p.closed
}

func (p *kafkaProxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.upstream)
		if err != nil {
			_ = client.Close()
			continue
		}
		if !p.keep(client, server) {
			_, _ = client.Close(), server.Close()
			return
		}
		asked := make(chan request, 100) // more than a client has under way
		p.all.Go(func() {
			defer close(asked)
			defer server.Close()
			p.requests(server, client, asked)
		})
		p.all.Go(func() {
			defer client.Close()
			p.answers(client, server, asked)
		})
	}
}

// request is what an answer belongs to. A broker answers the requests of a connection in order.
type request struct {
	key     kmsg.Key
	version int16
}

func (p *kafkaProxy) requests(server io.Writer, client io.Reader, asked chan<- request) {
	for {
		frame, err := readFrame(client)
		if err != nil || len(frame) < 8 {
			return
		}
		r := request{kmsg.Key(binary.BigEndian.Uint16(frame)),
			int16(binary.BigEndian.Uint16(frame[2:]))}
		if slices.Contains(p.hidden, r.key) {
			return
		}
		select {
		case asked <- r:
		default:
			return
		}
		if writeFrame(server, frame) != nil {
			return
		}
	}
}

func (p *kafkaProxy) answers(client io.Writer, server io.Reader, asked <-chan request) {
	for {
		frame, err := readFrame(server)
		if err != nil {
			return
		}
		r, ok := <-asked
		if !ok {
			return
		}
		if frame, err = p.changed(r, frame); err != nil || writeFrame(client, frame) != nil {
			return
		}
	}
}

// changed is an answer without what is hidden, and with the proxies' addresses.
func (p *kafkaProxy) changed(r request, frame []byte) ([]byte, error) {
	if !slices.Contains([]kmsg.Key{kmsg.Metadata, kmsg.FindCoordinator, kmsg.ApiVersions,
		kmsg.DescribeCluster}, r.key) && !(p.untold && r.key == kmsg.DescribeConfigs) {
		return frame, nil
	}
	answer := kmsg.ResponseForKey(int16(r.key))
	answer.SetVersion(r.version)
	head := 4 // the correlation ID
	if answer.IsFlexible() && r.key != kmsg.ApiVersions {
		head++ // no tags
	}
	if len(frame) < head {
		return nil, fmt.Errorf("an answer of %d bytes", len(frame))
	}
	if err := answer.ReadFrom(frame[head:]); err != nil {
		if r.key == kmsg.ApiVersions {
			return frame, nil // in the oldest version: the client asks once more
		}
		return nil, err
	}
	switch answer := answer.(type) {
	case *kmsg.ApiVersionsResponse:
		answer.ApiKeys = slices.DeleteFunc(answer.ApiKeys,
			func(k kmsg.ApiVersionsResponseApiKey) bool {
				return slices.Contains(p.hidden, kmsg.Key(k.ApiKey))
			})
	case *kmsg.DescribeConfigsResponse:
		for i := range answer.Resources {
			if of := &answer.Resources[i]; of.ResourceType == kmsg.ConfigResourceTypeTopic {
				of.ErrorCode, of.Configs = kerr.UnknownTopicOrPartition.Code, nil
			}
		}
	case *kmsg.MetadataResponse:
		for i := range answer.Brokers {
			p.move(&answer.Brokers[i].Host, &answer.Brokers[i].Port)
		}
	case *kmsg.FindCoordinatorResponse:
		p.move(&answer.Host, &answer.Port)
		for i := range answer.Coordinators {
			p.move(&answer.Coordinators[i].Host, &answer.Coordinators[i].Port)
		}
	case *kmsg.DescribeClusterResponse:
		for i := range answer.Brokers {
			p.move(&answer.Brokers[i].Host, &answer.Brokers[i].Port)
		}
	}
	return answer.AppendTo(frame[:head:head]), nil
}

// move puts the address of a broker's proxy in the place of its own.
func (p *kafkaProxy) move(host *string, port *int32) {
	place, ok := p.places[net.JoinHostPort(*host, strconv.Itoa(int(*port)))]
	if !ok {
		return
	}
	h, text, _ := net.SplitHostPort(place)
	n, _ := strconv.Atoi(text)
	*host, *port = h, int32(n)
}

const mostFrame = 64 << 20

func readFrame(from io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(from, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > mostFrame {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	frame := make([]byte, n)
	_, err := io.ReadFull(from, frame)
	return frame, err
}

func writeFrame(to io.Writer, frame []byte) error {
	_, err := to.Write(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(frame)),
		uint32(len(frame))))
	if err == nil {
		_, err = to.Write(frame)
	}
	return err
}
