package messageid

import "sync/atomic"

// sighting is something that somebody should hear of once, when the first record shows it.
type sighting struct{ seen, told atomic.Bool }

// note costs a load once it was seen.
func (s *sighting) note() {
	if !s.seen.Load() {
		s.seen.Store(true)
	}
}

// tell reports true once.
func (s *sighting) tell() bool {
	return s.seen.Load() && !s.told.Load() && s.told.CompareAndSwap(false, true)
}

// Notice tells once that an ID was found behind a schema ID, and each schema without an ID.
func (e *Extractor) Notice() string {
	if e.all.skipped.tell() {
		return "documents stand behind the five bytes of a schema registry, which are skipped"
	}
	return e.all.news.next()
}

// SkippedSchemaID reports whether an ID was found behind the five bytes that serializers with a
// schema registry write before a JSON document.
func (e *Extractor) SkippedSchemaID() bool { return e.all.skipped.seen.Load() }
