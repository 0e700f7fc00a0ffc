package cqltest

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
)

// Server is one node.
type Server struct {
	dialect  Dialect
	listener net.Listener
	all      sync.WaitGroup

	mu       sync.Mutex
	conns    []net.Conn
	prepared []statement // the number of each is its place
	tables   map[string]*table
	created  map[string]bool // as in "table ks.processed_messages"
}

// Start returns a server without any keyspace. It stops with the test.
func Start(t testing.TB, dialect Dialect) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{dialect: dialect, listener: listener, tables: make(map[string]*table),
		created: make(map[string]bool)}
	s.all.Go(s.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		s.mu.Lock()
		for _, conn := range s.conns {
			_ = conn.Close()
		}
		s.mu.Unlock()
		s.all.Wait()
	})
	return s
}

// AddPeers has nodes of data centres join the cluster, which do not answer.
func (s *Server) AddPeers(centres ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialect.Peers = append(slices.Clone(s.dialect.Peers), centres...)
}

// RemovePeers has all of them leave.
func (s *Server) RemovePeers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialect.Peers = nil
}

// Addr is where clients find the server, as host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Rows is the number of rows in all tables, without those that have expired.
func (s *Server) Rows() (rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tables {
		for place := range t.rows {
			if _, alive := t.live(place, false); alive {
				rows++
			}
		}
	}
	return rows
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns = append(s.conns, conn)
		s.mu.Unlock()
		s.all.Go(func() { s.serve(conn) })
	}
}

// serve answers one request after the other until the client leaves.
func (s *Server) serve(conn net.Conn) {
	defer conn.Close()
	requests := bufio.NewReader(conn)
	for {
		request, err := readFrame(requests)
		if err != nil {
			return
		}
		op, body := s.respond(request)
		if err := writeFrame(conn, op, request.stream, body); err != nil {
			return
		}
	}
}

func (s *Server) respond(request frame) (op byte, body []byte) {
	if request.version != response&0x7f {
		return opError, appendString(appendInts(nil, codeProtocol),
			"Invalid or unsupported protocol version; supported versions are (4/v4)")
	}
	r := reader(request.body)
	var err error
	switch request.op {
	case opOptions:
		return opSupported, []byte{0, 0}
	case opStartup, opRegister:
		return opReady, nil
	case opPrepare:
		body, err = s.prepare(r.longString())
	case opQuery:
		var st statement
		if st, err = parse(r.longString()); err == nil {
			body, err = s.run(st, &r)
		}
	case opExecute:
		id := reader(r.take(int(r.short())))
		body, err = s.run(s.statement(id.int()), &r)
	default:
		err = fmt.Errorf("opcode %d is not known here", request.op)
	}
	if err != nil {
		return opError, errorBody(err)
	}
	return opResult, body
}

func (s *Server) prepare(text string) ([]byte, error) {
	st, err := parse(text)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prepared = append(s.prepared, st)
	return preparedBody(len(s.prepared)-1, st), nil
}

func (s *Server) statement(id int) statement {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prepared[id]
}

// run executes a statement with the parameters that the request goes on with.
func (s *Server) run(st statement, r *reader) ([]byte, error) {
	if st.kind == "use" {
		return s.use(st.table)
	}
	l, bound := r.parameters()
	if err := s.dialect.check(st, l); err != nil {
		return nil, err
	}
	a, err := s.execute(st, bound)
	if err != nil {
		return nil, err
	}
	return rowsBody(a), nil
}

func (s *Server) use(keyspace string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.created["keyspace "+keyspace] {
		return nil, invalid("Keyspace '%s' does not exist", keyspace)
	}
	return appendString(appendInts(nil, kindKeyspace), keyspace), nil
}
