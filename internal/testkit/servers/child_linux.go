package servers

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func childAttr(orphaned syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: orphaned}
}

// descendants are the children of a process, and theirs.
func descendants(pid int) (found []int) {
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, task := range tasks {
		text, _ := os.ReadFile(task) // of a thread that has ended: nothing
		for field := range bytes.FieldsSeq(text) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				found = append(append(found, child), descendants(child)...)
			}
		}
	}
	return found
}

// States of a process, see proc_pid_stat(5). One that has ended has freed its memory, reaped or
// not.
const (
	stopped = "Tt"
	ended   = "ZXx"
)

// awaitState returns when the process is in one of the states or is no more. A signal is sent
// before it takes effect.
func awaitState(pid int, states string) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(stopGrace); time.Now().Before(deadline); <-tick.C {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			return
		}
		_, fields, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
		if len(fields) > 0 && strings.IndexByte(states, fields[0]) >= 0 {
			return
		}
	}
}
