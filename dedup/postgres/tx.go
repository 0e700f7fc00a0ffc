package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kdedup/kdedup/dedup"
)

// TxClaims makes claims in transactions of the caller, for consumers whose effect is a row: the
// claim of an ID and the effect of its message are committed together, or not at all.
//
// A claim that stands was committed, and its effect with it. So the verdicts mean:
//
//   - VerdictFirst: the transaction has claimed the ID; the effect belongs into it.
//   - VerdictReplay: this very record claimed the ID, in a transaction that was committed. Nothing is left
//     to do. (Judgement.Own is true, too.)
//   - VerdictDuplicate, VerdictConflict: another record did, see Judgement.Owner.
//
// No other verdict occurs. Claims of Store.Claim mean something else, they precede their effect; so
// a scope has claims of one kind only, and Register refuses it to the other.
//
// # After an error
//
// Roll back, and repeat the whole transaction. That is right after every error, that of Commit
// included, of which nobody knows whether it was committed: the repetition learns it, by a
// VerdictReplay. The owners must be the same in the repetition, as the coordinates of records are.
// Commit the offsets of the records when the transaction was committed, and leave the server's
// synchronous_commit on: with off, a crash of the server takes back effects whose offsets are
// committed.
//
// # Two transactions and one ID
//
// The second one waits in Claim until the first one ends. It gets the ID if the first one was
// rolled back, or its connection broke; otherwise it sees the owner. So transactions should be
// short; ctx bounds the wait, and so does lock_timeout.
//
// That is for READ COMMITTED, PostgreSQL's default. With REPEATABLE READ or SERIALIZABLE, a claim
// of an ID that another transaction has claimed since this one began fails with the SQLSTATE 40001,
// as such transactions do, and the repetition sees the owner.
//
// One call claims its IDs in the order of all calls, so two transactions with one call each do not
// deadlock over IDs. (One exception, when claims are released or expire and are deleted in that
// very moment, ends as all deadlocks do.) Several calls in one transaction may: PostgreSQL then
// undoes one of the two, SQLSTATE 40P01. Rows of your own that several transactions change are best
// locked after the claim.
//
// # Savepoints, TTL, rights
//
// A claim that is made after a savepoint (pgx: tx.Begin) goes with the rollback to it. An expired
// claim counts as free and is replaced, by the server's clock, and comes back with a rollback. The
// transaction must be on the database of the store's table, by a role with the rights to SELECT,
// INSERT and UPDATE it; the connection is the caller's, in any mode, also behind a pgbouncer.
type TxClaims struct {
	scope dedup.Scope
	sql   statements
}

// TxClaims registers the scope for claims in transactions of the caller. Its Extractor is noted as
// such, and so a scope of other claims is an error that wraps dedup.ErrScopeMismatch. The store is
// needed for that, to look up and to sweep; it makes no claims here.
func (s *Store) TxClaims(ctx context.Context, scope dedup.Scope) (*TxClaims, error) {
	scope.Extractor = "transactional(" + scope.Extractor + ")"
	if err := s.Register(ctx, scope); err != nil {
		return nil, err
	}
	return &TxClaims{scope: scope, sql: s.sql}, nil
}

// Claim returns one judgement per claim, in order; see TxClaims. IDs may be equal: then the first
// of the claims comes first. It is one statement for all IDs, and a second one if some of them were
// known: a few thousand at a time are fine. After an error the transaction can only be rolled back.
func (t *TxClaims) Claim(
	ctx context.Context, tx pgx.Tx, claims []dedup.Claim,
) ([]dedup.Judgement, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	distinct, answerOf := fold(claims)
	c := newCall(tx, t.sql, t.scope, distinct)
	c.run = func(ctx context.Context, statement func(context.Context) error) error {
		return statement(ctx)
	}
	if err := c.decide(ctx, inOrder(c.keys)); err != nil {
		return nil, fmt.Errorf("claim %d ids in a transaction: postgres: %w", len(claims),
			explain(ctx, err))
	}
	judgements := make([]dedup.Judgement, len(claims))
	for i := range claims {
		answer := &c.answers[answerOf[i]]
		judgements[i] = judgeCommitted(&claims[i], answer)
		answer.Outcome = dedup.Exists // for the next claim of this ID
	}
	return judgements, nil
}

// fold leaves one claim per ID, and tells for each of the claims which one that is.
func fold(claims []dedup.Claim) (distinct []dedup.Claim, at []int) {
	at = make([]int, len(claims))
	seen := make(map[dedup.ID]int, len(claims))
	for i := range claims {
		first, known := seen[claims[i].ID]
		if !known {
			first = len(distinct)
			seen[claims[i].ID] = first
			distinct = append(distinct, claims[i])
		} else if !claims[i].Owner.Same(distinct[first].Owner) {
			distinct[first].Copied = true
		}
		at[i] = first
	}
	return distinct, at
}

// judgeCommitted is for claims that stand only if their effect does. A claim by the same record
// earlier in this transaction is a replay, too: its effect is in the transaction already.
func judgeCommitted(c *dedup.Claim, a *dedup.Answer) dedup.Judgement {
	j := dedup.Judgement{Owner: a.Owner, ClaimedAt: a.ClaimedAt}
	switch {
	case a.Owner.Same(c.Owner) && a.Outcome == dedup.Applied:
		j.Verdict = dedup.VerdictFirst
	case a.Owner.Same(c.Owner):
		j.Verdict = dedup.VerdictReplay
	case a.Fingerprint == c.Fingerprint: // no ID is claimed by hand here
		j.Verdict = dedup.VerdictDuplicate
	default:
		j.Verdict = dedup.VerdictConflict
	}
	return j
}
