package servers

import "testing"

func TestARegistryComesBackWhereItWas(t *testing.T) {
	s := Registry(t)
	url := RegistryURL(s)
	s.Kill()
	if probeHTTP(t.Context(), url+"/subjects") == nil {
		t.Error("a killed registry answers")
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := probeHTTP(t.Context(), url+"/subjects"); err != nil || RegistryURL(s) != url {
		t.Error(RegistryURL(s), err)
	}
}
