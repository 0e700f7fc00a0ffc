package avropath

import "github.com/kdedup/kdedup/dedup"

// find reads the value at i. The recursion is as deep as the path.
func (f *finder) find(record []byte, i int) ([]byte, dedup.MissingReason) {
	for {
		switch f.kind {
		case findNothing:
			return nil, dedup.MissingAbsent
		case findNull:
			return nil, dedup.MissingNull
		case findText:
			return f.text.read(record, i)
		case findElement:
			return f.element(record, i)
		case findEntry:
			return f.entry(record, i)
		case findRecord:
			for _, s := range f.before {
				i = s.skip(record, i, maxDepth)
			}
			f = f.inner
		case findUnion:
			var branch int64
			if branch, i = number(record, i); i != invalid && branch >= 0 &&
				branch < int64(len(f.options)) {
				f = f.options[branch]
				continue
			}
			return nil, dedup.MissingUnparsable
		}
		if i == invalid {
			return nil, dedup.MissingUnparsable
		}
	}
}

// element goes on in the element with the index, if there are so many.
func (f *finder) element(record []byte, i int) ([]byte, dedup.MissingReason) {
	block := skipper{kind: skipElements, inner: f.passed}
	for before := int64(f.index); ; {
		count, next := blockHead(record, i)
		switch {
		case next == invalid:
			return nil, dedup.MissingUnparsable
		case count == 0:
			return nil, dedup.MissingAbsent
		}
		passed := min(before, count)
		if i = block.skipElements(record, next, passed, maxDepth); i == invalid {
			return nil, dedup.MissingUnparsable
		}
		if passed < count {
			return f.inner.find(record, i)
		}
		before -= passed
	}
}

// entry goes on in the value with the name; of equal names the last one counts, as for nearly all
// readers. So the map is read to its end.
func (f *finder) entry(record []byte, i int) (text []byte, missing dedup.MissingReason) {
	missing = dedup.MissingAbsent
	for {
		count, next := blockHead(record, i)
		switch {
		case next == invalid:
			return nil, dedup.MissingUnparsable
		case count == 0:
			return text, missing
		}
		for i = next; count > 0; count-- {
			var name []byte
			if name, i = lengthened(record, i); i == invalid {
				return nil, dedup.MissingUnparsable
			}
			if string(name) == f.name {
				text, missing = f.inner.find(record, i)
			}
			if i = f.passed.skip(record, i, maxDepth); i == invalid {
				return nil, dedup.MissingUnparsable
			}
		}
	}
}
