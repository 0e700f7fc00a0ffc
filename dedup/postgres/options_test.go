package postgres

import "testing"

func TestAPasswordLeavesTheMachineOnlyEncryptedOrProven(t *testing.T) {
	for host, want := range map[string]string{"db.example:5432": "!password",
		"10.0.0.1": "!password", "127.0.0.1:5432": "", "localhost": "", "[::1]:5432": ""} {
		o := Options{Hosts: []string{host}, Database: "d", Username: "u",
			Password: "p"}.withDefaults()
		pool, err := o.connect(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := pool.Config().ConnConfig.RequireAuth; got != want {
			t.Errorf("%s: require_auth %q, want %q", host, got, want)
		}
		pool.Close()
	}
}
