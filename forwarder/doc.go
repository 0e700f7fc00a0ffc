// Package forwarder sends records to the clean, the duplicates and the dead-letter topic and
// returns when each is acknowledged.
//
// A record on the clean topic is the input record byte for byte: key, value, headers in their
// order, timestamp, and by default the partition number. Records on the other two topics carry the
// same bytes plus headers that say why they are there.
package forwarder
