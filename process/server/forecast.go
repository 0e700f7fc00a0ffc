package server

// forecast takes each ID that was first for one that comes again at this rate for a whole ttl.
func (s *sampler) forecast(pipelines []Pipeline, facts []Fact) (made forecast) {
	expected := 0.0
	for _, p := range pipelines {
		first := s.counter(p.Input + "\x00verdicts\x00first").values
		if len(first) == 0 {
			return forecast{}
		}
		expected += meanOf(first) * p.TTL.Seconds()
	}
	if expected == 0 {
		return forecast{}
	}
	made.Claims = &expected
	if size := bytesPerClaim(facts); size > 0 {
		bytes := size * expected
		made.Bytes = &bytes
	}
	return made
}

// enoughClaims is from how many on their size tells the size of one.
const enoughClaims = 10_000

// bytesPerClaim is 0 if the store does not tell it.
func bytesPerClaim(facts []Fact) float64 {
	of := func(name string) float64 {
		for _, f := range facts {
			if f.Name == name {
				return f.Value
			}
		}
		return 0
	}
	if claims := of("claims_kept"); claims >= enoughClaims {
		return of("disk_used") / claims
	}
	return 0
}
