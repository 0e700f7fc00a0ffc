package dedup

// Fact is a number that only one type of store has.
type Fact struct {
	Name  string
	Value float64
	Unit  string // count or bytes
}

// Facts of several stores. From the two together it is known how large a claim is.
const (
	FactDisk   = "disk_used"   // in bytes
	FactClaims = "claims_kept" // also those that have ended and are still to be deleted
)

// FactsOf asks the store what it tells of itself.
func FactsOf(s Store) []Fact {
	if tells, does := Unwrapped(s).(interface{ Facts() []Fact }); does {
		return tells.Facts()
	}
	return nil
}

// Unwrapped is the store inside one that stands around it and has a method Unwrap. It may be able
// to do more than a Store must.
func Unwrapped(s Store) Store {
	for {
		around, is := s.(interface{ Unwrap() Store })
		if !is {
			return s
		}
		s = around.Unwrap()
	}
}
