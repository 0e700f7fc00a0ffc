//go:build unix

package command

import (
	"runtime"
	"syscall"
	"time"
)

func used() usage {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return usage{}
	}
	peak := int64(r.Maxrss) // in KiB, but for darwin
	if runtime.GOOS != "darwin" {
		peak <<= 10
	}
	return usage{time.Duration(r.Utime.Nano() + r.Stime.Nano()), peak}
}
