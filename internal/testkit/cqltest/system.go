package cqltest

import (
	"slices"
	"strings"
)

// systemRows are those of the tables in which drivers and kdedup look the server up. Those that it
// does not have are empty.
func (s *Server) systemRows(name string) (columns []string, rows []row) {
	switch name {
	case "system.local":
		rows = []row{s.local()}
	case "system.peers":
		for i, centre := range s.dialect.Peers {
			rows = append(rows, peer(byte(i+1), centre))
		}
	case "system_schema.keyspaces", "system_schema.types", "system_schema.tables":
		kind := strings.TrimSuffix(strings.TrimPrefix(name, "system_schema."), "s")
		for what := range s.created {
			if created, isKind := strings.CutPrefix(what, kind+" "); isKind {
				rows = append(rows, schemaRow(kind, created))
			}
		}
	case "system_schema.columns":
		for table, t := range s.tables {
			keyspace, short, _ := strings.Cut(table, ".")
			for _, column := range t.columns {
				rows = append(rows, row{"keyspace_name": []byte(keyspace),
					"table_name": []byte(short), "column_name": []byte(column)})
			}
		}
	}
	for _, r := range rows {
		for column := range r {
			if !slices.Contains(columns, column) {
				columns = append(columns, column)
			}
		}
	}
	return columns, rows
}

func schemaRow(kind, name string) row {
	keyspace, short, _ := strings.Cut(name, ".")
	r := row{"keyspace_name": []byte(keyspace)}
	if kind != "keyspace" {
		r[kind+"_name"] = []byte(short)
	}
	return r
}

func (s *Server) local() row {
	loopback := []byte{127, 0, 0, 1}
	identity := slices.Repeat([]byte{7}, 16)
	return row{
		"key": []byte("local"), "cluster_name": []byte(s.dialect.ClusterName),
		"data_center": []byte("dc1"), "rack": []byte("r1"),
		"release_version": []byte("3.11.2"),
		"partitioner":     []byte("org.apache.cassandra.dht.Murmur3Partitioner"),
		"host_id":         identity, "schema_version": identity, "rpc_address": loopback,
		"broadcast_address": loopback,
		"tokens":            []byte("\x00\x00\x00\x01\x00\x00\x00\x010"),
	}
}

// peer is a node at an address for documentation (RFC 5737).
func peer(n byte, centre string) row {
	identity, address := slices.Repeat([]byte{7 + n}, 16), []byte{192, 0, 2, n}
	return row{
		"peer": address, "data_center": []byte(centre), "rack": []byte("r1"),
		"release_version": []byte("3.11.2"),
		"host_id":         identity, "schema_version": identity, "rpc_address": address,
		"tokens": []byte("\x00\x00\x00\x01\x00\x00\x00\x01" + string('0'+n)),
	}
}
