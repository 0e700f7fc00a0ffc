package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
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
	Load    float64  `json:"load"`    // tasks that wanted to run in the last minute, before the servers started
}

// thisMachine leaves empty what it cannot find out.
func thisMachine(ctx context.Context, kdedup string) Machine {
	m := Machine{Cores: runtime.NumCPU(), Go: runtime.Version()}
	cpuinfo, _ := os.ReadFile("/proc/cpuinfo")
	m.CPU = field(string(cpuinfo), "model name")
	meminfo, _ := os.ReadFile("/proc/meminfo")
	m.Memory, _ = kilobytes(field(string(meminfo), "MemTotal"))
	m.System = runtime.GOOS + "/" + runtime.GOARCH
	loadavg, _ := os.ReadFile("/proc/loadavg")
	m.Load = firstNumber(string(loadavg))
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

func firstNumber(text string) float64 {
	first, _, _ := strings.Cut(text, " ")
	n, _ := strconv.ParseFloat(first, 64)
	return n
}

// quiet is the most tasks for each core with which a machine counts as idle.
const quiet = 0.25

// Busy says that others were at work on the machine: the numbers are worth little then.
func (m Machine) Busy() bool { return m.Load > quiet*float64(m.Cores) }

func (m Machine) String() string {
	return fmt.Sprintf("%d cores (%s), %.0f GiB of memory, %s", m.Cores, m.CPU, float64(m.Memory)/(1<<30), m.System)
}
