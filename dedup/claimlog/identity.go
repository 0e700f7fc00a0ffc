package claimlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/kdedup/kdedup/dedup"
)

// identity tells a log, and what was agreed on about it, from all others. Whoever meets another one
// lacks the claims of the first.
type identity struct {
	log    string
	agreed uint64
}

func (i identity) String() string { return fmt.Sprintf("%s/%016x", i.log, i.agreed) }

var _ dedup.Identified = (*Store)(nil)

// Identity implements dedup.Identified.
func (s *Store) Identity(
	ctx context.Context, scope dedup.Scope,
) (text string, found bool, err error) {
	log, err := s.o.Opener.Open(ctx, scope.ConsumerGroup)
	if err != nil {
		return "", false, err
	}
	defer log.Close()
	decided, err := s.o.Opener.Registry(scope.ConsumerGroup).Decided(ctx, agreementKey)
	if err != nil || decided == nil {
		return "", false, err
	}
	a, err := parseAgreement(decided, log.Shards())
	return identity{log.ID(), a.ID}.String(), err == nil, err
}

// Identify implements dedup.Identified.
func (s *Store) Identify(ctx context.Context, scope dedup.Scope) (string, error) {
	log, err := s.o.Opener.Open(ctx, scope.ConsumerGroup)
	if err != nil {
		return "", err
	}
	defer log.Close()
	a, err := agree(ctx, s.o.Opener.Registry(scope.ConsumerGroup), log.Shards())
	if err != nil {
		return "", err
	}
	return identity{log.ID(), a.ID}.String(), nil
}

// errLost keeps a process from going on with a log that has taken the place of the one it began
// with: the next start compares fences and log, and tells the operator what to do.
var errLost = errors.New("the claim log was deleted and made again, so its claims are lost and " +
	"nothing is claimed until kdedup starts again")
