package siphash

import "testing"

// What Python 3.11 and later say: PYTHONHASHSEED=0 python3 -c 'print(hex(hash(bytes(range(36))) %
// 2**64))'
func TestItIsPythonsHashOfBytes(t *testing.T) {
	data := make([]byte, 64)
	for i := range data {
		data[i] = byte(i)
	}
	for length, want := range map[int]uint64{
		1: 0x68a914128e01e473, 7: 0x2f098ab0c751325a, 8: 0xead411e67ebe2eea, 9: 0x75927f9d95124362,
		15: 0xf30eb725bb91c9ea, 16: 0x8972188433a5c5b7, 17: 0x4883c49a2c009c1d,
		36: 0xac77921fcc642bd3, 64: 0x75e05fd5bbc870c6,
	} {
		if got := new(Key).Sum64(data[:length]); got != want {
			t.Errorf("%d bytes: %#x, want %#x", length, got, want)
		}
	}
}

// What Rust says: SipHasher13::new_with_keys(0x0706050403020100, 0x0f0e0d0c0b0a0908).
func TestTheKeyCounts(t *testing.T) {
	var key Key
	for i := range key {
		key[i] = byte(i)
	}
	if got, want := key.Sum64(nil), uint64(0xabac0158050fc4dc); got != want {
		t.Errorf("%#x, want %#x", got, want)
	}
	for i := range key {
		other := key
		other[i]++
		if other.Sum64(nil) == key.Sum64(nil) {
			t.Errorf("byte %d of the key does not count", i)
		}
	}
}

func BenchmarkSum64(b *testing.B) {
	var key Key
	data := make([]byte, 36)
	b.SetBytes(36)
	for b.Loop() {
		key.Sum64(data)
	}
}
