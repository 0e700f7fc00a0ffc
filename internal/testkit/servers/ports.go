package servers

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken below the range from which systems number outgoing connections. Inside it, a
// client that keeps dialling a stopped server may get that very port as its own source port, be
// connected to itself, and keep the server from coming back.
const (
	firstPort = 12000
	lastPort  = 30000
	portTries = 100
)

// freePorts returns n different ports that are free on host.
func freePorts(host string, n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range portTries {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", address(host, port))
		if err != nil {
			continue
		}
		defer l.Close() // held until all are found, so that they differ
		ports = append(ports, port)
	}
	return nil, fmt.Errorf("no %d free ports on %s after %d tries between %d and %d",
		n, host, portTries, firstPort, lastPort)
}

// FreePort returns the port if it is free on 127.0.0.1, and 0 otherwise, which has a server take
// another one.
func FreePort(port int) int {
	l, err := net.Listen("tcp", address(loopback, port))
	if err != nil {
		return 0
	}
	_ = l.Close()
	return port
}

func address(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
