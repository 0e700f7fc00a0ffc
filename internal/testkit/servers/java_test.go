package servers

import "testing"

func TestParseJavaVersion(t *testing.T) {
	for out, want := range map[string]string{
		"openjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime Environment\n":    "17",
		"Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version \"17\" 2021-09-14\n": "17",
		"java version \"1.8.0_391\"\nJava(TM) SE Runtime Environment\n":            "8",
		"openjdk version \"21-ea\" 2023-09-19\n":                                   "21",
		"The operation couldn’t be completed. Unable to locate a Java Runtime.\n":  "",
		"openjdk version \"unknown\"\n":                                            "",
	} {
		got, err := parseJavaVersion(out)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", out, got, err, want)
		}
	}
}
