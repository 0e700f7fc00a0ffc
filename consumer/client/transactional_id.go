package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// TransactionalID is the name of a lane's transactions: no two lanes have one, whatever their
// groups are called. It begins with the group's name and a dash, for which permissions are granted,
// and ends behind its last @ with the instance, which has none.
func TransactionalID(group, instance string, lane int) string {
	return fmt.Sprintf("%s-%d@%s", group, lane, instance)
}

// EarlierTransactionalID is what the name was before. The groups a-b and a with the instances c and
// b-c shared theirs, and fenced each other for ever.
func EarlierTransactionalID(group, instance string, lane int) string {
	return fmt.Sprintf("%s-%s-%d", group, instance, lane)
}

// isOfGroup reports whether a transactional ID may be that of a lane of the group, by its present
// name or the earlier one.
func isOfGroup(name, group string) bool {
	rest, found := strings.CutPrefix(name, group+"-")
	if !found {
		return false
	}
	if lane, instance, found := strings.Cut(rest, "@"); found {
		return isLane(lane) && instance != "" && !strings.Contains(instance, "@")
	}
	dash := strings.LastIndexByte(rest, '-')
	return dash > 0 && isLane(rest[dash+1:])
}

func isLane(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

// takeOverEarlier ends what this lane left open before an upgrade gave it another name. A name that
// the brokers do not know has left nothing; brokers before 3.0 cannot tell (KIP-664).
func takeOverEarlier(ctx context.Context, opts *Options) error {
	if opts.EarlierTransactionalID == "" {
		return nil
	}
	unknown, err := isUnknown(ctx, opts, opts.EarlierTransactionalID)
	if err != nil || unknown {
		return err
	}
	earlier := *opts
	earlier.TransactionalID = opts.EarlierTransactionalID
	return takeOver(ctx, &earlier)
}

// isUnknown reports whether the brokers say that they do not know a transactional ID. A client of
// its own it closes: the metrics of a connection have room for one at a time.
func isUnknown(ctx context.Context, opts *Options, id string) (bool, error) {
	client, end, err := asking(opts.Asks, opts.Connection)
	if err != nil {
		return false, fmt.Errorf("look for transactions of %s: %w", id, err)
	}
	defer end()
	described, err := kadm.NewClient(client).DescribeTransactions(ctx, id)
	return err == nil && errors.Is(described[id].Err, kerr.TransactionalIDNotFound), nil
}
