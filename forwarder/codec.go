package forwarder

import (
	"bytes"
	"fmt"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// InputCodec compresses what is sent as the input's batches are: who reads the input can read that,
// and perhaps nothing else. It changes between two batches of one lane, when nothing is on its way.
type InputCodec struct {
	now atomic.Uint32 // a kgo.CompressionCodecType
	by  [codecs]kgo.Compressor
}

// codecs are those of Kafka's format, where 0 is none.
const codecs = 5

var allCodecs = [codecs]kgo.CompressionCodec{kgo.CodecGzip: kgo.GzipCompression(),
	kgo.CodecSnappy: kgo.SnappyCompression(), kgo.CodecLz4: kgo.Lz4Compression(),
	kgo.CodecZstd: kgo.ZstdCompression()}

// NewInputCodec compresses nothing before it has seen a batch.
func NewInputCodec() *InputCodec {
	c := new(InputCodec)
	for codec := kgo.CodecGzip; codec < codecs; codec++ {
		made, err := kgo.DefaultCompressor(allCodecs[codec])
		if err != nil {
			panic(fmt.Sprintf("compress with codec %d of kgo: %v", codec, err))
		}
		c.by[codec] = made
	}
	return c
}

// see takes the last codec that records of a batch have. Batches that compression makes no smaller
// have none, beside others that have one.
func (c *InputCodec) see(records []*kgo.Record) {
	seen := kgo.CodecNone
	for i := len(records) - 1; i >= 0 && seen == kgo.CodecNone; i-- {
		if codec := records[i].Attrs.CompressionType(); codec < codecs {
			seen = kgo.CompressionCodecType(codec)
		}
	}
	c.now.Store(uint32(seen))
}

// Compress implements kgo.Compressor.
func (c *InputCodec) Compress(
	dst *bytes.Buffer, src []byte, flags ...kgo.CompressFlag,
) ([]byte, kgo.CompressionCodecType) {
	if by := c.by[c.now.Load()]; by != nil {
		return by.Compress(dst, src, flags...)
	}
	return src, kgo.CodecNone
}
