package sabotage_test

// ofIDs is what guards how records name their schemas, and what identifies a change.
var ofIDs = []sabotage{
	{
		guard:    "a number of Apicurio's is asked of Apicurio alone",
		file:     "dedup/messageid/registry/registry.go",
		old:      "case number && c.kind == Apicurio:\n\t\treturn c.apicurioSchema(ctx, ref)",
		new:      "case number:\n\t\treturn c.byID(ctx, ref)",
		caughtBy: "./dedup/messageid/registry", tests: "TestANumberIsAskedForInItsOwnSpace",
	},
	{
		guard:    "a fingerprint is no number of a registry",
		file:     "dedup/messageid/registry/registry.go",
		old:      "known && (number || ref.Kind == messageid.RefID) {",
		new:      "known {",
		caughtBy: "./dedup/messageid/registry", tests: "TestANumberIsAskedForInItsOwnSpace",
	},
	{
		guard:    "the configuration says what the number before a value is",
		file:     "dedup/messageid/frame.go",
		old:      "f.ref = NumberRef(s.framing.Numbers, uint64(binary",
		new:      "f.ref = NumberRef(RefID, uint64(binary",
		caughtBy: "./dedup/messageid", tests: "TestTheConfigurationDecidesHowARecordNamesItsSchema",
	},
	{
		guard:    "a header of the key names no schema of the value",
		file:     "dedup/messageid/frame_header.go",
		old:      "\tnames := &valueHeaders\n\tif s.ofKey {",
		new:      "\tnames := &keyHeaders\n\tif s.ofKey {",
		caughtBy: "./dedup/messageid", tests: "TestTheConfigurationDecidesHowARecordNamesItsSchema",
	},
	{
		guard:    "what names the schema is no part of what has the ID",
		file:     "dedup/messageid/framed.go",
		old:      "schema.avro.Find(frame.body)",
		new:      "schema.avro.Find(r.Value)",
		caughtBy: "./dedup/messageid", tests: "TestAMessageHasOneIDInEveryFraming",
	},
	{
		guard:    "a header that names the schema comes before what stands before a value",
		file:     "dedup/messageid/frame.go",
		old:      "if len(r.Headers) > 0 && s.framing.In != InValue {",
		new:      "if false {",
		caughtBy: "./dedup/messageid", tests: "TestAMessageHasOneIDInEveryFraming",
	},
	{
		guard:    "where a header names the schema it names the message, too",
		file:     "dedup/messageid/frame.go",
		old:      "f.body, f.apart = part, true\n\t\t\treturn",
		new:      "f.body, f.apart = part, false\n\t\t\treturn",
		caughtBy: "./dedup/messageid", tests: "TestWhichProtobufMessageItIsStandsInTheHeader",
	},
	{
		guard:    "when a change was sent is no part of it",
		file:     "dedup/messageid/change.go",
		old:      `case "message":`,
		new:      `case "message", "ts_ms":`,
		caughtBy: "./dedup/messageid", tests: "TestAChangeIsKnownByWhatIdentifiesIt",
	},
	{
		guard:    "in which transaction a change was read is no part of it",
		file:     "dedup/messageid/change.go",
		old:      `case "message":`,
		new:      `case "message", "transaction":`,
		caughtBy: "./dedup/messageid", tests: "TestAChangeIsKnownByWhatIdentifiesIt",
	},
	{
		guard:    "of a source with a known place nothing else counts",
		file:     "dedup/messageid/change_source.go",
		old:      "if !known || e.of[at.needed] == nil {",
		new:      "if true || !known {",
		caughtBy: "./dedup/messageid", tests: "TestAChangeIsKnownByWhatIdentifiesIt",
	},
	{
		guard:    "what a connector says of itself is no part of a change",
		file:     "dedup/messageid/change_source.go",
		old:      `var sourceOwn = []string{"version", "sequence", "snapshot"}`,
		new:      `var sourceOwn = []string{"sequence"}`,
		caughtBy: "./dedup/messageid", tests: "TestAChangeIsKnownByWhatIdentifiesIt",
	},
}
