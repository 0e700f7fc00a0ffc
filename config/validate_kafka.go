package config

import (
	"fmt"
	"net/url"
	"strings"
)

func (k Kafka) check(p *problems) {
	p.addresses("kafka.brokers", k.Brokers)
	k.TLS.check(p, "kafka.tls")
	k.SASL.check(p)
	if k.SASL.Mechanism == SASLAWS && !k.TLS.Enabled {
		p.add("kafka.tls.enabled", "", "must be true with kafka.sasl.mechanism %s", SASLAWS)
	}
}

const saslPath = "kafka.sasl"

func (s SASL) check(p *problems) {
	if s.Mechanism != "" && !oneOf(p, saslPath+".mechanism", s.Mechanism, SASLPlain, SASLScram256,
		SASLScram512, SASLOAuthBearer, SASLAWS) {
		return // what belongs to it is anybody's guess
	}
	byPassword := s.Mechanism == SASLPlain || s.Mechanism == SASLScram256 ||
		s.Mechanism == SASLScram512
	s.only(p, byPassword, "plain or scram-sha-…",
		saslSetting{"username", s.Username, true},
		saslSetting{"password", s.Password.Reveal(), true})
	s.OAuth.check(p, s)
	s.only(p, s.Mechanism == SASLAWS, SASLAWS,
		saslSetting{"aws.profile", s.AWS.Profile, false},
		saslSetting{"aws.role_arn", s.AWS.RoleARN, false})
	if s.AWS.RoleARN != "" && !strings.HasPrefix(s.AWS.RoleARN, "arn:") {
		p.add(saslPath+".aws.role_arn", "",
			"must be an ARN such as arn:aws:iam::123456789012:role/kafka, got %q", s.AWS.RoleARN)
	}
}

type saslSetting struct {
	key, value string
	required   bool
}

// only checks settings that belong to some mechanisms and mean nothing with the others.
func (s SASL) only(p *problems, applies bool, mechanisms string, settings ...saslSetting) {
	for _, setting := range settings {
		path := saslPath + "." + setting.key
		switch {
		case applies && setting.required && setting.value == "":
			p.add(path, "", "is required with kafka.sasl.mechanism %s", s.Mechanism)
		case applies || setting.value == "":
		case s.Mechanism == "":
			p.add(path, "set the mechanism", "has no effect without kafka.sasl.mechanism")
		default:
			p.add(path, "", "belongs to kafka.sasl.mechanism %s, not to %s", mechanisms,
				s.Mechanism)
		}
	}
}

func (o OAuth) check(p *problems, s SASL) {
	const path = saslPath + ".oauth"
	s.only(p, s.Mechanism == SASLOAuthBearer, SASLOAuthBearer,
		saslSetting{"oauth.token_url", o.TokenURL, true},
		saslSetting{"oauth.client_id", o.ClientID, true},
		saslSetting{"oauth.client_secret", o.ClientSecret.Reveal(), true},
		saslSetting{"oauth.scopes", strings.Join(o.Scopes, " "), false},
		saslSetting{"oauth.audience", o.Audience, false},
		saslSetting{"oauth.extensions", strings.Join(o.Extensions, ","), false},
		saslSetting{"oauth.ca_file", o.CAFile, false})
	if o.TokenURL != "" && !isTokenURL(o.TokenURL) {
		p.add(path+".token_url", "",
			"must be an https URL without a password, or http on a loopback host")
	}
	for i, extension := range o.Extensions {
		name, value, found := strings.Cut(extension, "=")
		if !found || value == "" || !isLetters(name) || name == "auth" {
			p.add(fmt.Sprintf("%s.extensions[%d]", path, i), "",
				"must be name=value with a name of letters other than auth, got %q", extension)
		}
	}
	p.readable(path+".ca_file", o.CAFile)
}

func isTokenURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())
}

// isLetters is what RFC 7628 allows in the name of an extension.
func isLetters(name string) bool {
	return name != "" && strings.Trim(name,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
