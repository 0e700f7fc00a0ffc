package idempotency_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kdedup/kdedup/idempotency"
)

func encode(t testing.TB, r idempotency.Record) []byte {
	t.Helper()
	data, err := r.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	want := idempotency.Record{
		Version: idempotency.Version{Owner: idempotency.Owner{1, 2, 15: 3}, Revision: 1 << 40},
		State:   idempotency.Released, Token: 1 << 41, Lease: 1500 * time.Millisecond,
		Request: idempotency.HashOf(nil), Response: []byte("receipt"),
	}
	data := encode(t, want)
	got, err := idempotency.ParseRecord(data)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	version, err := want.Version.AppendBinary(nil)
	if err != nil || !bytes.Equal(version, data[1:1+idempotency.VersionBytes]) {
		t.Errorf("%v: version %x is not in %x", err, version, data)
	}
	clear(data)
	if string(got.Response) != "receipt" {
		t.Error("the record shares memory with what it was read from")
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(encode(f, idempotency.Record{State: idempotency.Started, Lease: time.Second}))
	f.Add(encode(f, idempotency.Record{State: idempotency.Completed, Response: []byte("receipt")}))
	f.Fuzz(func(t *testing.T, data []byte) {
		record, err := idempotency.ParseRecord(data)
		if err != nil {
			if !errors.Is(err, idempotency.ErrRecord) {
				t.Errorf("got %v", err)
			}
			return
		}
		if again := encode(t, record); !bytes.Equal(again, data) {
			t.Errorf("%x became %x", data, again)
		}
	})
}
