package config

import "testing"

func TestSchemaRegistryRules(t *testing.T) {
	avro := func(c *Config) {
		c.Topics[0].MessageID = MessageID{From: FromAvro, Path: "order.id"}
	}
	with := func(change func(*SchemaRegistry)) func(*Config) {
		return func(c *Config) {
			avro(c)
			c.SchemaRegistry.URLs = []string{"https://registry-1:8081"}
			change(&c.SchemaRegistry)
		}
	}
	whole := func(m MessageID) func(*Config) {
		return func(c *Config) {
			with(func(*SchemaRegistry) {})(c)
			c.Topics[0].MessageID = m
		}
	}
	testRules(t, []string{"orders"}, []rule{
		{"all is well", with(func(*SchemaRegistry) {}), ""},
		{"none for avro", avro,
			"schema_registry.urls: is required with topics[0].message_id.from: avro"},
		{"none for a fingerprint", func(c *Config) {
			c.Topics[0].Fingerprint = Fingerprint{Of: FingerprintAll, Ignore: []string{"a"},
				Format: FormatAvro}
		}, "schema_registry.urls: is required with topics[0].fingerprint.format: avro"},
		{"none for a hash", func(c *Config) {
			c.Topics[0].MessageID = MessageID{From: FromFirstOf, Parts: []MessageID{
				{From: FromKey}, {From: FromValueHash, Ignore: []string{"a"},
					Format: FormatProtobuf}}}
		}, "schema_registry.urls: is required with topics[0].message_id.parts[1].format: protobuf"},
		{"none for a hash in a part of a part", func(c *Config) {
			c.Topics[0].MessageID = MessageID{From: FromFirstOf, Parts: []MessageID{
				{From: FromKey}, {From: FromComposite, Parts: []MessageID{{From: FromKey},
					{From: FromValueHash, Only: []string{"a"}, Format: FormatAvro}}}}}
		}, "schema_registry.urls: is required with topics[0].message_id.parts[1].parts[1]." +
			"format: avro"},
		{"none for a condition", func(c *Config) {
			c.Topics[0].OnlyIf = Condition{From: FromProtobuf, Path: "a"}
		}, "schema_registry.urls: is required with topics[0].only_if.from: protobuf"},
		{"none for a part", func(c *Config) {
			c.Topics[0].MessageID = MessageID{From: FromFirstOf, Parts: []MessageID{
				{From: FromKey}, {From: FromProtobuf, Path: "id"}}}
		}, "schema_registry.urls: is required with topics[0].message_id.from: protobuf"},
		{"none for json_schema, which needs none to be read", func(c *Config) {
			c.Topics[0].MessageID = MessageID{From: FromJSONSchema, Path: "id"}
		}, ""},
		{"a whole key of Avro", whole(MessageID{From: FromAvro, Path: "$", Part: PartKey}), ""},
		{"a whole value of Protobuf", whole(MessageID{From: FromProtobuf, Path: "$"}), ""},
		{"a whole value of Protobuf as a condition", func(c *Config) {
			whole(MessageID{From: FromProtobuf, Path: "$"})(c)
			c.Topics[0].OnlyIf = Condition{From: FromProtobuf, Path: "$"}
		}, `topics[0].only_if.path: begins with $, which stands for nothing here: "$"; write the ` +
			`name of a field, or \$ for a member of this name`},
		{"a whole value as a condition", func(c *Config) {
			whole(MessageID{From: FromAvro, Path: "$"})(c)
			c.Topics[0].OnlyIf = Condition{From: FromAvro, Path: "$"}
		}, `topics[0].only_if.path: begins with $, which stands for nothing here: "$"; write the ` +
			`name of a field, or \$ for a member of this name`},
		{"Apicurio's numbers", with(func(r *SchemaRegistry) {
			r.Type, r.IDIn, r.UseID, r.IDBytes = RegistryApicurio, IDInValue, UseGlobalID, 8
		}), ""},
		{"an unknown type", with(func(r *SchemaRegistry) { r.Type = "confluence" }),
			"schema_registry.type: must be confluent, apicurio, glue, azure or files, got " +
				`"confluence"; did you mean confluent?`},
		{"files alone", func(c *Config) {
			avro(c)
			c.Topics[0].Schema = "shop.Order"
			c.SchemaRegistry.Type, c.SchemaRegistry.Schemas = RegistryFiles, []string{"registry.go"}
		}, ""},
		{"no files", func(c *Config) { c.SchemaRegistry.Type = RegistryFiles },
			"schema_registry.schemas: is required with type: files"},
		{"a file that is not there", with(func(r *SchemaRegistry) {
			r.Schemas = []string{"registry.go", "7=gone.binpb"}
		}), "schema_registry.schemas[1]: must be a readable file: open gone.binpb: no such file or " +
			"directory"},
		{"files and a registry", with(func(r *SchemaRegistry) {
			r.Type, r.Schemas = RegistryFiles, []string{"registry.go"}
		}), "schema_registry.urls: is refused with type: files, which asks no registry"},
		{"a schema of no file", func(c *Config) {
			with(func(*SchemaRegistry) {})(c)
			c.Topics[0].Schema = "shop.Order"
		}, "schema_registry.schemas: is required with topics[0].schema"},
		{"Glue without an address", func(c *Config) {
			avro(c)
			c.SchemaRegistry.Type, c.SchemaRegistry.Region = RegistryGlue, "eu-central-1"
		}, ""},
		{"a region of no Glue", with(func(r *SchemaRegistry) { r.Region = "eu-central-1" }),
			"schema_registry.region: belongs to type: glue"},
		{"a name of no Glue", with(func(r *SchemaRegistry) { r.RegistryName = "orders" }),
			"schema_registry.registry_name: belongs to type: glue"},
		{"a login at Glue", with(func(r *SchemaRegistry) { r.Type, r.Token = RegistryGlue, "t" }),
			"schema_registry.type: glue takes the credentials of AWS; leave username, token and " +
				"oauth out"},
		{"two addresses of Glue", with(func(r *SchemaRegistry) {
			r.Type, r.URLs = RegistryGlue, []string{"https://a", "https://b"}
		}), "schema_registry.urls: has at most one address with type: glue"},
		{"a place with Azure", with(func(r *SchemaRegistry) {
			r.Type, r.IDIn = RegistryAzure, IDInHeader
		}), "schema_registry.id_in: belongs to type: confluent and apicurio"},
		{"an unknown place", with(func(r *SchemaRegistry) { r.IDIn = "headers" }),
			`schema_registry.id_in: must be any, value or header, got "headers"; did you mean header?`},
		{"an unknown number", with(func(r *SchemaRegistry) {
			r.Type, r.UseID = RegistryApicurio, "globalId"
		}), `schema_registry.use_id: must be content_id or global_id, got "globalId"; ` +
			"did you mean global_id?"},
		{"another one's numbers", with(func(r *SchemaRegistry) { r.UseID = UseGlobalID }),
			"schema_registry.use_id: belongs to type: apicurio"},
		{"another one's bytes", with(func(r *SchemaRegistry) { r.IDBytes = 8 }),
			"schema_registry.id_bytes: belongs to type: apicurio"},
		{"an odd number of bytes", with(func(r *SchemaRegistry) {
			r.Type, r.IDBytes = RegistryApicurio, 5
		}), "schema_registry.id_bytes: must be 4 or 8, got 5"},
		{"a password in a URL", with(func(r *SchemaRegistry) {
			r.URLs = append(r.URLs, "https://a:b@registry-2")
		}), "schema_registry.urls[1]: must be an https or http URL without a password"},
		{"no URL", with(func(r *SchemaRegistry) { r.URLs = []string{"registry:8081"} }),
			"schema_registry.urls[0]: must be an https or http URL without a password"},
		{"a password without a name", with(func(r *SchemaRegistry) { r.Password = "x" }),
			"schema_registry.username: is required with password"},
		{"a name without a password", with(func(r *SchemaRegistry) { r.Username = "x" }),
			"schema_registry.password: is required with username"},
		{"a name and a token", with(func(r *SchemaRegistry) {
			r.Username, r.Password, r.Token = "x", "y", "z"
		}), "schema_registry.token: excludes username; leave one of the two out"},
		{"tokens and headers", with(func(r *SchemaRegistry) {
			r.OAuth = RegistryOAuth{TokenURL: "https://login/token", ClientID: "kdedup",
				ClientSecret: "x", Scopes: []string{"a"}, Audience: "b"}
			r.Headers = []string{"target-sr-cluster=lsrc-1", "X_Y=a=b"}
		}), ""},
		{"tokens and a name", with(func(r *SchemaRegistry) {
			r.OAuth = RegistryOAuth{TokenURL: "https://login/token", ClientID: "kdedup",
				ClientSecret: "x"}
			r.Token = "y"
		}), "schema_registry.oauth.token_url: excludes username and token; " +
			"leave one of the two out"},
		{"tokens of nobody", with(func(r *SchemaRegistry) {
			r.OAuth.TokenURL, r.OAuth.ClientSecret = "https://login/token", "x"
		}), "schema_registry.oauth.client_id: is required"},
		{"tokens over http", with(func(r *SchemaRegistry) {
			r.OAuth = RegistryOAuth{TokenURL: "http://login/token", ClientID: "kdedup",
				ClientSecret: "x"}
		}), "schema_registry.oauth.token_url: must be an https URL without a password, " +
			"or http on a loopback host"},
		{"no endpoint", with(func(r *SchemaRegistry) { r.OAuth.Audience = "a" }),
			"schema_registry.oauth.token_url: is required with the other settings of oauth"},
		{"a header without a value", with(func(r *SchemaRegistry) { r.Headers = []string{"a="} }),
			"schema_registry.headers[0]: must be name=value with the name of a header other " +
				`than Authorization, got "a"`},
		{"a header that has a setting", with(func(r *SchemaRegistry) {
			r.Headers = []string{"authorization=Basic x"}
		}), "schema_registry.headers[0]: must be name=value with the name of a header other " +
			`than Authorization, got "authorization"`},
		{"two headers in one", with(func(r *SchemaRegistry) { r.Headers = []string{"a=b\nc: d"} }),
			"schema_registry.headers[0]: must be name=value with the name of a header other " +
				`than Authorization, got "a"`},
		{"TLS without https", with(func(r *SchemaRegistry) {
			r.URLs, r.TLS.Enabled = []string{"http://registry:8081"}, true
		}), "schema_registry.tls.enabled: has no effect on http URLs; write https in urls"},
		{"a timeout of nothing", with(func(r *SchemaRegistry) { r.Timeout = 0 }),
			"schema_registry.timeout: must be at least 100ms, got 0s"},
		{"a path into a text", func(c *Config) {
			with(func(*SchemaRegistry) {})(c)
			c.Topics[0].MessageID.Path = "p|json.id"
		}, `topics[0].message_id.path: must not lead into a document within a string: ` +
			`"p|json.id"; name the string: p`},
		{"a subject of a header", func(c *Config) { c.Topics[0].MessageID.Subject = "s" },
			"topics[0].message_id.subject: belongs to from: avro, protobuf and json_schema, " +
				"not to from: header"},
	})
}
