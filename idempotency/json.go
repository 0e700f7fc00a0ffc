package idempotency

import (
	"context"
	"encoding/json"
	"fmt"
)

// ExecuteJSON is [Executor.Execute] for any type of request and response. The request's hash is
// that of its JSON, in which the order of map keys does not count, and the response is kept as
// JSON. replayed tells that another call executed fn.
//
// A response that cannot be made JSON is a final error: fn has run. An UnrecordedError comes with
// the response.
func ExecuteJSON[T any](
	ctx context.Context, e *Executor, key Key, request any, fn func(ctx context.Context) (T, error),
) (response T, replayed bool, err error) {
	encoded, err := json.Marshal(request)
	if err != nil {
		return response, false, fmt.Errorf("hash idempotent request: %w", err)
	}
	var made T
	result, err := e.Execute(ctx, key, HashOf(encoded), func(ctx context.Context) ([]byte, error) {
		var err error
		if made, err = fn(ctx); err != nil {
			return nil, err
		}
		body, err := json.Marshal(made)
		if err != nil {
			return nil, Final(fmt.Errorf("encode idempotent response: %w", err))
		}
		return body, nil
	})
	if err != nil || !result.Replayed {
		return made, false, err
	}
	if err := json.Unmarshal(result.Response, &response); err != nil {
		return response, true, fmt.Errorf("decode idempotent response: %w", err)
	}
	return response, true, nil
}
