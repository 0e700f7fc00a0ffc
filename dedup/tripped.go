package dedup

import (
	"fmt"
	"runtime/debug"
)

// Tripped is the error of a message that made kdedup panic: a defect, which is to hold up no other
// message.
type Tripped struct {
	Message int // its index
	Panic   any
	Stack   []byte
}

func (t *Tripped) Error() string { return fmt.Sprintf("panic: %v", t.Panic) }

// Catch is deferred by a loop over messages: a panic becomes the error, with the index that the
// loop has come to.
func Catch(message *int, err *error) {
	if p := recover(); p != nil {
		*err = &Tripped{Message: *message, Panic: p, Stack: debug.Stack()}
	}
}
