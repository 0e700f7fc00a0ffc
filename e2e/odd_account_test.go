package e2e_test

import (
	"crypto/sha256"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kdedup/kdedup/internal/testkit"
)

// entry is a record of the input, and where it was found again.
type entry struct {
	id                            string // empty without one
	partition                     int32
	digest                        [sha256.Size]byte
	clean, duplicates, deadLetter int
}

// spot is where a record lies in the input, as the headers of duplicates and dead letters tell.
type spot struct {
	partition int32
	offset    int64
}

// account holds the topics against the input.
func (o *trial) account(counted map[string]int) {
	o.t.Helper()
	bySerial, byPlace := o.readInput()
	o.readClean(bySerial)
	o.readAside(o.deadLetter, byPlace, func(e *entry) { e.deadLetter++ })
	if o.duplicates != "" {
		o.readAside(o.duplicates, byPlace, func(e *entry) { e.duplicates++ })
	}
	nowhere, clean := 0, make(map[string]int)
	deadLettered := make(map[string]bool)
	for _, e := range bySerial {
		clean[e.id] += e.clean
		deadLettered[e.id] = deadLettered[e.id] || e.deadLetter > 0
	}
	for serial, e := range bySerial {
		switch found := e.clean + e.duplicates + e.deadLetter; {
		case found == 0 && (e.id == "" || clean[e.id] == 0 && !deadLettered[e.id]):
			o.t.Errorf("record %d is nowhere, and no copy of another one", serial)
		case found == 0:
			nowhere++
		case found > 1 && (o.delivery == exactlyOnce ||
			min(e.clean, 1)+min(e.duplicates, 1)+min(e.deadLetter, 1) > 1):
			o.t.Errorf("record %d is %d times on the clean topic, %d times a duplicate, %d times "+
				"a dead letter",
				serial, e.clean, e.duplicates, e.deadLetter)
		}
	}
	for serial, e := range bySerial {
		switch n := clean[e.id]; {
		case e.id == "":
		case n == 0 && !deadLettered[e.id]:
			o.t.Errorf("record %d: nothing with its ID is on the clean topic, nor dead-lettered",
				serial)
		case n > 1 && o.delivery == exactlyOnce:
			o.t.Errorf("record %d: its ID is %d times on the clean topic", serial, n)
		}
	}
	if counted == nil {
		o.t.Logf("%s, %d records", o.delivery, len(bySerial))
		return
	}
	sum := 0
	for _, n := range counted {
		sum += n
	}
	// Copies are on no topic where there is no duplicates topic, or where it takes them in no form.
	copies := counted["duplicate"] + counted["conflict"] + counted["replay"]
	if o.delivery == exactlyOnce && (sum != len(bySerial) || nowhere > copies ||
		o.duplicates == "" && nowhere != copies) {
		o.t.Errorf("%d records, %d on no topic; counted are %v", len(bySerial), nowhere, counted)
	}
	o.t.Logf("%s, %d records: %v", o.delivery, len(bySerial), counted)
}

func (o *trial) readInput() (bySerial map[int]*entry, byPlace map[spot]*entry) {
	o.t.Helper()
	bySerial, byPlace = make(map[int]*entry), make(map[spot]*entry)
	testkit.ReadCommitted(o.t, o.input, func(r *kgo.Record) {
		if o.serialOf(r) <= o.early {
			return // whoever finds it on another topic does not know it
		}
		e := &entry{id: spelledID(r), partition: r.Partition, digest: o.digest(r)}
		bySerial[o.serialOf(r)], byPlace[spot{r.Partition, r.Offset}] = e, e
	}, o.reading()...)
	return bySerial, byPlace
}

// spelledID is that of a header in any spelling.
func spelledID(r *kgo.Record) string {
	for _, h := range r.Headers {
		if strings.EqualFold(h.Key, "message-id") {
			return string(h.Value)
		}
	}
	return ""
}

func (o *trial) readClean(bySerial map[int]*entry) {
	o.t.Helper()
	last := make(map[int32]int)
	testkit.ReadCommitted(o.t, o.output(), func(r *kgo.Record) {
		serial := o.serialOf(r)
		e := bySerial[serial]
		switch {
		case e == nil:
			o.t.Errorf("record %d is on the clean topic and not in the input", serial)
			return
		case e.partition != r.Partition || e.digest != o.digest(r):
			o.t.Errorf("record %d is not on the clean topic as it is in the input", serial)
		case serial < last[r.Partition] && e.clean == 0:
			o.t.Errorf("record %d came behind record %d", serial, last[r.Partition])
		}
		e.clean++
		last[r.Partition] = max(last[r.Partition], serial)
	}, o.reading()...)
}

// readAside reads a topic whose records tell where they were.
func (o *trial) readAside(topic string, byPlace map[spot]*entry, count func(*entry)) {
	o.t.Helper()
	testkit.ReadCommitted(o.t, topic, func(r *kgo.Record) {
		partition, err := strconv.Atoi(headerOf(r, "kdedup-source-partition"))
		offset, err2 := strconv.ParseInt(headerOf(r, "kdedup-source-offset"), 10, 64)
		e := byPlace[spot{int32(partition), offset}]
		if err != nil || err2 != nil || e == nil || headerOf(r, "kdedup-source-topic") != o.input {
			o.t.Errorf("%s[%d] at %d does not tell where it was", topic, r.Partition, r.Offset)
			return
		}
		count(e)
	}, o.reading()...)
}

func (o *trial) reading() []kgo.Opt {
	return []kgo.Opt{kgo.SeedBrokers(o.brokers...), kgo.FetchMaxBytes(64 << 20)}
}

func (o *trial) serialOf(r *kgo.Record) int {
	o.t.Helper()
	n, err := strconv.Atoi(headerOf(r, "serial"))
	if err != nil {
		o.t.Fatalf("%s[%d] at %d has no serial number", r.Topic, r.Partition, r.Offset)
	}
	return n
}

// digest is of all that a consumer sees, but for a timestamp that the clean topic sets itself.
func (o *trial) digest(r *kgo.Record) [sha256.Size]byte {
	same := *r
	if o.appendTime {
		same.Timestamp = time.Time{}
	}
	return testkit.Digest(&same)
}
