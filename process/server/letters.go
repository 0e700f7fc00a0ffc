package server

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Letters are the records that kdedup kept beside the clean topic: dead letters and dropped copies.
// Calls may come from several goroutines, and must return when ctx ends.
type Letters interface {
	// Find reads the newest that match, the latest one first.
	Find(ctx context.Context, q LetterQuery) (FoundLetters, error)
	// Redrive sends the one at a place on its way again, unless that is refused, and says what
	// became of it.
	Redrive(ctx context.Context, q LetterQuery, r Redrive) (said string, sent bool, err error)
	// Reasons are those of letters, and the verdicts.
	Reasons() []string
	// Unkept are the inputs whose dropped copies are kept nowhere.
	Unkept() []string
}

// Senseless is the error of a question that no repeat answers.
type Senseless struct{ Err error }

// Error implements error.
func (s Senseless) Error() string { return s.Err.Error() }

// Unwrap lets errors.Is look through it.
func (s Senseless) Unwrap() error { return s.Err }

// LetterQuery says which letters are meant.
type LetterQuery struct {
	Topic      string // the input of the pipeline
	Duplicates bool   // those of its duplicates topic, in place of its dead letters
	Why        string // a reason, or a verdict; empty: any
	ID         []byte // empty: any
}

// Redrive says which letter is sent, and where to.
type Redrive struct {
	Partition int32
	Offset    int64
	Input     bool // to the input, in place of the clean topic
	Conflicts bool // to the clean topic although its ID has an owner with other content
}

// FoundLetters are those that are shown.
type FoundLetters struct {
	From   string // the topic that has them
	Looked int    // records of it that were looked at, the newest ones
	All    []Letter
}

// Letter is a record as people read it.
type Letter struct {
	Partition int32 // of the topic of the letters
	Offset    int64
	Source    string // where the record stood: orders[3]@812
	At        time.Time
	Why       string // reason or verdict
	Differs   string // of a conflict; empty: not known
	Owner     string // where the record stands that owns the ID of a copy; empty: not told
	ID        string // empty: it has none
	Key       string
	Value     string
	Headers   []Row  // of the record itself
	Cut       bool   // more of the value is not shown
	Opaque    bool   // it is not as kdedup writes letters, and cannot be sent
	Sent      string // when it was redriven, and to which topic; empty: it was not, as far as known
	Ways      Ways
}

// Ways are where a letter can be sent. What a store says about it shows when it is sent.
type Ways struct {
	Clean      bool
	AsConflict bool // to the clean topic, beside the owner of its ID
	Input      bool
	First      string // where it can go nowhere: why, and what to do first
}

// Any reports whether a letter can be sent.
func (w Ways) Any() bool { return w.Clean || w.AsConflict || w.Input }

// sendForm is a letter with the form that it was found by, to which its buttons come back.
type sendForm struct {
	Form   letterForm
	Letter Letter
}

const (
	lettersTimeout = 20 * time.Second
	redriveTimeout = 2 * time.Minute
)

// errNoLetters is the answer of a server that others may reach without being asked who they are.
var errNoLetters = errors.New("letters, which are whole records, are shown and sent again only " +
	"with server.auth or server.tls.client_ca_file, or with server.listen on 127.0.0.1 and no " +
	"server.hosts")

// letterBox is the page of the letters.
type letterBox struct {
	*page
	letters Letters
	sending chan struct{} // one redrive at a time
}

func (b *letterBox) routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /letters", b.guarded(func(w http.ResponseWriter, _ *http.Request) {
		b.reply(w, http.StatusOK, lettersView{})
	}))
	mux.HandleFunc("POST /letters", b.guarded(b.find))
	mux.HandleFunc("POST /redrive", b.guarded(b.redrive))
}

// guarded lets in who may change claims, too: a letter is a record with all that it tells.
func (b *letterBox) guarded(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !b.changes {
			refused := lettersView{Error: errNoLetters.Error()}
			if r.URL.Path == "/redrive" && !readsPages(r) {
				writeJSON(w, http.StatusForbidden, map[string]string{"error": refused.Error})
				return
			}
			b.reply(w, http.StatusForbidden, refused)
			return
		}
		serve(w, r)
	}
}

// lettersView is what the template needs.
type lettersView struct {
	About   About
	Topics  []string
	Reasons []string
	Unkept  []string // inputs without a duplicates topic
	letterForm
	Asked bool
	Found FoundLetters
	Said  string // what became of the letter that was to be sent
	Sent  bool
	Error string
}

// letterForm is what the form holds. It stays there with the answer.
type letterForm struct {
	Topic, Why, ID  string
	Hex, Duplicates bool
}

// AllUnkept reports whether no dropped copy is kept.
func (v lettersView) AllUnkept() bool {
	return len(v.Unkept) > 0 && len(v.Unkept) >= len(v.Topics)
}

// mostUnkept are named.
const mostUnkept = 5

// SomeUnkept names the inputs whose dropped copies are kept nowhere, where others are kept.
func (v lettersView) SomeUnkept() string {
	named := strings.Join(v.Unkept[:min(len(v.Unkept), mostUnkept)], ", ")
	if n := len(v.Unkept) - mostUnkept; n > 0 {
		named += fmt.Sprintf(" and %d more", n)
	}
	return named
}

// Form is for the template.
func (f letterForm) Form() letterForm { return f }

func (f letterForm) query() (q LetterQuery, err error) {
	q = LetterQuery{Topic: f.Topic, Duplicates: f.Duplicates, Why: f.Why, ID: []byte(f.ID)}
	if f.Hex {
		if q.ID, err = hex.DecodeString(f.ID); err != nil {
			err = errors.New("the ID is not an even number of hexadecimal digits")
		}
	}
	return q, err
}

// read takes the form of a request; it looks at the body only.
func (b *letterBox) read(w http.ResponseWriter, r *http.Request) (v lettersView, err error) {
	r.Body = http.MaxBytesReader(w, r.Body, lookupBytes)
	if err := r.ParseForm(); err != nil {
		return v, errors.New("the request is not a form")
	}
	form := r.PostForm
	v.letterForm = letterForm{Topic: form.Get("topic"), Why: strings.TrimSpace(form.Get("why")),
		ID: strings.TrimSpace(form.Get("id")), Hex: form.Get("hex") != "",
		Duplicates: form.Get("kind") == "duplicates"}
	v.Topic, err = chosen(v.Topic, b.topics())
	return v, err
}

func (b *letterBox) find(w http.ResponseWriter, r *http.Request) {
	v, err := b.read(w, r)
	if err != nil {
		v.Error = err.Error()
		b.reply(w, http.StatusBadRequest, v)
		return
	}
	b.show(w, r, v, http.StatusOK)
}

// show answers with the letters of the form.
func (b *letterBox) show(w http.ResponseWriter, r *http.Request, v lettersView, code int) {
	ctx, cancel := context.WithTimeout(r.Context(), lettersTimeout)
	defer cancel()
	q, err := v.query()
	if err == nil {
		select {
		case b.lookups <- struct{}{}:
			v.Found, err = b.letters.Find(ctx, q)
			<-b.lookups
		default:
			err = errBusy
		}
	}
	if v.Asked = err == nil; err != nil && v.Error == "" {
		v.Error, code = b.clean(err.Error()), codeOf(err)
	}
	b.reply(w, code, v)
}

func codeOf(err error) int {
	if errors.As(err, new(Senseless)) {
		return http.StatusBadRequest
	}
	return http.StatusServiceUnavailable
}

// redrive sends one letter, and shows the others again.
func (b *letterBox) redrive(w http.ResponseWriter, r *http.Request) {
	// the answer may take longer than other pages
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(redriveTimeout +
		lettersTimeout + writeTimeout))
	v, err := b.read(w, r)
	var sent Redrive
	var q LetterQuery
	if err == nil {
		q, err = v.query()
	}
	if err == nil {
		sent, err = redriveOf(r)
	}
	if err != nil {
		v.Error = err.Error()
		b.answer(w, r, http.StatusBadRequest, v)
		return
	}
	code := http.StatusOK
	select {
	case b.sending <- struct{}{}:
		ctx, cancel := context.WithTimeout(r.Context(), redriveTimeout)
		if v.Said, v.Sent, err = b.letters.Redrive(ctx, q, sent); err == nil && !v.Sent {
			code = http.StatusConflict
		}
		cancel()
		<-b.sending
	default:
		err = errors.New("another redrive is under way in this process; try again")
	}
	v.Said = b.clean(v.Said)
	if err != nil {
		v.Error, code = b.clean(err.Error()), codeOf(err)
	}
	b.answer(w, r, code, v)
}

// answer is the page for who reads pages, and JSON for a script, as for a change of an ID.
func (b *letterBox) answer(w http.ResponseWriter, r *http.Request, code int, v lettersView) {
	switch {
	case readsPages(r):
		if code == http.StatusBadRequest {
			b.reply(w, code, v)
			return
		}
		b.show(w, r, v, code)
	case v.Error != "":
		writeJSON(w, code, map[string]string{"error": v.Error})
	case !v.Sent:
		writeJSON(w, code, map[string]string{"error": v.Said})
	default:
		writeJSON(w, code, map[string]string{"said": v.Said})
	}
}

func readsPages(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

func redriveOf(r *http.Request) (sent Redrive, err error) {
	into := r.PostForm.Get("into")
	sent.Input, sent.Conflicts = into == "input", into == "clean-conflict"
	if !sent.Input && !sent.Conflicts && into != "clean" {
		return sent, fmt.Errorf("into must be clean, clean-conflict or input, got %q", into)
	}
	partition, err := strconv.ParseInt(r.PostForm.Get("partition"), 10, 32)
	if err == nil {
		sent.Partition = int32(partition)
		sent.Offset, err = strconv.ParseInt(r.PostForm.Get("offset"), 10, 64)
	}
	if err != nil {
		return sent, errors.New("partition and offset must be those of a letter")
	}
	return sent, nil
}

func (b *letterBox) reply(w http.ResponseWriter, code int, v lettersView) {
	v.Topics, v.Reasons = b.topics(), b.letters.Reasons()
	v.Unkept = b.letters.Unkept()
	v.About = b.sampler.latest.Load().About
	b.page.write(w, code, "letters.html", v)
}
