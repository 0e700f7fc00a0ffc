package config

import "testing"

func TestSizesHaveUnits(t *testing.T) {
	for text, want := range map[string]Bytes{
		"65536": 65536, "64KiB": 64 << 10, "16MiB": 16 << 20, "1 GiB": 1 << 30, "100kB": 100_000,
		"5MB": 5_000_000, "1GB": 1e9, "70000B": 70_000,
	} {
		got, err := parseBytes(text)
		if err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
		if again, err := parseBytes(got.String()); err != nil || again != got {
			t.Errorf("%v, written as %q, is read as %d, %v", got, got.String(), again, err)
		}
	}
	for _, text := range []string{
		"", "MiB", "16 mib", "16M", "1.5GiB", "16MiBB", "0x10", "9999999999GiB",
		"99999999999999999999",
	} {
		if got, err := parseBytes(text); err == nil {
			t.Errorf("%q is taken for %d", text, got)
		}
	}
}

func TestASizeIsANumberOrATextWithAUnit(t *testing.T) {
	const setting = "topics[0].batch_bytes (line 10): must be "
	for text, want := range map[string]string{
		"16MiB": "", "16777216": "", "'8 MiB'": "",
		"16M":   setting + `a size such as 16777216 or 16MiB, got "16M"`,
		"1.5":   setting + "a size such as 16777216 or 16MiB, got 1.5",
		"[1]":   setting + "a size such as 16777216 or 16MiB, got a list",
		"1KiB":  setting + "at least 64KiB, got 1KiB",
		"2GiB":  setting + "at most 1GiB, got 2GiB",
		"-1MiB": setting + "at least 64KiB, got -1MiB",
	} {
		if got := problemsOf(t, minimal+"    batch_bytes: "+text+"\n"); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
