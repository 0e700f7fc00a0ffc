package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Machine is where and when something was measured.
type Machine struct {
	Cores   int      `json:"cores"`
	CPU     string   `json:"cpu"`
	Memory  int64    `json:"memory_bytes"`
	System  string   `json:"system"`
	Go      string   `json:"go"`
	Kdedup  string   `json:"kdedup"`
	Servers []string `json:"servers"` // those that were started here
	Load    float64  `json:"load"`    // cores that were at work before the servers started
}

// thisMachine leaves empty what it cannot find out.
func thisMachine(ctx context.Context, kdedup string) Machine {
	m := Machine{Cores: runtime.NumCPU(), Go: runtime.Version()}
	cpuinfo, _ := os.ReadFile("/proc/cpuinfo")
	m.CPU = field(string(cpuinfo), "model name")
	meminfo, _ := os.ReadFile("/proc/meminfo")
	m.Memory, _ = kilobytes(field(string(meminfo), "MemTotal"))
	m.System = runtime.GOOS + "/" + runtime.GOARCH
	m.Load = coresAtWork(ctx, 2*time.Second)
	version, _ := exec.CommandContext(ctx, kdedup, "version").Output()
	m.Kdedup, _, _ = strings.Cut(strings.TrimSpace(string(version)), "\n")
	return m
}

// field is the value of the first line "name : value".
func field(text, name string) string {
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// coresAtWork watches the machine for a while. The kernel's load average would not do: it still
// holds the benchmark before.
func coresAtWork(ctx context.Context, while time.Duration) float64 {
	before := ticks()
	select {
	case <-time.After(while):
	case <-ctx.Done():
	}
	return busyCores(before, ticks(), while)
}

// ticks is the line of /proc/stat about all cores.
func ticks() string {
	text, _ := os.ReadFile("/proc/stat")
	first, _, _ := strings.Cut(string(text), "\n")
	return first
}

// busyCores is how many cores worked on the average between two such lines: user, nice, system,
// then idle and waiting for disks, then interrupts and what a hypervisor took away.
func busyCores(before, after string, while time.Duration) float64 {
	worked, earlier := 0, strings.Fields(before)
	for i, field := range strings.Fields(after) {
		if i < 1 || i == 4 || i == 5 || i > 8 || i >= len(earlier) {
			continue
		}
		now, _ := strconv.Atoi(field)
		then, _ := strconv.Atoi(earlier[i])
		worked += now - then
	}
	return float64(worked) * clockTick.Seconds() / while.Seconds()
}

// quiet is the largest share of the cores at work with which a machine counts as idle.
const quiet = 0.25

// Busy says that others were at work on the machine: the numbers are worth little then.
func (m Machine) Busy() bool { return m.Load > quiet*float64(m.Cores) }

func (m Machine) String() string {
	return fmt.Sprintf("%d cores (%s), %.0f GiB of memory, %s", m.Cores, m.CPU,
		float64(m.Memory)/(1<<30), m.System)
}
