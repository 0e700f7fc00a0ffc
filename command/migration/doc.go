// Package migration moves the claims of scopes from the store of one configuration to that of
// another one, for kdedup migrate: it sees to it that nobody claims meanwhile, has package
// command/migration/migrate copy and compare, and notes in both stores how far that is.
//
//	new store        not all here ──────────────────────────────────────────► up to the fences
//	                      │                                                        ▲
//	                 copy, compare ──► moved away ──► members, fences, offsets? ───┘
//	                                       │
//	old store                              └───────────────────────────────────────────────►
//
// The notes are what makes it safe to end at any point. While claims are missing in the new store,
// it is refused. Once it is known to have all of them, the old one is refused; only then the groups
// are looked at again, since from then on nobody can begin to claim in the old one. If somebody did
// in between, the old store is free again. At last the new store is declared to stand for the old
// one, up to the fences that there are: a process that goes on with the old store in spite of all
// writes later ones, and no lane goes on at those.
package migration
