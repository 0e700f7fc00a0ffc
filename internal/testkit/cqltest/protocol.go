package cqltest

import (
	"encoding/binary"
	"errors"
	"io"
)

// Frames are those of native_protocol_v4.spec.
const (
	headerBytes = 9
	response    = 0x84

	opError, opStartup, opReady, opOptions, opSupported, opQuery, opResult byte = 0, 1, 2, 5, 6, 7,
		8
	opPrepare, opExecute, opRegister byte = 9, 10, 11

	kindVoid, kindRows, kindKeyspace, kindPrepared = 1, 2, 3, 4

	globalSpec, noMetadata = 1, 4

	codeServer, codeProtocol, codeInvalid = 0x0000, 0x000a, 0x2200

	one, localQuorum, localOne = 1, 6, 10
)

type frame struct {
	version, op byte
	stream      uint16
	body        []byte
}

func readFrame(from io.Reader) (frame, error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(from, header[:]); err != nil {
		return frame{}, err
	}
	f := frame{version: header[0], op: header[4], stream: binary.BigEndian.Uint16(header[2:])}
	f.body = make([]byte, binary.BigEndian.Uint32(header[5:]))
	_, err := io.ReadFull(from, f.body)
	return f, err
}

func writeFrame(to io.Writer, op byte, stream uint16, body []byte) error {
	out := []byte{response, 0, byte(stream >> 8), byte(stream), op}
	out = binary.BigEndian.AppendUint32(out, uint32(len(body)))
	_, err := to.Write(append(out, body...))
	return err
}

// reader takes the parts of a request's body.
type reader []byte

func (r *reader) take(n int) []byte {
	part := (*r)[:n]
	*r = (*r)[n:]
	return part
}

func (r *reader) byte() byte         { return r.take(1)[0] }
func (r *reader) short() uint16      { return binary.BigEndian.Uint16(r.take(2)) }
func (r *reader) int() int           { return int(int32(binary.BigEndian.Uint32(r.take(4)))) }
func (r *reader) longString() string { return string(r.take(r.int())) }

// levels are the consistency of a request and of its Paxos round; 0 stands for none of the latter.
type levels struct{ consistency, serial uint16 }

// parameters reads <consistency><flags>[<n><value>…][<page size>][<paging state>][<serial
// consistency>].
func (r *reader) parameters() (l levels, bound [][]byte) {
	l.consistency = r.short()
	flags := r.byte()
	if flags&0x01 != 0 {
		for range r.short() {
			var v []byte
			if n := r.int(); n >= 0 {
				v = r.take(n)
			}
			bound = append(bound, v)
		}
	}
	if flags&0x04 != 0 {
		r.int()
	}
	if flags&0x08 != 0 {
		r.take(r.int())
	}
	if flags&0x10 != 0 {
		l.serial = r.short()
	}
	return l, bound
}

func appendString(to []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint16(to, uint16(len(text))), text...)
}

func appendInts(to []byte, numbers ...int) []byte {
	for _, n := range numbers {
		to = binary.BigEndian.AppendUint32(to, uint32(int32(n)))
	}
	return to
}

func boolean(b bool) []byte {
	if b {
		return []byte{1}
	}
	return []byte{0}
}

// appendColumns appends the columns' place, names and types, after the count and the flags.
func appendColumns(to []byte, table string, columns []string) []byte {
	to = appendString(appendString(to, "ks"), table)
	for _, column := range columns {
		to = append(appendString(to, column), typeOf(column)...)
	}
	return to
}

// typeOf is a column's type as an [option].
func typeOf(column string) []byte {
	const varchar = 0x0d
	native := func(id byte) []byte { return []byte{0, id} }
	switch column {
	case "[applied]", "durable_writes":
		return native(0x04)
	case "bucket", "buckets", "[ttl]", "[limit]", ttlOf + "owner)":
		return native(0x09)
	case "message_id":
		return native(0x03)
	case "host_id", "schema_version":
		return native(0x0c)
	case "rpc_address", "broadcast_address", "peer":
		return native(0x10)
	case "tokens":
		return append(native(0x22), native(varchar)...)
	case "owner":
		return ownerType()
	}
	return native(varchar)
}

// ownerType is the user type claim_owner.
func ownerType() []byte {
	udt := appendString(appendString([]byte{0, 0x30}, "ks"), "claim_owner")
	fields := []struct {
		name string
		id   byte
	}{{"topic_id", 0x0c}, {"partition", 0x09}, {"offset", 0x02}, {"epoch", 0x09},
		{"fingerprint", 0x03}, {"claimed_at", 0x0b}}
	udt = binary.BigEndian.AppendUint16(udt, uint16(len(fields)))
	for _, f := range fields {
		udt = append(appendString(udt, f.name), 0, f.id)
	}
	return udt
}

func rowsBody(a answer) []byte {
	if len(a.columns) == 0 && len(a.rows) == 0 && a.table == "" {
		return appendInts(nil, kindVoid)
	}
	body := appendColumns(appendInts(nil, kindRows, globalSpec, len(a.columns)), a.table, a.columns)
	body = appendInts(body, len(a.rows))
	for _, r := range a.rows {
		for _, column := range a.columns {
			cell := r[column]
			if cell == nil {
				body = appendInts(body, -1)
				continue
			}
			body = append(appendInts(body, len(cell)), cell...)
		}
	}
	return body
}

func preparedBody(id int, s statement) []byte {
	body := binary.BigEndian.AppendUint16(appendInts(nil, kindPrepared), 4)
	body = appendInts(body, id, globalSpec, len(s.markers), 0)
	body = appendColumns(body, s.table, s.markers)
	return appendInts(body, noMetadata, 0)
}

func errorBody(err error) []byte {
	code := codeServer
	if errors.As(err, new(invalidError)) {
		code = codeInvalid
	}
	return appendString(appendInts(nil, code), err.Error())
}
