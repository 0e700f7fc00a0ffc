package messageid

import (
	"sync"
	"sync/atomic"
)

// news are texts that somebody should hear of, each once.
type news struct {
	open  atomic.Bool // somebody has not heard yet
	mu    sync.Mutex
	known map[string]bool
	fresh []string
}

// mostNews bounds what is remembered: whoever writes records could make a text of each.
const mostNews = 100

func (n *news) tell(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known[text] || len(n.known) >= mostNews {
		return
	}
	if n.known == nil {
		n.known = make(map[string]bool)
	}
	n.known[text] = true
	n.fresh = append(n.fresh, text)
	n.open.Store(true)
}

// next is empty when everything was told.
func (n *news) next() (text string) {
	if !n.open.Load() {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.fresh) > 0 {
		text, n.fresh = n.fresh[0], n.fresh[1:]
	}
	n.open.Store(len(n.fresh) > 0)
	return text
}
