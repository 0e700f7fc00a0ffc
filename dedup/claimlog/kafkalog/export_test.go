package kafkalog

import "time"

// LookOften has the settings of topics asked for in tests before they give up.
func LookOften() { settingsEvery = 200 * time.Millisecond }
