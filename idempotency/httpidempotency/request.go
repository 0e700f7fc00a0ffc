package httpidempotency

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"net/http"

	"github.com/kdedup/kdedup/idempotency"
)

var errBodyTooLarge = errors.New("the body is too large")

// readRequest returns a copy of the request whose body is in memory, and the hash of what must not
// differ between a request and its retry. Its context does not end when the client goes away.
func readRequest(
	w http.ResponseWriter, r *http.Request, limit int64,
) (*http.Request, idempotency.Hash, context.CancelFunc, error) {
	var body bytes.Buffer
	sum := sha256.New()
	for _, part := range []string{r.Method, r.Host, r.URL.RequestURI(),
		r.Header.Get("Content-Type")} {
		writePart(sum, part)
	}
	_, err := io.Copy(io.MultiWriter(&body, sum), http.MaxBytesReader(w, r.Body, limit))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		err = errBodyTooLarge
	}
	if err != nil {
		return nil, idempotency.Hash{}, nil, err
	}
	ctx, cancel := detach(r.Context())
	kept := r.WithContext(ctx)
	kept.Body = io.NopCloser(&body)
	kept.ContentLength = int64(body.Len())
	return kept, idempotency.Hash(sum.Sum(nil)), cancel, nil
}

// writePart keeps parts apart by their length.
func writePart(to hash.Hash, part string) {
	to.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
	io.WriteString(to, part)
}

// detach keeps the deadline only.
func detach(ctx context.Context) (context.Context, context.CancelFunc) {
	detached := context.WithoutCancel(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(detached, deadline)
	}
	return context.WithCancel(detached)
}
