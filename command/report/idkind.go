package report

import (
	"encoding/binary"
	"strconv"
	"time"
)

// Kinds of message ID that are known by their form.
const (
	KindUUIDv1    = "uuid_v1"
	KindUUIDv4    = "uuid_v4"
	KindUUIDv6    = "uuid_v6"
	KindUUIDv7    = "uuid_v7"
	KindUUID      = "uuid_other"
	KindULID      = "ulid"
	KindKSUID     = "ksuid"
	KindObjectID  = "object_id"
	KindSnowflake = "snowflake"
	KindNumber    = "number"
	KindHash      = "hash"
	KindOther     = "other"
)

// KindOf recognises an ID by its form. A form with a time in it counts only if that time is one in
// which such IDs were made and lies before now; else many a random text would pass for one.
func KindOf(id []byte, now time.Time) string {
	if u, ok := parseUUID(id); ok {
		return uuidKind(u, now)
	}
	switch {
	case len(id) == 26 && isULID(id, now):
		return KindULID
	case len(id) == 27 && isKSUID(id, now):
		return KindKSUID
	case len(id) == 24 && isObjectID(id, now):
		return KindObjectID
	case allOf(id, isDigit):
		return numberKind(id)
	case (len(id) == 32 || len(id) == 40 || len(id) == 64 || len(id) == 128) &&
		allOf(id, isHexDigit):
		return KindHash
	}
	return KindOther
}

// parseUUID takes the text with hyphens, the 32 digits without, and the 16 bytes.
func parseUUID(id []byte) (u [16]byte, ok bool) {
	switch len(id) {
	case 16:
		copy(u[:], id)
		return u, u[8]>>6 == 0b10 && 1 <= u[6]>>4 && u[6]>>4 <= 8 && !allOf(id, isPrintable)
	case 36:
		if id[8] != '-' || id[13] != '-' || id[18] != '-' || id[23] != '-' {
			return u, false
		}
	case 32:
	default:
		return u, false
	}
	digits := 0
	for i, c := range id {
		if len(id) == 36 && (i == 8 || i == 13 || i == 18 || i == 23) {
			continue
		}
		value, hex := hexValue(c)
		if !hex {
			return u, false
		}
		u[digits/2] = u[digits/2]<<4 | value
		digits++
	}
	// 32 digits may be a hash just as well; one in four has the variant, so the version decides
	// too.
	return u, len(id) == 36 || u[8]>>6 == 0b10 && (u[6]>>4 == 4 || u[6]>>4 == 7)
}

func uuidKind(u [16]byte, now time.Time) string {
	if u[8]>>6 != 0b10 {
		return KindUUID
	}
	switch u[6] >> 4 {
	case 1:
		return KindUUIDv1
	case 4:
		return KindUUIDv4
	case 6:
		return KindUUIDv6
	case 7:
		if plausible(int64(binary.BigEndian.Uint64(u[:8])>>16), now) {
			return KindUUIDv7
		}
	}
	return KindUUID
}

// plausible wants a time from 2010 up to a day from now, in milliseconds.
func plausible(ms int64, now time.Time) bool {
	return ms >= 1_262_304_000_000 && ms <= now.UnixMilli()+day
}

// isULID decodes the first ten digits of Crockford's base 32: a time in milliseconds.
func isULID(id []byte, now time.Time) bool {
	var ms int64
	for i, c := range id {
		value, ok := crockford(c)
		if !ok {
			return false
		}
		if i < 10 {
			ms = ms<<5 | int64(value)
		}
	}
	return id[0] <= '7' && plausible(ms, now)
}

func crockford(c byte) (value byte, ok bool) {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	if 'a' <= c && c <= 'z' {
		c -= 'a' - 'A'
	}
	for i := range len(digits) {
		if digits[i] == c {
			return byte(i), true
		}
	}
	return 0, false
}

// ksuidEpoch is in seconds.
const ksuidEpoch = 1_400_000_000

// isKSUID decodes 160 bits from base 62; the first 32 are seconds.
func isKSUID(id []byte, now time.Time) bool {
	var n [5]uint32
	for _, c := range id {
		carry, ok := base62(c)
		if !ok {
			return false
		}
		for i := len(n) - 1; i >= 0; i-- {
			carry += uint64(n[i]) * 62
			n[i] = uint32(carry)
			carry >>= 32
		}
		if carry > 0 {
			return false
		}
	}
	return plausible((int64(n[0])+ksuidEpoch)*1000, now)
}

func base62(c byte) (uint64, bool) {
	switch {
	case '0' <= c && c <= '9':
		return uint64(c - '0'), true
	case 'A' <= c && c <= 'Z':
		return uint64(c-'A') + 10, true
	case 'a' <= c && c <= 'z':
		return uint64(c-'a') + 36, true
	}
	return 0, false
}

// isObjectID decodes MongoDB's: four bytes of seconds in front.
func isObjectID(id []byte, now time.Time) bool {
	if !allOf(id, isHexDigit) {
		return false
	}
	seconds, err := strconv.ParseUint(string(id[:8]), 16, 32)
	return err == nil && plausible(int64(seconds)*1000, now)
}

// numberKind takes 17 to 19 digits for a snowflake: 41 bits of milliseconds, since an epoch that
// differs between systems, above 22 others. Fewer digits are a counter or a clock.
func numberKind(id []byte) string {
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err == nil && len(id) >= 17 && n>>22 > 0 {
		return KindSnowflake
	}
	return KindNumber
}

func allOf(id []byte, is func(byte) bool) bool {
	for _, c := range id {
		if !is(c) {
			return false
		}
	}
	return len(id) > 0
}

func isDigit(c byte) bool     { return '0' <= c && c <= '9' }
func isPrintable(c byte) bool { return ' ' <= c && c <= '~' }

func isHexDigit(c byte) bool {
	_, ok := hexValue(c)
	return ok
}

func hexValue(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
