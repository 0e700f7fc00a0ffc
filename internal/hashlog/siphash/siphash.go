// Package siphash is SipHash-1-3, a hash with a key: who does not know the key cannot find inputs
// that collide. Source: Aumasson, Bernstein, SipHash: a fast short-input PRF (2012); with the
// rounds that Rust and Python have.
package siphash

import (
	"encoding/binary"
	"math/bits"
)

// Key is secret, and random.
type Key [16]byte

// Sum64 returns the hash of data.
func (k *Key) Sum64(data []byte) uint64 {
	k0, k1 := binary.LittleEndian.Uint64(k[:8]), binary.LittleEndian.Uint64(k[8:])
	v0, v1, v2, v3 := k0^0x736f6d6570736575, k1^0x646f72616e646f6d, k0^0x6c7967656e657261,
		k1^0x7465646279746573
	last := uint64(len(data)) << 56
	for ; len(data) >= 8; data = data[8:] {
		word := binary.LittleEndian.Uint64(data)
		v0, v1, v2, v3 = round(v0, v1, v2, v3^word)
		v0 ^= word
	}
	for i, b := range data {
		last |= uint64(b) << (8 * i)
	}
	v0, v1, v2, v3 = round(v0, v1, v2, v3^last)
	v0, v1, v2, v3 = round(v0^last, v1, v2^0xff, v3)
	v0, v1, v2, v3 = round(v0, v1, v2, v3)
	v0, v1, v2, v3 = round(v0, v1, v2, v3)
	return v0 ^ v1 ^ v2 ^ v3
}

// round returns its values, and does not change a state, so that the compiler keeps them in
// registers.
func round(v0, v1, v2, v3 uint64) (uint64, uint64, uint64, uint64) {
	v0 += v1
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v0 = bits.RotateLeft64(v0, 32)
	v2 += v3
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 += v3
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v2 += v1
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	v2 = bits.RotateLeft64(v2, 32)
	return v0, v1, v2, v3
}
