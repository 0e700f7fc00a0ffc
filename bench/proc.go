package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// memory is what a process has resident, in bytes.
type memory struct{ now, peak int64 }

// memoryOf reads /proc. The peak that wait4 reports is of no use: a child begins with the peak of
// the process that started it.
func memoryOf(pid int) (memory, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, fmt.Errorf("read the memory of a process (Linux only): %w", err)
	}
	return parseMemory(string(text))
}

func parseMemory(status string) (m memory, err error) {
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "VmRSS":
			m.now, err = kilobytes(value)
		case "VmHWM":
			m.peak, err = kilobytes(value)
		}
		if err != nil {
			return m, fmt.Errorf("read the memory of a process: %s: %w", name, err)
		}
	}
	if m.now == 0 || m.peak == 0 {
		return m, errors.New("read the memory of a process: no VmRSS and VmHWM: it has ended")
	}
	return m, nil
}

// kilobytes reads "  123 kB" as bytes.
func kilobytes(text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
	return n << 10, err
}

// clockTick is the unit of the times in /proc/PID/stat on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// cpuOf is the CPU time that a process has taken so far, to 10 ms.
func cpuOf(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of a process (Linux only): %w", err)
	}
	return parseCPU(string(text))
}

// parseCPU adds up utime and stime, the 14th and 15th field. The second one is a name in
// parentheses, which may hold anything.
func parseCPU(stat string) (time.Duration, error) {
	end := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[end+1:])
	if end < 0 || len(fields) < 13 {
		return 0, fmt.Errorf("read the CPU time of a process: %q", stat)
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of a process: %w", err)
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of a process: %w", err)
	}
	return time.Duration(user+system) * clockTick, nil
}
