package main

import (
	"encoding/json"
	"maps"
	"os"
	goruntime "runtime"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// journal is the file to which all operators of kopf-faults append each call.
type journal struct {
	file  *os.File
	pid   int
	born  int64
	calls atomic.Uint64
}

// begunCall is a call that has begun.
type begunCall struct {
	journal *journal
	line    map[string]any
}

func openJournal(path string) (*journal, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	return &journal{file: file, pid: os.Getpid(), born: now()}, err
}

// now is in microseconds of the monotonic clock, which all processes of a machine share.
func now() int64 {
	var now unix.Timespec
	check(unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	return now.Nano() / 1000
}

// begin writes the begin of a call.
func (j *journal) begin(handler string, widget *Widget) begunCall {
	version, err := strconv.ParseUint(widget.ResourceVersion, 10, 64)
	check(err)
	call := begunCall{j, map[string]any{
		"line": "call", "pid": j.pid, "born": j.born, "call": j.calls.Add(1),
		"handler": handler, "retry": 0, "uid": widget.UID, "name": widget.Name,
		"version": version, "state": map[string]any{"raw": stateOf(widget)},
	}}
	call.write("begin")
	return call
}

func (c begunCall) write(step string) {
	line := maps.Clone(c.line)
	line["at"] = now()
	line["step"] = step
	c.journal.append(line)
}

// probe reports the number of goroutines every two seconds.
func (j *journal) probe() {
	for range time.Tick(2 * time.Second) {
		j.append(map[string]any{
			"line": "probe", "at": now(), "pid": j.pid,
			"tasks": goruntime.NumGoroutine(), "index": map[string]any{},
		})
	}
}

// append writes one line. The first line break ends a line that another process left torn.
func (j *journal) append(line map[string]any) {
	text, err := json.Marshal(line)
	check(err)
	_, err = j.file.Write([]byte("\n" + string(text) + "\n"))
	// Without its journal the process proves nothing, and a missing line would look like a bug.
	check(err)
}
