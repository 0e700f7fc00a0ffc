package testkit

import (
	"errors"
	"math/rand/v2"
	"net"
	"time"
)

// Trouble is what a Proxy does to all connections until it is told otherwise.
type Trouble int

const (
	NoTrouble   Trouble = iota
	LateAnswers         // answers are passed on late
	LostAnswers         // answers vanish; their connections are cut when the trouble ends
	// a connection is cut when an answer comes, so its request was carried out
	BrokenAnswers
	LateRequests   // requests are passed on late, also when their client has long gone
	NoConnections  // all connections are cut off, and none is taken
	CutConnections // all connections are cut off once
	troubles
)

var troubleNames = [troubles]string{"none", "answers late", "answers lost", "cut at an answer",
	"requests late", "no connections", "connections cut"}

func (t Trouble) String() string { return troubleNames[t] }

// Troubles are all kinds.
func Troubles() []Trouble {
	all := make([]Trouble, 0, troubles-1)
	for t := LateAnswers; t < troubles; t++ {
		all = append(all, t)
	}
	return all
}

// Make changes the trouble. The delay is the longest of what is late.
func (p *Proxy) Make(trouble Trouble, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.trouble == LostAnswers || trouble == NoConnections || trouble == CutConnections {
		p.cutLocked()
	}
	p.trouble, p.delay = trouble, delay
}

func (p *Proxy) now() (Trouble, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trouble, p.delay
}

func (p *Proxy) dial() (net.Conn, error) {
	if trouble, _ := p.now(); trouble == NoConnections {
		return nil, errors.New("nobody gets in")
	}
	return net.Dial("tcp", p.upstream)
}

func (p *Proxy) request([]byte) fate {
	if trouble, delay := p.now(); trouble == LateRequests {
		p.sleep(delay)
	}
	return passed
}

func (p *Proxy) answer(answer []byte) fate {
	trouble, delay := p.now()
	switch {
	case p.lose(answer) || trouble == BrokenAnswers:
		return broken
	case trouble == LostAnswers:
		return lost
	case trouble == LateAnswers:
		p.sleep(delay)
	}
	return passed
}

// sleep is a random part of the delay; it ends with the proxy.
func (p *Proxy) sleep(delay time.Duration) {
	timer := time.NewTimer(rand.N(max(delay, 1)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.stopped:
	}
}
