package pipeline

import (
	"time"

	"github.com/kdedup/kdedup/consumer"
)

// LaneState is what an operator sees of a lane.
type LaneState struct {
	Lane     int
	Joined   bool // it is a member of the group
	Stopped  bool // by an error that no repeat can fix
	Failures int  // in a row, without a committed batch
	Failing  bool // it failed so often and lately that it is not ready, although it may have joined
	Failure  Failure
	Assigned []consumer.Assignment
}

// Failure is the last error that ended a lane's session; the zero value means none.
type Failure struct {
	Err  error
	Hint string // the likely remedy, if the text does not show it
	At   time.Time
}

// Lanes tells the state of every lane, in order. It may be called at any time by any goroutine.
func (p *Pipeline) Lanes() []LaneState {
	states := make([]LaneState, len(p.supervisors))
	for i, s := range p.supervisors {
		states[i] = s.state()
	}
	return states
}

func (s *supervisor) state() LaneState {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := LaneState{Lane: s.number, Stopped: s.stopped, Failures: s.failures,
		Failing: s.failingLocked(), Failure: s.failure}
	if s.session == nil {
		return state
	}
	state.Joined = s.session.Joined()
	if member, ok := s.session.(interface{ Assignments() []consumer.Assignment }); ok {
		state.Assigned = member.Assignments()
	}
	return state
}

// remember keeps a failure for those who ask, also when the lane has recovered.
func (s *supervisor) remember(err error, stopped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure, s.stopped = Failure{err, hint(err), time.Now()}, stopped
}
