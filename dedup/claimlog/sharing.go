package claimlog

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kdedup/kdedup/internal/pause"
)

// Keepers share the shards of a log out among processes: each reads some, keeps their index, and
// answers for them to the others. A verdict is a function of the log, whoever computes it. So two
// keepers of a shard are both right, and nothing depends on which processes believe to be keepers:
// only the work and the wait do.
type Keepers struct {
	Instance string  // of this process; the same after a restart, which finds the files again
	Address  string  // where the others reach it
	Keep     bool    // or it only asks others
	Copies   int     // how many processes keep each shard; 0: one
	Network  Network // the store closes it

	times sharingTimes // for tests
}

// ErrBusy is wrapped by errors of a Network whose other side has too much to do.
var ErrBusy = errors.New("the keeper has too much to do")

// Network leads to the other processes.
type Network interface {
	// Join makes the process one of a group until ctx ends, and tells the members, itself among
	// them, whenever they change.
	Join(ctx context.Context, group string, self Member, changed func([]Member)) error
	// Serve has requests of others answered from now on.
	Serve(answer func(ctx context.Context, request []byte) []byte)
	// Ask sends a request to the process at an address. After an error it may have arrived.
	Ask(ctx context.Context, address string, request []byte) ([]byte, error)
	// Close returns when nothing is answered any more.
	Close() error
}

type sharingTimes struct {
	look  time.Duration // between two looks at who keeps what
	kept  time.Duration // how long a process waits to be told that another keeps other shards
	drain time.Duration // for which a shard is still answered for that another keeps now
	adopt time.Duration // after which a process keeps a shard whose keepers cannot be reached
	hedge time.Duration // after which a second keeper is asked
}

var defaultSharingTimes = sharingTimes{look: 100 * time.Millisecond, kept: 10 * time.Second,
	drain: 2 * time.Second, adopt: 10 * time.Second, hedge: 100 * time.Millisecond}

// sharing is the log of one group, of which this process keeps some shards.
type sharing struct {
	store   *Store
	group   string
	o       Keepers
	log     *slog.Logger
	metrics *sharingMetrics
	tickets tickets
	served  atomic.Int64 // requests of others
	took    atomic.Int64 // nanoseconds until an answer, as a moving mean

	mu      sync.Mutex
	changed chan struct{} // closed, and replaced, when something of the following changes
	why     error         // why it is not known which log is asked; nil once it is
	agreed  agreement
	first   identity
	joined  bool
	has     bool // it has once read all that it was to keep
	members []Member
	plan    [][]Member        // by shard, best first
	local   map[int]*space    // that this process reads
	leaving map[int]time.Time // those of local that another process keeps now, and since when
	closing map[int]bool      // that are being closed, or deleted
	deleted map[int]bool      // that have no files here
	peers   map[uint64]*peer  // other processes that may keep shards
	alone   map[int]time.Time // since when no planned keeper of a shard was reached
	noted   time.Time         // when the metrics were
	sights  map[int]sight     // how far shards were read, as keepers said
	told    []int             // what this process keeps, as the others were told

	life  context.Context // ends with the sharing
	stop  context.CancelFunc
	tasks sync.WaitGroup
}

func (s *Store) newSharing(group string) *sharing {
	ctx, cancel := context.WithCancel(context.Background())
	sharing := &sharing{
		store: s, group: group, o: *s.o.Keepers, log: s.o.Logger, metrics: s.metrics.sharing(group),
		changed: make(chan struct{}), why: errors.New("the claim log is being opened"),
		local: make(map[int]*space), leaving: make(map[int]time.Time),
		closing: make(map[int]bool), deleted: make(map[int]bool), peers: make(map[uint64]*peer),
		sights: make(map[int]sight), alone: make(map[int]time.Time), life: ctx, stop: cancel,
	}
	if sharing.o.times == (sharingTimes{}) {
		sharing.o.times = defaultSharingTimes
	}
	sharing.o.Copies = max(1, sharing.o.Copies)
	sharing.tasks.Go(sharing.run)
	return sharing
}

// close also ends what others wait for here.
func (s *sharing) close() {
	s.stop()
	s.tasks.Wait()
	var wg sync.WaitGroup
	for _, space := range s.local {
		wg.Go(space.close)
	}
	wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.why, s.local = errClosed, nil
	s.tellLocked()
}

// run finds out which log it is, and then looks who keeps what until the store is closed.
func (s *sharing) run() {
	for {
		err := s.learn()
		if err == nil {
			break
		}
		s.mu.Lock()
		if s.why.Error() != err.Error() {
			s.log.Warn("the claim log cannot be opened, trying again", "group", s.group,
				"error", err)
		}
		s.why = err
		s.mu.Unlock()
		if !pause.For(s.life, s.store.o.times.retry/2+rand.N(s.store.o.times.retry/2+1)) {
			return
		}
	}
	s.tasks.Go(s.join)
	pause.Every(s.life, s.o.times.look, s.look)
}

// learn asks what was agreed on. A process whose log is another one later on claims nothing: the
// keepers of that one refuse it, and its own readers do not go on.
func (s *sharing) learn() error {
	ctx, cancel := context.WithTimeout(s.life, s.store.o.Wait)
	defer cancel()
	log, err := s.store.o.Opener.Open(ctx, s.group)
	if err != nil {
		return err
	}
	agreed, err := agree(ctx, s.store.o.Opener.Registry(s.group), log.Shards())
	id := log.ID()
	if err = errors.Join(err, log.Close()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agreed, s.first, s.why = agreed, identity{id, agreed.ID}, nil
	s.tellLocked()
	return nil
}

func (s *sharing) identity() identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

func (s *sharing) self() Member {
	return Member{Process: s.store.process, Instance: s.o.Instance, Address: s.o.Address,
		Keeps: s.o.Keep}
}

func (s *sharing) join() {
	told := ""
	for s.life.Err() == nil {
		err := s.o.Network.Join(s.life, s.group, s.self(), s.meet)
		if s.life.Err() == nil && err != nil && err.Error() != told {
			told = err.Error()
			s.log.Warn("this process cannot join the keepers of the claim log, trying again",
				"group", s.group, "error", err)
		}
		pause.For(s.life, s.store.o.times.retry)
	}
}

// meet takes note of the members.
func (s *sharing) meet(members []Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members, s.joined = slices.Clone(members), true
	s.plan = place(members, s.agreed.Shards, s.o.Copies)
	for _, m := range members {
		if m.Keeps && m.Process != s.store.process && s.peers[m.Process] == nil &&
			s.life.Err() == nil {
			p := &peer{Member: m}
			ctx, cancel := context.WithCancel(s.life)
			p.stop = cancel
			s.peers[m.Process] = p
			s.tasks.Go(func() { s.follow(ctx, p) })
		}
	}
	for process, p := range s.peers {
		if !keeps(members, process) {
			p.stop()
			delete(s.peers, process)
		}
	}
	s.tellLocked()
}

// look begins to keep what this process is to keep, and leaves what others keep by now.
func (s *sharing) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.joined {
		return
	}
	for shard := range s.plan {
		mine := keeps(s.plan[shard], s.store.process)
		relieved := s.relievedLocked(shard)
		space := s.local[shard]
		switch {
		case space == nil && !s.closing[shard] && (mine || s.adoptsLocked(shard)):
			s.log.Info("this process keeps a shard of the claim log now", "group", s.group,
				"shard", shard, "planned", mine)
			s.local[shard], s.deleted[shard] = s.store.newSpace(s.group, shard), false
		case space == nil && relieved && !s.closing[shard] && !s.deleted[shard]:
			s.closing[shard] = true // what an earlier process left
			s.tasks.Go(func() { s.remove(shard, nil) })
		case space == nil:
		case mine || !relieved:
			delete(s.leaving, shard)
		case s.leaving[shard].IsZero():
			s.leaving[shard] = time.Now()
		case time.Since(s.leaving[shard]) >= s.o.times.drain:
			s.log.Info("this process keeps a shard of the claim log no more", "group", s.group,
				"shard", shard)
			delete(s.local, shard)
			delete(s.leaving, shard)
			s.closing[shard] = true
			s.tasks.Go(func() { s.remove(shard, space) })
		}
	}
	s.has = s.has || s.unreadLocked() == 0
	if kept := s.keptLocked(); !slices.Equal(kept, s.told) {
		s.told = kept
		s.tellLocked()
	}
	if time.Since(s.noted) >= time.Second {
		s.noted = time.Now()
		s.noteLocked()
	}
}

// remove closes the index of a shard that others keep, and deletes its files: whoever reads the
// shard later begins with none, and not with old ones.
func (s *sharing) remove(shard int, space *space) {
	if space != nil {
		space.close()
	}
	if s.store.o.Path != "" {
		if err := os.RemoveAll(s.store.indexPath(s.group, shard)); err != nil {
			s.log.Warn("the index of a shard that others keep cannot be deleted", "group", s.group,
				"shard", shard, "error", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.closing, shard)
	s.deleted[shard] = true
}

// relievedLocked tells whether all that are to keep a shard do.
func (s *sharing) relievedLocked(shard int) bool {
	for _, m := range s.plan[shard] {
		if m.Process == s.store.process {
			return false
		}
		if p := s.peers[m.Process]; p == nil || !p.kept[shard] {
			return false
		}
	}
	return len(s.plan[shard]) > 0
}

// adoptsLocked tells whether this process keeps a shard because it reaches none of those that are
// to.
func (s *sharing) adoptsLocked(shard int) bool {
	if !s.o.Keep || len(s.plan[shard]) == 0 {
		return false
	}
	for _, p := range s.peers {
		if p.kept[shard] || keeps(s.plan[shard], p.Process) && p.reached {
			delete(s.alone, shard)
			return false
		}
	}
	if s.alone[shard].IsZero() {
		s.alone[shard] = time.Now()
	}
	return time.Since(s.alone[shard]) >= s.o.times.adopt
}

// keptLocked are the shards for which this process answers, and is not about to stop.
func (s *sharing) keptLocked() (shards []int) {
	for shard, space := range s.local {
		if s.leaving[shard].IsZero() && space.isCurrent() {
			shards = append(shards, shard)
		}
	}
	slices.Sort(shards)
	return shards
}

// unreadLocked is how many shards this process is to keep, and has not read yet.
func (s *sharing) unreadLocked() (shards int) {
	for shard := range s.plan {
		space := s.local[shard]
		if keeps(s.plan[shard], s.store.process) && (space == nil || !space.isCurrent()) {
			shards++
		}
	}
	return shards
}

// keeping returns the index of a shard, if this process may answer by it.
func (s *sharing) keeping(shard int) *space {
	s.mu.Lock()
	defer s.mu.Unlock()
	if space := s.local[shard]; space != nil && space.isCurrent() {
		return space
	}
	return nil
}

// isCurrent tells whether all was read that the log had when reading began.
func (s *space) isCurrent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reading != nil && s.reading.ends == nil
}

func (s *sharing) tellLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}
